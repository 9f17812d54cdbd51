// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How connections open. The sink opens two, one after the other; on the first the source says that it begins, and the
//! data go over the second. Every packet is repeated as Linux 6.12 does:
//!
//! ```text
//!   sink ── SYN ─► source          0        1 SYN-ACK       2 ACK      the first connection
//!        ── SYN ─►                 3        4 SYN-ACK       5 ACK      the second
//!        ◄─ "begins", data ──      6, data                  7 ACK      the sink's clock begins with 6
//! ```
//!
//! A SYN is repeated after 1, 2, 3, 4, 5, 7, 11 s … (`tcp_syn_linear_timeouts`, `tcp_syn_retries`), a SYN-ACK after 1, 3, 7,
//! 15 and 31 s (`tcp_synack_retries`) and in answer to a SYN that comes again. The word that data follow is probed for, and
//! then repeated by its timer (RFC 8985, RFC 6298). Timers have no ticks here; the kernel's fire up to 36 ms later.

use super::host_time;
use super::round_trip::{LEAST_VARIANCE_US, RoundTrip};
use crate::emulator::Way;
use crate::link::Nanos;

/// Until the first packet is repeated (RFC 6298, section 2.1).
const FIRST_TIMEOUT: Nanos = 1_000_000_000;
/// `tcp_syn_retries`, and `tcp_syn_linear_timeouts` before them.
const SYN_RETRIES: u32 = 6;
/// See [`SYN_RETRIES`].
const SYN_LINEAR: u32 = 4;
/// `tcp_synack_retries`.
const SYN_ACK_RETRIES: u32 = 5;
/// Packets out of place are answered once in this time (`tcp_invalid_ratelimit`).
const ANSWER_EVERY: Nanos = 500_000_000;
/// The word is repeated by the timer so often (`tcp_retries2`).
const WORD_RETRIES: u32 = 15;

/// Bytes of packets that open a connection, of bare acknowledgments, and of the word that data follow.
const OPENING_BYTES: u32 = 60;
const ACK_BYTES: u32 = 52;
const WORD_BYTES: u32 = 53;

/// A packet of the opening.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Its place in the order above.
    pub step: u8,
    /// The source's clock: of a SYN-ACK when it was sent, of its ACK the same, which it echoes.
    stamp: Nanos,
}

impl Packet {
    /// Which way it goes, and its size in bytes.
    pub fn way(self) -> (Way, u32) {
        match self.step {
            0 | 3 => (Way::Return, OPENING_BYTES),
            1 | 4 => (Way::Forward, OPENING_BYTES),
            6 => (Way::Forward, WORD_BYTES),
            _ => (Way::Return, ACK_BYTES),
        }
    }
}

/// What a packet of the opening brings about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The data connection is open at the sink.
    SinkOpen,
    /// Both connections are open at the source.
    SourceOpen(Opened),
    /// The sink knows that data follow.
    Word,
}

/// How the data connection opened, as its source sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Sample of the round-trip time, microseconds; of a repeated SYN-ACK by its timestamp, in milliseconds.
    pub rtt_us: u32,
    /// The first window is of one segment: the SYN-ACK was repeated more than once, and by a timer, and no echo shows that the
    /// first had arrived (RFC 5681, section 3.1; `tcp_init_transfer`).
    pub one_segment: bool,
}

/// The two connections of a transfer while they open.
#[derive(Debug)]
pub struct Opening {
    control: Handshake,
    data: Handshake,
    /// When the sink asks for a connection: the first, then the second.
    asks: Option<Nanos>,
    word: Option<Word>,
    /// The source retransmits before its timer where SACK is agreed upon.
    probes: bool,
    /// The word has arrived before.
    answered: bool,
}

impl Opening {
    /// Begins at a time.
    pub fn new(at: Nanos, probes: bool) -> Self {
        let (control, data) = (Handshake::new(0), Handshake::new(3));
        Self { control, data, asks: Some(at), word: None, probes, answered: false }
    }

    /// When [`Opening::timer`] should be called.
    pub fn next_timer(&self) -> Option<Nanos> {
        let word = self.word.as_ref().and_then(|word| word.due);
        let handshakes =
            [&self.control, &self.data].into_iter().flat_map(|one| [one.sink.due, one.source.due]);
        handshakes.chain([self.asks, word]).flatten().min()
    }

