// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One direction of a link: its parts put together.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::access::Head;
use super::cross::Cross;
use super::queue::Queue;
use super::random::{Random, purpose};
use super::reordering::Reordering;
use super::spec::{RATES_BPS, within};
use super::transmitter::Transmitter;
use super::waiting::Waiting;
use super::{
    Counters, Depth, DirectionSpec, DropCause, Jitter, Limit, LinkSample, LinkSpec, Loss, Nanos, RangeError,
    RateSpec, build, handover, jitter, loss, micros, outage, rate,
};

/// The flow that cross traffic is.
const CROSS_FLOW: u64 = u64::MAX;

/// A packet that reaches the queue.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<P> {
    /// Of any representation.
    pub packet: P,
    /// Size, bytes.
    pub bytes: u32,
    /// Its sender takes part in explicit congestion notification.
    pub capable: bool,
    /// Which flow it is of, any number but the largest: flows may have queues of their own.
    pub flow: u64,
    /// What its flow has of delay behind the link, besides the link's own. It is the same for all packets of a flow, which
    /// therefore keep their order; flows may overtake each other.
    pub own_delay: Nanos,
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
    /// Active queue management has marked it: it signals congestion (RFC 3168).
    pub marked: bool,
}

/// What to change about a direction that is in use. What is `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Rate, bit/s, 1 000 to 100 000 000 000. A rate that varied is constant from then on; outages, handovers and
    /// schedule stay.
    pub rate_bps: Option<u64>,
    /// Propagation delay, microseconds, 0 to 10 000 000. Its variation is still added.
    pub delay_us: Option<u64>,
}

impl Change {
    /// Checks every value against its range; `key` names the direction.
    ///
    /// # Errors
    /// [`RangeError`] with the first value that is out of range.
    pub fn validate(&self, key: &str) -> Result<(), RangeError> {
        if let Some(rate_bps) = self.rate_bps {
            within(format!("{key}.rate_bps"), rate_bps, RATES_BPS)?;
        }
        self.delay_us.map_or(Ok(()), |delay| within(format!("{key}.delay_us"), delay, 0..=10_000_000))
    }
}

/// One direction of a link, carrying packets of any representation `P`.
///
/// Calls must come in order of time. Times inside the model do not depend on how late or how often the driver calls
/// [`Direction::deliver`]: transmission continues from one packet to the next by itself.
pub struct Direction<P> {
    key: String,
    /// The start of the link on the driver's clock. All other times count from it.
    start: Option<Nanos>,
    queue: Queue<P>,
    transmitter: Transmitter,
    cross: Option<Cross>,
    loss: Option<Box<dyn Loss>>,
    propagation: Nanos,
    jitter: Vec<Box<dyn Jitter>>,
    reordering: Option<Reordering>,
    /// Packets have had a delay of their own, so that others may overtake them.
    own_delays: bool,

