// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Curves and regions as SVG, on linear or logarithmic axes. Text stays text, so no font is needed to draw them.

mod script;

use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use thiserror::Error;

use crate::sim::ORACLE;

const WIDTH: u32 = 960;
const PANEL_HEIGHT: u32 = 620;
/// Okabe and Ito's colours, which colour-blind people can distinguish.
const COLOURS: [RGBColor; SERIES + 1] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
    BLACK,
];
/// Half of the width of the caps of an interval, pixels.
const CAP: i32 = 5;
/// Colours that series take in turn.
const SERIES: usize = 7;
/// The colour of what knows the path, and is no algorithm.
const OF_THE_ORACLE: usize = 7;

/// Index into the palette, and dash, of the series of this number: with the next dash from where colours repeat, so that 21 can be
/// distinguished. The oracle has a colour of its own, whatever its number.
pub fn style(number: usize, name: &str) -> (usize, Dash) {
    if name == ORACLE {
        return (OF_THE_ORACLE, Dash::Solid);
    }
    (number % SERIES, [Dash::Solid, Dash::Long, Dash::Short][number / SERIES % 3])
}

/// A figure could not be drawn.
#[derive(Debug, Error)]
#[error("cannot draw {path}: {reason}")]
pub struct FigureError {
    /// The file.
    pub path: PathBuf,
    /// Reason.
    pub reason: String,
}

/// A figure: panels one below the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its title.
    pub title: String,
    /// Its panels.
    pub panels: Vec<Panel>,
}

/// One coordinate system and what is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its title, may be empty.
    pub title: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// Curves.
    pub lines: Vec<Line>,
    /// Named rectangles.
    pub regions: Vec<Region>,
    /// Named points.
    pub marks: Vec<Mark>,
    /// How far what is drawn may be off.
    pub intervals: Vec<Interval>,
    /// Where the legend stands.
    pub legend: Corner,
}

/// A corner of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corner {
    /// Above, to the left.
    UpperLeft,
    /// Below, to the left.
    LowerLeft,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// Where it begins; above 0 on a logarithmic axis.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Logarithmic.
    pub log: bool,
}

impl Axis {
    /// A linear axis from 0.
    pub fn from_zero(label: &str, to: f64) -> Self {
        Self { label: label.to_owned(), from: 0.0, to, log: false }
    }
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What the legend says; nothing if empty.
    pub name: String,
    /// Its points from left to right.
    pub points: Vec<(f64, f64)>,
    /// Index into the palette.
    pub colour: usize,
    /// How it is drawn.
    pub dash: Dash,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    /// In one stroke.
    Solid,
    /// In long strokes.
    Long,
    /// In short strokes.
    Short,
}

impl Dash {
    /// Length and gap, pixels.
    fn pixels(self) -> (i32, i32) {
        match self {
            Self::Solid => (1, 0),
            Self::Long => (9, 4),
            Self::Short => (3, 3),
        }
    }
}

/// A rectangle, with its name above its upper left corner and a dot at its upper right one.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// From left to right.
    pub x: (f64, f64),
    /// From below to above.
    pub y: (f64, f64),
    /// Index into the palette.
    pub colour: usize,
}

/// A point with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Its name; nothing if empty.
    pub name: String,
    /// Where.
    pub at: (f64, f64),
    /// Index into the palette.
    pub colour: usize,
}

/// An interval of confidence: a stroke upwards with a cap at each end.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Where.
    pub x: f64,
    /// From below to above.
    pub y: (f64, f64),
    /// Index into the palette.
    pub colour: usize,
}

impl Figure {
    /// Writes it to this file; beside it its points, `NAME-points.csv`, and `NAME.py`, which draws them with matplotlib in the
    /// format and width that a paper wants.
    ///
    /// # Errors
    /// [`FigureError`] naming the file.
    pub fn write(&self, path: &Path) -> Result<(), FigureError> {
        let failed = |path: &Path, reason| FigureError { path: path.to_owned(), reason };
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let points = format!("{stem}-points.csv");
        let svg = self.svg().map_err(|reason| failed(path, reason))?;
        let files = [
            (path.to_owned(), svg),
            (path.with_file_name(&points), script::points(self)),
            (path.with_file_name(format!("{stem}.py")), script::script(self, &points)),
        ];
        for (path, text) in files {
            std::fs::write(&path, text).map_err(|error| failed(&path, error.to_string()))?;
        }
        Ok(())
    }

    /// It as SVG.
    ///
    /// # Errors
    /// What cannot be drawn.
    pub fn svg(&self) -> Result<String, String> {
        let mut svg = String::new();
        self.draw(&mut svg).map_err(|error| error.to_string())?;
        Ok(svg)
    }

