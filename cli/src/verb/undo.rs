//! `onramp undo`.

use clap::Args;
use onramp_loader::host;
use serde::Serialize;

use super::detach::{self, Detach, Failed};
use super::doctor::fix::{self, Undone};
use super::plan;
use crate::failure::{FAILURE, PARTIAL};
use crate::output::Output;

/// Revert all that onramp has changed on this host
///
/// What `onramp detach --all` does: defaults, sockets, attachments, rules of `onramp select`, and what interrupted commands have
/// left; then what `onramp doctor --undo` does. What another process has changed since stays as it is and is reported,
/// and the exit code is 5. Recordings and files in /etc/onramp stay.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp undo --dry-run
  onramp undo

Undo: printed, as far as one command does it")]
pub(crate) struct Undo {
    /// Say what would be done; change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    detached: detach::Report,
    /// None: it failed.
    settings: Option<Undone>,
}

impl Undo {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        onramp_loader::kernel::require_everywhere("undo")?;
        let detach = Detach::everything();
        if self.dry_run {
            let mut actions = detach.plan_all()?;
            actions.extend(fix::planned()?);
            return plan::print(&actions, output);
        }
        let mut detached = detach.all()?;
        let settings = match host::restore_all() {
            Ok(given) => Some(Undone::of(given)),
            Err(error) => {
                detached.failed.push(Failed::new("settings", error));
                None
            }
        };
        let report = Report { detached, settings };
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
