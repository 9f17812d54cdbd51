// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The Pareto front of time, losses and queueing delay.

use std::path::Path;

use super::{ArmSummary, Sweep};
use crate::figure::{Axis, Corner, Dash, Figure, FigureError, Interval, Line, Panel, Region, style};
use crate::sim::ORACLE;
use crate::stats::Bound;

/// Grey, of the palette.
const GREY: usize = 6;

/// Draws the arms: time over losses, and time over queueing delay, with the front of the two in each. Arms on the front of
/// all three have the first colour, the oracle is black, the others are grey; times have their 95 % confidence interval. ≥ before
/// a name: runs were given up, and its figures are bounds.
///
/// # Errors
/// [`FigureError`] naming the file.
pub fn draw(sweep: &Sweep, path: &Path) -> Result<(), FigureError> {
    let title = format!(
        "{} paths of population {}, seed {}; blue: on the front of time, losses and queueing delay",
        sweep.paths, sweep.population, sweep.seed
    );
    let losses = panel("segments retransmitted of a thousand", sweep, |arm| arm.retransmitted_per_mille);
    let delay = panel("queueing delay, ms", sweep, |arm| arm.queueing_delay_us / 1e3);
    Figure { title, panels: vec![losses, delay] }.write(path)
}

fn panel(label: &str, sweep: &Sweep, x: impl Fn(&ArmSummary) -> f64) -> Panel {
    let at = |arm: &ArmSummary| (x(arm), arm.mean_time);
    let points: Vec<_> = sweep.arms.iter().map(&at).collect();
    let right = points.iter().map(|point| point.0).fold(0.0, f64::max);
    let interval =
        |arm: &ArmSummary| Some(Interval { x: x(arm), y: arm.mean_time_ci95?.into(), colour: colour(arm) });
    let intervals: Vec<_> = sweep.arms.iter().filter_map(interval).collect();
    let ends = || intervals.iter().flat_map(|interval| [interval.y.0, interval.y.1]);
    let times = || points.iter().map(|point| point.1).chain(ends());
    let (bottom, top) = (times().fold(1.0, f64::min), times().fold(1.0, f64::max));
    let region = |arm: &ArmSummary| {
        let (x, y) = at(arm);
        let name = format!("{}{}", arm.bound.map_or("", Bound::sign), arm.arm);
        Region { name, x: (x, x), y: (y, y), colour: colour(arm) }
    };
    Panel {
        title: String::new(),
        x: Axis::from_zero(label, right.max(1e-3) * 1.15),
        y: Axis {
            label: "time over the best arm's, geometric mean".to_owned(),
            from: bottom - 0.02,
            to: top + 0.05 * (top - bottom) + 0.02,
            log: false,
        },
        lines: vec![Line {
            name: String::new(),
            points: staircase(sweep, at),
            colour: GREY,
            dash: Dash::Short,
        }],
        regions: sweep.arms.iter().map(region).collect(),
        marks: Vec::new(),
        intervals,
        legend: Corner::UpperLeft,
    }
}

fn colour(arm: &ArmSummary) -> usize {
    match arm.arm.as_str() {
        ORACLE => style(0, ORACLE).0,
        _ if arm.front => 0,
        _ => GREY,
    }
}

/// The points of arms that no other beats in these two, from left to right.
fn staircase(sweep: &Sweep, at: impl Fn(&ArmSummary) -> (f64, f64)) -> Vec<(f64, f64)> {
    let mut points: Vec<_> = sweep.arms.iter().filter(|arm| arm.arm != ORACLE).map(at).collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let mut least = f64::INFINITY;
    points.retain(|point| {
        let better = point.1 < least;
        least = least.min(point.1);
        better
    });
    points
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::row;
    use super::*;

    fn sweep() -> Sweep {
        Sweep::new(
            "x",
            1,
            &[
                row(0, "fast", 1_000, 400),
                row(0, "careful", 1_200, 0),
                row(0, "beaten", 1_200, 100),
                row(0, "between", 1_100, 100),
                row(0, ORACLE, 900, 0),
            ],
        )
    }

    #[test]
    fn the_front_is_what_no_other_arm_beats() {
        let sweep = sweep();
        let front: Vec<_> = sweep.arms.iter().filter(|arm| arm.front).map(|arm| arm.arm.as_str()).collect();
        assert_eq!(front, ["fast", "careful", "between"]);
        let line = staircase(&sweep, |arm| (arm.retransmitted_per_mille, arm.mean_time));
        let losses: Vec<_> = line.iter().map(|point| point.0).collect();
        assert_eq!(losses, [0.0, 100.0, 400.0]);
    }

    #[test]
    fn intervals_of_means_are_within_the_axis() {
        let rows = [
            row(0, "one", 1_000, 0),
            row(0, "two", 1_500, 0),
            row(1, "one", 1_000, 0),
            row(1, "two", 1_600, 0),
        ];
        let shown = panel("", &Sweep::new("x", 1, &rows), |arm| arm.queueing_delay_us);
        let [one, two] = &shown.intervals[..] else { panic!("{:?}", shown.intervals) };
        assert_eq!(one.y, (1.0, 1.0), "it is the best on both");
        assert!(
            two.y.0 < 1.55 && 1.55 < two.y.1 && shown.y.from < two.y.0 && two.y.1 < shown.y.to,
            "{shown:?}"
        );
    }

    #[test]
    fn every_arm_is_named_in_the_figure() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("front.svg");
        draw(&sweep(), &path).unwrap();
        let drawn = std::fs::read_to_string(&path).unwrap();
        for arm in ["fast", "careful", "beaten", "between", ORACLE] {
            assert!(drawn.contains(arm), "{arm}");
        }
    }
}
