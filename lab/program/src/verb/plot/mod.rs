//! `onramp-lab plot`: results and reports as documents, and a replay as a figure: what the flow did, and where each candidate
//! would have left.

pub(super) mod document;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use onramp_files::bounded;
use onramp_lab::figure::{Axis, Corner, Dash, Figure, Line, Mark, Panel};
use serde::Deserialize;

use crate::drawn;
use crate::failure::Usage;
use crate::output::say;
use crate::target;
use crate::verb::result;

/// Flows of one figure at most.
const FLOWS: usize = 6;
/// Colours of the two curves; marks take the others.
const CURVES: usize = 2;

/// Show results or reports in an HTML document, or draw a replay as SVG
///
/// FILE is the directory of a lab run or its result.json, what `onramp sim compare --json` printed, or a report of `onramp
/// replay --json` or `onramp shadow --json`. Several results are shown next to each other. The document holds all that it
/// shows; flows over time are in it where FILE is a directory.
///
/// Without FILE it draws what `onramp replay --output plot.svg` hands over on stdin.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp-lab plot runs/geo -o geo.html
  onramp sim compare --arms cubic,search --json | onramp-lab plot - -o compare.html
  onramp replay recording --algorithm search --output plot.svg")]
pub(crate) struct Plot {
    /// Results, or one report; - is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// HTML document, or without FILE an SVG file; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Deserialize)]
struct Drawing {
    flows: Vec<Flow>,
}

#[derive(Deserialize)]
struct Flow {
    flow: u64,
    duration_us: u64,
    points: Vec<Point>,
    findings: Vec<Finding>,
}

/// Time since the first data, microseconds; congestion window and data in flight, bytes.
#[derive(Deserialize)]
struct Point(u64, u64, u64);

#[derive(Deserialize)]
struct Finding {
    algorithm: String,
    settings: Vec<String>,
    exit: Option<Exit>,
}

#[derive(Deserialize)]
struct Exit {
    since_start_us: u64,
    window_bytes: u64,
}

impl Plot {
    pub fn run(self) -> anyhow::Result<u8> {
        if !self.files.is_empty() {
            let is_document = self.output.extension().is_some_and(|suffix| suffix == "html");
            if !is_document && !bounded::is_standard(&self.output) {
                return Err(Usage::error(format!(
                    "{}: a document is written as NAME.html, or to -, standard output",
                    self.output.display()
                )));
            }
            let text = document::of_files(&self.files)?;
            target::write(Some(&self.output), |output| output.write_all(text.as_bytes()))?;
            return Ok(0);
        }
        let text = bounded::read_text(Path::new(bounded::STANDARD)).context("cannot read standard input")?;
        let Drawing { flows } = serde_json::from_str(&text).map_err(|error| {
            let why = result::not_read(&error);
            Usage::error(format!("standard input is not what `onramp replay` hands over: {why}"))
        })?;
        if flows.len() > FLOWS {
            let name = self.output.display();
            say(&format!("warning: {name} draws the first {FLOWS} of {} flows", flows.len()));
        }
        let figure = Figure {
            title: "Recorded window, and where slow start would have been left".to_owned(),
            panels: flows.iter().take(FLOWS).map(panel).collect(),
        };
        drawn::write(&self.output, &figure)?;
        Ok(0)
    }
}

fn panel(flow: &Flow) -> Panel {
    let points = &flow.points;
    let curve = |name: &str, colour: usize, bytes: fn(&Point) -> u64| Line {
        name: name.to_owned(),
        points: points.iter().map(|point| (seconds(point.0), megabytes(bytes(point)))).collect(),
        colour,
        dash: if colour == 0 { Dash::Solid } else { Dash::Short },
    };
    let lines = vec![curve("congestion window", 0, |point| point.1), curve("in flight", 1, |point| point.2)];
    let top = lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(0.001, f64::max);
    Panel {
        title: format!("flow {}", flow.flow),
        x: Axis::from_zero("seconds since the first data", seconds(flow.duration_us).max(0.001)),
        y: Axis::from_zero("MB", top * 1.05),
        lines,
        regions: Vec::new(),
        marks: flow.findings.iter().enumerate().filter_map(|(index, finding)| mark(index, finding)).collect(),
        intervals: Vec::new(),
        legend: Corner::UpperLeft,
    }
}

fn mark(index: usize, finding: &Finding) -> Option<Mark> {
    let exit = finding.exit.as_ref()?;
    Some(Mark {
        name: [std::slice::from_ref(&finding.algorithm), &finding.settings[..]].concat().join(" "),
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
