// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Shapes that figures of evaluations share.

use crate::figure::{Axis, Corner, Dash, Figure, Interval, Line, Mark, Panel, style};
use crate::stats::Summary;

/// Named runs: one dot each, side by side by name.
pub type Group = (String, Vec<f64>);

/// A named curve: its points from left to right.
pub type Curve = (String, Vec<(f64, f64)>, Dash);

/// A panel with the values of named runs, one column per name, and a line at their mean, with its 95 % confidence interval.
pub fn columns(title: &str, label: &str, groups: &[Group]) -> Panel {
    let (mut marks, mut lines, mut intervals) = (Vec::new(), Vec::new(), Vec::new());
    for (column, (name, values)) in groups.iter().enumerate() {
        let (centre, (colour, dash)) = (column as f64 + 0.5, style(column, name));
        for (at, value) in values.iter().enumerate() {
            let spread = (at as f64 + 0.5) / values.len() as f64 - 0.5;
            marks.push(Mark { name: String::new(), at: (centre + 0.5 * spread, *value), colour });
        }
        if let Some(Summary { mean, ci95, .. }) = Summary::new(values.iter().copied()) {
            let interval = |half: f64| Interval { x: centre, y: (mean - half, mean + half), colour };
            intervals.extend(ci95.map(interval));
            let points = vec![(centre - 0.35, mean), (centre + 0.35, mean)];
            lines.push(Line { name: name.clone(), points, colour, dash });
        }
    }
    let values = groups.iter().flat_map(|(_, values)| values).copied();
    let top = values.chain(intervals.iter().map(|interval| interval.y.1)).fold(0.0, f64::max);
    Panel {
        title: title.to_owned(),
        x: axis("arm, from left to right as in the legend", groups.len() as f64),
        y: below_the_legend(label, top),
        lines,
        regions: Vec::new(),
        marks,
        intervals,
        legend: Corner::UpperLeft,
    }
}

/// A panel with named curves.
pub fn curves(title: &str, x: &str, y: &str, curves: Vec<Curve>) -> Panel {
    let points = || curves.iter().flat_map(|(_, points, _)| points);
    let right = points().fold(0.0, |most: f64, (x, _)| most.max(*x));
    let top = points().fold(0.0, |most: f64, (_, y)| most.max(*y));
    let line = |(number, (name, points, dash)): (usize, Curve)| {
        let (colour, _) = style(number, &name);
        Line { name, points, colour, dash }
    };
    Panel {
        title: title.to_owned(),
        x: axis(x, right),
        y: below_the_legend(y, top),
        lines: curves.into_iter().enumerate().map(line).collect(),
        regions: Vec::new(),
        marks: Vec::new(),
        intervals: Vec::new(),
        legend: Corner::UpperLeft,
    }
}

/// From 0 to so far above the largest value that the legend hides nothing.
fn below_the_legend(label: &str, most: f64) -> Axis {
    axis(label, most * 1.35)
}

/// From 0 to a little above the largest value.
pub fn axis(label: &str, most: f64) -> Axis {
    let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
    Axis::from_zero(label, most * 1.08)
}

/// One figure of some panels.
pub fn figure(title: &str, panels: Vec<Panel>) -> Figure {
    Figure { title: title.to_owned(), panels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_its_runs_their_mean_and_the_interval_of_that() {
        let groups = [("many".to_owned(), vec![1.0, 2.0, 3.0, 4.0, 5.0]), ("one".to_owned(), vec![4.0])];
        let shown = columns("", "", &groups);
        assert_eq!((shown.marks.len(), shown.lines.len()), (6, 2));
        let [Interval { x, y, colour }] = shown.intervals[..] else { panic!("{:?}", shown.intervals) };
        assert_eq!((x, colour), (0.5, shown.lines[0].colour));
        assert!((y.0 - 1.037).abs() < 0.001 && (y.1 - 4.963).abs() < 0.001, "{y:?}");
        assert!(shown.y.to > 5.0);
    }
}
