//! The algorithm's state: every export, and a picture of those that have one.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph, Sparkline};

use super::theme::Theme;
use crate::live::{Flow, Gauge, Picture, picture};

/// Columns of a picture, and from which width on there is one: the exports have the rest.
const PICTURE: u16 = 34;
const WITH_PICTURE: u16 = 72;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, flow: &Flow, theme: Theme) {
    let picture = picture(flow).filter(|_| area.width >= WITH_PICTURE);
    let right = if picture.is_some() { Constraint::Length(PICTURE) } else { Constraint::Length(0) };
    let [left, right] = Layout::horizontal([Constraint::Fill(1), right]).areas(area);
    let block = Block::new().borders(Borders::TOP).title("state of the algorithm");
    frame.render_widget(Paragraph::new(lines(flow, left.width, left.height)).block(block), left);
    if let Some(picture) = picture {
        draw_picture(frame, right, &picture, theme);
    }
}

/// The exports, in several columns if there are more than lines; without units where these take too much, and only the first
/// of them where that is still too much. None is cut.
fn lines(flow: &Flow, width: u16, height: u16) -> Vec<Line<'static>> {
    let exports = flow.exports();
    let room = usize::from(height.saturating_sub(1)).max(1);
    if exports.is_empty() {
        return vec![Line::raw(format!("{} keeps none that is worth showing", flow.algorithm.name()))];
    }
    let all = |units: bool| -> Vec<String> {
        exports.iter().map(|(export, values)| show(export.name, export.unit, values, units)).collect()
    };
    let (mut cells, width) = (all(true), usize::from(width));
    if needed(&cells, room) > width {
        cells = all(false);
    }
    while cells.len() > room && needed(&cells, room) > width {
        cells.truncate((cells.len() - 1) / room * room);
    }
    cells.retain(|cell| cell.chars().count() <= width);
    let more = exports.len() - cells.len();
    let rows = room.min(cells.len());
    let mut lines: Vec<String> = (0..rows)
        .map(|row| {
            let line = cells.chunks(room).filter_map(|column| {
                let wide = wide(column);
                column.get(row).map(|cell| format!("{cell:<wide$}"))
            });
            line.collect::<String>().trim_end().to_owned()
        })
        .collect();
    if more > 0 {
        lines.truncate(room - 1);
        let left_out =
            exports.len() - cells.chunks(room).map(|column| column.len().min(room - 1)).sum::<usize>();
        lines.push(format!("… {left_out} more"));
    }
    lines.into_iter().map(Line::raw).collect()
}

/// Cells of a column, with what is between it and the next.
fn wide(column: &[String]) -> usize {
    column.iter().map(|cell| cell.chars().count()).max().unwrap_or(0) + 1
}

/// Cells of columns with so many lines.
fn needed(cells: &[String], room: usize) -> usize {
    cells.chunks(room).map(wide).sum::<usize>() - 1
}

fn show(name: &str, unit: &str, values: &[u32], with_unit: bool) -> String {
    let unit = if with_unit { format!(" {unit}") } else { String::new() };
    match values {
        [one] => format!("{name} {one}{unit}"),
        many => format!("{name} {}x{unit}, max {}", many.len(), many.iter().max().unwrap_or(&0)),
    }
}

/// Cells of a bar of 100 percent.
const BAR: u32 = 25;

/// A norm against its threshold.
fn bar(norm: u64, threshold: u64) -> String {
    let cell = |percent: u64| (percent.min(100) as u32 * BAR / 100).min(BAR - 1);
    (0..BAR)
        .map(|column| match column {
            _ if column == cell(threshold) => '|',
            _ if column < cell(norm) || norm >= 100 => '█',
            _ => '░',
        })
        .collect()
}

fn draw_picture(frame: &mut Frame<'_>, area: Rect, picture: &Picture, theme: Theme) {
    let block = Block::new().borders(Borders::TOP | Borders::LEFT).title(picture.title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let gauge = picture.gauge.map(|Gauge { value_pct, threshold_pct, .. }| {
        [format!("{value_pct} %, threshold {threshold_pct} %"), bar(value_pct, threshold_pct)]
    });
    let text: Vec<&String> = gauge.iter().flatten().chain(&picture.lines).collect();
    let [above, below] =
        Layout::vertical([Constraint::Length(text.len() as u16), Constraint::Fill(1)]).areas(inner);
    let lines: Vec<Line<'_>> = text.into_iter().map(|line| Line::raw(line.clone())).collect();
    frame.render_widget(Paragraph::new(lines), above);
    // What does not fit is the oldest, or of the lowest rate.
    let bars = &picture.bars[picture.bars.len().saturating_sub(below.width.into())..];
    frame.render_widget(Sparkline::default().data(bars).style(theme.cwnd()), below);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_norm_is_drawn_against_its_threshold() {
        assert_eq!(bar(0, 26), "░░░░░░|░░░░░░░░░░░░░░░░░░");
        assert_eq!(bar(20, 26), "█████░|░░░░░░░░░░░░░░░░░░");
        assert_eq!(bar(40, 26), "██████|███░░░░░░░░░░░░░░░");
        assert_eq!(bar(400, 100), "████████████████████████|");
    }
}
