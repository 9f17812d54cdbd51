//! An ideal link in virtual time: one FIFO queue in front of a fixed rate, a fixed propagation delay, an ACK for every
//! segment, and a sender that does what the verdicts say. It ends with slow start: at the exit or at the first drop.

use std::collections::VecDeque;

use onramp_algorithm::{Ack, Flow, growth, outcome};

/// Segment size, bytes.
pub const SEGMENT: u64 = 1_500;
/// Window that the sender starts with, segments.
pub const INITIAL: u32 = 10;

/// The path.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Rate of the bottleneck, bits per second.
    pub rate: u64,
    /// RTT of an empty path, without the segment's own transmission.
    pub rtt_us: u64,
    /// Segments that the queue holds, the one in transmission included; `None`: any number.
    pub queue: Option<u64>,
}

/// The sender at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Since the first segment was sent.
    pub at_us: u64,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Newest RTT sample.
    pub rtt_us: u64,
}

/// How slow start went.
#[derive(Debug, Default)]
pub struct Run {
    /// The window reached the bandwidth-delay product.
    pub capacity: Option<Point>,
    /// The algorithm decided to leave.
    pub exit: Option<Point>,
    /// Slow start was over: the threshold had been set to the window.
    pub left: Option<Point>,
    /// A segment found the queue full.
    pub loss: Option<Point>,
    /// Every segment of a limited transfer was acknowledged.
    pub done: Option<Point>,
}

impl Link {
    fn segment_ns(&self) -> u64 {
        SEGMENT * 8 * 1_000_000_000 / self.rate
    }

    /// Bandwidth-delay product, segments.
    pub fn bdp(&self) -> u64 {
        self.rtt_us * 1_000 / self.segment_ns()
    }

    /// This link with a queue of this many percent of the bandwidth-delay product.
    pub fn with_queue_pct(self, percent: u64) -> Self {
        Self { queue: Some(self.bdp() * percent / 100), ..self }
    }

    /// Slow start of one flow with `segments` to send, at most ten million.
    pub fn run(&self, flow: &mut Flow, segments: Option<u64>) -> Run {
        Sender::new(self, segments.unwrap_or(10_000_000)).run(flow)
    }
}

/// Makes an ACK that of one more segment, after so many sent and acknowledged, that one included.
pub fn acknowledge(ack: &mut Ack, now_ns: u64, sent: u64, acked: u64, rtt_us: u64) {
    let (sample, in_flight) = (rtt_us as u32, sent - acked);
    ack.now_us = now_ns / 1_000;
    ack.bytes_acked = acked * SEGMENT;
    ack.bytes_sent = sent * SEGMENT;
    ack.bytes_outstanding = (in_flight * SEGMENT) as u32;
    ack.delivered = acked as u32;
    ack.acked = 1;
    ack.rtt_us = rtt_us as i32;
    ack.min_rtt_us = if ack.min_rtt_us == 0 { sample } else { ack.min_rtt_us.min(sample) };
    let smoothed = if ack.smoothed_rtt_us == 0 { sample } else { ack.smoothed_rtt_us };
    ack.smoothed_rtt_us = ((u64::from(smoothed) * 7 + rtt_us) / 8) as u32;
    ack.in_flight = in_flight as u32;
}

struct Sender<'a> {
    link: &'a Link,
    segments: u64,
    /// Send time and ACK time of what is in flight, nanoseconds.
    flight: VecDeque<(u64, u64)>,
    link_free_ns: u64,
    now_ns: u64,
    sent: u64,
    acked: u64,
    ack: Ack,
    run: Run,
}

impl<'a> Sender<'a> {
    fn new(link: &'a Link, segments: u64) -> Self {
        let ack = Ack { cwnd: INITIAL, ssthresh: u32::MAX, mss: SEGMENT as u32, ..Ack::default() };
        let (flight, run) = (VecDeque::new(), Run::default());
        Self { link, segments, flight, link_free_ns: 0, now_ns: 0, sent: 0, acked: 0, ack, run }
    }

    fn run(mut self, flow: &mut Flow) -> Run {
        self.send();
        while self.run.loss.is_none() && self.run.left.is_none() && self.run.done.is_none() {
            let Some((sent_ns, ack_ns)) = self.flight.pop_front() else { break };
            self.now_ns = ack_ns;
            self.acknowledge((ack_ns - sent_ns) / 1_000);
            self.obey(flow);
            self.send();
            if self.acked == self.segments {
                self.run.done = Some(self.point());
            }
        }
        self.run
    }

    fn point(&self) -> Point {
        Point { at_us: self.now_ns / 1_000, cwnd: self.ack.cwnd, rtt_us: self.ack.rtt_us as u64 }
    }

    /// Sends what the window allows.
    fn send(&mut self) {
        while self.sent < self.segments && self.sent - self.acked < u64::from(self.ack.cwnd) {
            let begin_ns = self.now_ns.max(self.link_free_ns);
            let queued = (begin_ns - self.now_ns).div_ceil(self.link.segment_ns());
            if self.link.queue.is_some_and(|queue| queued > queue) {
                self.run.loss = self.run.loss.or(Some(self.point()));
                return;
            }
            self.link_free_ns = begin_ns + self.link.segment_ns();
            self.flight.push_back((self.now_ns, self.link_free_ns + self.link.rtt_us * 1_000));
            self.sent += 1;
        }
    }

    /// One segment is acknowledged.
    fn acknowledge(&mut self, rtt_us: u64) {
        self.acked += 1;
        acknowledge(&mut self.ack, self.now_ns, self.sent, self.acked, rtt_us);
    }

    fn obey(&mut self, flow: &mut Flow) {
        let verdict = flow.on_ack(&self.ack);
        if verdict.outcome == outcome::EXIT {
            self.run.exit = Some(self.point());
        }
        for (value, window) in
            [(verdict.cwnd, &mut self.ack.cwnd), (verdict.ssthresh, &mut self.ack.ssthresh)]
        {
            if value != 0 {
                *window = value;
            }
        }
        if self.ack.cwnd >= self.ack.ssthresh {
            self.run.left = Some(self.point());
        } else {
            self.ack.cwnd += if verdict.growth == growth::BASE { 1 } else { verdict.growth_limit.min(1) };
        }
        if self.run.capacity.is_none() && u64::from(self.ack.cwnd) >= self.link.bdp() {
            self.run.capacity = Some(self.point());
        }
    }
}
