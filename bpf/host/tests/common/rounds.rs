//! Slow start in rounds: a driver that goes through them ACK by ACK, and random ACKs of senders that do.

use onramp_algorithm::{Ack, Flow, Verdict, ack_flag, find};

use super::random::Random;
use super::{MSS, START};

/// One flow and the ACK that it is given next. Everything sent is acknowledged in rounds of 100 segments.
pub struct Rounds {
    pub flow: Flow,
    /// The next ACK; what a test does not touch stays as it was.
    pub ack: Ack,
    /// Last byte of the round.
    pub end: u64,
}

impl Rounds {
    /// A flow of this algorithm that has had no ACK yet: RTT 50 ms, window of 100 segments.
    pub fn new(algorithm: &str, settings: &[&str]) -> Self {
        let mut parameters = find(algorithm).unwrap().parameters();
        parameters.assign(settings).unwrap();
        let ack = Ack {
            now_us: START,
            bytes_acked: 1_000_000,
            bytes_outstanding: 100 * MSS as u32,
            acked: 1,
            rtt_us: 50_000,
            cwnd: 100,
            ssthresh: 0x7fff_ffff,
            in_flight: 100,
            mss: MSS as u32,
            ..Ack::default()
        };
        Self { flow: Flow::new(parameters), ack, end: 0 }
    }

    /// The first ACK of a new round, so many microseconds after the last one.
    pub fn begin(&mut self, after_us: u64) -> Verdict {
        self.ack.now_us += after_us;
        self.ack.bytes_acked = self.ack.bytes_acked.max(self.end) + 1;
        self.end = self.ack.bytes_acked + u64::from(self.ack.bytes_outstanding);
        self.flow.on_ack(&self.ack)
    }

    /// The next ACK of the round.
    pub fn next(&mut self, after_us: u64) -> Verdict {
        self.ack.now_us += after_us;
        self.flow.on_ack(&self.ack)
    }

    /// A whole round of `acks` ACKs, too far apart for a train, with this RTT. Returns the last outcome.
    pub fn round(&mut self, rtt_us: i32, acks: u32) -> &'static str {
        self.ack.rtt_us = rtt_us;
        let mut verdict = self.begin(10_000);
        for _ in 1..acks {
            verdict = self.next(10_000);
        }
        self.name(&verdict)
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

/// ACKs that a sender could see in slow start: rounds short and long, ACKs close together and far apart, RTTs that rise
/// and fall, stretch ACKs, pacing that comes and goes, now and then a threshold.
pub fn slow_start_acks(random: &mut Random, count: usize) -> Vec<Ack> {
    let base_rtt_us = 1 + (random.below(1_000_000) >> random.below(16));
    let gap_us = 1 + (base_rtt_us >> (1 + random.below(8)));
    let window = 1 + (random.below(400) >> random.below(6));
    let queue_step_us = 1 + base_rtt_us / (1 + random.below(60));
    let mut queue_us = 0;
    let mut outstanding = window;
    let mut ack = Ack {
        now_us: random.below(1 << 40),
        bytes_acked: random.below(1 << 40),
        mss: 1 + random.below(9_000) as u32,
        gso_max_size: (random.bits() >> (32 + random.below(32))) as u32,
        flags: if random.once_in(3) { ack_flag::PACED } else { 0 },
        ssthresh: 0x7fff_ffff,
        cwnd: 2 + window as u32,
        ..Ack::default()
    };
    (0..count)
        .map(|_| {
            ack.now_us += match random.below(30) {
                0 => base_rtt_us,
                1 => 1 << random.below(24),
                2 => 0,
                _ => random.below(2 * gap_us),
            };
            let most = if random.once_in(6) { 40 } else { 3 };
            let acked = random.below(most).min(outstanding);
            outstanding += acked + if random.once_in(3) { 1 } else { 0 };
            outstanding -= acked;
            ack.acked = acked as u32;
            ack.bytes_acked += acked * u64::from(ack.mss);
            outstanding = (outstanding + random.below(3)).saturating_sub(random.below(3)).max(acked);
            ack.bytes_outstanding = (outstanding * u64::from(ack.mss)) as u32;
            queue_us = match random.below(10) {
                0..=3 => queue_us + random.below(queue_step_us + 1),
                4..=5 => queue_us / 2,
                6 => 0,
                _ => queue_us,
            };
            ack.rtt_us = match random.below(60) {
                0 => -1,
                1 => 0,
                2 => random.below(1 << 31) as i32,
                _ => (base_rtt_us + queue_us).min(1 << 30) as i32,
            };
            ack.pacing_rate = match random.below(8) {
                0 => 0,
                1 => u64::MAX,
                _ => random.bits() >> random.below(64),
            };
            ack.cwnd = match random.below(20) {
                0 => 1 + random.below(40) as u32,
                1 => random.bits() as u32 >> 1,
                _ => ack.cwnd.saturating_add(ack.acked),
            };
            ack.ssthresh = if random.once_in(40) { random.bits() as u32 } else { 0x7fff_ffff };
            if random.once_in(50) {
                ack.flags = random.bits() as u32;
            }
            ack
        })
        .collect()
}

/// Number of an algorithm's outcome of this name.
pub fn outcome_number(algorithm: &str, name: &str) -> u32 {
    find(algorithm).unwrap().outcomes().position(|outcome| outcome.name == name).unwrap() as u32
}
