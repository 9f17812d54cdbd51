//! Colours, or none: nothing is shown by colour alone. They are of the 256 of xterm, which no terminal's scheme changes, and
//! half as bright as white, so that they are read on light and on dark.

use onramp_loader::ExitReason;
use ratatui::style::{Color, Modifier, Style};

#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    pub color: bool,
}

const RED: u8 = 160;
const GREEN: u8 = 28;
const BLUE: u8 = 62;
const TEAL: u8 = 31;
const PURPLE: u8 = 133;

impl Theme {
    fn in_color(self, color: u8) -> Style {
        if self.color { Style::new().fg(Color::Indexed(color)) } else { Style::new() }
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
        self.in_color(RED).add_modifier(Modifier::BOLD)
    }

    pub fn cwnd(self) -> Style {
        self.in_color(TEAL)
    }

    pub fn ssthresh(self) -> Style {
        self.in_color(PURPLE)
    }

    pub fn in_flight(self) -> Style {
        self.in_color(BLUE)
    }

    pub fn exit(self, reason: Option<ExitReason>) -> Style {
        match reason {
            None => Style::new(),
            Some(ExitReason::Algorithm | ExitReason::Ssthresh | ExitReason::CachedSsthresh) => {
                self.in_color(GREEN)
            }
            Some(_) => self.in_color(RED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of a colour of xterm's cube (WCAG 2.2).
    fn luminance(color: u8) -> f64 {
        let level = |step: u8| if step == 0 { 0.0 } else { f64::from(55 + 40 * step) / 255.0 };
        let linear =
            |part: f64| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
        let cube = color - 16;
        [(cube / 36, 0.2126), (cube / 6 % 6, 0.7152), (cube % 6, 0.0722)]
            .map(|(step, weight)| weight * linear(level(step)))
            .iter()
            .sum()
    }

    #[test]
    fn every_colour_is_read_on_light_and_on_dark() {
        for color in [RED, GREEN, BLUE, TEAL, PURPLE] {
            let light = luminance(color);
            let (on_white, on_black) = (1.05 / (light + 0.05), (light + 0.05) / 0.05);
            assert!(on_white >= 3.5 && on_black >= 3.5, "{color}: {on_white:.1}, {on_black:.1}");
        }
    }
}
