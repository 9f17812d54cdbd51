//! `onramp top`.

mod app;
mod charts;
mod exports;
mod flow;
mod help;
mod others;
mod prompt;
mod room;
mod screen;
mod sort;
mod table;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;

use std::io::{self, IsTerminal};
use std::mem;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use onramp_loader::{Changes, Tuned};
use onramp_net::sock_diag::SockDiag;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::consumer::{self, Signals, Wanted};
use crate::failure::Usage;
use crate::filter::Filter;
use crate::live::{Flow, Source};
use crate::output::Output;
use crate::verb::others as controls;
use app::{Action, App};
use terminal::Screen;
use theme::Theme;

/// Between two pictures without a key.
const FRAME: Duration = Duration::from_millis(200);
/// Between two looks at the flows of other controls.
const LOOK: Duration = Duration::from_secs(1);
/// How long to wait for other commands before a key's action is given up.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Show flows live in the terminal: a table, and for each flow window, RTT, rate and its algorithm's state
///
/// Flows of all network namespaces, on algorithms attached now or later; an established flow is reported at its next
/// ACK. Where nothing is attached, those of all controls in this network namespace. `?` shows the keys: sorting, filtering, opening a flow, tuning its parameters and undoing that.
/// FILTER as for ss(8): `src` or `dst` with PREFIX, PREFIX:PORT or :PORT; `sport` or `dport` with a comparison, such
/// as `= :443`, `!= :22`, `>= :1024`; `and`, `or`, `not` and parentheses, read from left to right.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp top
  onramp top dst 198.51.100.0/24 and dport = :443
  onramp top --color never")]
pub(crate) struct Top {
    /// Only these flows
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
}

impl Top {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        if output.json() {
            return Err(Usage::error("top draws on a terminal: for JSON use `onramp watch --json`"));
        }
        let filter = Filter::parse(&self.filter).map_err(Usage::error)?;
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Err(Usage::error(
                "top needs a terminal for its keys and its picture: use `onramp watch` without one",
            ));
        }
        // From here on a signal ends the loop, and so restores the terminal.
        let signals = Signals::take()?;
        let wanted = Wanted::new(filter.clone(), 1);
        let Some(mut source) = consumer::open(&signals, |wait| Source::open("top", wanted, wait))? else {
            return Ok(0);
        };
        let mut screen = Screen::take()?;
        let theme = Theme { color: output.color() };
        let mut app = App::default();
        let mut sockets = SockDiag::open()?;
        let mut looked: Option<Instant> = None;
        while !signals.came() {
            source.drain(&mut app.model)?;
            if looked.is_none_or(|at| at.elapsed() >= LOOK) {
                looked = Some(Instant::now());
                app.others = controls::list(&mut sockets, None, |local, remote| {
                    filter.matches(local, remote) && app.passes(local, remote)
                })?;
            }
            let drawn = screen.0.draw(|frame| screen::draw(frame, &app, theme)).map(drop);
            if is_gone(Duration::ZERO) {
                break;
            }
            drawn.context("cannot draw")?;
            let mut wait = FRAME;
            // All keys that are waiting, then one picture.
            while has_key(wait)? {
                wait = Duration::ZERO;
                if let Event::Key(key) = event::read().context("cannot read keys")?
                    && key.kind != KeyEventKind::Release
                    && let Some(action) = app.key(key)
                {
                    match action {
                        Action::Quit => return Ok(0),
                        Action::Redraw => screen.forget()?,
                        action => act(action, &mut app, &mut source),
                    }
                }
            }
        }
        if is_gone(Duration::ZERO) {
            // Nothing can be restored, nor can that be said.
            mem::forget(screen);
        }
        Ok(0)
    }
}

/// Whether the terminal is gone, at the latest after this time, before that when there is a key or a signal comes.
fn is_gone(wait: Duration) -> bool {
    let stdin = io::stdin();
    let mut of_keys = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let _ = poll(&mut of_keys, PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO));
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    of_keys[0].revents().is_some_and(|events| events.intersects(gone))
}

/// Whether there is a key or another event, at the latest after this time. Of a terminal that is gone crossterm reads for ever: it
/// has no time to wait in which that could happen.
fn has_key(wait: Duration) -> anyhow::Result<bool> {
    // First what was read with the key before.
    for wait in [Duration::ZERO, wait] {
        if is_gone(wait) {
            return Ok(false);
        }
        if event::poll(Duration::ZERO).context("cannot read keys")? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Nothing is drawn while other commands are waited for.
fn waits(waited: Duration) -> bool {
    waited < TIMEOUT
}

/// What fails is shown, and does not end the verb.
fn act(action: Action, app: &mut App, source: &mut Source) {
    match action {
        Action::Quit | Action::Redraw => {}
        Action::Open(flow) => {
            let Some(flow) = app.model.flows.get(&flow) else { return };
            if let Err(error) = source.follow(flow, &waits) {
                app.message = Some(format!("rounds only: {error}"));
            }
        }
        Action::Close(id) => {
            source.leave(id);
            if let Some(flow) = app.model.flows.get_mut(&id) {
                flow.close();
            }
        }
        Action::Tune(id, settings) => {
            let Some(flow) = app.model.flows.get(&id) else {
                return app.tuned(id, Err("the flow is forgotten".into()));
            };
            let result = tune(flow, &settings).map_err(|error| error.to_string());
            app.tuned(id, result);
        }
    }
}

/// Changes the parameter set that a flow has.
fn tune(flow: &Flow, settings: &[String]) -> Result<Tuned, onramp_loader::Error> {
    let sets = onramp_loader::parameter_sets_while(flow.algorithm, &waits)?;
    let set = sets.iter().find(|set| set.number == flow.profile);
    let set = set.ok_or_else(|| onramp_loader::Error::UnknownProfile {
        algorithm: flow.algorithm.name(),
        profile: flow.profile.to_string(),
        known: sets.iter().map(|set| set.profile.as_str()).collect::<Vec<_>>().join(", "),
    })?;
    let changes = Changes { settings, lock_timeout: Some(TIMEOUT), ..Changes::default() };
    onramp_loader::tune(flow.algorithm, Some(&set.profile), &changes, false)
}
