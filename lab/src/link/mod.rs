// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Link models: pure, with time and randomness as arguments. No clock, no I/O, no thread. The emulator drives them
//! in real time, a simulator in virtual time, with the same result for the same arrivals.
//!
//! ```text
//!  arrive ─► queue (limit, AQM) ─► transmitter (rate, schedule) ─► propagation + jitter, in order ─► due
//!               │ full, AQM
//!               ▼ drop, counted by cause
//! ```
//!
//! The parts are traits in small files: [`Service`] (transmitter), [`Aqm`], [`Jitter`]. A rate trace, CoDel or
//! a handover is a further file and a further variant in [`spec`].

mod aqm;
mod jitter;
mod log;
mod on_demand;
mod random;
mod service;
pub mod spec;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use aqm::{Aqm, Depth};
pub use jitter::Jitter;
pub use log::{Count, Counters, DropCause, LinkSample};
pub use random::Random;
pub use service::{ConstantRate, Head, Pace, Service};
pub use spec::{AqmSpec, DirectionSpec, JitterSpec, LinkSpec, RangeError, ScheduleSpec};

/// Nanoseconds on a monotonic clock of the driver's choice.
pub type Nanos = u64;

/// Microseconds as [`Nanos`].
pub(crate) fn micros(microseconds: u64) -> Nanos {
    microseconds.saturating_mul(1_000)
}

/// Limit of a queue. It covers all packets not yet sent completely, the one being transmitted included, so that a
/// packet that fits waits at most the limit's transmission time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of IP packets.
    Bytes(u64),
    /// Packets of any size.
    Packets(u64),
}

/// A packet that has reached the far end.
#[derive(Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// What [`Direction::arrive`] was given.
    pub packet: P,
    /// Size, bytes.
    pub bytes: u32,
    /// When it is due there; the driver may be later.
    pub due: Nanos,
}

struct Waiting<P> {
    packet: P,
    bytes: u32,
    arrived: Nanos,
}

/// One direction of a link, carrying packets of any representation `P`.
///
/// Calls must come in order of time. Times inside the model do not depend on how late or how often the driver calls
/// [`Direction::deliver`]: transmission continues from one packet to the next by itself.
pub struct Direction<P> {
    limit: Limit,
    aqm: Option<Box<dyn Aqm>>,
    service: Box<dyn Service>,
    propagation: Nanos,
    jitter: Vec<Box<dyn Jitter>>,

    queue: VecDeque<Waiting<P>>,
    depth: Depth,
    /// When the packet at the head of the queue will have left.
    finish: Option<Nanos>,
    on_the_way: VecDeque<Delivery<P>>,
    last_due: Nanos,
    last_delay: Nanos,

    counters: Counters,
    samples: Vec<LinkSample>,
    sample_period: Nanos,
    next_sample: Option<Nanos>,
}

impl<P> Direction<P> {
    /// A direction as described, with randomness from `seed`, logging its state every `sample_period_us`
    /// microseconds from the first packet on (0: not at all).
    ///
    /// # Errors
    /// [`RangeError`] for a description out of range; `key` names it there.
    pub fn new(
        spec: &DirectionSpec,
        key: &str,
        seed: u64,
        sample_period_us: u64,
    ) -> Result<Self, RangeError> {
        spec.validate(key)?;
        // Streams are numbered by purpose: what one part draws does not depend on the others' presence.
        let random = |purpose| Random::new(seed, purpose);
        let service: Box<dyn Service> = match &spec.schedule {
            None => Box::new(ConstantRate::new(spec.rate_bps)),
            Some(schedule) => Box::new(on_demand::OnDemand::new(spec.rate_bps, schedule, random(2))),
        };
        Ok(Self {
            limit: match (spec.queue_bytes, spec.queue_packets) {
                (Some(bytes), _) => Limit::Bytes(bytes),
                (None, packets) => Limit::Packets(packets.unwrap_or(1)),
            },
            aqm: spec.aqm.as_ref().map(|aqm| Box::new(aqm::RandomDrop::new(aqm, random(1))) as Box<dyn Aqm>),
            service,
            propagation: micros(spec.delay_us),
            jitter: (16..)
                .zip(&spec.jitter)
                .map(|(stream, spec)| jitter::build(spec, random(stream)))
                .collect(),
            queue: VecDeque::new(),
            depth: Depth::default(),
            finish: None,
            on_the_way: VecDeque::new(),
            last_due: 0,
            last_delay: 0,
            counters: Counters::default(),
            samples: Vec::new(),
            sample_period: micros(sample_period_us),
            next_sample: None,
        })
    }