    /// In order of their dues.
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
    /// microseconds from the first packet on (0: not at all). The two directions of a link have the seeds `2 n` and
    /// `2 n + 1`: equal parts must not vary in step, but handovers must.
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
        let limit = match (spec.queue_bytes, spec.queue_packets) {
            (Some(bytes), _) => Limit::Bytes(bytes),
            (None, packets) => Limit::Packets(packets.unwrap_or(1)),
        };
        let mut rates = vec![rate::build(spec.rate_bps, spec.rate.as_ref(), random(purpose::RATE))];
        let outages = (purpose::OUTAGES..).zip(&spec.outages);
        rates.extend(outages.map(|(stream, spec)| outage::build(spec, random(stream))));
        let jitter = (purpose::JITTER..).zip(&spec.jitter);
        let mut jitter: Vec<_> = jitter.map(|(stream, spec)| jitter::build(spec, random(stream))).collect();
        jitter.extend(traced_delay(spec));
        if let Some(spec) = &spec.handover {
            let (delay, outage) = handover::build(spec, seed);
            jitter.push(delay);
            rates.extend(outage);
        }
        let schedule = spec.schedule.as_ref().map(|spec| build::access(spec, random(purpose::SCHEDULE)));
        Ok(Self {
            key: key.into(),
            start: None,
            queue: build::queue(limit, spec.aqm.as_ref(), random(purpose::AQM)),
            transmitter: Transmitter::new(rates, schedule),
            cross: spec.cross.as_ref().map(|spec| Cross::new(spec, random(purpose::CROSS))),
            loss: spec.loss.as_ref().map(|spec| loss::build(spec, random(purpose::LOSS))),
            propagation: micros(spec.delay_us),
            jitter,
            reordering: spec
                .reordering
                .as_ref()
                .map(|spec| Reordering::new(spec, random(purpose::REORDERING))),
            own_delays: false,
            on_the_way: VecDeque::new(),
            last_due: 0,
            last_delay: 0,
            counters: Counters::default(),
            samples: Vec::new(),
            sample_period: micros(sample_period_us),
            next_sample: None,
        })
    }

    /// Both directions of a link, forward and return, as every driver with this seed has them.
    ///
    /// # Errors
    /// As [`Direction::new`]; the keys are `link.forward` and `link.return`.
    pub fn pair(link: &LinkSpec, seed: u64, sample_period_us: u64) -> Result<[Self; 2], RangeError> {
        // Each direction has its own seed: equal parts of both must not vary in step.
        let seed = seed.wrapping_mul(2);
        let forward = Self::new(&link.forward, "link.forward", seed, sample_period_us)?;
        let back = Self::new(&link.back, "link.return", seed.wrapping_add(1), sample_period_us)?;
        Ok([forward, back])
    }

    /// Lets the link begin at `now`: from then on rates and delays vary and cross traffic flows. Without this it
    /// begins with the first arrival. Calls after the begin mean nothing.
    pub fn start(&mut self, now: Nanos) {
        self.start.get_or_insert(now);
    }

    /// A packet of `bytes` reaches the queue at `now`.
    ///
    /// # Errors
    /// The packet and the cause, when it is dropped at once.
    pub fn arrive(&mut self, now: Nanos, packet: P, bytes: u32) -> Result<(), (P, DropCause)> {
        self.arrive_of(now, Arrival { packet, bytes, capable: false, flow: 0, own_delay: 0 })
    }

    /// The same, with all that there is to say of it.
    ///
    /// # Errors
    /// As [`Direction::arrive`].
    pub fn arrive_of(&mut self, now: Nanos, arrival: Arrival<P>) -> Result<(), (P, DropCause)> {
        let Arrival { packet, bytes, capable, flow, own_delay } = arrival;
        self.start(now);
        let now = self.local(now);
        if self.next_sample.is_none() && self.sample_period > 0 {
            self.next_sample = Some(now);
        }
        self.advance_to(now);
        self.counters.arrived.add(bytes);
        self.transmitter.arrived(now, bytes);
        self.make_room(bytes);
        if let Some(cause) = self.queue.refuses(now, bytes) {
            self.counters.dropped(cause).add(bytes);
            return Err((packet, cause));
        }
        self.own_delays |= own_delay > 0;
        self.enqueue(Waiting {
            packet: Some(packet),
            bytes,
            flow,
            arrived: now,
            capable,
            own_delay,
            marked: false,
        });
        Ok(())
    }

    /// The next packet that is due at `now` or was before; `None` when there is none yet.
    pub fn deliver(&mut self, now: Nanos) -> Option<Delivery<P>> {
        let now = self.local(now);
        self.advance_to(now);
        if self.on_the_way.front()?.due > now {
            return None;
        }
        let delivery = self.on_the_way.pop_front()?;
        self.counters.delivered.add(delivery.bytes);
        Some(Delivery { due: self.global(delivery.due), ..delivery })
    }

    /// When [`Direction::deliver`] should be called next, at the latest; `None` while the link holds nothing but cross
    /// traffic. The packet may turn out to be due later, or to be lost; after a call that returned `None`, this is
    /// later than the time of the call.
    pub fn next_due(&self) -> Option<Nanos> {
        let next = match self.on_the_way.front().map(|delivery| delivery.due) {
            // Nothing overtakes it.
            Some(due) if self.reordering.is_none() && !self.own_delays => due,
            on_the_way => on_the_way.into_iter().chain(self.next_from_transmitter()).min()?,
        };
        Some(self.global(next))
    }

    /// When the next packet is due that [`Direction::deliver`] would hand over now or later, of those that have left the
    /// transmitter by now.
    pub(super) fn first_due(&mut self, now: Nanos) -> Option<Nanos> {
        self.advance(now);
        Some(self.global(self.on_the_way.front()?.due))
    }

    /// When the next packet from the transmitter may be due.
    fn next_from_transmitter(&self) -> Option<Nanos> {
        let next = self.transmitter.next().filter(|_| self.queues_any())?;
        Some(next.saturating_add(self.propagation))
    }

    /// Changes the direction while it is in use. What the transmitter has sent of the current packet by `now` is
    /// sent; the rest goes at the new rate. Packets that have left the transmitter keep their delay, and those that
    /// leave it later do not overtake them because of the change.
    ///
    /// # Errors
    /// [`RangeError`] for a value out of range; nothing is changed then.
    pub fn change(&mut self, now: Nanos, change: Change) -> Result<(), RangeError> {
        change.validate(&self.key)?;
        let now = self.local(now);
        self.advance_to(now);
        if let Some(rate_bps) = change.rate_bps {
            self.transmitter.set_rate(now, rate_bps);
        }
        if let Some(delay_us) = change.delay_us {
            self.propagation = micros(delay_us);
        }
        Ok(())
    }

    /// Totals so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// For how long all of the medium would have carried what was assigned to the transmitter from the begin to `now`;
    /// `None` without bandwidth on demand.
    pub fn assigned(&mut self, now: Nanos) -> Option<Nanos> {
        self.advance(now);
        self.transmitter.assigned(self.local(now))
    }

    /// What the queue holds now, cross traffic included.
    pub fn depth(&self) -> Depth {
        self.queue.depth()
    }

    /// Packets that have left the transmitter and are not delivered yet.
    pub fn on_the_way(&self) -> usize {
        self.on_the_way.len()
    }

    /// Whether there is a packet that is not delivered yet; cross traffic is none.
    pub(super) fn holds_any(&self) -> bool {
        self.queues_any() || !self.on_the_way.is_empty()
    }

    fn queues_any(&self) -> bool {
        self.queue.depth().packets > self.counters.cross_queued()
    }

    /// Logs no more.
    pub(super) fn end_log(&mut self) {
        (self.sample_period, self.next_sample) = (0, None);
    }

    /// The log since the last call.
    pub fn take_samples(&mut self) -> Vec<LinkSample> {
        std::mem::take(&mut self.samples)
    }

    /// Brings queue, transmitter and log to `now`. The other calls do it by themselves; a driver needs it only to
    /// complete the log at the end.
    pub fn advance(&mut self, now: Nanos) {
        self.advance_to(self.local(now));
    }

    fn local(&self, now: Nanos) -> Nanos {
        self.start.map_or(0, |start| now.saturating_sub(start))
    }

    fn global(&self, time: Nanos) -> Nanos {
        time.saturating_add(self.start.unwrap_or(0))
    }

    fn advance_to(&mut self, now: Nanos) {
        while let Some(at) = self.next_sample.filter(|at| *at <= now) {
            self.run(at);
            self.samples.push(self.sample(at));
            self.next_sample = Some(at + self.sample_period);
        }
        self.run(now);
    }

    /// Departures and cross traffic until `now`, in order of time; at the same time departures come first.
    fn run(&mut self, now: Nanos) {
        loop {
            let step = self.transmitter.next().filter(|at| *at <= now);
            let cross = self.cross.as_ref().map(Cross::next).filter(|at| *at <= now);
            match (step, cross) {
                (Some(step), cross) if cross.is_none_or(|cross| step <= cross) => {
                    if self.transmitter.step() {
                        self.depart(step);
                    }
                }
                (_, Some(at)) => self.arrive_cross(at),
                _ => return,
            }
        }
    }

    fn arrive_cross(&mut self, now: Nanos) {
        let Some(bytes) = self.cross.as_mut().map(Cross::take) else { return };
        self.counters.cross_arrived.add(bytes);
        self.transmitter.arrived(now, bytes);
        self.make_room(bytes);
        if self.queue.refuses(now, bytes).is_some() {
            self.counters.cross_dropped.add(bytes);
        } else {
            self.enqueue(Waiting {
                packet: None,
                bytes,
                flow: CROSS_FLOW,
                arrived: now,
                capable: false,
                own_delay: 0,
                marked: false,
            });
        }
    }

    fn enqueue(&mut self, waiting: Waiting<P>) {
        let now = waiting.arrived;
        self.queue.push(waiting);
        let depth = self.queue.depth();
        self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(depth.bytes);
        self.counters.max_queue_packets = self.counters.max_queue_packets.max(depth.packets);
        if self.transmitter.is_free() {
            self.transmit(now);
        }
    }

    /// Where others have to go for a packet of so many bytes, they do.
    fn make_room(&mut self, bytes: u32) {
        while let Some(waiting) = self.queue.evict(bytes) {
            self.dropped(&waiting, DropCause::QueueFull);
        }
    }

    /// A packet that had been taken is dropped.
    fn dropped(&mut self, waiting: &Waiting<P>, cause: DropCause) {
        let counter = match waiting.packet {
            Some(_) => self.counters.dropped(cause),
            None => &mut self.counters.cross_dropped,
        };
        counter.add(waiting.bytes);
    }

    /// Begins with the next packet, if there is one that active queue management lets pass.
    fn transmit(&mut self, now: Nanos) {
        while self.queue.next_turn() && self.queue.drops_head(now) {
            if self.queue.marks_head() {
                break;
            }
            let Some(waiting) = self.queue.drop_head() else { return };
            self.dropped(&waiting, DropCause::Aqm);
        }
        let waiting = self.queue.depth().packets as usize;
        if let Some(&Waiting { bytes, arrived, .. }) = self.queue.head() {
            let head = Head { bytes, arrived, waiting, free_since: self.transmitter.free_since() };
            self.transmitter.begin(now, head);
        }
    }

    /// The packet at the head has left the transmitter.
    fn depart(&mut self, now: Nanos) {
        if let Some(waiting) = self.queue.pop() {
            self.propagate(now, waiting);
        }
        self.transmit(now);
    }

    fn propagate(&mut self, departed: Nanos, waiting: Waiting<P>) {
        let Waiting { packet, bytes, arrived, own_delay, marked, .. } = waiting;
        let Some(packet) = packet else { return self.counters.cross_sent.add(bytes) };
        if self.loss.as_mut().is_some_and(|loss| loss.loses()) {
            return self.counters.dropped(DropCause::Loss).add(bytes);
        }
        let extra: Nanos = self.jitter.iter_mut().map(|jitter| jitter.extra(departed)).sum();
        self.last_due = self.last_due.max(departed + self.propagation + extra);
        self.last_delay = self.last_due - arrived;
        if marked {
            self.counters.marked.add(bytes);
        }
        let due = self.last_due + own_delay + self.reordering.as_mut().map_or(0, Reordering::later);
        let place = self.on_the_way.partition_point(|other| other.due <= due);
        self.on_the_way.insert(place, Delivery { packet, bytes, due, marked });
    }

    fn sample(&self, at: Nanos) -> LinkSample {
        let depth = self.queue.depth();
        LinkSample {
            at_ns: self.global(at),
            queue_bytes: depth.bytes,
            queue_packets: depth.packets,
            delivered_bytes: self.counters.delivered.bytes,
            dropped_queue_full: self.counters.dropped_queue_full.packets,
            dropped_aqm: self.counters.dropped_aqm.packets,
            dropped_loss: self.counters.dropped_loss.packets,
            delay_ns: self.last_delay,
        }
    }
}

/// The delay of a trace file, above the propagation delay.
fn traced_delay(spec: &DirectionSpec) -> Option<Box<dyn Jitter>> {
    let Some(RateSpec::Trace { rows, repeat_us, .. }) = &spec.rate else { return None };
    let steps: Vec<_> =
        rows.iter().filter_map(|row| Some((row.at_us, row.delay_us? - spec.delay_us))).collect();
    (!steps.is_empty()).then(|| jitter::stepped(steps.into_iter(), *repeat_us))
}
