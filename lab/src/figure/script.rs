// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What draws a figure again as a paper wants it: its points as a table, and a script for matplotlib.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{Axis, Dash, Figure, colour};

/// The script, but for [`PLACE`].
const SCRIPT: &str = include_str!("script.py");
/// Where a script says what the figure is.
const PLACE: &str = "@FIGURE@";

/// The points of a figure, one a row: panel, what it belongs to (a line, a mark, an interval, which has two ends, or a region, which
/// has two corners), the number and the name of that, and its coordinates in the units of the panel's axes.
pub(super) fn points(figure: &Figure) -> String {
    let mut csv = String::from("panel,kind,number,name,x,y\n");
    for (at, panel) in figure.panels.iter().enumerate() {
        let mut rows = |kind: &str, number: usize, name: &str, points: &[(f64, f64)]| {
            let name = name.replace('"', "\"\"");
            for (x, y) in points {
                // Writing to a String cannot fail.
                let _ = writeln!(csv, "{at},{kind},{number},\"{name}\",{x},{y}");
            }
        };
        for (number, line) in panel.lines.iter().enumerate() {
            rows("line", number, &line.name, &line.points);
        }
        for (number, mark) in panel.marks.iter().enumerate() {
            rows("mark", number, &mark.name, &[mark.at]);
        }
        for (number, interval) in panel.intervals.iter().enumerate() {
            let (x, y) = (interval.x, interval.y);
            rows("interval", number, "", &[(x, y.0), (x, y.1)]);
        }
        for (number, region) in panel.regions.iter().enumerate() {
            let (x, y) = (region.x, region.y);
            rows("region", number, &region.name, &[(x.0, y.0), (x.1, y.1)]);
        }
    }
    csv
}

/// The script that draws a figure from the file of its points, which is beside it.
pub(super) fn script(figure: &Figure, points: &str) -> String {
    let axis =
        |axis: &Axis| json!({ "label": axis.label, "from": axis.from, "to": axis.to, "log": axis.log });
    let interval = |interval: &super::Interval| json!({ "colour": hex(interval.colour) });
    let named = |name: &str, index: usize| json!({ "name": name, "colour": hex(index) });
    let panels: Vec<Value> = figure
        .panels
        .iter()
        .map(|panel| {
            let line = |line: &super::Line| {
                json!({ "name": line.name, "colour": hex(line.colour), "dash": dash(line.dash) })
            };
            json!({
                "title": panel.title,
                "x": axis(&panel.x),
                "y": axis(&panel.y),
                "lines": panel.lines.iter().map(line).collect::<Vec<_>>(),
                "marks": panel.marks.iter().map(|mark| named(&mark.name, mark.colour)).collect::<Vec<_>>(),
                "intervals": panel.intervals.iter().map(interval).collect::<Vec<_>>(),
                "regions": panel.regions.iter().map(|one| named(&one.name, one.colour)).collect::<Vec<_>>(),
            })
        })
        .collect();
    let description = json!({ "title": figure.title, "points": points, "panels": panels });
    // In a raw string of Python, which three quotes would end: in JSON all but two have a backslash before them.
    SCRIPT.replace(PLACE, &format!("{description:#}"))
}

fn dash(dash: Dash) -> &'static str {
    match dash {
        Dash::Solid => "solid",
        Dash::Long => "long",
        Dash::Short => "short",
    }
}

fn hex(index: usize) -> String {
    let colour = colour(index);
    format!("#{:02x}{:02x}{:02x}", colour.0, colour.1, colour.2)
}
