//! One flow: figures, charts, the algorithm's state.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::theme::Theme;
use super::{charts, exports};
use crate::live::Flow;
use crate::units::{show_bytes, show_rate, show_us};
use crate::verb::flows::canonical;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, flow: &Flow, theme: Theme) {
    let [above, middle, below] =
        Layout::vertical([Constraint::Length(3), Constraint::Fill(3), Constraint::Fill(2)]).areas(area);
    frame.render_widget(Paragraph::new(figures(flow, theme)), above);
    charts::draw(frame, middle, flow, theme);
    exports::draw(frame, below, flow, theme);
}

fn figures(flow: &Flow, theme: Theme) -> Vec<Line<'static>> {
    let dash = || "-".to_owned();
    let us = |us: Option<u32>| us.map_or_else(dash, |us| show_us(us.into()));
    let ssthresh = flow.now.ssthresh.map_or_else(dash, |segments| segments.to_string());
    let rate = flow.now.rate_bps.map_or_else(dash, show_rate);
    let state = match flow.exit {
        Some(exit) => Span::styled(
            format!(
                "left slow start by {} at {}, {}, cwnd {} -> {}",
                exit.reason.name().replace('_', " "),
                show_us(exit.record.at_us),
                show_bytes(exit.record.bytes_acked),
                exit.record.window,
                exit.record.window_after
            ),
            theme.exit(Some(exit.reason)),
        ),
        None => Span::raw(flow.state()),
    };
    vec![
        Line::styled(
            format!("{} -> {}  {}", canonical(flow.local), canonical(flow.remote), flow.algorithm.name()),
            theme.bold(),
        ),
        Line::raw(format!(
            "cwnd {} ssthresh {ssthresh} in flight {} RTT {} min {} {rate} {}",
            flow.now.cwnd,
            flow.now.in_flight,
            us(flow.now.rtt_us),
            us(flow.min_rtt_us),
            show_bytes(flow.acknowledged_bytes())
        )),
        Line::from(vec![state, Span::raw(if flow.ended { "; ended" } else { "" })]),
    ]
}
