//! Rounds of ACKs at given rates, for the algorithms that measure them.

use onramp_algorithm::{Ack, Flow, Verdict, find};

/// ACKs of a round, the one that begins it not counted, and bytes that each acknowledges.
pub const ACKS: u64 = 20;
pub const BYTES: u64 = 10_000;
/// Between a round's last ACK and the next one's first.
const PAUSE_US: u64 = 50_000;

/// One flow and the ACK that it is given next; what a test does not touch stays as it was.
pub struct Rounds {
    pub flow: Flow,
    pub ack: Ack,
    /// What a round's first ACK has as its RTT.
    pub rtt_us: i32,
}

impl Rounds {
    /// A flow that has had no ACK yet: RTT 100 ms, window of 100 segments, connection counters in mid-flight.
    pub fn new(algorithm: &str, settings: &[&str]) -> Self {
        let mut parameters = find(algorithm).unwrap().parameters();
        parameters.assign(settings).unwrap();
        let ack = Ack {
            now_us: super::START,
            bytes_acked: 7_000_000,
            rtt_us: 100_000,
            min_rtt_us: 100_000,
            cwnd: 100,
            ssthresh: u32::MAX,
            mss: 1_000,
            bytes_outstanding: (ACKS * BYTES) as u32,
            // All of what is not acknowledged, however much that is: nothing has come out of order.
            in_flight: 1_000_000,
            ..Ack::default()
        };
        Self { flow: Flow::new(parameters), ack, rtt_us: 100_000 }
    }

    /// A flow that has had its first ACK, which begins a round.
    pub fn begun(algorithm: &str, settings: &[&str]) -> Self {
        let mut rounds = Self::new(algorithm, settings);
        rounds.begin();
        rounds
    }

    /// The first ACK of a slow start.
    pub fn begin(&mut self) -> Verdict {
        self.ack.rtt_us = self.rtt_us;
        self.flow.on_ack(&self.ack)
    }

    /// The next ACK, so much later and with so many bytes more.
    pub fn next(&mut self, us: u64, bytes: u64) -> Verdict {
        self.ack.now_us += us;
        self.ack.bytes_acked += bytes;
        self.flow.on_ack(&self.ack)
    }

    /// The rest of a round in which bytes arrive after these times, and the first ACK of the next. A queue builds up:
    /// the RTT rises by half of the time that passes.
    pub fn round_of(&mut self, acks: &[(u64, u64)]) -> Verdict {
        let mut left = u64::from(self.ack.bytes_outstanding);
        for (us, bytes) in acks {
            self.ack.rtt_us += (us / 2) as i32 * i32::from(self.rtt_us > 0);
            self.next(*us, *bytes);
            left = left.saturating_sub(*bytes);
        }
        self.ack.rtt_us = self.rtt_us;
        self.next(PAUSE_US, left + BYTES)
    }

    /// A round of evenly spaced ACKs at about this rate, bytes per second; the verdict at its end.
    pub fn round(&mut self, rate: u64) -> Verdict {
        self.round_of(&[((BYTES * 1_000_000).div_ceil(rate), BYTES); ACKS as usize])
    }

    /// Two rounds at this rate; the verdict at the end of the second.
    pub fn rounds(&mut self, rate: u64) -> Verdict {
        self.round(rate);
        self.round(rate)
    }

    /// Name of a verdict's outcome.
    pub fn name(&self, verdict: &Verdict) -> &'static str {
        self.flow.algorithm().outcome_name(verdict.outcome)
    }

    /// The first value of an export.
    pub fn read(&self, export: &str) -> u32 {
        self.flow.export(export)[0]
    }
}