    /// It is [`Opening::next_timer`].
    pub fn timer(&mut self, now: Nanos, out: &mut Vec<Packet>) {
        if self.asks.take_if(|at| *at <= now).is_some() {
            let first = self.control.sink.due.is_none() && self.control.sink.echo.is_none();
            if first { &mut self.control } else { &mut self.data }.ask(now, out);
        }
        self.control.timer(now, out);
        self.data.timer(now, out);
        if let Some(word) = &mut self.word {
            word.timer(now, out);
        }
    }

    /// A packet arrives, whichever way.
    pub fn arrive(&mut self, now: Nanos, packet: Packet, out: &mut Vec<Packet>) -> Option<Event> {
        match packet.step {
            0 => self.control.on_syn(now, out),
            1 if self.control.on_syn_ack(now, packet.stamp, out) => {
                self.asks = Some(now + host_time::CONNECT);
            }
            2 if self.control.on_ack(now, packet.stamp) => return self.accept(now, out),
            3 => self.data.on_syn(now, out),
            4 if self.data.on_syn_ack(now, packet.stamp, out) => return Some(Event::SinkOpen),
            5 if self.data.on_ack(now, packet.stamp) => return self.accept(now, out),
            6 => {
                out.push(Packet { step: 7, stamp: now });
                return (!std::mem::replace(&mut self.answered, true)).then_some(Event::Word);
            }
            7 => {
                if let Some(word) = &mut self.word {
                    word.due = None;
                }
            }
            _ => {}
        }
        None
    }

    /// The source has both connections, and says that it begins.
    fn accept(&mut self, now: Nanos, out: &mut Vec<Packet>) -> Option<Event> {
        let (control, data) = (self.control.source.opened?, self.data.source.opened?);
        self.word = Some(Word::new(now, control.rtt_us, self.probes, out));
        Some(Event::SourceOpen(data))
    }
}

/// The opening of one connection.
#[derive(Debug)]
struct Handshake {
    /// The number of its SYN.
    first_step: u8,
    sink: Sink,
    source: Source,
}

/// Who opens.
#[derive(Debug, Default)]
struct Sink {
    due: Option<Nanos>,
    /// SYNs that were repeated.
    repeated: u32,
    /// Stamp of the first SYN-ACK: the connection is open.
    echo: Option<Nanos>,
    /// When a SYN-ACK out of place was answered last.
    answered: Option<Nanos>,
}

/// Who is asked. A request waits until it is acknowledged.
#[derive(Debug, Default)]
struct Source {
    due: Option<Nanos>,
    /// When the first SYN-ACK was sent.
    first: Option<Nanos>,
    /// SYN-ACKs that were repeated, and how many of them by the timer.
    repeated: u32,
    timeouts: u32,
    answered: Option<Nanos>,
    opened: Option<Opened>,
}

impl Handshake {
    fn new(first_step: u8) -> Self {
        Self { first_step, sink: Sink::default(), source: Source::default() }
    }

    fn ask(&mut self, now: Nanos, out: &mut Vec<Packet>) {
        self.sink.due = Some(now + FIRST_TIMEOUT);
        out.push(Packet { step: self.first_step, stamp: now });
    }

    fn timer(&mut self, now: Nanos, out: &mut Vec<Packet>) {
        let sink = &mut self.sink;
        if sink.due.take_if(|at| *at <= now).is_some() && sink.repeated < SYN_LINEAR + SYN_RETRIES {
            sink.repeated += 1;
            sink.due = Some(now + (FIRST_TIMEOUT << sink.repeated.saturating_sub(SYN_LINEAR)));
            out.push(Packet { step: self.first_step, stamp: now });
        }
        let source = &mut self.source;
        if source.due.take_if(|at| *at <= now).is_some() {
            if source.timeouts >= SYN_ACK_RETRIES {
                // The request is dropped; a further SYN makes another.
                *source = Source::default();
                return;
            }
            source.timeouts += 1;
            self.repeat_syn_ack(now, out);
        }
    }

    fn repeat_syn_ack(&mut self, now: Nanos, out: &mut Vec<Packet>) {
        self.source.repeated += 1;
        self.source.due = Some(now + (FIRST_TIMEOUT << self.source.timeouts));
        out.push(Packet { step: self.first_step + 1, stamp: now });
    }

    fn on_syn(&mut self, now: Nanos, out: &mut Vec<Packet>) {
        let source = &mut self.source;
        if source.opened.is_some() {
            return;
        }
        if source.first.is_none() {
            source.first = Some(now);
            source.due = Some(now + FIRST_TIMEOUT);
            out.push(Packet { step: self.first_step + 1, stamp: now });
        } else if may_answer(&mut source.answered, now) {
            self.repeat_syn_ack(now, out);
        }
    }

