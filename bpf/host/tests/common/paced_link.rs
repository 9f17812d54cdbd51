//! An ideal link in virtual time for senders that space what they send: one FIFO queue in front of a fixed rate, a
//! fixed propagation delay, and a way back that may jitter, thin or bunch the ACKs. The sender does what the verdicts
//! say, segment by segment, and lets out what is left at the exit as the shell does. It ends with the first drop or the
//! last ACK; after the exit the window stays.

use std::collections::VecDeque;

use onramp_algorithm::{Ack, Flow, growth, outcome};

use super::link::{SEGMENT, acknowledge};
use super::random::Random;

#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Rate of the bottleneck, bits per second.
    pub rate: u64,
    /// RTT of an empty path, without the segment's own transmission.
    pub rtt_us: u64,
    /// Queue in percent of the bandwidth-delay product.
    pub queue_pct: u64,
    /// What becomes of the ACKs.
    pub back: Back,
    /// Of the jitter.
    pub seed: u64,
}

/// The way back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Back {
    /// Every ACK is late by up to so much, in order.
    pub jitter_us: u64,
    /// ACKs wait for a multiple of this; 0: not.
    pub hold_us: u64,
    /// ACKs that waited together arrive so far apart.
    pub gap_us: u64,
}

/// How a transfer went.
#[derive(Debug, Default)]
pub struct Transfer {
    /// Time of the exit and window then, segments.
    pub exit: Option<(u64, u32)>,
    /// Time of the first drop.
    pub drop_us: Option<u64>,
    /// Time of the last ACK.
    pub done_us: Option<u64>,
    /// Most that the queue held, segments.
    pub max_queue: u64,
}

impl Path {
    fn segment_ns(&self) -> u64 {
        SEGMENT * 8 * 1_000_000_000 / self.rate
    }

    /// Bandwidth-delay product, segments.
    pub fn bdp(&self) -> u64 {
        self.rtt_us * 1_000 / self.segment_ns()
    }

    /// A transfer of so many segments.
    pub fn carry(&self, flow: &mut Flow, segments: u64) -> Transfer {
        let ack = Ack { cwnd: 10, ssthresh: u32::MAX, mss: SEGMENT as u32, ..Ack::default() };
        Sender {
            path: self,
            segments,
            random: Random(self.seed),
            flight: VecDeque::new(),
            link_free_ns: 0,
            ack_ns: 0,
            departure_ns: 0,
            spacing_ns: 0,
            filling: false,
            now_ns: 0,
            sent: 0,
            acked: 0,
            most_in_flight: 0,
            ack,
            transfer: Transfer::default(),
        }
        .run(flow)
    }
}

struct Sender<'a> {
    path: &'a Path,
    segments: u64,
    random: Random,
    /// Departure and ACK of what is in flight, nanoseconds, and the receiver's clock between the two.
    flight: VecDeque<(u64, u64, u32)>,
    link_free_ns: u64,
    /// When the newest ACK arrives.
    ack_ns: u64,
    /// When the next segment may leave.
    departure_ns: u64,
    /// Time between departures; 0: none.
    spacing_ns: u64,
    /// After the exit, until the window is filled.
    filling: bool,
    now_ns: u64,
    sent: u64,
    acked: u64,
    most_in_flight: u64,
    ack: Ack,
    transfer: Transfer,
}

impl Sender<'_> {
    fn run(mut self, flow: &mut Flow) -> Transfer {
        while self.transfer.drop_us.is_none() && self.acked < self.segments {
            let may = self.sent < self.segments && self.in_flight() < u64::from(self.ack.cwnd);
            let departure_ns = if may { self.now_ns.max(self.departure_ns) } else { u64::MAX };
            match self.flight.front().copied() {
                Some((sent_ns, ack_ns, clock)) if ack_ns <= departure_ns => {
                    self.flight.pop_front();
                    self.now_ns = ack_ns;
                    self.ack.receiver_clock = clock;
                    self.acknowledge((ack_ns - sent_ns) / 1_000);
                    self.obey(flow);
                }
                _ => {
                    self.now_ns = departure_ns;
                    self.depart();
                }
            }
        }
        self.transfer.done_us = (self.acked == self.segments).then_some(self.now_ns / 1_000);
        self.transfer
    }

    fn in_flight(&self) -> u64 {
        self.sent - self.acked
    }

    fn depart(&mut self) {
        let segment_ns = self.path.segment_ns();
        let begin_ns = self.now_ns.max(self.link_free_ns);
        let queued = (begin_ns - self.now_ns).div_ceil(segment_ns);
        if queued > self.path.bdp() * self.path.queue_pct / 100 {
            self.transfer.drop_us = Some(self.now_ns / 1_000);
            return;
        }
        self.transfer.max_queue = self.transfer.max_queue.max(queued);
        self.link_free_ns = begin_ns + segment_ns;
        let back = self.path.back;
        let jitter_ns = self.random.below(back.jitter_us * 1_000 + 1);
        let due_ns = self.link_free_ns + self.path.rtt_us * 1_000 + jitter_ns;
        let due_ns = if back.hold_us > 0 { due_ns.next_multiple_of(back.hold_us * 1_000) } else { due_ns };
        self.ack_ns = due_ns.max(self.ack_ns + back.gap_us * 1_000);
        let received_ns = self.link_free_ns + self.path.rtt_us * 500;
        self.flight.push_back((self.now_ns, self.ack_ns, (received_ns / 1_000_000) as u32));
        self.sent += 1;
        self.most_in_flight = self.most_in_flight.max(self.in_flight());
        // A pause earns nothing.
        self.departure_ns = self.now_ns + self.spacing_ns;
    }

    fn acknowledge(&mut self, rtt_us: u64) {
        self.acked += 1;
        acknowledge(&mut self.ack, self.now_ns, self.sent, self.acked, rtt_us);
    }

    fn obey(&mut self, flow: &mut Flow) {
        if self.transfer.exit.is_some() {
            if self.filling && self.in_flight() + u64::from(self.ack.cwnd / 32) >= u64::from(self.ack.cwnd) {
                self.filling = false;
                self.spacing_ns = 0;
            }
            return;
        }
        let verdict = flow.on_ack(&self.ack);
        if verdict.cwnd != 0 {
            self.ack.cwnd = verdict.cwnd;
        }
        if verdict.ssthresh != 0 {
            self.ack.ssthresh = verdict.ssthresh;
        }
        // The kernel grows a window in slow start while half of it has been in use.
        let room = if verdict.growth == growth::LIMITED { verdict.growth_limit } else { 1 };
        if self.ack.cwnd < self.ack.ssthresh && u64::from(self.ack.cwnd) < 2 * self.most_in_flight {
            self.ack.cwnd += room.min(1);
        }
        self.space(verdict.pacing_rate);
        if verdict.outcome == outcome::EXIT || self.ack.cwnd >= self.ack.ssthresh {
            self.transfer.exit = Some((self.now_ns / 1_000, self.ack.cwnd));
            let window = u64::from(self.ack.cwnd) * SEGMENT;
            self.filling = self.spacing_ns > 0;
            if self.filling {
                self.space(window * 1_000_000 / u64::from(self.ack.smoothed_rtt_us));
            }
        }
    }

    fn space(&mut self, rate: u64) {
        self.spacing_ns = if rate == 0 || rate == u64::MAX { 0 } else { SEGMENT * 1_000_000_000 / rate };
        // What waits by an older rate does not wait for longer than by this one.
        self.departure_ns = self.departure_ns.min(self.now_ns + self.spacing_ns);
    }
}
