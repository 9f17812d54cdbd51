// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One candidate over one flow: the shell itself, attached to observe.

use onramp_algorithm::{ExitReason, Flow, OUTCOME_MAX, OpenLoop, Stage, Verdict, outcome};
use serde::Serialize;

use super::candidate::Candidate;
use super::source::{Generations, Known};
use super::{Finding, Options, defaults, with_settings};
use crate::sample::{Event, Run, Sample};

/// Where a candidate would have exited slow start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exit {
    /// Number of the acknowledgment, the flow's first is 1.
    pub ack: u64,
    /// Why, by the kernel's record: always `algorithm`. Either this verdict leaves, or the window reached a threshold that
    /// an earlier one had set above it.
    pub reason: ExitReason,
    /// Monotonic clock.
    pub at_us: u64,
    /// Since the first data was sent.
    pub since_start_us: u64,
    /// Acknowledged by then.
    pub acknowledged_bytes: u64,
    /// Recorded window.
    pub cwnd_segments: u32,
    /// Recorded window.
    pub window_bytes: u64,
    /// Recorded.
    pub in_flight_segments: u32,
    /// Sample of this acknowledgment, if it has one; else, and where the window reached a threshold, the smoothed RTT.
    pub rtt_us: u32,
    /// Recorded; 0: none.
    pub min_rtt_us: u32,
    /// Window that the verdict asks for; none: it leaves the window.
    pub target_segments: Option<u32>,
    /// Threshold that the verdict asks for; none: that comes later, after a drain.
    pub ssthresh_segments: Option<u32>,
}

