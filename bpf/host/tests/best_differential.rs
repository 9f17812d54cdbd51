//! best against an independent model of it: the same verdict on every ACK of every sequence.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::differential::{self, Seen, assert_reached, compare, same, seeds};
use common::pair_model::{PairModel, RoundResult, Step};
use common::random::Random;
use common::spacing_model::{Policy, reached};
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
    pacing: bool,
    gain: u64,
}

impl differential::Settings for Settings {
    fn random(random: &mut Random) -> Self {
        Self {
            min_rate: if random.once_in(2) { 0 } else { random.below(1 << 34) >> random.below(34) },
            source: [Source::Minimum, Source::RoundMinimum, Source::Latest][random.below(3) as usize],
            cut: random.once_in(2),
            pacing: random.once_in(2),
            gain: 100 + random.below(101),
        }
    }

    fn parameters(&self) -> Parameters {
        let words =
            [self.min_rate, self.source as u64, u64::from(self.cut), u64::from(self.pacing), self.gain];
        Parameters::from_words(find("best").unwrap(), &words).unwrap()
    }
}

#[derive(Default)]
struct Model {
    pairs: PairModel,
    policy: Policy,
    round_rtt: Option<u64>,
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
    fn on_ack(&mut self, set: &Settings, ack: &Ack) -> (&'static str, Verdict) {
        let sample = u64::try_from(ack.rtt_us).ok().map(|us| us.max(1));
        let step = self.pairs.on_ack(ack);
        let over = matches!(step, Step::Over(_));
        let mut name = match step {
            Step::Begun => "warming_up",
            Step::Open if ack.flags & ack_flag::APP_LIMITED != 0 => "app_limited",
            Step::Open => "round_open",
            Step::Over(result) | Step::Sooner(result) => {
                let rtt = match set.source {
                    Source::Minimum => u64::from(ack.min_rtt_us),
                    Source::RoundMinimum => self.round_rtt.unwrap_or(0),
                    Source::Latest => sample.unwrap_or(u64::from(ack.smoothed_rtt_us)),
                };
                if over {
                    self.round_rtt = None;
                }
                self.evaluate(set, ack, (result, over), rtt)
            }
        };
        self.round_rtt = self.round_rtt.into_iter().chain(sample).min();
        let pacing_rate = if set.pacing { self.policy.rate(set.gain, ack) } else { 0 };
        let (exit, ssthresh) = reached(self.target, ack);
        let mut verdict = Verdict { pacing_rate, ssthresh, ..Verdict::default() };
        if exit {
            name = "exit";
            verdict.cwnd = if set.cut && ssthresh < ack.cwnd { ssthresh } else { 0 };
        }
        (name, verdict)
    }

    /// The outcome of a round, or of what there is of it.
    fn evaluate(
        &mut self,
        set: &Settings,
        ack: &Ack,
        (mut result, over): (RoundResult, bool),
        rtt: u64,
    ) -> &'static str {
        if set.pacing {
            self.policy.round(result, over, set.min_rate);
            if let Some(rate) = self.policy.paced_at() {
                result = RoundResult::Settled(rate);
            }
        }
        match result {
            RoundResult::Coarse => {
                self.target = None;
                "coarse"
            }
            result if result.rate() <= Some(set.min_rate) => "rate_too_low",
            RoundResult::SenderLimited(_) => "sender_limited",
            RoundResult::Unsettled(_) => {
                self.target = None;
                "unsettled"
            }
            RoundResult::Settled(_) if rtt == 0 => "no_rtt_sample",
            RoundResult::Settled(rate) => {
                let bytes = u128::from(rate) * u128::from(rtt.min(1 << 29)) / 1_000_000;
                let next = (bytes / u128::from(ack.mss)).clamp(10, 0x7fff_fffe) as u32;
                if next > ack.ssthresh && ack.ssthresh != self.target.unwrap_or(0) {
                    return "threshold_kept";
                }
                self.target = Some(next);
                "ssthresh_set"
            }
        }
    }
}

#[test]
fn best_agrees_with_the_model() {
    let mut seen = Seen::default();
    for seed in seeds(20_260_201) {
        compare(seed, &mut seen, |model: &mut Model, settings, answer| {
            let (name, mut expected) = model.on_ack(settings, answer.ack);
            expected.outcome = answer.verdict.outcome;
            same((answer.name(), answer.verdict), (name, expected))
        });
    }
    assert_reached("best", &seen, &["grow", "below_threshold"]);
}
