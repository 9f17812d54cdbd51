//! `onramp undo`.

mod settings;

use clap::{Args, ValueEnum};
use onramp_loader::host;
use serde::Serialize;

use self::settings::Undone;
pub(super) use self::settings::place;
use super::detach::{self, Detach, Failed};
use super::plan;
use crate::failure::{FAILURE, PARTIAL};
use crate::output::Output;

/// The command that restores settings alone.
pub(super) const SETTINGS: &str = "onramp undo settings";

/// Revert all changes that onramp has made to this host
///
/// Does what `onramp detach --all` does: defaults, sockets, attachments, rules of `onramp select`, and what interrupted commands have
/// left. Then restores the settings that `onramp doctor --fix` has set, in every network namespace; `undo settings` restores these
/// alone. A setting or default that another process has changed since stays as it is and is reported, and the exit code is 5.
/// Recordings and files in /etc/onramp stay.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp undo --dry-run
  onramp undo
  onramp undo settings

Undo: printed, as far as one command does it")]
pub(crate) struct Undo {
    /// What to revert [default: everything]
    #[arg(value_name = "WHAT")]
    what: Option<Part>,
    /// Say what would be done; change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What `undo` reverts alone.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Part {
    /// Settings of `onramp doctor --fix`
    Settings,
}

#[derive(Serialize)]
struct UndoReport {
    #[serde(flatten)]
    detached: detach::DetachReport,
    /// None: it failed.
    settings: Option<Undone>,
}

impl Undo {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        if let Some(Part::Settings) = self.what {
            return settings::undo(self.dry_run, output);
        }
        onramp_loader::kernel::require_everywhere("undo")?;
        let detach = Detach::everything();
        if self.dry_run {
            let mut actions = detach.plan_all()?;
            actions.extend(settings::planned()?);
            return plan::print(&actions, output);
        }
        let mut detached = detach.all()?;
        let settings = match host::restore_all() {
            Ok(given) => Some(Undone::new(given)),
            Err(error) => {
                detached.failed.push(Failed::new("settings", error));
                None
            }
        };
        let report = UndoReport { detached, settings };
        output.report(&report, || {
            detach::text(&report.detached) + &report.settings.as_ref().map(Undone::text).unwrap_or_default()
        });
        report.detached.say_failed();
        let settings = report.settings.as_ref();
        settings.inspect(|settings| settings.say_failed());
        let codes = [report.detached.code(), settings.map_or(0, Undone::code)];
        let done = report.detached.is_something_done() || settings.is_some_and(Undone::is_something_restored);
        let code = codes.into_iter().max().unwrap_or(0);
        Ok(if code == FAILURE && done { PARTIAL } else { code })
    }
}
