//! How an algorithm is compared with an independent model of it: on sequences of random ACKs, each from a seed, with
//! parameters of its own that change, and slow starts that begin anew, in mid-flow.

use std::fmt::Debug;
use std::ops::Range;

use onramp_algorithm::{Ack, Flow, OUTCOME_MAX, Parameters, Verdict, find};

use super::pair_traffic::paired_sequence;
use super::random::{Random, seed_or};

/// Sequences that are compared.
const SEQUENCES: u64 = 100_000;
/// How often an outcome must be seen to mean something.
const OFTEN: u64 = 2_000;

/// How often each outcome was answered, by number.
pub type Seen = [u64; OUTCOME_MAX];

/// An algorithm's parameters as plain values.
pub trait Settings: Clone + Debug {
    /// A random set.
    fn random(random: &mut Random) -> Self;

    /// A random set for a flow that has run under this one.
    fn changed(&self, random: &mut Random) -> Self {
        Self::random(random)
    }

    /// The same for the header.
    fn parameters(&self) -> Parameters;
}

/// An algorithm once more.
pub trait Model {
    /// Its parameters.
    type Settings: Settings;
    /// One ACK in so many is preceded by a restart, one by a change of parameters, one by a loss.
    const RARE: u64 = 100;
    /// Whether thresholds come and go; else they are as the ACKs have them.
    const THRESHOLDS: bool = true;

    /// ACKs that reach what the algorithm can answer.
    fn acks(random: &mut Random) -> Vec<Ack> {
        paired_sequence(random)
    }

    /// A flow that has had no ACK yet.
    fn new(settings: &Self::Settings) -> Self;

    /// Parameters change.
    fn tune(&mut self, _settings: &Self::Settings) {}

    /// Slow start begins anew.
    fn restart(&mut self);

    /// Slow start was left by loss, whose reaction is the base's.
    fn on_loss(&mut self) {}
}

/// One ACK and what the flow answered.
pub struct Answer<'a> {
    /// Its place in the sequence, from 0.
    pub number: usize,
    pub ack: &'a Ack,
    pub verdict: Verdict,
    pub flow: &'a Flow,
}

impl Answer<'_> {
    /// Name of the outcome.
    pub fn name(&self) -> &'static str {
        self.flow.algorithm().outcome_name(self.verdict.outcome)
    }
}

/// The seeds of all sequences: from this one on, or from `ONRAMP_TEST_SEED` if that is set.
pub fn seeds(first: u64) -> Range<u64> {
    let first = seed_or(first);
    println!("seeds {first}..{}", first + SEQUENCES);
    first..first + SEQUENCES
}

/// One sequence. `agree` is to give the model the ACK, and says where it expects something else. Returns flow and model
/// as they are at the end.
pub fn compare<M: Model>(
    seed: u64,
    seen: &mut Seen,
    mut agree: impl FnMut(&mut M, &M::Settings, &Answer) -> Result<(), String>,
) -> (Flow, M) {
    let mut random = Random(seed);
    let mut settings = M::Settings::random(&mut random);
    let mut flow = Flow::new(settings.parameters());
    let mut model = M::new(&settings);
    let mut ssthresh = u32::MAX;
    for (number, mut ack) in M::acks(&mut random).into_iter().enumerate() {
        match random.below(M::RARE) {
            0 => {
                flow.restart();
                model.restart();
            }
            1 => {
                settings = settings.changed(&mut random);
                flow.tune(settings.parameters());
                model.tune(&settings);
            }
            2 => {
                assert_eq!(flow.on_loss(&ack, 77), 77);
                model.on_loss();
            }
            3 if M::THRESHOLDS => ssthresh = 2 + (random.below(100_000) >> random.below(16)) as u32,
            4 if M::THRESHOLDS => ssthresh = u32::MAX,
            _ => {}
        }
        if M::THRESHOLDS {
            ack.ssthresh = ssthresh;
        }
        let verdict = flow.on_ack(&ack);
        if let Err(other) = agree(&mut model, &settings, &Answer { number, ack: &ack, verdict, flow: &flow })
        {
            let name = flow.algorithm().outcome_name(verdict.outcome);
            panic!("ACK {number}, seed {seed}: {name} {verdict:?}, expected {other}; {ack:?} {settings:?}");
        }
        seen[verdict.outcome as usize] += 1;
        if verdict.ssthresh != 0 {
            ssthresh = verdict.ssthresh;
        }
    }
    (flow, model)
}

/// What is, against what the model expects.
pub fn same<T: PartialEq + Debug>(is: T, expected: T) -> Result<(), String> {
    if is == expected { Ok(()) } else { Err(format!("{expected:?}, not {is:?}")) }
}

/// The sequences reach everything that the algorithm can answer, each often enough to mean something, but for the
/// outcomes that it has no use for.
pub fn assert_reached(algorithm: &str, seen: &Seen, unused: &[&str]) {
    let outcomes = find(algorithm).unwrap().outcomes();
    for (outcome, times) in outcomes.zip(seen).filter(|(outcome, _)| !outcome.name.is_empty()) {
        println!("{:20} {times}", outcome.name);
        assert!(unused.contains(&outcome.name) || *times > OFTEN, "{} {times}", outcome.name);
    }
}
