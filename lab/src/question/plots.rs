// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Shapes that figures of evaluations share.

use crate::figure::{Axis, Corner, Dash, Figure, Line, Mark, Panel, style};
use crate::stats::mean;

/// Named runs: one dot each, side by side by name.
pub type Group = (String, Vec<f64>);

/// A named curve: its points from left to right.
pub type Curve = (String, Vec<(f64, f64)>, Dash);

/// A panel with the values of named runs, one column per name, and a line at their mean.
pub fn columns(title: &str, label: &str, groups: &[Group]) -> Panel {
    let (mut marks, mut lines) = (Vec::new(), Vec::new());
    for (column, (name, values)) in groups.iter().enumerate() {
        let (centre, (colour, dash)) = (column as f64 + 0.5, style(column, name));
        for (at, value) in values.iter().enumerate() {
            let spread = (at as f64 + 0.5) / values.len() as f64 - 0.5;
            marks.push(Mark { name: String::new(), at: (centre + 0.5 * spread, *value), colour });
        }
        if !values.is_empty() {
            let mean = mean(values);
            let points = vec![(centre - 0.35, mean), (centre + 0.35, mean)];
            lines.push(Line { name: name.clone(), points, colour, dash });
        }
    }
    let top = groups.iter().flat_map(|(_, values)| values).fold(0.0, |top: f64, value| top.max(*value));
    Panel {
        title: title.to_owned(),
        x: axis("arm, from left to right as in the legend", groups.len() as f64),
        y: below_the_legend(label, top),
        lines,
        regions: Vec::new(),
        marks,
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
