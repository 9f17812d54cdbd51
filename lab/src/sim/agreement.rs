// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How far a simulated run, or one of another kernel, is from the same run of the kernel's TCP.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::json;

use super::{SimError, SourceSpec, run};
use crate::experiment::{ArmResult, Comparison, ExitSource, Run};

/// Exit and completion may differ by so much, as a part of the kernel's.
pub const TIME: f64 = 0.03;
/// Losses by so much, or by so many segments.
pub const LOSSES: f64 = 0.10;
/// See [`LOSSES`].
pub const FEW_LOSSES: u64 = 20;

/// Many pairs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Agreement {
    /// How many of them are as near as they should be.
    pub agree: usize,
    /// All of them.
    pub pairs: Vec<Pair>,
    /// Arms that are not simulated, or that the other kernel has not run.
    pub left_out: Vec<String>,
}

impl Agreement {
    /// Simulates all valid runs of a result, and compares.
    ///
    /// # Errors
    /// [`SimError`], but for arms whose control is not modelled.
    pub fn add(&mut self, measured: &Comparison) -> Result<(), SimError> {
        for arm in &measured.arms {
            let (Some(plan), Some(definition)) = (&measured.plan, &arm.definition) else {
                self.leave_out(measured, &arm.arm);
                continue;
            };
            self.leave_cut_off(measured, arm);
            for kernel in arm.runs.iter().filter(|run| run.valid) {
                match run(plan, definition, kernel.seed, SourceSpec::Bulk) {
                    Ok(simulated) => self.pair(measured, &arm.arm, kernel, &simulated),
                    Err(SimError::Control { .. }) => self.leave_out(measured, &arm.arm),
                    Err(other) => return Err(other),
                }
            }
        }
        Ok(())
    }

    /// Compares all valid runs of a result with those of the same seeds, arms and conditions among another kernel's.
    pub fn add_others(&mut self, measured: &Comparison, others: &Runs<'_>) {
        for arm in &measured.arms {
            let same = conditions(measured, arm).and_then(|asked| others.0.get(&asked));
            self.leave_cut_off(measured, arm);
            for kernel in arm.runs.iter().filter(|run| run.valid) {
                match same.and_then(|runs| runs.iter().find(|run| run.seed == kernel.seed)) {
                    Some(other) => self.pair(measured, &arm.arm, kernel, other),
                    None => self.leave_out(measured, &arm.arm),
                }
            }
        }
    }

    fn pair(&mut self, measured: &Comparison, arm: &str, kernel: &Run, other: &Run) {
        let profile = measured.profile.clone();
        let pair = Pair { profile, arm: arm.to_owned(), ..Pair::new(kernel, other) };
        self.agree += usize::from(pair.apart.is_empty());
        self.pairs.push(pair);
    }

    /// The length of a run that was given up is not known.
    fn leave_cut_off(&mut self, measured: &Comparison, arm: &ArmResult) {
        for run in arm.runs.iter().filter(|run| run.cut_off) {
            self.left_out.push(format!(
                "{} on {} seed {} (given up at the limit)",
                arm.arm, measured.profile, run.seed
            ));
        }
    }

    fn leave_out(&mut self, measured: &Comparison, arm: &str) {
        self.left_out.push(format!("{arm} on {}", measured.profile));
    }
}

/// The valid runs of results, by what was asked for.
pub struct Runs<'a>(HashMap<String, Vec<&'a Run>>);

impl<'a> Runs<'a> {
    /// Those of results that say what was asked for.
    pub fn new(results: &'a [Comparison]) -> Self {
        let mut runs: HashMap<_, Vec<_>> = HashMap::new();
        for result in results {
            for arm in &result.arms {
                let Some(asked) = conditions(result, arm) else { continue };
                runs.entry(asked).or_default().extend(arm.runs.iter().filter(|run| run.valid));
            }
        }
        Self(runs)
    }
}

