//! The whole screen.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout};
use ratatui::text::{Line, Span};

use super::app::App;
use super::theme::Theme;
use super::{flow, help, room, table};
use crate::output::{escape_line, is_terminal_control};
use crate::units::count;

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, theme: Theme) {
    let bottom = app.prompt.as_ref().map_or(1, |prompt| prompt.height(frame.area().width));
    let [above, middle, below] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(bottom)])
            .areas(frame.area());
    frame.render_widget(top_line(app, theme, above.width), above);
    match app.open.and_then(|id| app.model.flows.get(&id)) {
        Some(open) => flow::draw(frame, middle, open, theme),
        None => table::draw(frame, middle, app, theme),
    }
    match &app.prompt {
        Some(prompt) => prompt.draw(frame, below, theme),
        None => frame.render_widget(bottom_line(app, theme, below.width), below),
    }
    if app.help {
        help::draw(frame, theme);
    }
    contain(frame.buffer_mut());
}

/// Puts a sign that says so in the place of each on which the terminal would act, wherever it came from.
fn contain(screen: &mut Buffer) {
    for cell in &mut screen.content {
        if cell.symbol().contains(is_terminal_control) {
            cell.set_symbol("\u{fffd}");
        }
    }
}

fn top_line(app: &App, theme: Theme, width: u16) -> Line<'static> {
    let flows = app.model.flows.values();
    let running = flows.clone().filter(|flow| !flow.ended).count();
    let ended = flows.len() - running;
    let lost = match app.model.lost {
        0 => String::new(),
        lost => room::parts(&[format!("  {} lost", count(lost as usize, "event"))], "", &[], width),
    };
    // What was lost goes before the name, and is not cut.
    let name = "onramp top  ";
    let name = if name.len() + lost.chars().count() > usize::from(width) { "" } else { name };
    let rest = usize::from(width).saturating_sub(name.len() + lost.chars().count());
    let filter = match &app.filter_text[..] {
        "" => String::new(),
        text => format!("filter: {}", escape_line(text)),
    };
    let flows = format!("{}, {ended} ended", count(running, "flow"));
    let rest = room::parts(&[flows, filter], "  ", &[1, 0], u16::try_from(rest).unwrap_or(u16::MAX));
    Line::from(vec![Span::styled(name, theme.bold()), Span::raw(rest), Span::styled(lost, theme.error())])
}

fn bottom_line(app: &App, theme: Theme, width: u16) -> Line<'static> {
    match &app.message {
        Some(message) => Line::styled(room::text(&escape_line(message), width), theme.bold()),
        None if app.open.is_some() => Line::styled("Esc back  t tune  u undo  ? keys  q end", theme.faint()),
        None if app.others_shown().is_some() => Line::styled("/ filter  ? keys  q end", theme.faint()),
        None => Line::styled("Enter open  < > r sort  / filter  t tune  ? keys  q end", theme.faint()),
    }
}
