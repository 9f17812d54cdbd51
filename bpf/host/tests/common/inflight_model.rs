//! inflight once more, written from its description alone. Its parameters as plain values.

use onramp_algorithm::{Ack, Parameters, Verdict, ack_flag, find, growth};

use super::differential;
use super::pair_model::RoundResult;
use super::random::Random;
use super::spacing_model::Policy;

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub sample_us: u64,
    pub stab: u64,
    pub floor: u64,
    pub pacing: bool,
    pub mean_rtt: bool,
}

impl differential::Settings for Settings {
    fn random(random: &mut Random) -> Self {
        Self {
            sample_us: if random.once_in(2) {
                1_000
            } else {
                100 + (random.below(999_901) >> random.below(14))
            },
            stab: if random.once_in(2) { 2 } else { random.below(1_001) },
            floor: if random.once_in(2) { 6_144 } else { random.below(1_000_000_001) >> random.below(30) },
            pacing: random.once_in(2),
            mean_rtt: random.once_in(2),
        }
    }

    fn parameters(&self) -> Parameters {
        let words = [self.sample_us, self.stab, self.floor, u64::from(self.pacing), u64::from(self.mean_rtt)];
        Parameters::from_words(find("inflight").unwrap(), &words).unwrap()
    }
}

/// One flow.
#[derive(Default)]
pub struct Model {
    /// Smoothed bandwidth, once there is a sample.
    bandwidth: Option<u64>,
    samples: u64,
    /// Time and bytes acknowledged where the current sample began.
    begin: Option<(u64, u64)>,
    last_us: u64,
    /// Bytes acknowledged beyond which the round ends.
    round_end: Option<u64>,
    policy: Policy,
}

impl differential::Model for Model {
    type Settings = Settings;

    fn new(_: &Settings) -> Self {
        Self::default()
    }

    fn restart(&mut self) {
        self.begin = None;
        self.round_end = None;
        self.policy = Policy::default();
    }

    fn on_loss(&mut self) {
        self.begin = None;
    }
}

impl Model {
    fn measure(&mut self, set: &Settings, ack: &Ack) {
        let pause_us = set.sample_us.max(u64::from(ack.min_rtt_us) / 8);
        let silent = ack.now_us - self.last_us > pause_us || ack.flags & ack_flag::APP_LIMITED != 0;
        self.last_us = ack.now_us;
        let here = Some((ack.now_us, ack.bytes_acked));
        let Some((at, acked)) = self.begin.filter(|_| !silent) else {
            self.begin = here;
            return;
        };
        let us = ack.now_us - at;
        if us < set.sample_us {
            return;
        }
        let sample = ((ack.bytes_acked - acked) * 1_000_000 / us).min(1 << 34);
        let past = self.samples.min(15);
        self.samples += 1;
        self.bandwidth = Some((past * self.bandwidth.unwrap_or(0) + sample) / (past + 1));
        self.begin = here;
    }

    /// Whether the first of what was not yet sent when the round began is acknowledged.
    fn round_over(&mut self, ack: &Ack) -> bool {
        if self.round_end.is_some_and(|end| ack.bytes_acked <= end) {
            return false;
        }
        self.round_end.replace(ack.bytes_acked + u64::from(ack.bytes_outstanding)).is_some()
    }

    /// One ACK: the verdict, its outcome by name.
    pub fn on_ack(&mut self, set: &Settings, ack: &Ack) -> (&'static str, Verdict) {
        let mut verdict = Verdict::default();
        self.measure(set, ack);
        if self.round_over(ack) {
            let result = match self.bandwidth {
                None => RoundResult::Coarse,
                Some(rate) if self.samples < 16 => RoundResult::Unsettled(rate),
                Some(rate) => RoundResult::Settled(rate),
            };
            self.policy.round(result, true, 0);
        }
        if set.pacing && ack.cwnd < ack.ssthresh {
            verdict.pacing_rate = self.policy.rate(100, ack);
        }
        let Some(bandwidth) = self.bandwidth.filter(|_| ack.min_rtt_us > 0) else {
            return ("warming_up", verdict);
        };
        verdict.growth = growth::LIMITED;
        let (least, smoothed) = (u64::from(ack.min_rtt_us), u64::from(ack.smoothed_rtt_us));
        let rtt_us = if set.mean_rtt { least.midpoint(smoothed) } else { least };
        let held = bandwidth * rtt_us / 1_000_000 / u64::from(ack.mss) + set.stab;
        let bound = held.max(set.floor / u64::from(ack.mss)).clamp(2, 0x7fff_ffff) as u32;
        if ack.cwnd > bound {
            return ("cut", Verdict { cwnd: bound, ..verdict });
        }
        let growth_limit = bound - ack.cwnd;
        (if growth_limit > 0 { "below_bound" } else { "held" }, Verdict { growth_limit, ..verdict })
    }
}
