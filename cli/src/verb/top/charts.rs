//! What a flow did over time: window, RTT and rate.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Borders, Chart, Dataset, GraphType};

use super::theme::Theme;
use crate::live::{Flow, Point};
use crate::units::{show_rate, show_us};

/// A line of a chart.
struct Curve {
    points: Vec<(f64, f64)>,
    marker: Marker,
    style: Style,
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, flow: &Flow, theme: Theme) {
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
    let [above, below] = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(right);
    let curve = |marker, style, value: fn(&Point) -> Option<f64>| Curve {
        points: flow
            .life
            .buckets()
            .iter()
            .filter_map(|bucket| Some((seconds(flow, bucket.first_us), value(&bucket.last)?)))
            .collect(),
        marker,
        style,
    };
    let window = [
        curve(Marker::Dot, theme.in_flight(), |point| Some(f64::from(point.in_flight))),
        curve(Marker::HalfBlock, theme.ssthresh(), |point| point.ssthresh.map(f64::from)),
        curve(Marker::Braille, theme.cwnd(), |point| Some(f64::from(point.cwnd))),
    ];
    let title = Line::from(vec![
        Span::styled("⠤ cwnd ", theme.cwnd()),
        Span::styled("▀ ssthresh ", theme.ssthresh()),
        Span::styled("• in flight", theme.in_flight()),
    ]);
    // A threshold far above the window says no more than that it is above, and would flatten all else.
    let top = window[2].points.iter().chain(&window[0].points).map(|(_, value)| *value).fold(1.0, f64::max);
    chart(frame, left, flow, theme, title, &window, top, |segments| format!("{segments:.0}"));
    let rtt = [curve(Marker::Braille, theme.cwnd(), |point| point.rtt_us.map(f64::from))];
    let top = |curves: &[Curve]| curves[0].points.iter().map(|(_, value)| *value).fold(1.0, f64::max);
    chart(frame, above, flow, theme, Line::raw("RTT"), &rtt, top(&rtt), |us| show_us(us as u64));
    let rate = [curve(Marker::Braille, theme.cwnd(), |point| point.rate_bps.map(|rate| rate as f64))];
    let title = Line::raw("delivery rate by round");
    chart(frame, below, flow, theme, title, &rate, top(&rate), |rate| show_rate(rate as u64));
}

#[expect(clippy::too_many_arguments, reason = "one private function, called thrice above")]
fn chart(
    frame: &mut Frame<'_>,
    area: Rect,
    flow: &Flow,
    theme: Theme,
    title: Line<'_>,
    curves: &[Curve],
    top: f64,
    label: impl Fn(f64) -> String,
) {
    let last = flow.life.buckets().last().map_or(0.0, |bucket| seconds(flow, bucket.first_us));
    let first = flow.life.buckets().first().map_or(0.0, |bucket| seconds(flow, bucket.first_us));
    let end = last.max(first + 0.001);
    let exit = flow.exit_us().map(|us| seconds(flow, us)).filter(|at| (first..=end).contains(at));
    let line = exit.map(|at| [(at, 0.0), (at, top * 1.05)]);
    let mut sets: Vec<Dataset<'_>> = curves
        .iter()
        .map(|curve| {
            Dataset::default()
                .data(&curve.points)
                .marker(curve.marker)
                .graph_type(GraphType::Line)
                .style(curve.style)
        })
        .collect();
    if let Some(line) = &line {
        let style = theme.exit(flow.exit.map(|exit| exit.reason));
        sets.insert(
            0,
            Dataset::default().data(line).marker(Marker::Braille).graph_type(GraphType::Line).style(style),
        );
    }
    let mut times = vec![format!("{first:.2}"), format!("{end:.2} s")];
    let mut values = vec!["0".to_owned(), label(top)];
    // A third of the area is for labels, and what does not fit is cut. Without values the times would begin at the edge of the
    // area, where those of its neighbour end.
    let wide = values.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    if 3 * wide > usize::from(area.width) {
        values.clear();
        times.clear();
    }
    if 2 * times.iter().map(String::len).sum::<usize>() + wide > usize::from(area.width) {
        times.clear();
    }
    let chart = Chart::new(sets)
        .block(Block::new().borders(Borders::TOP).title(title))
        .legend_position(None)
        .x_axis(Axis::default().bounds([first, end]).labels(times))
        .y_axis(Axis::default().bounds([0.0, top * 1.05]).labels(values));
    frame.render_widget(chart, area);
}

/// Since the flow's first data.
fn seconds(flow: &Flow, at_us: u64) -> f64 {
    (at_us as f64 - flow.start_us as f64) / 1e6
}
