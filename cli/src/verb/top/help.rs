//! The keys.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::theme::Theme;

const KEYS: [(&str, &str); 13] = [
    ("up down j k", "choose a flow; PgUp PgDn Home End too"),
    ("Enter", "open the flow: every ACK is reported from then on"),
    ("Esc", "back; in the table: drop the filter"),
    ("< >", "sort by the next column"),
    ("r", "sort the other way round"),
    ("/", "show only some flows, as in onramp flows:"),
    ("", "  dst 198.51.100.0/24 and dport = :443"),
    ("t", "tune the parameter set of the flow: name=value"),
    ("u", "undo the last tuning"),
    ("x", "forget the flows that have ended"),
    ("?", "this help"),
    ("Ctrl-L", "draw anew"),
    ("q Ctrl-C", "end; the terminal is as it was"),
];

pub(super) fn draw(frame: &mut Frame<'_>, theme: Theme) {
    let all = frame.area();
    let (width, height) = ((KEYS_WIDTH + 4).min(all.width), (KEYS.len() as u16 + 2).min(all.height));
    let area = Rect { x: (all.width - width) / 2, y: (all.height - height) / 2, width, height };
    let lines: Vec<Line<'_>> =
        KEYS.iter().map(|(key, what)| Line::raw(format!(" {key:<12} {what}"))).collect();
    frame.render_widget(Clear, area);
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().title(" keys ").border_style(theme.bold())),
        area,
    );
}

const KEYS_WIDTH: u16 = 66;
