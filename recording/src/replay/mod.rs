// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Replay: what other algorithms and other parameters would have said to recorded acknowledgments.
//!
//! It is open loop. What was recorded is what the flow really did: a verdict changes no later acknowledgment. What
//! follows the first exit is therefore a flow that did not exit there, and is not evaluated unless requested.

mod candidate;
mod evaluator;
mod regret;
mod report;
mod rounds;
mod source;
mod trace;

use std::collections::BTreeMap;

use onramp_algorithm::{Algorithm, ParameterError, Parameters};
use serde::{Serialize, Serializer};

pub use candidate::{Candidate, CandidateError, candidates};
pub use evaluator::{Exit, Verdicts};
pub use regret::{CARRIES_PERCENT, Path, PathEstimate, ROUNDS, Regret, Round};
pub use report::{Report, Request};
pub use rounds::{AckRound, Rounds};
pub use source::{Generations, Known, Resumed, replay, replay_with};
pub use trace::{Point, Trace};

use crate::sample::{Event, Run};
use evaluator::Evaluator;
use regret::Costs;

/// How far a flow is evaluated.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Also after the first exit, as long as the flow was in slow start.
    pub keep_going: bool,
    /// Also where the recorded window had reached the recorded threshold: as if slow start had gone on, with the
    /// windows that the flow had then.
    pub beyond: bool,
    /// What exits cost, which takes the whole of a flow.
    pub regret: bool,
}

/// What one candidate made of one flow.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Algorithm.
    pub algorithm: &'static str,
    /// What was set, as `name=value`.
    pub settings: Vec<String>,
    /// ACKs with which it was called.
    pub evaluated: u64,
    /// The first exit; none: it would not have left.
    pub exit: Option<Exit>,
    /// There is no exit because the flow exited slow start first: whether the algorithm would have left later is not known.
    pub flow_left_first: bool,
    /// What that exit would have cost; none: there is no exit, or the BDP of the path is not known.
    pub regret: Option<Regret>,
    /// Name of the last verdict.
    pub last_outcome: &'static str,
    /// Verdicts by name.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Its exports at the exit, else at the end, in the order of their declaration.
    #[serde(serialize_with = "as_map")]
    pub exports: Vec<(&'static str, Vec<u32>)>,
    /// Its verdicts against those recorded; none: another algorithm's or none were recorded.
    pub recorded: Option<Verdicts>,
    /// Generations of parameters that were in force and whose values the recording does not hold.
    pub unknown_generations: Vec<u32>,
}

/// What became of one flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowReport {
    /// Number of the connection.
    pub flow: u64,
    /// What the recording says of it.
    #[serde(flatten)]
    pub known: Known,
    /// Acknowledgments recorded.
    pub acks: u64,
    /// What the flow did, thinned out.
    #[serde(skip)]
    pub trace: Trace,
    /// From the first data to the last acknowledgment, microseconds.
    pub duration_us: u64,
    /// The BDP of the path; none: the application was the limit, or the flow was too short.
    pub given: Option<PathEstimate>,
    /// What the recorded exit cost.
    pub regret: Option<Regret>,
    /// One for each candidate, in their order.
    pub findings: Vec<Finding>,
}

/// A replay in progress.
#[derive(Clone, Debug)]
pub struct Replay {
    candidates: Vec<Candidate>,
    options: Options,
    flows: BTreeMap<u64, Replayed>,
}

#[derive(Clone, Debug)]
struct Replayed {
    known: Known,
    start_us: u64,
    last_us: u64,
    acks: u64,
    trace: Trace,
    costs: Costs,
    evaluators: Vec<Evaluator>,
}

impl Replay {
    /// A replay through these candidates.
    pub fn new(candidates: Vec<Candidate>, options: Options) -> Self {
        Self { candidates, options, flows: BTreeMap::new() }
    }

    /// Feeds acknowledgments of one flow. What is known of the flow counts when it is met first.
    pub fn feed(&mut self, run: &Run<'_>, known: &Known, generations: &Generations) {
        let (Some(first), Some(last)) = (run.samples.first(), run.samples.last()) else { return };
        let (candidates, options) = (&self.candidates, self.options);
        let flow = self.flows.entry(run.flow).or_insert_with(|| {
            let rtt_us = match first.ack.rtt_us {
                sample @ 1.. => sample as u32,
                _ => first.ack.smoothed_rtt_us,
            };
            let start_us =
                known.resumed.as_ref().map(|resumed| resumed.start_us).filter(|start_us| *start_us != 0);
            let start_us = start_us.unwrap_or(first.ack.now_us.wrapping_sub(rtt_us.into()));
            let left_us = known.recorded_exit.as_ref().map(|exit| start_us.wrapping_add(exit.since_start_us));
            let evaluator = |one: &Candidate| Evaluator::new(one, start_us, known, options);
            Replayed {
                known: known.clone(),
                start_us,
                last_us: start_us,
                acks: 0,
                trace: Trace::default(),
                costs: Costs::new(left_us),
                evaluators: candidates.iter().map(evaluator).collect(),
            }
        });
        flow.acks += run.samples.iter().filter(|one| !matches!(one.event, Event::Loss(_))).count() as u64;
        flow.trace.add(run.samples, flow.start_us);
        if options.regret {
            flow.costs.add(run.samples);
        }
        flow.last_us = last.ack.now_us;
        for evaluator in &mut flow.evaluators {
            evaluator.feed(run, generations);
        }
    }

    /// The findings, flows in the order of their numbers.
    pub fn finish(self) -> Vec<FlowReport> {
        let report = |(number, flow): (u64, Replayed)| {
            let given = flow.costs.given(flow.start_us);
            let left = flow.known.recorded_exit.is_some();
            let finding = |evaluator: Evaluator| {
                let mut finding = evaluator.finish();
                finding.flow_left_first |= finding.exit.is_none() && left;
                finding.regret = given.zip(finding.exit.as_ref()).map(|(given, exit)| given.regret_of(exit));
                finding
            };
            let recorded = flow.known.recorded_exit.as_ref();
            FlowReport {
                flow: number,
                regret: recorded.and_then(|exit| flow.costs.regret(flow.start_us, exit.window_bytes)),
                given,
                known: flow.known,
                acks: flow.acks,
                trace: flow.trace,
                // It may begin before its clock does, and rows may not be in order.
                duration_us: (flow.last_us.wrapping_sub(flow.start_us) as i64).max(0) as u64,
                findings: flow.evaluators.into_iter().map(finding).collect(),
            }
        };
        self.flows.into_iter().map(report).collect()
    }
}

fn as_map<S: Serializer>(exports: &[(&str, Vec<u32>)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(exports.iter().map(|(name, values)| (name, values)))
}

/// An algorithm's parameters as its declarations have them, with settings on top; of one that there is twice, as of a profile
/// and of a command line, the later.
fn with_settings(mut base: Parameters, settings: &[String]) -> Result<Parameters, ParameterError> {
    settings.iter().try_for_each(|setting| base.assign([setting]))?;
    Ok(base)
}

/// Defaults of an algorithm with settings on top; settings were checked when the candidate was made.
fn defaults(algorithm: Algorithm, settings: &[String]) -> Parameters {
    with_settings(algorithm.parameters(), settings).unwrap_or_else(|_| algorithm.parameters())
}
