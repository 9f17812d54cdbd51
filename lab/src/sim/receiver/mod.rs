// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A TCP receiver, as Linux is one: reassembly, when it acknowledges, and the window that it offers ([`window`]). Its
//! application reads as the lab's sink does: it is woken when so much waits ([`Reader`]) and takes all of it.

mod limit;
mod window;

use std::collections::BTreeMap;

use super::segment::{Ack, BLOCKS, Data, Layout, Range};
use crate::host::HostSpec;
use crate::link::Nanos;
pub use limit::receiver_limit;
use window::Window;

/// Acknowledgments of single segments at the begin of a connection, at most.
const QUICK: u32 = 16;
/// A delayed acknowledgment waits so long at least, nanoseconds.
const LEAST_DELAY: Nanos = 40_000_000;
/// And at most.
const MOST_DELAY: Nanos = 200_000_000;
/// Acknowledgments of what is out of order that go at once; more are put together.
const AT_ONCE: u32 = 3;
/// So many are put together at most.
const TOGETHER: u32 = 44;
/// They go at once where the blocks reported last would not cover all: from this one on.
const BLOCKS_EXPECTED: usize = 2;
/// And for so long at most, nanoseconds; or for a twentieth of the round-trip time.
const TOGETHER_FOR: Nanos = 1_000_000;

/// What can be set about a receiver.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverSpec {
    /// Bytes of a full segment.
    pub mss: u32,
    /// Initial and largest receive buffer, bytes (`tcp_rmem`).
    pub buffer_bytes: [u64; 2],
    /// The buffer grows with the rate.
    pub grows: bool,
    /// Selective acknowledgments are agreed upon.
    pub sack: bool,
    /// Every segment is acknowledged at once.
    pub quickack: bool,
}

impl ReceiverSpec {
    /// That of a host of the lab.
    pub fn new(host: &HostSpec) -> Self {
        Self {
            mss: host.mss(),
            buffer_bytes: [host.tcp_rmem[1], host.tcp_rmem[2]],
            grows: host.tcp_moderate_rcvbuf,
            sack: host.tcp_sack,
            quickack: host.quickack,
        }
    }
}

/// A TCP receiver with its application.
#[derive(Debug)]
pub struct Receiver {
    spec: ReceiverSpec,
    window: Window,
    /// The first segment that is missing.
    next: u32,
    /// What has arrived beyond.
    early: BTreeMap<u32, u32>,
    /// The same, latest first, as blocks are reported.
    recent: Vec<Range>,
    /// The first segment that was not acknowledged when the last acknowledgment was sent.
    acknowledged: u32,
    /// The clock to echo, microseconds.
    echo_us: u64,
    /// Segments that are acknowledged at once.
    quick: u32,
    /// A segment that ended a burst waits for its acknowledgment.
    pushed: bool,
    delay: Delay,
    /// When a delayed acknowledgment, or several put together, are due.
    due: Option<Nanos>,
    /// Acknowledgments put together, those sent at once before, and up to where.
    together: u32,
    at_once: u32,
    at_once_next: u32,
    duplicate: Option<u32>,
}

/// How long an acknowledgment is delayed: about the time between segments.
#[derive(Debug, Default)]
struct Delay {
    length: Nanos,
    last: Option<Nanos>,
}

impl Delay {
    fn arrived(&mut self, now: Nanos) {
        if let Some(last) = self.last.replace(now) {
            let gap = now - last;
            if gap <= LEAST_DELAY / 2 {
                self.length = self.length / 2 + LEAST_DELAY / 2;
            } else if gap < self.length {
                self.length = self.length / 2 + gap;
            }
        }
        self.length = self.length.max(LEAST_DELAY);
    }
}

/// Acknowledgments to be sent now.
pub type Acks = Vec<Ack>;

