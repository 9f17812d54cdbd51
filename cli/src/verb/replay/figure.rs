//! A replay as a figure: what the flow did, and where each candidate would have left.

use std::path::Path;

use onramp_lab::figure::{Axis, Corner, Dash, Figure, Line, Mark, Panel};
use onramp_recording::replay::{Finding, FlowReport};

use crate::drawn;
use crate::output::say;

/// Flows of one figure at most.
const FLOWS: usize = 6;
/// Colours of the two curves; marks take the others.
const CURVES: usize = 2;

/// Draws the first flows.
pub(super) fn write(path: &Path, flows: &[FlowReport]) -> anyhow::Result<()> {
    if flows.len() > FLOWS {
        say(&format!("warning: {} draws the first {FLOWS} of {} flows", path.display(), flows.len()));
    }
    let figure = Figure {
        title: "Recorded window, and where slow start would have been left".to_owned(),
        panels: flows.iter().take(FLOWS).map(panel).collect(),
    };
    drawn::write(path, &figure)
}

fn panel(flow: &FlowReport) -> Panel {
    let points = &flow.trace.points;
    let curve = |name: &str, colour: usize, bytes: fn(&onramp_recording::replay::Point) -> u64| Line {
        name: name.to_owned(),
        points: points.iter().map(|point| (seconds(point.at_us), megabytes(bytes(point)))).collect(),
        colour,
        dash: if colour == 0 { Dash::Solid } else { Dash::Short },
    };
    let lines = vec![
        curve("congestion window", 0, |point| point.window_bytes),
        curve("in flight", 1, |point| point.in_flight_bytes),
    ];
    let top = lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(0.001, f64::max);
    Panel {
        title: format!("flow {}", flow.flow),
        x: Axis::from_zero("seconds since the first data", seconds(flow.duration_us).max(0.001)),
        y: Axis::from_zero("MB", top * 1.05),
        lines,
        regions: Vec::new(),
        marks: flow.findings.iter().enumerate().filter_map(|(index, finding)| mark(index, finding)).collect(),
        legend: Corner::UpperLeft,
    }
}

fn mark(index: usize, finding: &Finding) -> Option<Mark> {
    let exit = finding.exit.as_ref()?;
    Some(Mark {
        name: [&[finding.algorithm.to_owned()], &finding.settings[..]].concat().join(" "),
        at: (seconds(exit.since_start_us), megabytes(exit.window_bytes)),
        colour: CURVES + index,
    })
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