    /// Whether that opens the connection at the sink.
    fn on_syn_ack(&mut self, now: Nanos, stamp: Nanos, out: &mut Vec<Packet>) -> bool {
        let sink = &mut self.sink;
        let opens = sink.echo.is_none();
        if opens || may_answer(&mut sink.answered, now) {
            // What comes again changes no clock: the echo stays that of the first.
            let stamp = *sink.echo.get_or_insert(stamp);
            sink.due = None;
            out.push(Packet { step: self.first_step + 2, stamp });
        }
        opens
    }

    /// Whether that opens the connection at the source.
    fn on_ack(&mut self, now: Nanos, echo: Nanos) -> bool {
        let source = &mut self.source;
        let Some(first) = source.first.filter(|_| source.opened.is_none()) else { return false };
        let milliseconds = |time: Nanos| time / 1_000_000;
        let rtt_us = if source.repeated == 0 {
            (now - first) / 1_000
        } else {
            (milliseconds(now) - milliseconds(echo)).max(1) * 1_000
        };
        let spurious = milliseconds(echo) == milliseconds(first);
        let one_segment = source.repeated > 1 && source.timeouts > 0 && !spurious;
        source.opened = Some(Opened { rtt_us: rtt_us as u32, one_segment });
        source.due = None;
        true
    }
}

/// Whether a packet out of place is answered, which it is now.
fn may_answer(answered: &mut Option<Nanos>, now: Nanos) -> bool {
    let may = answered.is_none_or(|last| now - last >= ANSWER_EVERY);
    if may {
        *answered = Some(now);
    }
    may
}

/// The word that data follow: a segment of one byte, repeated until it is acknowledged.
#[derive(Debug)]
struct Word {
    due: Option<Nanos>,
    timeout: Nanos,
    repeated: u32,
}

impl Word {
    fn new(now: Nanos, rtt_us: u32, probes: bool, out: &mut Vec<Packet>) -> Self {
        let mut round_trip = RoundTrip::default();
        round_trip.sample(rtt_us, 0, 0);
        let timeout = round_trip.timeout_us() * 1_000;
        let probe = Nanos::from(2 * rtt_us + LEAST_VARIANCE_US) * 1_000;
        out.push(Packet { step: 6, stamp: now });
        // A probe leaves the timeout as it is; the timer doubles it.
        let (wait, timeout) = if probes { (probe.min(timeout), timeout) } else { (timeout, 2 * timeout) };
        Self { due: Some(now + wait), timeout, repeated: 0 }
    }

