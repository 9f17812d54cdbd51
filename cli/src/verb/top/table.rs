//! The table of flows. Where it is too narrow for a column, that is left out; a number is never cut.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table, TableState};

use super::app::App;
use super::others;
use super::room;
use super::sort::Sort;
use super::theme::Theme;
use crate::limits::Limit;
use crate::live::Flow;
use crate::units::{show_bytes, show_rate, show_us};
use crate::verb::ends::canonical;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    /// By which flows are sorted.
    Sorted(Sort),
    Local,
    Ssthresh,
    MinRtt,
    Retransmitted,
    Limited,
}

/// In the order of the table.
const ALL: [Column; 12] = [
    Column::Sorted(Sort::Remote),
    Column::Sorted(Sort::Algorithm),
    Column::Sorted(Sort::State),
    Column::Sorted(Sort::Cwnd),
    Column::Sorted(Sort::Rtt),
    Column::Sorted(Sort::Rate),
    Column::Sorted(Sort::Delivered),
    Column::Local,
    Column::Ssthresh,
    Column::MinRtt,
    Column::Retransmitted,
    Column::Limited,
];

/// Those that are left out where there is no room, first to last; the peer and what it has acknowledged stay.
const DROPPED: [Column; 10] = [
    Column::Limited,
    Column::Retransmitted,
    Column::MinRtt,
    Column::Ssthresh,
    Column::Local,
    Column::Sorted(Sort::Rtt),
    Column::Sorted(Sort::Cwnd),
    Column::Sorted(Sort::Algorithm),
    Column::Sorted(Sort::Rate),
    Column::Sorted(Sort::State),
];

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::Sorted(sort) => sort.title(),
            Self::Local => "LOCAL",
            Self::Ssthresh => "SSTHRESH",
            Self::MinRtt => "MIN RTT",
            Self::Retransmitted => "RESENT",
            Self::Limited => "LIMITED BY",
        }
    }

    /// Words, which begin at the left.
    fn is_text(self) -> bool {
        matches!(
            self,
            Self::Sorted(Sort::Remote | Sort::Algorithm | Sort::State) | Self::Local | Self::Limited
        )
    }

    /// Cells that it has at least, so that columns stay where they are.
    fn least(self) -> usize {
        match self {
            Self::Sorted(Sort::Remote) | Self::Local => 21,
            Self::Limited => 20,
            Self::Sorted(Sort::Algorithm) => 10,
            Self::Sorted(Sort::State | Sort::Rate) => 11,
            Self::Sorted(Sort::Cwnd) => 6,
            Self::Sorted(Sort::Rtt) | Self::MinRtt => 7,
            Self::Sorted(Sort::Delivered) | Self::Ssthresh | Self::Retransmitted => 8,
        }
    }

    fn value(self, flow: &Flow) -> String {
        let dash = || "-".to_owned();
        let us = |us: Option<u32>| us.map_or_else(dash, |us| show_us(us.into()));
        match self {
            Self::Sorted(Sort::Remote) => canonical(flow.remote),
            Self::Sorted(Sort::Algorithm) => flow.algorithm.name().to_owned(),
            Self::Sorted(Sort::State) => flow.state(),
            // After an idle time the kernel begins with another one.
            Self::Sorted(Sort::Cwnd) if flow.now.cwnd == 0 || flow.idle => dash(),
            Self::Sorted(Sort::Cwnd) => flow.now.cwnd.to_string(),
            Self::Sorted(Sort::Rtt) => us(flow.now.rtt_us),
            Self::Sorted(Sort::Rate) => flow.now.rate_bps.map_or_else(dash, show_rate),
            Self::Sorted(Sort::Delivered) => show_bytes(flow.acknowledged_bytes()),
            Self::Local => canonical(flow.local),
            Self::Ssthresh => flow.now.ssthresh.map_or_else(dash, |segments| segments.to_string()),
            Self::MinRtt => us(flow.min_rtt_us),
            Self::Retransmitted => show_bytes(flow.retransmitted_bytes),
            Self::Limited => flow.limited.now().map_or_else(dash, Limit::title),
        }
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, theme: Theme) {
    let shown = app.shown();
    if let Some(others) = app.others_shown() {
        return others::draw(frame, area, others, theme);
    }
    if shown.is_empty() {
        let text = if app.model.flows.is_empty() {
            "No flow yet: an open one is reported at its next ACK. `onramp explain` shows those of other controls."
        } else {
            "No flow passes the filter: / to change it, Esc to drop it."
        };
        frame.render_widget(Line::raw(text), area);
        return;
    }
    let columns = columns(app, &shown, area.width);
    let titles = columns.iter().map(|(column, width)| {
        let title = Line::raw(title(app, *column).chars().take(usize::from(*width)).collect::<String>());
        if column.is_text() { title } else { title.right_aligned() }
    });
    let rows = shown.iter().map(|flow| row(flow, &columns, theme));
    let widths = columns.iter().map(|(_, width)| Constraint::Length(*width));
    let table = Table::new(rows, widths)
        .header(Row::new(titles).style(theme.bold()))
        .row_highlight_style(theme.selected());
    let mut state = TableState::new().with_selected(app.line(&shown));
    frame.render_stateful_widget(table, area, &mut state);
}

/// Those that there is room for, with their widths.
fn columns(app: &App, shown: &[&Flow], width: u16) -> Vec<(Column, u16)> {
    let needs = |column: Column| {
        let values = shown.iter().map(|flow| column.value(flow).chars().count()).max().unwrap_or(0);
        let cells = values.max(title(app, column).chars().count()).max(column.least());
        (column, u16::try_from(cells).unwrap_or(u16::MAX))
    };
    let mut columns = ALL.map(needs).to_vec();
    let needed = |columns: &[(Column, u16)]| {
        columns.iter().map(|(_, width)| usize::from(*width) + 1).sum::<usize>() - 1
    };
    for dropped in DROPPED {
        if needed(&columns) <= usize::from(width) {
            break;
        }
        columns.retain(|(column, _)| *column != dropped);
    }
    // An address can be distinguished from others without its middle.
    let missing = needed(&columns).saturating_sub(width.into());
    columns[0].1 = columns[0].1.saturating_sub(u16::try_from(missing).unwrap_or(u16::MAX));
    if let [(_, remote), ref rest @ ..] = columns[..]
        && needed(&columns) < usize::from(width)
        && rest.len() < ALL.len() - 1
    {
        // What is left over is the address's, so that numbers are at the right.
        let used = needed(&columns) - usize::from(remote);
        columns[0].1 = width - u16::try_from(used).unwrap_or(0);
    }
    columns
}

fn title(app: &App, column: Column) -> String {
    let mark = match (column == Column::Sorted(app.sort), app.reverse) {
        (false, _) => "",
        (true, false) => "▼",
        (true, true) => "▲",
    };
    format!("{}{mark}", column.title())
}

fn row(flow: &Flow, columns: &[(Column, u16)], theme: Theme) -> Row<'static> {
    let cell = |(column, width): &(Column, u16)| {
        let value = column.value(flow);
        match column {
            Column::Sorted(Sort::Remote) => Cell::from(room::address(&value, *width)),
            Column::Sorted(Sort::State) => {
                let reason = flow.exit.map(|exit| exit.reason).filter(|_| !flow.idle);
                Cell::from(Text::styled(value, theme.exit(reason)))
            }
            _ if column.is_text() => Cell::from(value),
            _ => Cell::from(Text::from(value).right_aligned()),
        }
    };
    let row = Row::new(columns.iter().map(cell));
    if flow.ended { row.style(theme.faint()) } else { row }
}
