// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Parameters of an algorithm that suit a population of paths: candidates are drawn, the worse of them are given up early, and what
//! is left is evaluated on paths that the search has not seen ([`HeldOut`]).

mod evaluate;
mod halving;
mod sensitivity;
mod space;
mod text;

use std::num::NonZeroUsize;

use onramp_algorithm::Parameters;
use serde::Serialize;

pub use evaluate::cost_seconds;
pub use sensitivity::{Moved, Sensitivity};
pub use space::Varied;

use super::SimError;
use super::sweep::Sweep;
use onramp_terminal::output::SCHEMA;

use crate::experiment::Arm;
use crate::population::Path;
use crate::stats::Summary;
use evaluate::Evaluator;

/// What is to be searched.
#[derive(Clone, Debug)]
pub struct Search {
    /// The algorithm, with the parameters that others are compared with.
    pub start: Parameters,
    /// What is varied, at least one.
    pub varied: Vec<Varied>,
    /// Candidates at the begin, 3 to 100 000.
    pub candidates: usize,
    /// Paths of the last rung, 3 to 1 000 000; as many again are held out.
    pub paths: u64,
    /// Seed of the candidates.
    pub seed: u64,
    /// What a segment retransmitted costs, in times that the path needs for one, 0 to 1000.
    pub loss_weight: f64,
    /// Simulations at once.
    pub jobs: NonZeroUsize,
}

/// What a search has found. Costs are ratios of the start's on the same paths, geometric means.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tuning {
    /// Version of the JSON form.
    pub schema: u32,
    /// The algorithm's name.
    pub algorithm: String,
    /// What the paths are called together.
    pub population: String,
    /// Seed of the candidates.
    pub seed: u64,
    /// As asked for.
    pub loss_weight: f64,
    /// The search, step by step.
    pub rungs: Vec<Rung>,
    /// The candidate of the least cost, as `onramp sim` takes arms.
    pub best: String,
    /// What it sets, other than the start: `name=value`.
    pub settings: Vec<String>,
    /// Start and best, with all their values.
    #[serde(skip)]
    pub parameters: [Parameters; 2],
    /// What moving one of its parameters costs, on paths of the search.
    pub sensitivity: Vec<Sensitivity>,
    /// Best against start on paths that the search has not seen.
    pub held_out: HeldOut,
    /// The last candidates on these paths, start first; with the front of time, losses and queueing delay.
    pub last: Sweep,
}

/// A step of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rung {
    /// Candidates that were compared.
    pub candidates: usize,
    /// Paths that each of them had seen then.
    pub paths: u64,
}

/// One candidate against the start, path by path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldOut {
    /// Number of the first path.
    pub first_path: u64,
    /// Paths.
    pub paths: u64,
    /// Cost, a ratio of the start's: geometric mean.
    pub cost: f64,
    /// 95 % confidence interval of it; none of one path.
    pub cost_ci95: Option<(f64, f64)>,
    /// Share of paths on which it costs at least 1 % less …
    pub better: f64,
    /// … and at least 1 % more.
    pub worse: f64,
}

impl Tuning {
    /// Start and best as arms of other experiments.
    pub fn arms(&self) -> [Arm; 2] {
        let [start, best] = self.parameters.clone().map(Candidate);
        [start.arm(&start), best.arm(&start)]
    }
}

impl HeldOut {
    /// Of the logarithms of cost ratios.
    pub fn new(first_path: u64, logarithms: &[f64]) -> Option<Self> {
        let summary = Summary::new(logarithms.iter().copied())?;
        let share = |count: usize| count as f64 / logarithms.len() as f64;
        let near = 1.01_f64.ln();
        Some(Self {
            first_path,
            paths: logarithms.len() as u64,
            cost: summary.mean.exp(),
            cost_ci95: summary.ci95.map(|half| ((summary.mean - half).exp(), (summary.mean + half).exp())),
            better: share(logarithms.iter().filter(|log| **log <= -near).count()),
            worse: share(logarithms.iter().filter(|log| **log >= near).count()),
        })
    }

    /// It costs less, and not by chance: the whole interval is below 1.
    pub fn is_better(&self) -> bool {
        self.cost_ci95.is_some_and(|(_, high)| high < 1.0)
    }
}

/// A set of parameters to be tried.
#[derive(Clone, Debug, PartialEq)]
struct Candidate(Parameters);

impl Candidate {
    /// What differs from the start: `name=value`.
    fn settings(&self, start: &Self) -> Vec<String> {
        let both = self.0.shown().zip(start.0.shown());
        both.filter(|(own, of_start)| own != of_start)
            .map(|((name, value), _)| format!("{name}={value}"))
            .collect()
    }

    /// As an arm is written.
    fn label(&self, start: &Self) -> String {
        let mut label = self.0.algorithm().name().to_owned();
        for setting in self.settings(start) {
            label += &format!(":{setting}");
        }
        label
    }

    fn arm(&self, start: &Self) -> Arm {
        Arm {
            name: self.label(start),
            parameters: self.0.shown().map(|(name, value)| (name.to_owned(), value)).collect(),
            records_exit: true,
            ..Arm::stock(&self.0.algorithm().congestion_control())
        }
    }
}

/// Searches over `path(0)` to `path(paths - 1)` and evaluates on as many paths that follow. The same arguments give the same
/// result for any `jobs`. `progress` is called with what is done, and of how
/// many paths so many are.
///
/// # Errors
/// [`SimError`]: a path that cannot be simulated.
pub fn tune(
    search: &Search,
    population: &str,
    path: impl Fn(u64) -> Path + Sync,
    progress: impl Fn(&str, u64, u64) + Sync,
) -> Result<Tuning, SimError> {
    let start = Candidate(search.start.clone());
    let (loss_weight, jobs) = (search.loss_weight, search.jobs);
    let evaluator = Evaluator { start: &start, path, loss_weight, jobs, progress: &progress };
    let drawn = space::candidates(&start, &search.varied, search.candidates, search.seed);
    let halved = halving::search(&evaluator, drawn, search.paths)?;
    let few = search.paths.div_ceil(halving::KEPT);
    let (best, sensitivity) = sensitivity::descend(&evaluator, &halved.best, &search.varied, few)?;
    let mut last = halved.last;
    if !last.contains(&best) {
        last.insert(1, best.clone());
    }
    let what = format!("{} paths that the search has not seen", search.paths);
    let rows = evaluator.rows(&what, search.paths..2 * search.paths, &last)?;
    let at = last.iter().position(|candidate| *candidate == best).unwrap_or(0);
    let logarithms: Vec<_> =
        rows.iter().map(|of_path| evaluator.logarithm(&of_path[at], &of_path[0])).collect();
    let Some(held_out) = HeldOut::new(search.paths, &logarithms) else { unreachable!("a search has paths") };
    let rows: Vec<_> = rows.into_iter().flatten().collect();
    Ok(Tuning {
        schema: SCHEMA,
        algorithm: search.start.algorithm().name().to_owned(),
        population: population.to_owned(),
        seed: search.seed,
        loss_weight: search.loss_weight,
        rungs: halved.rungs,
        best: best.label(&start),
        settings: best.settings(&start),
        parameters: [start.0.clone(), best.0.clone()],
        sensitivity,
        held_out,
        last: Sweep::new(population, search.seed, &rows),
    })
}

#[cfg(test)]
mod tests;