    fn timer(&mut self, now: Nanos, out: &mut Vec<Packet>) {
        if self.due.take_if(|at| *at <= now).is_some() && self.repeated < WORD_RETRIES {
            self.repeated += 1;
            self.due = Some(now + self.timeout);
            self.timeout = (2 * self.timeout).min(120_000_000_000);
            out.push(Packet { step: 6, stamp: now });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was sent, and what came of it, with the times.
    type Course = (Vec<(u8, Nanos)>, Vec<(Event, Nanos)>);

    const SECOND: Nanos = 1_000_000_000;
    const HALF: Nanos = 50_000_000;

    /// An opening over a path of 50 ms each way that loses the packets of which `lost` says so, by step and by how many of the
    /// same went before: when what was sent, what came of it, and when.
    fn over(lost: impl Fn(u8, usize) -> bool) -> Course {
        let mut opening = Opening::new(0, true);
        let (mut sent, mut events, mut in_flight) = (Vec::new(), Vec::new(), Vec::<(Nanos, Packet)>::new());
        loop {
            let arrival = in_flight.iter().map(|(at, _)| *at).min();
            let Some(now) = opening.next_timer().into_iter().chain(arrival).min() else { break };
            let mut out = Vec::new();
            if arrival == Some(now) {
                let at = in_flight.iter().position(|(at, _)| *at == now).unwrap();
                let (_, packet) = in_flight.remove(at);
                events.extend(opening.arrive(now, packet, &mut out).map(|event| (event, now)));
            } else {
                opening.timer(now, &mut out);
            }
            for packet in out {
                let before = sent.iter().filter(|(step, _)| *step == packet.step).count();
                sent.push((packet.step, now));
                if !lost(packet.step, before) {
                    in_flight.push((now + HALF, packet));
                }
            }
        }
        (sent, events)
    }

    fn times(sent: &[(u8, Nanos)], of: u8) -> Vec<Nanos> {
        let own: Vec<Nanos> = sent.iter().filter(|(step, _)| *step == of).map(|(_, at)| *at).collect();
        own.iter().map(|at| (at - own[0]) / 1_000_000).collect()
    }

    fn opened(events: &[(Event, Nanos)]) -> (Opened, Nanos) {
        let open = |(event, at): &(Event, Nanos)| match event {
            Event::SourceOpen(opened) => Some((*opened, *at)),
            _ => None,
        };
        events.iter().find_map(open).expect("it opened")
    }

    #[test]
    fn an_opening_without_a_loss_sends_every_packet_once() {
        let (sent, events) = over(|_, _| false);
        let steps: Vec<u8> = sent.iter().map(|(step, _)| *step).collect();
        assert_eq!(steps, [0, 1, 2, 3, 4, 5, 6, 7]);
        let (opened, at) = opened(&events);
        assert_eq!(opened, Opened { rtt_us: 100_000, one_segment: false });
        assert_eq!(at, 5 * HALF + host_time::CONNECT);
        assert!(matches!(events.last(), Some((Event::Word, _))), "{events:?}");
    }

    #[test]
    fn a_lost_syn_is_repeated_after_a_second_and_after_five_by_doubling() {
        let (sent, events) = over(|step, before| step == 3 && before < 8);
        assert_eq!(times(&sent, 3), [0, 1_000, 2_000, 3_000, 4_000, 5_000, 7_000, 11_000, 19_000]);
        // Its loss shows the source nothing.
        assert_eq!(opened(&events).0, Opened { rtt_us: 100_000, one_segment: false });
    }

    #[test]
    fn who_is_never_answered_gives_up_after_ten_retransmissions() {
        let (sent, events) = over(|step, _| step == 0);
        assert_eq!(times(&sent, 0).len(), 11);
        assert_eq!(times(&sent, 0)[10], 67_000);
        assert!(events.is_empty());
    }

    #[test]
    fn a_lost_syn_ack_comes_again_and_the_window_is_one_segment_once_two_have() {
        // The SYN comes again in time to ask for it, before the timer.
        let (sent, events) = over(|step, before| step == 4 && before == 0);
        assert_eq!(times(&sent, 4), [0, 1_000]);
        assert_eq!(opened(&events).0, Opened { rtt_us: 100_000, one_segment: false });
        // SYNs that are lost, too, leave it to the timer.
        let (sent, events) =
            over(|step, before| step == 4 && before < 2 || step == 3 && (1..3).contains(&before));
        assert_eq!(times(&sent, 4)[..2], [0, 1_000]);
        assert!(opened(&events).0.one_segment, "{events:?}");
    }

    #[test]
    fn a_lost_ack_leaves_the_window_whole_and_is_taken_for_a_second_of_delay() {
        let (sent, events) = over(|step, before| step == 5 && before == 0);
        assert_eq!((times(&sent, 4), times(&sent, 5)), (vec![0, 1_000], vec![0, 1_000]));
        assert_eq!(opened(&events).0, Opened { rtt_us: 1_100_000, one_segment: false });
        // Of the first connection: the source begins once it has both.
        let (_, events) = over(|step, before| step == 2 && before == 0);
        let (opened, at) = opened(&events);
        assert_eq!((opened.rtt_us, at / SECOND), (100_000, 1));
    }

    #[test]
    fn a_lost_word_is_probed_for_and_then_repeated_by_its_timer() {
        let (sent, events) = over(|step, before| step == 6 && before < 3);
        // Two round-trip times and 200 ms, or the timeout of 300 ms; that again, and twice.
        assert_eq!(times(&sent, 6), [0, 300, 600, 1_200]);
        let words = events.iter().filter(|(event, _)| *event == Event::Word).count();
        assert_eq!(words, 1);
        let (sent, events) = over(|step, before| step == 7 && before == 0);
        assert_eq!((times(&sent, 6).len(), times(&sent, 7).len()), (2, 2));
        assert_eq!(events.iter().filter(|(event, _)| *event == Event::Word).count(), 1);
    }

    #[test]
    fn whatever_is_lost_the_connection_opens_while_retries_last() {
        for seed in 0..2_000_u64 {
            let lost = |step: u8, before: usize| {
                let mixed = crate::digest::mix(seed << 16 ^ u64::from(step) << 8 ^ before as u64, 7);
                before < 4 && mixed % 10 < 3
            };
            let (_, events) = over(lost);
            let last =
                events.iter().map(|(event, _)| matches!(event, Event::Word)).filter(|word| *word).count();
            assert_eq!(last, 1, "seed {seed}: {events:?}");
        }
    }
}
