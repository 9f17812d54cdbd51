//! One flow: figures, charts, the algorithm's state.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::theme::Theme;
use super::{charts, exports, room};
use crate::live::Flow;
use crate::units::{show_bytes, show_rate, show_us};
use crate::verb::ends::canonical;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, flow: &Flow, theme: Theme) {
    let [above, middle, below] =
        Layout::vertical([Constraint::Length(3), Constraint::Fill(3), Constraint::Fill(2)]).areas(area);
    frame.render_widget(Paragraph::new(figures(flow, theme, above.width)), above);
    charts::draw(frame, middle, flow, theme);
    exports::draw(frame, below, flow, theme);
}

fn figures(flow: &Flow, theme: Theme, width: u16) -> Vec<Line<'static>> {
    let dash = || "-".to_owned();
    let us = |us: Option<u32>| us.map_or_else(dash, |us| show_us(us.into()));
    let ssthresh = flow.now.ssthresh.map_or_else(dash, |segments| segments.to_string());
    let rate = flow.now.rate_bps.map_or_else(dash, show_rate);
    let state = match flow.exit {
        Some(exit) => {
            let text = format!(
                "exited slow start by {} at {}, {}, cwnd {} -> {}{}",
                exit.reason.name().replace('_', " "),
                show_us(exit.record.at_us),
                show_bytes(exit.record.bytes_acked),
                exit.record.window,
                exit.record.window_after,
                match () {
                    () if flow.ended => "; ended",
                    () if flow.idle => "; idle",
                    () => "",
                }
            );
            Span::styled(room::text(&text, width), theme.exit(Some(exit.reason)))
        }
        None => Span::raw(flow.state()),
    };
    let ends = format!("{} -> {}", canonical(flow.local), canonical(flow.remote));
    let name = flow.algorithm.name();
    let ends = if ends.len() + name.len() + 2 <= usize::from(width) { ends } else { canonical(flow.remote) };
    let name_at = u16::try_from(name.len() + 2).unwrap_or(0);
    let ends = room::address(&ends, width.saturating_sub(name_at));
    let now = [
        format!("cwnd {}", flow.now.cwnd),
        format!("ssthresh {ssthresh}"),
        format!("in flight {}", flow.now.in_flight),
        format!("RTT {}", us(flow.now.rtt_us)),
        format!("min {}", us(flow.min_rtt_us)),
        rate,
        show_bytes(flow.acknowledged_bytes()),
    ];
    vec![
        Line::styled(format!("{ends}  {name}"), theme.bold()),
        Line::raw(room::parts(&now, " ", &[4, 2, 1, 3, 5, 0, 6], width)),
        Line::from(state),
    ]
}
