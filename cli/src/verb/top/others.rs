//! The flows of other controls, where nothing is attached: those that have acknowledged most come first. Where it is too narrow
//! for a column, that is left out.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table};

use super::room;
use super::theme::Theme;
use crate::verb::others::{OtherFlow, TITLES, WHAT};

/// Columns by their number in the titles, in the order of this table; the last go first.
const ORDER: [usize; TITLES.len()] = [1, 2, 8, 3, 4, 6, 0, 5, 7, 9];
/// Cells that an address and a number are given at least, so that columns stay where they are.
const LEAST: [u16; TITLES.len()] = [21, 21, 10, 20, 6, 8, 7, 7, 8, 8];

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, others: &[OtherFlow], theme: Theme) {
    let [above, below] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    frame.render_widget(Line::raw(room::text(WHAT, above.width)), above);
    let mut flows: Vec<&OtherFlow> = others.iter().collect();
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.acknowledged_bytes));
    let rows: Vec<_> = flows.iter().take(below.height.into()).map(|flow| flow.cells()).collect();
    let columns = columns(&rows, below.width);
    let cell = |column: usize, text: String, width: u16| match TITLES[column].starts_with('>') {
        true => Cell::from(Text::from(text).right_aligned()),
        false => Cell::from(room::address(&text, width)),
    };
    let titles = columns
        .iter()
        .map(|&(column, width)| cell(column, TITLES[column].trim_start_matches('>').to_owned(), width));
    let shown = rows
        .iter()
        .map(|row| Row::new(columns.iter().map(|&(column, width)| cell(column, row[column].clone(), width))));
    let widths = columns.iter().map(|&(_, width)| Constraint::Length(width));
    frame.render_widget(Table::new(shown, widths).header(Row::new(titles).style(theme.bold())), below);
}

/// Those that there is room for, with their widths; the first gets what is left of it.
fn columns(rows: &[[String; TITLES.len()]], width: u16) -> Vec<(usize, u16)> {
    let cells = |text: &str| u16::try_from(text.chars().count()).unwrap_or(u16::MAX);
    let needs = |column: usize| {
        let values = rows.iter().map(|row| cells(&row[column])).max().unwrap_or(0);
        values.max(cells(TITLES[column].trim_start_matches('>'))).max(LEAST[column])
    };
    let mut columns = vec![(ORDER[0], needs(ORDER[0]).min(width))];
    let mut left = width - columns[0].1;
    for column in ORDER.into_iter().skip(1) {
        let Some(rest) = left.checked_sub(needs(column).saturating_add(1)) else { break };
        columns.push((column, needs(column)));
        left = rest;
    }
    columns[0].1 += if columns.len() < ORDER.len() { left } else { 0 };
    columns
}