impl Receiver {
    /// A connection that is established at `now`.
    pub fn new(spec: ReceiverSpec, now: Nanos) -> Self {
        Self {
            window: Window::new(&spec, now),
            spec,
            next: 0,
            early: BTreeMap::new(),
            recent: Vec::new(),
            acknowledged: 0,
            echo_us: 0,
            quick: QUICK,
            pushed: false,
            delay: Delay::default(),
            due: None,
            together: 0,
            at_once: 0,
            at_once_next: 0,
            duplicate: None,
        }
    }

    /// The byte of the stream up to which there was room at first.
    pub fn first_window(&self) -> u64 {
        self.window.offered_end()
    }

    /// So many bytes more will come: the reader does not wait for others.
    pub fn expect(&mut self, bytes: u64) {
        self.window.expect(bytes);
    }

    /// Segments that have arrived in order.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// When [`Receiver::timer`] should be called.
    pub fn next_timer(&self) -> Option<Nanos> {
        self.due
    }

    /// A segment arrives.
    pub fn arrive(&mut self, now: Nanos, data: &Data, layout: &Layout, acks: &mut Acks) {
        let sequence = data.sequence;
        self.delay.arrived(now);
        if sequence < self.next || self.is_early(sequence) {
            self.duplicate = Some(sequence);
            self.answer(now, layout, acks);
            return;
        }
        let bytes = layout.bytes(sequence);
        self.window.sample(now, data.echo_us);
        if sequence > self.next {
            let opens = self.window.hold(bytes);
            self.quick |= u32::from(opens);
            if self.together > 0 && self.place(sequence) >= BLOCKS_EXPECTED {
                self.answer(now, layout, acks);
            }
            self.keep(sequence);
            self.answer_early(now, layout, acks);
            return;
        }
        // RFC 7323, section 4.3: the clock of the first segment that is not acknowledged.
        if self.next == self.acknowledged {
            self.echo_us = data.sent_us;
        }
        let filled = self.take(sequence);
        self.pushed |= data.push || bytes < self.spec.mss;
        let behind = layout.begin(self.next) - layout.begin(sequence + 1);
        let opens = self.window.arrive(bytes, behind);
        self.quick |= u32::from(opens);
        let unanswered = layout.begin(self.next) - layout.begin(self.acknowledged);
        let full = unanswered > u64::from(self.spec.mss)
            && (self.window.is_below_low_water() || self.window.select() >= self.window.offered());
        let repaired = filled > 1 && self.early.is_empty();
        if full || self.quick > 0 || self.spec.quickack || repaired {
            self.answer(now, layout, acks);
        } else if self.early.is_empty() {
            self.wait(now);
        } else {
            self.answer_early(now, layout, acks);
        }
    }

    /// The application reads what waits, if that is enough to wake it; whether it did.
    pub fn read(&mut self, now: Nanos, layout: &Layout, acks: &mut Acks) -> bool {
        if !self.window.wakes_reader() {
            return false;
        }
        self.window.read(now);
        let unanswered = layout.begin(self.next) - layout.begin(self.acknowledged);
        let wanted = self.due.is_some() && self.together == 0;
        let widened = self.window.may_double(layout.begin(self.acknowledged));
        if wanted && (unanswered > u64::from(self.spec.mss) || self.pushed) || widened {
            self.answer(now, layout, acks);
        }
        true
    }

    /// It is [`Receiver::next_timer`].
    pub fn timer(&mut self, now: Nanos, layout: &Layout, acks: &mut Acks) {
        self.answer(now, layout, acks);
    }

    fn is_early(&self, sequence: u32) -> bool {
        self.early.range(..=sequence).next_back().is_some_and(|(_, end)| sequence < *end)
    }

    /// Takes a segment in order, and what had arrived behind it; returns how many.
    fn take(&mut self, sequence: u32) -> u32 {
        self.next = sequence + 1;
        if let Some(end) = self.early.remove(&self.next) {
            self.next = end;
        }
        if !self.recent.is_empty() {
            let next = self.next;
            self.recent.retain(|(start, _)| *start >= next);
        }
        self.next - sequence
    }

    /// Which of the blocks a segment lengthens, latest first; how many there are if none.
    fn place(&self, sequence: u32) -> usize {
        let lengthened = |(start, end): &Range| *end == sequence || *start == sequence + 1;
        self.recent.iter().position(lengthened).unwrap_or(self.recent.len())
    }

