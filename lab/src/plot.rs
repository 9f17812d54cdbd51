// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Time series as SVG. Text stays text, so no font is needed to draw them.

use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::prelude::*;
use thiserror::Error;

use crate::experiment::{Exit, Flow};
use crate::profile::Profile;

const SIZE: (u32, u32) = (960, 1_200);
/// Points of one curve at most; more than a figure is wide helps nobody.
const POINTS: usize = 2_000;
/// Okabe and Ito's colours, which colour-blind people can tell apart.
pub(crate) const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];

/// A figure could not be drawn.
#[derive(Debug, Error)]
#[error("cannot draw {path}: {reason}")]
pub struct PlotError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

/// What is drawn of one arm.
#[derive(Clone, Debug)]
pub struct Curve {
    name: String,
    /// Seconds since the first data; congestion window, bytes in flight, smoothed round-trip time in ms.
    points: Vec<(f64, [f64; 3])>,
    /// Seconds and window in bytes.
    exit: Option<(f64, f64)>,
}

impl Curve {
    /// From one flow.
    pub fn new(name: &str, flow: &Flow, exit: Option<&Exit>) -> Self {
        let began = flow.began_ns().unwrap_or(0);
        let step = flow.samples.len().div_ceil(POINTS).max(1);
        let samples = flow.samples.iter().filter(|sample| sample.at_ns >= began).step_by(step);
        let points = samples.map(|sample| {
            let info = &sample.info;
            let in_flight = f64::from(info.in_flight()) * f64::from(info.snd_mss);
            let values = [info.cwnd_bytes() as f64, in_flight, f64::from(info.rtt_us) / 1e3];
            ((sample.at_ns - began) as f64 / 1e9, values)
        });
        Self {
            name: name.to_owned(),
            points: points.collect(),
            exit: exit.map(|exit| (exit.seconds, exit.window_bytes as f64)),
        }
    }
}

/// One of the figure's parts.
struct Panel {
    title: &'static str,
    axis: &'static str,
    /// Index into the values of a point, and what to multiply with.
    value: usize,
    scale: f64,
    /// A horizontal line and what it means.
    line: (f64, &'static str),
    exits: bool,
}

/// Draws `plot.svg`: congestion window, bytes in flight and round-trip time against time, one below the other, one
/// curve per arm. Returns its path.
///
/// # Errors
/// [`PlotError`] naming the file.
pub fn write(directory: &Path, profile: &Profile, curves: &[Curve]) -> Result<PathBuf, PlotError> {
    let path = directory.join("plot.svg");
    let bdp = (profile.link.bdp_bytes() as f64 / 1e6, "BDP");
    let rtt = (profile.link.base_rtt_us() as f64 / 1e3, "base RTT");
    let panels = [
        Panel { title: "Congestion window", axis: "MB", value: 0, scale: 1e-6, line: bdp, exits: true },
        Panel { title: "In flight", axis: "MB", value: 1, scale: 1e-6, line: bdp, exits: false },
        Panel {
            title: "Smoothed round-trip time",
            axis: "ms",
            value: 2,
            scale: 1.0,
            line: rtt,
            exits: false,
        },
    ];
    draw(&path, &profile.about, &panels, curves)
        .map_err(|error| PlotError { path: path.clone(), reason: error.to_string() })?;
    Ok(path)
}

/// A number on an axis, without the noise of binary fractions.
pub(crate) fn tick(value: f64) -> String {
    format!("{}", (value * 1e3).round() / 1e3)
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(path: &Path, title: &str, panels: &[Panel; 3], curves: &[Curve]) -> Drawn {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let root = root.titled(title, ("sans-serif", 20))?;
    for (panel, area) in panels.iter().zip(root.split_evenly((panels.len(), 1))) {
        draw_panel(&area, panel, curves)?;
    }
    root.present()?;
    Ok(())
}

fn draw_panel(area: &DrawingArea<SVGBackend<'_>, Shift>, panel: &Panel, curves: &[Curve]) -> Drawn {
    let values = |curve: &Curve| {
        let of = |(at, values): &(f64, [f64; 3])| (*at, values[panel.value] * panel.scale);
        curve.points.iter().map(of).collect::<Vec<_>>()
    };
    let (mut right, mut top) = (1.0_f64, panel.line.0);
    for (at, value) in curves.iter().flat_map(&values) {
        right = right.max(at);
        top = top.max(value);
    }
    let mut chart = ChartBuilder::on(area)
        .caption(panel.title, ("sans-serif", 16))
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..right, 0.0..top * 1.05)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("seconds since the first data").y_desc(panel.axis).light_line_style(WHITE).max_light_lines(0);
    mesh.x_label_formatter(&|at| tick(*at)).y_label_formatter(&|value| tick(*value)).draw()?;
    for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        chart
            .draw_series(LineSeries::new(values(curve), colour.stroke_width(2)))?
            .label(&curve.name)
            .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        if let Some((at, window)) = curve.exit.filter(|_| panel.exits) {
            chart.draw_series([Circle::new((at, window * panel.scale), 5, colour.filled())])?;
        }
    }
    let (level, meaning) = panel.line;
    let dashes = DashedLineSeries::new([(0.0, level), (right, level)], 6, 4, BLACK.stroke_width(1));
    chart.draw_series(dashes)?.label(meaning).legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], BLACK));
    if panel.exits {
        // An entry of the legend without a series of its own.
        chart
            .draw_series(std::iter::empty::<Circle<(f64, f64), i32>>())?
            .label("slow-start exit")
            .legend(|(x, y)| Circle::new((x + 9, y), 4, BLACK.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}