/// Replayed verdicts against recorded ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    /// Acknowledgments with both.
    pub compared: u64,
    /// Of these, how many differ.
    pub different: u64,
    /// The first that differs: its number, the flow's first is 1.
    pub first_different_ack: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Evaluator {
    candidate: Candidate,
    options: Options,
    /// Whether the flow really ran this algorithm, so that recorded parameters and verdicts are its own.
    own: bool,
    parameter_set: u32,
    replayed: OpenLoop,
    start_us: u64,
    seen: u64,
    evaluated: u64,
    /// The flow has left a slow start.
    flow_left: bool,
    generation: Option<u32>,
    unknown_generations: Vec<u32>,
    exit: Option<Exit>,
    exports: Option<Vec<(&'static str, Vec<u32>)>>,
    outcomes: [u64; OUTCOME_MAX],
    last_outcome: u32,
    recorded: Verdicts,
}

impl Evaluator {
    pub fn new(candidate: &Candidate, start_us: u64, known: &Known, options: Options) -> Self {
        let own = known.algorithm.as_deref() == Some(candidate.algorithm.name());
        let parameters = defaults(candidate.algorithm, &candidate.settings);
        let resumed = known.resumed.as_ref().filter(|_| own);
        let flow = resumed.and_then(|resumed| Flow::resume(parameters.clone(), &resumed.state));
        let slow_starts = resumed.filter(|_| flow.is_some()).map_or(0, |resumed| resumed.slow_starts);
        Self {
            own,
            parameter_set: known.parameter_set,
            replayed: OpenLoop::new(flow.unwrap_or_else(|| Flow::new(parameters)), slow_starts),
            candidate: candidate.clone(),
            options,
            start_us,
            seen: 0,
            evaluated: 0,
            flow_left: false,
            generation: None,
            unknown_generations: Vec::new(),
            exit: None,
            exports: None,
            outcomes: [0; OUTCOME_MAX],
            last_outcome: outcome::GROW,
            recorded: Verdicts::default(),
        }
    }

    pub fn feed(&mut self, run: &Run<'_>, generations: &Generations) {
        for (index, sample) in run.samples.iter().enumerate() {
            if self.exit.is_some() && !self.options.keep_going {
                return;
            }
            if let Event::Loss(base_ssthresh) = sample.event {
                self.flow_left = true;
                self.replayed.loss(&sample.ack, base_ssthresh);
                continue;
            }
            self.seen += 1;
            if self.own && self.generation != Some(sample.generation) {
                self.tune(sample.generation, generations);
            }
            let Some(verdict) = self.evaluate(sample) else { continue };
            if self.own
                && sample.event == Event::Called
                && let Some(recorded) = run.verdicts.get(index)
            {
                self.compare(&verdict, recorded);
            }
        }
    }

    /// What ran was in slow start, for its algorithm, where that was called; others only below the threshold.
    fn stage(&self, sample: &Sample) -> Stage {
        match sample.event {
            _ if self.options.beyond => Stage::SlowStart,
            Event::Called if self.own => Stage::SlowStart,
            Event::Called => Stage::ByThreshold,
            _ => Stage::Past,
        }
    }

    fn evaluate(&mut self, sample: &Sample) -> Option<Verdict> {
        let ack = &sample.ack;
        // What it grew by on the acknowledgment before, after the algorithm had been called.
        self.replayed.grow(ack.cwnd);
        self.note_exit(self.seen - 1, None);
        if self.exit.is_some() {
            if !self.options.keep_going {
                return None;
            }
            self.replayed.go_on();
        }
        let Some(verdict) = self.replayed.ack(ack, sample.slow_starts, self.stage(sample)) else {
            // Slow start was left in another way.
            self.flow_left |= self.evaluated > 0 && ack.cwnd >= ack.ssthresh;
            return None;
        };
        self.evaluated += 1;
        self.last_outcome = verdict.outcome;
        self.outcomes[verdict.outcome as usize % OUTCOME_MAX] += 1;
        self.note_exit(self.seen, Some(&verdict));
        Some(verdict)
    }

    /// The first exit, if the shell has just recorded it: by a verdict, or by a window that has come to the threshold of an
    /// earlier one.
    fn note_exit(&mut self, number: u64, verdict: Option<&Verdict>) {
        let (None, Some(exit), Some(at_us)) = (&self.exit, self.replayed.exit(), self.replayed.exit_us())
        else {
            return;
        };
        let (target, ssthresh) = verdict.map_or((0, exit.window_after), |one| (one.cwnd, one.ssthresh));
        let found = Exit {
            ack: number,
            reason: ExitReason::Algorithm,
            at_us,
            since_start_us: at_us.wrapping_sub(self.start_us),
            acknowledged_bytes: exit.bytes_acked,
            cwnd_segments: exit.window,
            window_bytes: u64::from(exit.window) * u64::from(exit.mss),
            in_flight_segments: exit.in_flight,
            rtt_us: exit.rtt_us,
            min_rtt_us: exit.min_rtt_us,
            target_segments: Some(target).filter(|segments| *segments != 0),
            ssthresh_segments: Some(ssthresh).filter(|segments| *segments != 0),
        };
        self.exports = Some(self.exports_now());
        self.exit = Some(found);
    }

    /// The flow's parameters changed; what the candidate sets stays set.
    fn tune(&mut self, generation: u32, generations: &Generations) {
        self.generation = Some(generation);
        let algorithm = self.candidate.algorithm;
        match generations.get(algorithm.name(), self.parameter_set, generation) {
            Some(settings) => {
                let recorded = defaults(algorithm, settings);
                if let Ok(parameters) = with_settings(recorded, &self.candidate.settings) {
                    self.replayed.flow_mut().tune(parameters);
                }
            }
            None if generations.is_empty() => {}
            None => self.unknown_generations.push(generation),
        }
    }

    fn compare(&mut self, replayed: &Verdict, recorded: &Verdict) {
        self.recorded.compared += 1;
        if replayed != recorded {
            self.recorded.different += 1;
            self.recorded.first_different_ack.get_or_insert(self.seen);
        }
    }

    fn exports_now(&self) -> Vec<(&'static str, Vec<u32>)> {
        let exports = self.candidate.algorithm.exports();
        exports.map(|export| (export.name, self.replayed.flow().export(export.name))).collect()
    }

    pub fn finish(self) -> Finding {
        let algorithm = self.candidate.algorithm;
        let counted = self.outcomes.iter().enumerate().filter(|(_, count)| **count > 0);
        Finding {
            algorithm: algorithm.name(),
            evaluated: self.evaluated,
            last_outcome: algorithm.outcome_name(self.last_outcome),
            outcomes: counted
                .map(|(number, count)| (algorithm.outcome_name(number as u32), *count))
                .collect(),
            exports: self.exports.clone().unwrap_or_else(|| self.exports_now()),
            recorded: Some(self.recorded).filter(|verdicts| verdicts.compared > 0),
            unknown_generations: self.unknown_generations,
            flow_left_first: self.flow_left && self.exit.is_none(),
            exit: self.exit,
            regret: None,
            settings: self.candidate.settings,
        }
    }
}
