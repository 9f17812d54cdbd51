//! best against an independent model of it that sorts: the same outcome on every ACK of every sequence, and the same
//! threshold within the error that the sketch may make.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::differential::{self, Seen, assert_reached, compare, seeds};
use common::pair_model::{PairModel, Step, random_pair_min};
use common::pairs::{bounds, sorted_median};
use common::random::Random;
use onramp_algorithm::{Ack, Parameters, Verdict, ack_flag, find};

/// Where the RTT comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    Minimum,
    RoundMinimum,
    Latest,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    min_rate: u64,
    source: Source,
    cut: bool,
    pair_min_us: u64,
    pairs_min: usize,
}

impl differential::Settings for Settings {
    fn random(random: &mut Random) -> Self {
        Self {
            min_rate: if random.once_in(2) { 0 } else { random.below(1 << 34) >> random.below(34) },
            source: [Source::Minimum, Source::RoundMinimum, Source::Latest][random.below(3) as usize],
            cut: random.once_in(2),
            pair_min_us: random_pair_min(random),
            pairs_min: 1 + (random.below(65_535) >> random.below(32)) as usize,
        }
    }

    fn parameters(&self) -> Parameters {
        let best = find("best").unwrap();
        let words =
            [self.min_rate, self.source as u64, u64::from(self.cut), self.pair_min_us, self.pairs_min as u64];
        let mut all = best.parameters().to_words();
        let names = ["min_rate", "rtt_source", "cut_to_bdp", "pair_min_us", "pairs_min"];
        for (name, value) in names.iter().zip(words) {
            all[best.declarations().position(|row| row.name == *name).unwrap()] = value;
        }
        Parameters::from_words(best, &all).unwrap()
    }
}

#[derive(Default)]
struct Model {
    pairs: PairModel,
    round_rtt: Option<u64>,
    target: u32,
}

/// Names of what an estimate can lead to, by rising rate.
const JUDGED: [&str; 5] = ["rate_too_low", "no_rtt_sample", "exit", "aimed", "threshold_kept"];

/// What may be answered.
#[derive(Debug)]
enum Expected {
    /// This outcome and nothing else.
    Only(&'static str),
    /// One of [`JUDGED`], and a threshold if the outcome is to set one: from the first to the second.
    Between((usize, u64), (usize, u64)),
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
    fn on_ack(&mut self, set: &Settings, ack: &Ack) -> Expected {
        let step = self.pairs.on_ack(ack, set.pair_min_us);
        let sample = u64::try_from(ack.rtt_us).ok().map(|us| us.max(1));
        let minimum = if matches!(step, Step::Over(_)) { self.round_rtt.take() } else { None };
        self.round_rtt = self.round_rtt.into_iter().chain(sample).min();
        let Step::Over(rates) = step else {
            let limited = ack.flags & ack_flag::APP_LIMITED != 0;
            let open = if limited { "app_limited" } else { "round_open" };
            return Expected::Only(if step == Step::Begun { "warming_up" } else { open });
        };
        let rtt = match set.source {
            Source::Minimum => u64::from(ack.min_rtt_us),
            Source::RoundMinimum => minimum.unwrap_or(0),
            Source::Latest => sample.unwrap_or(u64::from(ack.smoothed_rtt_us)),
        };
        let Some(exact) = sorted_median(&rates).filter(|_| rates.len() >= set.pairs_min) else {
            return Expected::Only("few_pairs");
        };
        let (low, high) = bounds(exact);
        Expected::Between(self.judge(set, ack, low, rtt), self.judge(set, ack, high, rtt))
    }

    /// The outcome of a rate, and the threshold that it would be.
    fn judge(&self, set: &Settings, ack: &Ack, rate: u64, rtt: u64) -> (usize, u64) {
        let segments = rate as f64 * rtt as f64 / 1e6 / f64::from(ack.mss);
        let target = segments.clamp(10.0, f64::from(0x7fff_fffe_u32)) as u64;
        let outcome = if rate <= set.min_rate {
            0
        } else if rtt == 0 {
            1
        } else if target > u64::from(ack.ssthresh) && ack.ssthresh != self.target {
            4
        } else if target <= u64::from(ack.cwnd) {
            2
        } else {
            3
        };
        (outcome, target)
    }
}

impl Expected {
    fn allows(&self, name: &str, verdict: &Verdict, ack: &Ack, cut: bool) -> bool {
        let threshold = verdict.ssthresh;
        let plain = Verdict { outcome: verdict.outcome, ssthresh: threshold, ..Verdict::default() };
        let Self::Between((first, low), (last, high)) = self else {
            return matches!(self, Self::Only(only) if *only == name) && threshold == 0 && *verdict == plain;
        };
        if !(*first..=*last).any(|rank| JUDGED[rank] == name) {
            return false;
        }
        if !["exit", "aimed"].contains(&name) {
            return threshold == 0 && *verdict == plain;
        }
        let cwnd = if cut && threshold < ack.cwnd { threshold } else { 0 };
        (name == "exit") == (threshold <= ack.cwnd)
            && (low.saturating_sub(1)..=high + 1).contains(&u64::from(threshold))
            && *verdict == (Verdict { cwnd, ..plain })
    }
}

#[test]
fn best_agrees_with_the_model() {
    let (mut seen, mut choices) = (Seen::default(), 0);
    for seed in seeds(20_260_201) {
        compare(seed, &mut seen, |model: &mut Model, settings, answer| {
            let expected = model.on_ack(settings, answer.ack);
            choices += u64::from(matches!(expected, Expected::Between((low, _), (high, _)) if low != high));
            if answer.verdict.ssthresh != 0 {
                model.target = answer.verdict.ssthresh;
            }
            let allowed = expected.allows(answer.name(), &answer.verdict, answer.ack, settings.cut);
            if allowed { Ok(()) } else { Err(format!("{expected:?}")) }
        });
    }
    assert_reached("best", &seen, &["grow", "below_threshold"]);
    let outcomes = find("best").unwrap().outcomes().zip(seen);
    let judged: u64 =
        outcomes.filter(|(outcome, _)| JUDGED.contains(&outcome.name)).map(|(_, count)| count).sum();
    println!("{choices} of {judged} within the error of a limit");
    assert!(choices * 20 < judged, "{choices} of {judged}");
}
