//! spacing once more, written from its description alone, over the model of ACK pairs. Its parameters as plain values.

use onramp_algorithm::{Ack, Parameters, Verdict, ack_flag, find};

use super::differential;
use super::pair_model::{PairModel, RoundResult, Step};
use super::random::Random;

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub rate: u64,
    pub gain: u64,
    pub min_rate: u64,
    pub exit: u64,
}

impl differential::Settings for Settings {
    fn random(random: &mut Random) -> Self {
        Self {
            rate: if random.once_in(10) { 1 + random.below(1 << 34) } else { 0 },
            gain: 100 + random.below(101),
            min_rate: if random.once_in(2) { 0 } else { random.below(1 << 34) >> random.below(34) },
            exit: if random.once_in(4) { 0 } else { 1 + (random.below(1_000) >> random.below(4)) },
        }
    }

    fn parameters(&self) -> Parameters {
        let words = [self.rate, self.gain, self.min_rate, self.exit];
        Parameters::from_words(find("spacing").unwrap(), &words).unwrap()
    }
}

/// The policy of spacing by an estimate.
#[derive(Default)]
pub struct Policy {
    /// Bytes per second, in whole kB/s.
    estimate: Option<u64>,
    paced: bool,
}

/// Bytes that a path holds.
fn holds(rate: u64, ack: &Ack) -> u64 {
    (u128::from(rate.min(1 << 34)) * u128::from(ack.min_rtt_us.min(1 << 29)) / 1_000_000) as u64
}

fn window(ack: &Ack) -> u64 {
    u64::from(ack.cwnd) * u64::from(ack.mss)
}

impl Policy {
    /// A round ended, or shows the rate before its end.
    pub fn round(&mut self, result: RoundResult, over: bool, min_rate: u64) {
        let whole = |rate: u64| Some(rate.min(1 << 34) / 1_000 * 1_000).filter(|rate| *rate > 0);
        if let (true, Some(now)) = (self.paced, self.estimate) {
            let most = now * 112 / 100;
            if over {
                self.estimate = whole(now.max(result.rate().unwrap_or(0).min(most)));
            }
            return;
        }
        self.estimate = match result {
            RoundResult::Settled(rate) if rate > min_rate => whole(rate),
            _ => None,
        };
    }

    /// The estimate that is in use.
    pub fn paced_at(&self) -> Option<u64> {
        self.estimate.filter(|_| self.paced)
    }

    /// The rate to send at; 0: no pacing is asked for.
    pub fn rate(&mut self, gain: u64, ack: &Ack) -> u64 {
        self.paced |= self.estimate.is_some_and(|rate| 8 * window(ack) >= holds(rate, ack));
        match self.estimate.filter(|_| self.paced) {
            Some(rate) if 2 * window(ack) < holds(rate, ack) => rate * gain.max(112) / 100,
            Some(rate) => rate * gain / 100,
            None if ack.flags & ack_flag::PACED == 0 || ack.min_rtt_us == 0 => 0,
            None => 16 * (window(ack) * 1_000_000 / u64::from(ack.min_rtt_us)).min(1 << 34),
        }
    }
}

/// One flow.
#[derive(Default)]
pub struct Model {
    pairs: PairModel,
    policy: Policy,
    target: Option<u32>,
}

impl differential::Model for Model {
    type Settings = Settings;

    fn new(_: &Settings) -> Self {
        Self::default()
    }

    fn restart(&mut self) {
        *self = Self::default();
    }
}

/// Whether slow start is to end here, and the threshold that is set for it.
pub fn reached(target: Option<u32>, ack: &Ack) -> (bool, u32) {
    match target {
        Some(target) if u64::from(ack.cwnd) + u64::from(ack.acked) >= u64::from(target) => {
            (ack.cwnd >= target, target)
        }
        _ => (false, 0),
    }
}

impl Model {
    /// One ACK: the verdict, its outcome by name.
    pub fn on_ack(&mut self, set: &Settings, ack: &Ack) -> (&'static str, Verdict) {
        let step = self.pairs.on_ack(ack);
        if set.rate > 0 {
            return ("paced", Verdict { pacing_rate: set.rate, ..Verdict::default() });
        }
        let over = matches!(step, Step::Over(_));
        if let Step::Over(result) | Step::Sooner(result) = step {
            self.policy.round(result, over, set.min_rate);
        }
        let pacing_rate = self.policy.rate(set.gain, ack);
        let mut verdict = Verdict { pacing_rate, ..Verdict::default() };
        let Some(estimate) = self.policy.estimate.filter(|_| self.policy.paced) else {
            return ("unpaced", verdict);
        };
        if set.exit == 0 {
            return ("paced", verdict);
        }
        let mut name = "paced";
        if over || self.target.is_none() {
            let segments = holds(estimate, ack) / u64::from(ack.mss) * set.exit / 100;
            let next = segments.clamp(10, 0x7fff_fffe) as u32;
            name = "ssthresh_set";
            if next > ack.ssthresh && ack.ssthresh != self.target.unwrap_or(0) {
                name = "threshold_kept";
            } else {
                self.target = Some(next);
            }
        }
        let (exit, ssthresh) = reached(self.target, ack);
        verdict.ssthresh = ssthresh;
        (if exit { "exit" } else { name }, verdict)
    }
}
