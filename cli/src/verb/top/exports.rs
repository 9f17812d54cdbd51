//! The algorithm's state: every export, and a picture of those that have one.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph, Sparkline};

use super::model::Flow;
use super::picture::{Picture, picture};
use super::theme::Theme;

/// Columns of a picture.
const PICTURE: u16 = 34;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, flow: &Flow, theme: Theme) {
    let picture = picture(flow);
    let right = if picture.is_some() { Constraint::Length(PICTURE) } else { Constraint::Length(0) };
    let [left, right] = Layout::horizontal([Constraint::Fill(1), right]).areas(area);
    let block = Block::new().borders(Borders::TOP).title("state of the algorithm");
    frame.render_widget(Paragraph::new(lines(flow, left.width, left.height)).block(block), left);
    if let Some(picture) = picture {
        draw_picture(frame, right, &picture, theme);
    }
}

/// Every export; in two columns if there are more than lines.
fn lines(flow: &Flow, width: u16, height: u16) -> Vec<Line<'static>> {
    let all: Vec<String> =
        flow.exports.iter().map(|(export, values)| show(export.name, export.unit, values)).collect();
    let room = usize::from(height.saturating_sub(1)).max(1);
    if all.is_empty() {
        return vec![Line::raw(format!("{} keeps none that is worth showing", flow.algorithm.name()))];
    }
    let columns = all.len().div_ceil(room);
    let wide = (usize::from(width) / columns).max(2);
    let cut = |text: &str| text.chars().take(wide - 1).collect::<String>();
    (0..room.min(all.len()))
        .map(|row| {
            let cells = all.iter().skip(row).step_by(room);
            Line::raw(cells.map(|cell| format!("{:<wide$}", cut(cell))).collect::<String>())
        })
        .collect()
}

fn show(name: &str, unit: &str, values: &[u32]) -> String {
    match values {
        [one] => format!("{name} {one} {unit}"),
        many => format!("{name} {}x {unit}, max {}", many.len(), many.iter().max().unwrap_or(&0)),
    }
}

fn draw_picture(frame: &mut Frame<'_>, area: Rect, picture: &Picture, theme: Theme) {
    let block = Block::new().borders(Borders::TOP | Borders::LEFT).title(picture.title.clone());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let text = picture.lines.len() as u16;
    let [above, below] = Layout::vertical([Constraint::Length(text), Constraint::Fill(1)]).areas(inner);
    let lines: Vec<Line<'_>> = picture.lines.iter().map(|line| Line::raw(line.clone())).collect();
    frame.render_widget(Paragraph::new(lines), above);
    // What does not fit is the oldest, or of the lowest rate.
    let bars = &picture.bars[picture.bars.len().saturating_sub(below.width.into())..];
    frame.render_widget(Sparkline::default().data(bars).style(theme.cwnd()), below);
}
