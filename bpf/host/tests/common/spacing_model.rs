//! spacing once more, written from its description alone, over the model of ACK pairs. Its parameters as plain values.

use onramp_algorithm::{Ack, Parameters, Verdict, find};

use super::differential;
use super::pair_model::{PairModel, Step, random_pair_min};
use super::pairs::sorted_median;
use super::random::Random;

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub rate: u64,
    pub gain: u64,
    pub min_rate: u64,
    pub exit: u64,
    pub pair_min_us: u64,
}

impl differential::Settings for Settings {
    fn random(random: &mut Random) -> Self {
        Self {
            rate: if random.once_in(10) { 1 + random.below(1 << 34) } else { 0 },
            gain: 100 + random.below(101),
            min_rate: if random.once_in(2) { 0 } else { random.below(1 << 34) >> random.below(34) },
            exit: if random.once_in(4) { 0 } else { 1 + (random.below(1_000) >> random.below(4)) },
            pair_min_us: random_pair_min(random),
        }
    }

    fn parameters(&self) -> Parameters {
        let words = [self.rate, self.gain, self.min_rate, self.exit, self.pair_min_us];
        Parameters::from_words(find("spacing").unwrap(), &words).unwrap()
    }
}

/// The rate that stands for one in the sketch: the harmonic mean of the edges of its bin, of which there are 18 to an
/// octave from 2^10 to 2^34.
pub fn quantized(rate: u64) -> u64 {
    let rate = rate.clamp(1 << 10, (1 << 34) - 1);
    let octave = 1_u64 << rate.ilog2();
    let step = (rate - octave) * 18 / octave;
    let (low, high) = (u128::from(18 + step), u128::from(19 + step));
    (u128::from(octave) * 2 * low * high / (18 * (low + high))) as u64
}

/// What unspaced data leave at.
pub const UNLIMITED: u64 = u64::MAX;

/// The policy of spacing by an estimate.
#[derive(Default)]
pub struct Policy {
    estimate: Option<u64>,
    medians: Vec<u64>,
    spaced: bool,
}

/// Bytes that a path holds.
fn holds(rate: u64, ack: &Ack) -> u64 {
    (u128::from(rate) * u128::from(ack.min_rtt_us) / 1_000_000) as u64
}

fn window(ack: &Ack) -> u64 {
    u64::from(ack.cwnd) * u64::from(ack.mss)
}

impl Policy {
    /// A round ended with this median.
    pub fn round(&mut self, median: Option<u64>, min_rate: u64, ack: &Ack) {
        self.medians.push(median.unwrap_or(0));
        if self.spaced {
            self.estimate = self.estimate.max(median);
            return;
        }
        let last: Vec<u64> = self.medians.iter().rev().take(2).copied().collect();
        let agreed = last.len() == 2 && last.iter().all(|a| last.iter().all(|b| *a <= b + b / 4));
        let estimate = median.filter(|rate| *rate > min_rate && holds(*rate, ack) >= window(ack));
        self.estimate = estimate.filter(|_| agreed);
    }

    /// The rate to send at.
    pub fn rate(&mut self, gain: u64, ack: &Ack) -> u64 {
        let Some(estimate) = self.estimate else { return UNLIMITED };
        self.spaced |= 8 * window(ack) >= holds(estimate, ack);
        if self.spaced { estimate * gain / 100 } else { UNLIMITED }
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

impl Model {
    /// One ACK: the verdict, its outcome by name.
    pub fn on_ack(&mut self, set: &Settings, ack: &Ack) -> (&'static str, Verdict) {
        let step = self.pairs.on_ack(ack, set.pair_min_us);
        if set.rate > 0 {
            return ("spaced", Verdict { pacing_rate: set.rate, ..Verdict::default() });
        }
        let over = if let Step::Over(rates) = step {
            self.policy.round(sorted_median(&rates).map(quantized), set.min_rate, ack);
            true
        } else {
            false
        };
        let pacing_rate = self.policy.rate(set.gain, ack);
        let verdict = Verdict { pacing_rate, ..Verdict::default() };
        let Some(estimate) = self.policy.estimate.filter(|_| self.policy.spaced) else {
            return ("unspaced", verdict);
        };
        if set.exit == 0 || !(over || self.target.is_none()) {
            return ("spaced", verdict);
        }
        let segments = holds(estimate, ack) / u64::from(ack.mss) * set.exit / 100;
        let target = segments.clamp(10, 0x7fff_fffe) as u32;
        if target > ack.ssthresh && Some(ack.ssthresh) != self.target {
            return ("threshold_kept", verdict);
        }
        self.target = Some(target);
        let name = if target <= ack.cwnd { "exit" } else { "aimed" };
        (name, Verdict { ssthresh: target, ..verdict })
    }
}
