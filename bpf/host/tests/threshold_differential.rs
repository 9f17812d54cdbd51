//! threshold against Barakat et al. 1999's equations in floating point: the same reaction to every loss but where what is rounded reaches
//! over a limit, and the same threshold within that.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::differential::seeds;
use common::pair_model::{PairModel, RoundResult, Step};
use common::pair_traffic::paired_sequence;
use common::random::Random;
use onramp_algorithm::{Ack, Flow, Parameters, ack_flag, find};

#[derive(Clone, Copy, Debug)]
struct Settings {
    fixed: bool,
    gamma_pct: u64,
    margin_pct: u64,
    cross_pct: u64,
}

impl Settings {
    fn random(random: &mut Random) -> Self {
        Self {
            fixed: random.once_in(4),
            gamma_pct: 1 + random.below(50),
            margin_pct: random.below(51),
            cross_pct: if random.once_in(2) { 0 } else { random.below(96) },
        }
    }

    fn parameters(&self) -> Parameters {
        let words = [u64::from(!self.fixed), self.gamma_pct, self.margin_pct, self.cross_pct];
        Parameters::from_words(find("threshold").unwrap(), &words).unwrap()
    }
}

/// The equations, in packets, packets per second and seconds.
struct Equations {
    /// Largest window of the path (1).
    path: f64,
    /// Largest factor without loss (4).
    gamma_max: f64,
}

impl Equations {
    /// A path with the bottleneck's rate, others' rate, RTT without queue, and buffer.
    fn new(mu: f64, lambda: f64, tau: f64, buffer: f64) -> Self {
        let path = buffer * (mu - lambda) / mu + tau * (mu - lambda) + 1.0;
        let overflow = buffer * (2.0 * mu - lambda) / mu;
        Self { path, gamma_max: overflow / path }
    }

    /// A path as a sender sees it: what is left of the rate, others' share, smallest and largest RTT.
    fn seen(left: f64, share: f64, minimum: f64, maximum: f64) -> Self {
        let mu = left / (1.0 - share);
        Self::new(mu, mu * share, minimum, (maximum - minimum) * mu)
    }
}

#[derive(Default)]
struct Model {
    pairs: PairModel,
    rate: Option<u64>,
    /// Largest RTT of the current round, and of the one before.
    round_us: u32,
    round_before_us: u32,
}

impl Model {
    fn on_ack(&mut self, ack: &Ack) -> &'static str {
        let step = self.pairs.on_ack(ack);
        if matches!(step, Step::Over(_)) {
            self.round_before_us = std::mem::take(&mut self.round_us);
        }
        self.round_us = self.round_us.max(ack.rtt_us.max(0).unsigned_abs());
        match step {
            Step::Begun => "warming_up",
            Step::Open if ack.flags & ack_flag::APP_LIMITED != 0 => "app_limited",
            Step::Open => "round_open",
            Step::Over(RoundResult::Settled(rate)) | Step::Sooner(RoundResult::Settled(rate)) => {
                self.rate = Some(rate);
                "estimated"
            }
            Step::Over(_) | Step::Sooner(_) => "dropped",
        }
    }

    fn largest_us(&self) -> u32 {
        self.round_us.max(self.round_before_us)
    }

    /// Whether a threshold and its reaction may follow a loss.
    fn allows(&self, set: &Settings, ack: &Ack, base: u32, threshold: u32, reaction: u32) -> bool {
        let threshold_is = |low: f64, high: f64| {
            let half = f64::from(ack.cwnd) / 2.0;
            let bounded = |window: f64| window.min(half).max(2.0);
            (bounded(low).floor() - 1.0..=bounded(high) + 1.0).contains(&f64::from(threshold))
        };
        if set.fixed {
            let window = u64::from(ack.cwnd) * set.gamma_pct / 100;
            return reaction == 1 && u64::from(threshold) == window.max(2);
        }
        let (Some(rate), true) = (self.rate, ack.min_rtt_us > 0 && self.largest_us() > ack.min_rtt_us) else {
            return reaction == 3 && threshold == base;
        };
        let seconds = |us: u32| f64::from(us) / 1e6;
        let seen = Equations::seen(
            rate as f64 / f64::from(ack.mss),
            set.cross_pct as f64 / 100.0,
            seconds(ack.min_rtt_us),
            seconds(self.largest_us()),
        );
        // A segment's time is rounded down to microseconds, gmax to thousandths.
        let slack = 1.0 / f64::from(self.largest_us());
        let (least, most) = (seen.gamma_max - 0.001, seen.gamma_max * (1.0 + slack) + 1e-9);
        match reaction {
            2 => {
                let margin = 1.0 - set.margin_pct as f64 / 100.0;
                let factor = |gamma: f64| (gamma * margin).clamp(0.25, 0.501);
                least <= 0.501
                    && most > 0.25
                    && threshold_is(seen.path * (factor(least) - 0.001), (seen.path + 1.0) * factor(most))
            }
            4 => threshold == base && least <= 0.251,
            5 => threshold == base && most > 0.5,
            _ => false,
        }
    }
}

fn compare(seed: u64, reactions: &mut [u64; 6]) {
    let mut random = Random(seed);
    let mut settings = Settings::random(&mut random);
    let mut flow = Flow::new(settings.parameters());
    let mut model = Model::default();
    for (number, ack) in paired_sequence(&mut random).into_iter().enumerate() {
        match random.below(60) {
            0 => {
                flow.restart();
                model = Model::default();
            }
            1 => {
                settings = Settings::random(&mut random);
                flow.tune(settings.parameters());
            }
            _ => {}
        }
        if random.once_in(20) {
            let base = 2 + random.below(1 << 20) as u32;
            let threshold = flow.on_loss(&ack, base);
            let reaction = flow.export("reaction")[0];
            assert!(
                model.allows(&settings, &ack, base, threshold, reaction),
                "loss at ACK {number}, seed {seed}: {threshold} ({reaction}), gmax {:?}, Wmax {:?}; base {base}, \
                 {:?}, largest RTT {}, {ack:?} {settings:?}",
                flow.export("gamma_max"),
                flow.export("path"),
                model.rate,
                model.largest_us(),
            );
            reactions[reaction as usize] += 1;
        }
        let verdict = flow.on_ack(&ack);
        let name = flow.algorithm().outcome_name(verdict.outcome);
        assert_eq!(name, model.on_ack(&ack), "ACK {number}, seed {seed}: {ack:?}");
        assert_eq!((verdict.cwnd, verdict.ssthresh, verdict.growth, verdict.pacing_rate), (0, 0, 0, 0));
    }
}

#[test]
fn threshold_agrees_with_the_equations() {
    let mut reactions = [0; 6];
    for seed in seeds(20_260_301) {
        compare(seed, &mut reactions);
    }
    println!("reactions {reactions:?}");
    assert!(reactions[1..].iter().all(|count| *count > 2_000), "{reactions:?}");
}

/// The equations themselves: Barakat et al. 1999's own figures.
#[test]
fn the_equations_give_the_figures_of_document_002() {
    let path = Equations::new(1_500_000.0 / 8.0 / 512.0, 100.0, 0.56, 40.0);
    assert!((0.38..0.39).contains(&path.gamma_max), "{}", path.gamma_max);
    assert!((178.0..180.0).contains(&path.path), "{}", path.path);
}
