// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Curves and regions as SVG, on linear or logarithmic axes.

use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::element::DashedPathElement;
use plotters::prelude::*;

use crate::plot::{COLOURS, PlotError, tick};

const WIDTH: u32 = 960;
const PANEL_HEIGHT: u32 = 620;

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

impl Figure {
    /// Writes it to this file.
    ///
    /// # Errors
    /// [`PlotError`] naming the file.
    pub fn write(&self, path: &Path) -> Result<(), PlotError> {
        self.draw(path).map_err(|error| PlotError { path: path.to_owned(), reason: error.to_string() })
    }

    fn draw(&self, path: &Path) -> Drawn {
        let size = (WIDTH, PANEL_HEIGHT * self.panels.len() as u32);
        let root = SVGBackend::new(path, size).into_drawing_area();
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
        for Mark { name, at, colour: index } in &self.marks {
            let drawn = chart.draw_series([Circle::new(*at, 5, colour(*index).filled())])?;
            if !name.is_empty() {
                let filled = colour(*index).filled();
                drawn.label(name).legend(move |(x, y)| Circle::new((x + 11, y), 4, filled).into_dyn());
            }
        }
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
        Ok(())
    }
}
