//! best against an independent model of it that sorts: the same outcome on every ACK of every sequence, and the same
//! threshold within the error that the sketch may make.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::pair_model::{PairModel, Step, random_pair_min};
use common::pair_traffic::paired_acks;
use common::pairs::bounds;
use common::random::Random;
use onramp_algorithm::{Ack, Flow, Parameters, Verdict, ack_flag, find, outcome};

/// Sequences of ACKs, each with its own parameters.
const SEQUENCES: u64 = 100_000;

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
}

impl Settings {
    fn random(random: &mut Random) -> Self {
        Self {
            min_rate: if random.once_in(2) { 0 } else { random.below(1 << 34) >> random.below(34) },
            source: [Source::Minimum, Source::RoundMinimum, Source::Latest][random.below(3) as usize],
            cut: random.once_in(2),
            pair_min_us: random_pair_min(random),
        }
    }

    fn parameters(&self) -> Parameters {
        let best = find("best").unwrap();
        let words = [self.min_rate, self.source as u64, u64::from(self.cut), self.pair_min_us];
        let mut all = best.parameters().to_words();
        for (name, value) in ["min_rate", "rtt_source", "cut_to_bdp", "pair_min_us"].iter().zip(words) {
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

impl Model {
    fn on_ack(&mut self, set: &Settings, ack: &Ack) -> Expected {
        let step = self.pairs.on_ack(ack, set.pair_min_us);
        let sample = u64::try_from(ack.rtt_us).ok().map(|us| us.max(1));
        let minimum = if matches!(step, Step::Over(_)) { self.round_rtt.take() } else { None };
        self.round_rtt = self.round_rtt.into_iter().chain(sample).min();
        let Step::Over(median) = step else {
            let limited = ack.flags & ack_flag::APP_LIMITED != 0;
            let open = if limited { "app_limited" } else { "round_open" };
            return Expected::Only(if step == Step::Begun { "warming_up" } else { open });
        };
        let rtt = match set.source {
            Source::Minimum => u64::from(ack.min_rtt_us),
            Source::RoundMinimum => minimum.unwrap_or(0),
            Source::Latest => sample.unwrap_or(u64::from(ack.smoothed_rtt_us)),
        };
        let Some(exact) = median else { return Expected::Only("no_pairs") };
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

/// One sequence. Parameters change and slow start begins anew in mid-flow. Counts outcomes and ACKs with a choice.
fn compare(seed: u64, seen: &mut [u64; outcome::MAX], choices: &mut u64) {
    let mut random = Random(seed);
    let mut settings = Settings::random(&mut random);
    let mut flow = Flow::new(settings.parameters());
    let mut model = Model::default();
    let mut ssthresh = u32::MAX;
    let length = if random.once_in(100) { 1_500 } else { 60 };
    for (number, mut ack) in paired_acks(&mut random, length).into_iter().enumerate() {
        match random.below(100) {
            0 => {
                flow.restart();
                model = Model::default();
            }
            1 => {
                settings = Settings::random(&mut random);
                flow.tune(settings.parameters());
            }
            2 => assert_eq!(flow.on_loss(&ack, 77), 77),
            3 => ssthresh = 2 + (random.below(100_000) >> random.below(16)) as u32,
            4 => ssthresh = u32::MAX,
            _ => {}
        }
        ack.ssthresh = ssthresh;
        let (verdict, expected) = (flow.on_ack(&ack), model.on_ack(&settings, &ack));
        let name = flow.algorithm().outcome_name(verdict.outcome);
        assert!(
            expected.allows(name, &verdict, &ack, settings.cut),
            "ACK {number}, seed {seed}: {name} {verdict:?}, expected {expected:?}; {ack:?} {settings:?}"
        );
        *choices += u64::from(matches!(expected, Expected::Between((low, _), (high, _)) if low != high));
        seen[verdict.outcome as usize] += 1;
        if verdict.ssthresh != 0 {
            ssthresh = verdict.ssthresh;
            model.target = ssthresh;
        }
    }
}

#[test]
fn best_agrees_with_the_model() {
    let first: u64 =
        std::env::var("ONRAMP_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_260_201);
    println!("seeds {first}..{}", first + SEQUENCES);
    let (mut seen, mut choices) = ([0; outcome::MAX], 0);
    for seed in first..first + SEQUENCES {
        compare(seed, &mut seen, &mut choices);
    }
    let best = find("best").unwrap();
    for (number, outcome) in best.outcomes().enumerate().filter(|(_, outcome)| !outcome.name.is_empty()) {
        println!("{:20} {}", outcome.name, seen[number]);
        let never = ["grow", "below_threshold"].contains(&outcome.name);
        assert!(never || seen[number] > 2_000, "{} {}", outcome.name, seen[number]);
    }
    let judged: u64 = best
        .outcomes()
        .zip(seen)
        .filter(|(outcome, _)| JUDGED.contains(&outcome.name))
        .map(|(_, count)| count)
        .sum();
    println!("{choices} of {judged} within the error of a limit");
    assert!(choices * 20 < judged, "{choices} of {judged}");
}
