// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the arms of an experiment did over time, as a figure.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::experiment::{Exit, Flow};
use crate::figure::{Axis, Corner, Dash, Figure, FigureError, Line, Mark, Panel, style};
use crate::profile::Profile;

/// Points of one curve at most; more than a figure is wide would not be visible.
const POINTS: usize = 2_000;
/// Grey, of the palette.
const LEVEL: usize = 6;

/// What is drawn of one arm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Curve {
    name: String,
    /// Seconds since the first data; congestion window and bytes in flight, MB, smoothed round-trip time, ms.
    points: Vec<(f64, [f64; 3])>,
    /// Seconds and window in MB.
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
            let values = [info.cwnd_bytes() as f64 / 1e6, in_flight / 1e6, f64::from(info.rtt_us) / 1e3];
            ((sample.at_ns - began) as f64 / 1e9, values)
        });
        Self {
            name: name.to_owned(),
            points: points.collect(),
            exit: exit.map(|exit| (exit.seconds, exit.window_bytes as f64 / 1e6)),
        }
    }
}

/// Draws `plot.svg`, with its points and its script beside it ([`Figure::write`]): congestion window, bytes in flight and round-trip time against time, one below the other, one
/// curve per arm. Returns its path.
///
/// # Errors
/// [`FigureError`] naming the file.
pub fn write(directory: &Path, profile: &Profile, curves: &[Curve]) -> Result<PathBuf, FigureError> {
    let path = directory.join("plot.svg");
    let bdp = (profile.link.bdp_bytes() as f64 / 1e6, "BDP");
    let rtt = (profile.link.base_rtt_us() as f64 / 1e3, "base RTT");
    let mut window = panel("Congestion window; a dot where slow start is left", "MB", 0, bdp, curves);
    window.marks = exits(curves);
    let in_flight = panel("In flight", "MB", 1, bdp, curves);
    let delay = panel("Smoothed round-trip time", "ms", 2, rtt, curves);
    Figure { title: profile.about.clone(), panels: vec![window, in_flight, delay] }.write(&path)?;
    Ok(path)
}

/// One value of all curves against time, and a level to compare it with.
fn panel(title: &str, unit: &str, value: usize, level: (f64, &str), curves: &[Curve]) -> Panel {
    let (level, meaning) = level;
    let (mut right, mut top) = (1.0_f64, level);
    for (at, values) in curves.iter().flat_map(|curve| &curve.points) {
        right = right.max(*at);
        top = top.max(values[value]);
    }
    let line = |(number, curve): (usize, &Curve)| {
        let (colour, dash) = style(number, &curve.name);
        let points = curve.points.iter().map(|(at, values)| (*at, values[value])).collect();
        Line { name: curve.name.clone(), points, colour, dash }
    };
    let mut lines: Vec<_> = curves.iter().enumerate().map(line).collect();
    let points = vec![(0.0, level), (right, level)];
    lines.push(Line { name: meaning.to_owned(), points, colour: LEVEL, dash: Dash::Short });
    Panel {
        title: title.to_owned(),
        x: Axis::from_zero("seconds since the first data", right),
        y: Axis::from_zero(unit, top * 1.05),
        lines,
        regions: Vec::new(),
        marks: Vec::new(),
        intervals: Vec::new(),
        legend: Corner::UpperLeft,
    }
}

fn exits(curves: &[Curve]) -> Vec<Mark> {
    let mark = |(number, curve): (usize, &Curve)| {
        let (colour, _) = style(number, &curve.name);
        Some(Mark { name: String::new(), at: curve.exit?, colour })
    };
    curves.iter().enumerate().filter_map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, exit: Option<(f64, f64)>) -> Curve {
        Curve { name: name.into(), points: vec![(0.0, [1.0, 0.5, 40.0]), (4.0, [9.0, 7.0, 80.0])], exit }
    }

    #[test]
    fn every_arm_has_its_curve_and_its_exit_next_to_the_level() {
        let curves = [curve("cubic", None), curve("search", Some((2.0, 6.0)))];
        let shown = panel("Congestion window", "MB", 0, (5.0, "BDP"), &curves);
        let names: Vec<_> = shown.lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["cubic", "search", "BDP"]);
        assert_eq!(shown.lines[1].points, [(0.0, 1.0), (4.0, 9.0)]);
        assert_eq!(shown.lines[2].points, [(0.0, 5.0), (4.0, 5.0)]);
        assert!(shown.y.to > 9.0, "all of the curve is seen");
        let marks = exits(&curves);
        assert_eq!((marks.len(), marks[0].at, marks[0].colour), (1, (2.0, 6.0), 1));
    }

    #[test]
    fn the_oracle_has_its_colour_at_its_exit_too() {
        let curves = [curve("oracle", Some((2.0, 6.0))), curve("cubic", Some((1.0, 3.0)))];
        let shown = panel("Congestion window", "MB", 0, (5.0, "BDP"), &curves);
        assert_eq!((shown.lines[0].colour, shown.lines[1].colour), (exits(&curves)[0].colour, 1));
        assert_ne!(shown.lines[0].colour, 0);
    }

    #[test]
    fn a_figure_without_curves_is_drawn_all_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let profile = Profile::parse(include_str!("../../profiles/geo.toml"), "geo.toml").unwrap();
        let path = write(directory.path(), &profile, &[]).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains("BDP"));
        let error = write(&directory.path().join("nowhere"), &profile, &[]).unwrap_err().to_string();
        assert!(error.contains("nowhere"), "{error}");
    }
}
