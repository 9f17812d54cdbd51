//! A line that is being typed, and what was wrong with it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::theme::Theme;
use crate::output::escape_line;

/// What the line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Filter,
    /// Of this flow's parameter set.
    Tune(u64),
}

#[derive(Clone, Debug)]
pub(super) struct Prompt {
    pub purpose: Purpose,
    pub label: String,
    pub text: String,
    pub error: Option<String>,
}

/// Longer lines are not needed.
const LENGTH_MAX: usize = 512;

impl Prompt {
    pub fn new(purpose: Purpose, label: String, text: String) -> Self {
        Self { purpose, label, text, error: None }
    }

    /// What is wrong with it is forgotten once it is changed.
    pub fn insert(&mut self, letter: char) {
        if self.text.len() < LENGTH_MAX {
            self.text.push(letter);
        }
        self.error = None;
    }

    pub fn backspace(&mut self) {
        self.text.pop();
        self.error = None;
    }

    /// Lines that it takes at this width.
    pub fn height(&self, width: u16) -> u16 {
        let error =
            self.error.as_ref().map_or(0, |error| error.chars().count().div_ceil(width.max(1) as usize) + 1);
        1 + error.min(6) as u16
    }

    pub fn draw(&self, frame: &mut Frame<'_>, area: Rect, theme: Theme) {
        let mut lines = Vec::new();
        if let Some(error) = &self.error {
            lines.push(Line::styled(escape_line(error), theme.error()));
        }
        let typed = self.label.chars().count() + self.text.chars().count();
        // The end of a long line is what is being typed.
        let hidden = (typed + 1).saturating_sub(area.width as usize);
        let shown: String = self.text.chars().skip(hidden).collect();
        let column = (self.label.chars().count() + shown.chars().count()) as u16;
        let [above, line] = split(area);
        frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }), above);
        frame.render_widget(
            Line::from(vec![Span::styled(self.label.clone(), theme.bold()), Span::raw(shown)]),
            line,
        );
        frame.set_cursor_position((line.x + column.min(line.width.saturating_sub(1)), line.y));
    }
}

fn split(area: Rect) -> [Rect; 2] {
    let line = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
    [Rect { height: area.height.saturating_sub(1), ..area }, line]
}
