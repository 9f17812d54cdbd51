// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Successive halving (Jamieson and Talwalkar 2016): all candidates on few paths, the better third of them on three times as
//! many, and so on.

use std::cmp::Ordering;

use super::evaluate::Evaluator;
use super::{Candidate, Rung};
use crate::population::Path;
use crate::sim::SimError;
use crate::sim::sweep::pareto;

/// One of so many goes on to the next rung, which has so many times as many paths.
pub(super) const KEPT: u64 = 3;
/// No rung has fewer paths, but where there are not as many …
const LEAST_PATHS: u64 = 10;
/// … and none fewer candidates, the start not counted.
const LEAST_CANDIDATES: usize = 3;

/// How a search ended.
pub(super) struct Halved {
    pub rungs: Vec<Rung>,
    /// The start, and what was left, the least cost first.
    pub last: Vec<Candidate>,
    /// What costs least of these.
    pub best: Candidate,
}

/// A candidate and what it cost so far, all compared with the start: sums over paths.
#[derive(Clone)]
struct Standing {
    candidate: Candidate,
    /// Logarithm of the cost.
    cost: f64,
    /// Logarithm of the time, segments retransmitted, microseconds of queueing delay.
    front: [f64; 3],
}

/// Paths and candidates of each rung.
fn plan(candidates: usize, paths: u64) -> Vec<Rung> {
    let mut rungs = vec![Rung { candidates, paths }];
    loop {
        let Rung { candidates, paths } = rungs[0];
        if paths.div_ceil(KEPT) < LEAST_PATHS || rungs.len() > 20 {
            break;
        }
        rungs.insert(0, Rung { candidates, paths: paths.div_ceil(KEPT) });
    }
    // As many candidates as are drawn begin; each rung keeps a third.
    for number in 1..rungs.len() {
        let kept = rungs[number - 1].candidates.div_ceil(KEPT as usize).max(LEAST_CANDIDATES + 1);
        rungs[number].candidates = kept.min(rungs[number - 1].candidates);
    }
    rungs
}

/// Searches; the first candidate is the start, which is never given up.
pub(super) fn search<P: Fn(u64) -> Path + Sync>(
    evaluator: &Evaluator<'_, P>,
    candidates: Vec<Candidate>,
    paths: u64,
) -> Result<Halved, SimError> {
    let rungs = plan(candidates.len(), paths);
    let none = |candidate| Standing { candidate, cost: 0.0, front: [0.0; 3] };
    let mut standings: Vec<_> = candidates.into_iter().map(none).collect();
    let mut seen = 0;
    for rung in &rungs {
        keep(&mut standings, rung.candidates);
        let what = format!("{} candidates on {} paths", rung.candidates, rung.paths);
        let candidates: Vec<_> = standings.iter().map(|standing| standing.candidate.clone()).collect();
        for of_path in evaluator.rows(&what, seen..rung.paths, &candidates)? {
            let start = &of_path[0];
            for (standing, row) in standings.iter_mut().zip(&of_path) {
                standing.cost += evaluator.logarithm(row, start);
                standing.front[0] += (row.seconds() / start.seconds()).ln();
                standing.front[1] += row.retransmitted_segments as f64;
                standing.front[2] += row.mean_rtt_us as f64;
            }
        }
        seen = rung.paths;
    }
    standings[1..].sort_by(cheaper);
    let best = standings.get(1).filter(|first| first.cost < 0.0).unwrap_or(&standings[0]).candidate.clone();
    let last = standings.into_iter().map(|standing| standing.candidate).collect();
    Ok(Halved { rungs, last, best })
}

fn cheaper(one: &Standing, other: &Standing) -> Ordering {
    one.cost.total_cmp(&other.cost)
}

/// Keeps so many, the start always: two thirds of the others for their cost, the rest because nothing beats them in all of
/// time, losses and queueing delay, the least cost first.
fn keep(standings: &mut Vec<Standing>, count: usize) {
    if standings.len() <= count {
        return;
    }
    let start = standings.remove(0);
    standings.sort_by(cheaper);
    let by_cost = (count - 1) - (count - 1) / 3;
    let beaten: Vec<_> = standings
        .iter()
        .map(|one| standings.iter().any(|other| pareto::beats(&other.front, &one.front)))
        .collect();
    let (front, others): (Vec<_>, Vec<_>) = standings
        .drain(..)
        .zip(beaten)
        .enumerate()
        .partition(|(place, (_, beaten))| *place < by_cost || !beaten);
    let ordered = front.into_iter().chain(others).map(|(_, (standing, _))| standing);
    *standings = std::iter::once(start).chain(ordered.take(count - 1)).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(number: u64, cost: f64, front: [f64; 3]) -> Standing {
        let mut parameters = onramp_algorithm::find("search").unwrap().parameters();
        parameters.set("threshold_pct", &number.to_string()).unwrap();
        Standing { candidate: Candidate(parameters), cost, front }
    }

    #[test]
    fn each_rung_has_a_third_of_the_candidates_and_three_times_the_paths() {
        let rungs = plan(243, 270);
        let all: Vec<_> = rungs.iter().map(|rung| (rung.candidates, rung.paths)).collect();
        assert_eq!(all, [(243, 10), (81, 30), (27, 90), (9, 270)]);
        assert_eq!(plan(5, 9), [Rung { candidates: 5, paths: 9 }]);
        assert_eq!(plan(5, 300).last().unwrap().candidates, 4, "never fewer than the start and three");
        assert_eq!(plan(2, 300).last().unwrap().candidates, 2);
    }

    #[test]
    fn what_is_cheap_stays_and_what_nothing_beats_and_the_start() {
        let mut all = vec![
            standing(10, 0.0, [0.0, 9.0, 9.0]),
            standing(11, 3.0, [3.0, 9.0, 9.0]),
            standing(12, -2.0, [-2.0, 5.0, 5.0]),
            standing(13, -1.0, [-1.0, 6.0, 6.0]),
            standing(14, 2.0, [2.0, 0.0, 5.0]),
            standing(15, -0.5, [-0.5, 7.0, 7.0]),
        ];
        keep(&mut all, 4);
        let left: Vec<_> =
            all.iter().map(|standing| standing.candidate.0.get("threshold_pct").unwrap()).collect();
        assert_eq!(left, [10, 12, 13, 14], "14 loses nothing, 15 is beaten by 12");
    }
}
