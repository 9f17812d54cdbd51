//! The table of flows.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table, TableState};

use super::app::App;
use super::sort::Sort;
use super::theme::Theme;
use crate::live::Flow;
use crate::units::{show_bytes, show_rate, show_us};
use crate::verb::flows::canonical;

/// From this width on the local address, the minimum RTT and what was sent again have columns too.
const WIDE: u16 = 124;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, theme: Theme) {
    let shown = app.shown();
    if shown.is_empty() {
        let text = if app.model.flows.is_empty() {
            "No flow yet: one is told of with its next acknowledgement."
        } else {
            "No flow passes the filter: / to change it, Esc to drop it."
        };
        frame.render_widget(Line::raw(text), area);
        return;
    }
    let wide = area.width >= WIDE;
    let mut titles: Vec<Line<'_>> = Sort::ALL.map(|sort| title(app, sort)).into();
    let mut widths = vec![
        Constraint::Min(21),
        Constraint::Length(10),
        Constraint::Length(11),
        Constraint::Length(6),
        Constraint::Length(7),
        Constraint::Length(11),
        Constraint::Length(8),
    ];
    if wide {
        titles.extend([
            Line::raw("LOCAL"),
            right("SSTHRESH".into()),
            right("MIN RTT".into()),
            right("RESENT".into()),
        ]);
        widths.extend([
            Constraint::Min(21),
            Constraint::Length(8),
            Constraint::Length(7),
            Constraint::Length(8),
        ]);
    }
    let rows = shown.iter().map(|flow| row(flow, wide, theme));
    let table = Table::new(rows, widths)
        .header(Row::new(titles).style(theme.bold()))
        .row_highlight_style(theme.selected());
    let mut state = TableState::new().with_selected(app.line(&shown));
    frame.render_stateful_widget(table, area, &mut state);
}

fn title(app: &App, sort: Sort) -> Line<'static> {
    let mark = match (app.sort == sort, app.reverse) {
        (false, _) => "",
        (true, false) => "▼",
        (true, true) => "▲",
    };
    let text = format!("{}{mark}", sort.title());
    if matches!(sort, Sort::Remote | Sort::Algorithm | Sort::State) { Line::raw(text) } else { right(text) }
}

fn right(text: String) -> Line<'static> {
    Line::raw(text).right_aligned()
}

fn row(flow: &Flow, wide: bool, theme: Theme) -> Row<'static> {
    let dash = || "-".to_owned();
    let number = |text: String| Cell::from(Text::from(text).right_aligned());
    let us = |us: Option<u32>| number(us.map_or_else(dash, |us| show_us(us.into())));
    let state = Cell::from(Text::styled(flow.state(), theme.exit(flow.exit.map(|exit| exit.reason))));
    let mut cells = vec![
        Cell::from(canonical(flow.remote)),
        Cell::from(flow.algorithm.name()),
        state,
        number(if flow.now.cwnd == 0 { dash() } else { flow.now.cwnd.to_string() }),
        us(flow.now.rtt_us),
        number(flow.now.rate_bps.map_or_else(dash, show_rate)),
        number(show_bytes(flow.acknowledged_bytes())),
    ];
    if wide {
        cells.extend([
            Cell::from(canonical(flow.local)),
            number(flow.now.ssthresh.map_or_else(dash, |segments| segments.to_string())),
            us(flow.min_rtt_us),
            number(show_bytes(flow.retransmitted_bytes)),
        ]);
    }
    let row = Row::new(cells);
    if flow.ended { row.style(theme.faint()) } else { row }
}