    /// A packet of `bytes` reaches the queue at `now`.
    ///
    /// # Errors
    /// The packet and the cause, when it is dropped.
    pub fn arrive(&mut self, now: Nanos, packet: P, bytes: u32) -> Result<(), (P, DropCause)> {
        if self.next_sample.is_none() && self.sample_period > 0 {
            self.next_sample = Some(now);
        }
        self.advance(now);
        self.counters.arrived.add(bytes);
        if let Some(cause) = self.refuses(bytes) {
            self.counters.dropped(cause).add(bytes);
            return Err((packet, cause));
        }
        self.queue.push_back(Waiting { packet, bytes, arrived: now });
        self.depth.packets += 1;
        self.depth.bytes += u64::from(bytes);
        self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(self.depth.bytes);
        self.counters.max_queue_packets = self.counters.max_queue_packets.max(self.depth.packets);
        if self.finish.is_none() {
            self.finish = Some(self.service.transmit(now, Head { bytes, waiting: 1 }));
        }
        Ok(())
    }

    /// The next packet that is due at `now` or was before; `None` when there is none yet.
    pub fn deliver(&mut self, now: Nanos) -> Option<Delivery<P>> {
        self.advance(now);
        if self.on_the_way.front()?.due > now {
            return None;
        }
        let delivery = self.on_the_way.pop_front()?;
        self.counters.delivered.add(delivery.bytes);
        Some(delivery)
    }

    /// When [`Direction::deliver`] should be called next, at the latest; `None` while the link is empty. With a
    /// schedule or jitter the packet may turn out to be due later.
    pub fn next_due(&self) -> Option<Nanos> {
        let on_the_way = self.on_the_way.front().map(|delivery| delivery.due);
        on_the_way.or_else(|| Some(self.finish? + self.propagation))
    }

    /// Totals so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What the queue holds now.
    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// Packets that have left the transmitter and are not delivered yet.
    pub fn on_the_way(&self) -> usize {
        self.on_the_way.len()
    }

    /// The log since the last call.
    pub fn take_samples(&mut self) -> Vec<LinkSample> {
        std::mem::take(&mut self.samples)
    }

    fn refuses(&mut self, bytes: u32) -> Option<DropCause> {
        let fits = match self.limit {
            Limit::Bytes(limit) => self.depth.bytes + u64::from(bytes) <= limit,
            Limit::Packets(limit) => self.depth.packets < limit,
        };
        if !fits {
            return Some(DropCause::QueueFull);
        }
        let aqm = self.aqm.as_mut()?;
        aqm.drops(self.depth, self.limit).then_some(DropCause::Aqm)
    }

    /// Brings queue, transmitter and log to `now`. The other calls do it by themselves; a driver needs it only to
    /// complete the log at the end.
    pub fn advance(&mut self, now: Nanos) {
        while let Some(at) = self.next_sample.filter(|at| *at <= now) {
            self.transmit_until(at);
            self.samples.push(self.sample(at));
            self.next_sample = Some(at + self.sample_period);
        }
        self.transmit_until(now);
    }

    fn transmit_until(&mut self, now: Nanos) {
        while let Some(departed) = self.finish.filter(|finish| *finish <= now) {
            self.finish = None;
            let Some(Waiting { packet, bytes, arrived }) = self.queue.pop_front() else { return };
            self.depth.packets -= 1;
            self.depth.bytes -= u64::from(bytes);
            let extra: Nanos = self.jitter.iter_mut().map(|jitter| jitter.extra(departed)).sum();
            self.last_due = self.last_due.max(departed + self.propagation + extra);
            self.last_delay = self.last_due.saturating_sub(arrived);
            self.on_the_way.push_back(Delivery { packet, bytes, due: self.last_due });
            if let Some(next) = self.queue.front() {
                let head = Head { bytes: next.bytes, waiting: self.queue.len() };
                self.finish = Some(self.service.transmit(departed, head));
            }
        }
    }

    fn sample(&self, at: Nanos) -> LinkSample {
        LinkSample {
            at_ns: at,
            queue_bytes: self.depth.bytes,
            queue_packets: self.depth.packets,
            delivered_bytes: self.counters.delivered.bytes,
            dropped_queue_full: self.counters.dropped_queue_full.packets,
            dropped_aqm: self.counters.dropped_aqm.packets,
            delay_ns: self.last_delay,
        }
    }
}