    fn draw(&self, svg: &mut String) -> Drawn {
        let size = (WIDTH, PANEL_HEIGHT * self.panels.len() as u32);
        let root = SVGBackend::with_string(svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        let area = root.titled(&self.title, ("sans-serif", 20))?;
        for (panel, area) in self.panels.iter().zip(area.split_evenly((self.panels.len(), 1))) {
            panel.draw(&area)?;
        }
        root.present()?;
        Ok(())
    }
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

/// A number on an axis, without the noise of binary fractions.
fn tick(value: f64) -> String {
    format!("{}", (value * 1e3).round() / 1e3)
}

impl Panel {
    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
        let (x, y) = (self.x.from..self.x.to, self.y.from..self.y.to);
        match (self.x.log, self.y.log) {
            (false, false) => self.draw_on(area, x, y),
            (true, false) => self.draw_on(area, x.log_scale(), y),
            (false, true) => self.draw_on(area, x, y.log_scale()),
            (true, true) => self.draw_on(area, x.log_scale(), y.log_scale()),
        }
    }

    fn draw_on<X, Y>(&self, area: &DrawingArea<SVGBackend<'_>, Shift>, x: X, y: Y) -> Drawn
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let mut chart = ChartBuilder::on(area);
        chart.margin(8).margin_right(28).x_label_area_size(40).y_label_area_size(64);
        if !self.title.is_empty() {
            chart.caption(&self.title, ("sans-serif", 16));
        }
        let mut chart = chart.build_cartesian_2d(x, y)?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(&self.x.label).y_desc(&self.y.label).light_line_style(WHITE).max_light_lines(0);
        mesh.x_label_formatter(&|value| tick(*value)).y_label_formatter(&|value| tick(*value)).draw()?;
        for Region { name, x, y, colour: index } in &self.regions {
            let corners = [(x.0, y.0), (x.1, y.1)];
            chart.draw_series([
                Rectangle::new(corners, colour(*index).mix(0.25).filled()),
                Rectangle::new(corners, colour(*index).stroke_width(2)),
            ])?;
            // A region may be a point.
            chart.draw_series([Circle::new((x.1, y.1), 4, colour(*index).filled())])?;
            let text = EmptyElement::at((x.0, y.1)) + Text::new(name.clone(), (2, -18), ("sans-serif", 15));
            chart.draw_series([text])?;
        }
        for Line { name, points, colour: index, dash } in &self.lines {
            let (style, (size, gap)) = (colour(*index).stroke_width(2), dash.pixels());
            let drawn = if *dash == Dash::Solid {
                chart.draw_series(LineSeries::new(points.iter().copied(), style))?
            } else {
                chart.draw_series(DashedLineSeries::new(points.iter().copied(), size, gap, style))?
            };
            if !name.is_empty() {
                drawn.label(name).legend(move |(x, y)| {
                    DashedPathElement::new([(x, y), (x + 22, y)], size, gap, style).into_dyn()
                });
            }
        }
        for Interval { x, y: (low, high), colour: index } in &self.intervals {
            let style = colour(*index).stroke_width(1);
            chart.draw_series([PathElement::new([(*x, *low), (*x, *high)], style)])?;
            let cap = |y: f64| EmptyElement::at((*x, y)) + PathElement::new([(-CAP, 0), (CAP, 0)], style);
            chart.draw_series([cap(*low), cap(*high)])?;
        }
        for Mark { name, at, colour: index } in &self.marks {
            let drawn = chart.draw_series([Circle::new(*at, 5, colour(*index).filled())])?;
            if !name.is_empty() {
                let filled = colour(*index).filled();
                drawn.label(name).legend(move |(x, y)| Circle::new((x + 11, y), 4, filled).into_dyn());
            }
        }
        let mut names =
            self.lines.iter().map(|line| &line.name).chain(self.marks.iter().map(|mark| &mark.name));
        if names.any(|name| !name.is_empty()) {
            chart
                .configure_series_labels()
                .position(match self.legend {
                    Corner::UpperLeft => SeriesLabelPosition::UpperLeft,
                    Corner::LowerLeft => SeriesLabelPosition::LowerLeft,
                })
                .legend_area_size(32)
                .background_style(WHITE.mix(0.85))
                .border_style(BLACK.mix(0.3))
                .draw()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn twenty_one_series_can_be_distinguished() {
        let drawn = |(index, dash): (usize, Dash)| (colour(index).rgb(), dash.pixels());
        let mut styles: HashSet<_> = (0..21).map(|number| drawn(style(number, "cubic"))).collect();
        assert_eq!(styles.len(), 21);
        assert_eq!(style(0, "cubic"), (0, Dash::Solid));
        assert!(styles.insert(drawn(style(0, ORACLE))), "the oracle's is none of these");
        assert_eq!(style(3, ORACLE), style(0, ORACLE));
    }
}