/// All that a run of an arm depends on, but for the kernel, the seed and chance: plan and arm. `None`: an older result does
/// not say.
fn conditions(result: &Comparison, arm: &ArmResult) -> Option<String> {
    let mut plan = serde_json::to_value(result.plan.as_ref()?).ok()?;
    let keys = plan.as_object_mut()?;
    keys.retain(|name, _| !["seed", "repetitions", "timeout"].contains(&name.as_str()));
    Some(json!([plan, arm.definition.as_ref()?]).to_string())
}

/// For people: what is apart, and how much is not. `others`: what the kernel's runs are compared with.
pub fn text(agreement: &Agreement, others: &str) -> String {
    let mut text = String::new();
    for pair in agreement.pairs.iter().filter(|pair| !pair.apart.is_empty()) {
        let exit = |at: usize| match (pair.exit_seconds[at], pair.exit_window_bytes[at]) {
            (Some(seconds), Some(bytes)) => format!("{seconds:.3} s at {:.3} MB", bytes as f64 / 1e6),
            _ => "none".to_owned(),
        };
        text += &format!(
            "{} {} seed {}: {}: kernel {:.3} s, exit {}, {} retransmitted; {others} {:.3} s, exit {}, {}\n",
            pair.profile,
            pair.arm,
            pair.seed,
            pair.apart.join(", "),
            pair.seconds[0],
            exit(0),
            pair.retransmitted_segments[0],
            pair.seconds[1],
            exit(1),
            pair.retransmitted_segments[1],
        );
    }
    if !agreement.left_out.is_empty() {
        text += &format!("left out: {}\n", agreement.left_out.join(", "));
    }
    text + &format!("{} of {} agree\n", agreement.agree, agreement.pairs.len())
}

/// Two runs side by side: the kernel's and the simulated one, or another kernel's.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// Name of the profile.
    pub profile: String,
    /// Name of the arm.
    pub arm: String,
    /// Seed of the link.
    pub seed: u64,
    /// Completion time, seconds.
    pub seconds: [f64; 2],
    /// Time of the exit, seconds; none: slow start was not left.
    pub exit_seconds: [Option<f64>; 2],
    /// Window at the exit, bytes.
    pub exit_window_bytes: [Option<u64>; 2],
    /// Segments retransmitted.
    pub retransmitted_segments: [u64; 2],
    /// What is further apart than it may be, by name.
    pub apart: Vec<&'static str>,
}

impl Pair {
    /// Compares. An exit by the looks of a sampler is late by up to their period, 10 ms, which is allowed for; so is one
    /// after the last byte was sent, which has no effect.
    pub fn new(kernel: &Run, other: &Run) -> Self {
        let sampled = kernel.exit.as_ref().is_some_and(|exit| exit.source == ExitSource::Sampled);
        let slack = if sampled { 0.010 } else { 0.0 };
        let near = |one: f64, two: f64, slack: f64| (one - two).abs() <= TIME * one + slack;
        let exits = [&kernel.exit, &other.exit];
        let exit_seconds = exits.map(|exit| exit.as_ref().map(|exit| exit.seconds));
        let exit_window_bytes = exits.map(|exit| exit.as_ref().map(|exit| exit.window_bytes));
        let losses = [kernel.retransmitted_segments, other.retransmitted_segments];
        let mut apart = Vec::new();
        if !other.valid || !near(kernel.seconds, other.seconds, 0.0) {
            apart.push("seconds");
        }
        match exit_seconds {
            [Some(one), Some(two)] if near(one, two, slack) => {}
            [None, None] => {}
            _ => apart.push("exit_seconds"),
        }
        match exit_window_bytes {
            [Some(one), Some(two)] if near(one as f64, two as f64, 0.0) => {}
            [None, None] => {}
            _ => apart.push("exit_window"),
        }
        let difference = losses[0].abs_diff(losses[1]);
        if difference > FEW_LOSSES && difference as f64 > LOSSES * losses[0] as f64 {
            apart.push("losses");
        }
        Self {
            profile: String::new(),
            arm: String::new(),
            seed: kernel.seed,
            seconds: [kernel.seconds, other.seconds],
            exit_seconds,
            exit_window_bytes,
            retransmitted_segments: losses,
            apart,
        }
    }
}
