//! Colours, or none: nothing is told by colour alone.

use onramp_loader::ExitReason;
use ratatui::style::{Color, Modifier, Style};

#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    pub color: bool,
}

impl Theme {
    fn in_color(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    pub fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub fn error(self) -> Style {
        self.in_color(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub fn cwnd(self) -> Style {
        self.in_color(Color::Cyan)
    }

    pub fn ssthresh(self) -> Style {
        self.in_color(Color::Yellow)
    }

    pub fn in_flight(self) -> Style {
        self.in_color(Color::Blue)
    }

    pub fn exit(self, reason: Option<ExitReason>) -> Style {
        match reason {
            None => Style::new(),
            Some(ExitReason::Algorithm | ExitReason::Ssthresh | ExitReason::CachedSsthresh) => {
                self.in_color(Color::Green)
            }
            Some(_) => self.in_color(Color::Red),
        }
    }
}
