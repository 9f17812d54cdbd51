// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the cost depends on: each parameter of the best candidate moved alone. A candidate that a single move makes cheaper is
//! not the best yet.

use serde::Serialize;

use super::evaluate::Evaluator;
use super::{Candidate, Varied};
use crate::population::Path;
use crate::sim::SimError;

/// One parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sensitivity {
    /// Its name.
    pub parameter: String,
    /// Its unit; empty for a choice or a bare number.
    pub unit: String,
    /// The start's value.
    pub start: String,
    /// The best candidate's.
    pub best: String,
    /// At the start's value if that is another, at half and double, or at each other choice.
    pub moved: Vec<Moved>,
}

/// A parameter at another value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// The value.
    pub value: String,
    /// Cost, a ratio of the best candidate's: geometric mean.
    pub cost: f64,
}

/// A move is taken if it costs so much less at least …
const GAIN: f64 = 0.995;
/// … and as many after each other at most.
const MOST_MOVES: usize = 5;

/// Moves one parameter at a time as long as that costs less, over the first `paths` paths; the candidate that is left, and
/// what moving it further costs.
pub(super) fn descend<P: Fn(u64) -> Path + Sync>(
    evaluator: &Evaluator<'_, P>,
    best: &Candidate,
    varied: &[Varied],
    paths: u64,
) -> Result<(Candidate, Vec<Sensitivity>), SimError> {
    let mut best = best.clone();
    for made in 0.. {
        let Around { sensitivity, cheapest } = around(evaluator, &best, varied, paths)?;
        match cheapest {
            Some((candidate, cost)) if cost < GAIN && made < MOST_MOVES => best = candidate,
            _ => return Ok((best, sensitivity)),
        }
    }
    unreachable!("there are only so many moves")
}

/// What is around a candidate.
struct Around {
    sensitivity: Vec<Sensitivity>,
    /// The move of the least cost, with that cost.
    cheapest: Option<(Candidate, f64)>,
}

/// Of `best`, over the first `paths` paths, and the move of the least cost.
fn around<P: Fn(u64) -> Path + Sync>(
    evaluator: &Evaluator<'_, P>,
    best: &Candidate,
    varied: &[Varied],
    paths: u64,
) -> Result<Around, SimError> {
    let moves: Vec<_> = varied
        .iter()
        .map(|varied| {
            let of = |candidate: &Candidate| candidate.0.get(varied.parameter.name).unwrap_or(varied.from);
            let (start, best) = (of(evaluator.start), of(best));
            let mut values = varied.neighbours(best);
            if start != best && !values.contains(&start) {
                values.insert(0, start);
            }
            (varied, start, best, values)
        })
        .collect();
    let moved = moves
        .iter()
        .flat_map(|(varied, _, _, values)| values.iter().map(|value| best.with([(*varied, *value)])));
    let candidates: Vec<_> = std::iter::once(best.clone()).chain(moved).collect();
    let what = format!("each parameter of {} moved alone, on {paths} paths", best.label(evaluator.start));
    let mut logarithms = vec![0.0; candidates.len()];
    for of_path in evaluator.rows(&what, 0..paths, &candidates)? {
        for (sum, row) in logarithms.iter_mut().zip(&of_path) {
            *sum += evaluator.logarithm(row, &of_path[0]);
        }
    }
    let costs: Vec<_> = logarithms.iter().skip(1).map(|sum| (sum / paths as f64).exp()).collect();
    let cheapest = candidates.into_iter().skip(1).zip(costs.iter().copied());
    let cheapest = cheapest.min_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut costs = costs.into_iter();
    let sensitivity = |(varied, start, best, values): (&Varied, u64, u64, Vec<u64>)| Sensitivity {
        parameter: varied.parameter.name.to_owned(),
        unit: varied.parameter.unit.to_owned(),
        start: varied.parameter.show(start),
        best: varied.parameter.show(best),
        moved: values
            .into_iter()
            .zip(costs.by_ref())
            .map(|(value, cost)| Moved { value: varied.parameter.show(value), cost })
            .collect(),
    };
    Ok(Around { sensitivity: moves.into_iter().map(sensitivity).collect(), cheapest })
}