    /// Keeps a segment that came out of order.
    fn keep(&mut self, sequence: u32) {
        let (mut start, mut end) = (sequence, sequence + 1);
        if let Some((&before, &before_end)) = self.early.range(..sequence).next_back()
            && before_end == sequence
        {
            start = before;
        }
        if let Some(after_end) = self.early.remove(&end) {
            self.recent.retain(|(known, _)| *known != end);
            end = after_end;
        }
        self.early.insert(start, end);
        self.recent.retain(|(known, _)| *known != start);
        self.recent.insert(0, (start, end));
        self.recent.truncate(BLOCKS + 1);
    }

    /// What is out of order is reported at once three times, then put together for a moment.
    fn answer_early(&mut self, now: Nanos, layout: &Layout, acks: &mut Acks) {
        if self.at_once_next != self.next {
            (self.at_once_next, self.at_once) = (self.next, 0);
        }
        if self.quick > 0 || self.spec.quickack || !self.spec.sack || self.together >= TOGETHER {
            self.answer(now, layout, acks);
            return;
        }
        if self.at_once < AT_ONCE {
            self.at_once += 1;
            self.answer(now, layout, acks);
            return;
        }
        self.together += 1;
        if self.together == 1 {
            let share = self.window.rtt_us() * 1_000 / 20;
            self.due = Some(now + TOGETHER_FOR.min(share));
        }
    }

    fn wait(&mut self, now: Nanos) {
        let due = now + self.delay.length.min(MOST_DELAY);
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    fn answer(&mut self, now: Nanos, layout: &Layout, acks: &mut Acks) {
        let mut ack = Ack { next: self.next, sent_us: now / 1_000, echo_us: self.echo_us, ..Ack::default() };
        ack.duplicate = self.duplicate.take();
        if self.spec.sack {
            let most = BLOCKS - usize::from(ack.duplicate.is_some());
            for (block, known) in ack.blocks.iter_mut().zip(self.recent.iter().take(most)) {
                *block = *known;
                ack.block_count += 1;
            }
        } else {
            ack.duplicate = None;
        }
        ack.window_end = self.window.offer(layout.begin(self.next));
        self.quick = self.quick.saturating_sub(1);
        self.acknowledged = self.next;
        (self.due, self.together, self.pushed) = (None, 0, false);
        acks.push(ack);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_together_is_reported_before_its_blocks_are_forgotten() {
        let spec = ReceiverSpec {
            mss: 1_448,
            buffer_bytes: [1_000_000, 1_000_000],
            grows: false,
            sack: true,
            quickack: false,
        };
        let mut receiver = Receiver::new(spec, 0);
        let mut layout = Layout::new(1_448);
        layout.write(1_200 * 1_448);
        let mut acks = Acks::new();
        let mut arrive = |sequence: u32, acks: &mut Acks| {
            let data = Data { sequence, sent_us: 1, echo_us: 1, push: false };
            let now = 1_000_000_000 + Nanos::from(sequence) * 1_000;
            receiver.arrive(now, &data, &layout, acks);
            receiver.read(now, &layout, acks);
            receiver.next_timer()
        };
        // Until the window opens no more, and nothing is acknowledged at once for that.
        for sequence in 0..1_000 {
            arrive(sequence, &mut acks);
        }
        // Every second segment is lost, and the others come within the time that is waited.
        acks.clear();
        let arrived: Vec<u32> = (0..80).map(|number| 1_001 + 2 * number).collect();
        let mut due = None;
        for sequence in &arrived {
            due = arrive(*sequence, &mut acks);
        }
        receiver.timer(due.expect("the last waits"), &layout, &mut acks);
        let reported = |sequence: u32| {
            acks.iter().flat_map(Ack::blocks).any(|(start, end)| (*start..*end).contains(&sequence))
        };
        let missing: Vec<_> = arrived.iter().filter(|sequence| !reported(**sequence)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
