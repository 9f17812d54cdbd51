//! `onramp run`.

use std::ffi::OsString;
use std::process::Command;

use clap::Args;
use onramp_loader::{Action, AttachOptions, Error, Ran};

use super::plan;
use crate::basis;
use crate::failure::{self, Usage};
use crate::output::{Output, say};
use crate::settings::Settings;

/// Run a command whose TCP sockets use an algorithm; nothing remains afterwards
///
/// The command runs in a cgroup of its own (cgroup v2), whose connections get the algorithm when they are established;
/// an application's own choice of a congestion control, before or after, still wins. The algorithm is attached for the run, or used as
/// it is where it is attached already. SIGINT, SIGTERM, SIGHUP and SIGQUIT are handed on to the command.
///
/// The exit code is the command's, 128 plus the signal if one ended it, 127 or 126 if it cannot be started.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp run -- curl -o /dev/null https://example.org/large
  onramp run search -- curl -o /dev/null https://example.org/large
  onramp run search --profile geo --set exit_action=hold -- ./server
  onramp run search --dry-run -- true")]
pub(crate) struct Run {
    #[command(flatten)]
    settings: Settings,
    /// Say what would be done; change nothing and start nothing
    #[arg(long)]
    dry_run: bool,
    /// Command with its arguments
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<OsString>,
}

impl Run {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let options = self.settings.options()?;
        let algorithm = options.parameters.algorithm();
        let attached = basis::attached(algorithm);
        if attached.as_ref().is_some_and(|attached| self.settings.differ_from(attached, &options)) {
            return Err(Usage::error(format!(
                "{0} is attached already, and a run uses it as it is: leave out --profile, --set, --telemetry, --base, --after-exit and --start, or `onramp detach {0}` first",
                algorithm.name()
            )));
        }
        let warning = match attached {
            Some(attached) => basis::warning_of_attached(algorithm, &attached),
            // What it fails with, the run does.
            None => onramp_loader::basis(&options)
                .ok()
                .and_then(|basis| basis::warning(algorithm, &basis, false, basis::option)),
        };
        if self.dry_run {
            return plan::print_warned(&self.plan(&options)?, &Vec::from_iter(warning), output);
        }
        if let Some(warning) = warning {
            say(&format!("warning: {warning}"));
        }
        let (program, arguments) = self.command.split_first().ok_or_else(|| Usage::error("no command"))?;
        match onramp_loader::run(&options, Command::new(program).args(arguments)) {
            Ok(ran) => {
                warn(&ran);
                Ok(failure::of_command(ran.status))
            }
            Err(error) => match not_started(&error) {
                Some(code) => {
                    say(&format!("error: {error}"));
                    Ok(code)
                }
                None => Err(error.into()),
            },
        }
    }

    fn plan(&self, options: &AttachOptions) -> anyhow::Result<Vec<Action>> {
        let name = options.parameters.algorithm().congestion_control();
        let mut actions = match onramp_loader::plan_attach(options) {
            Ok(actions) => actions,
            Err(Error::AlreadyAttached { algorithm, .. }) => {
                vec![Action { what: format!("use {algorithm} as it is attached"), undo: String::new() }]
            }
            Err(error) => return Err(error.into()),
        };
        let command: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        actions.push(Action {
            what: format!("create a cgroup whose sockets use {name}, and run in it: {}", command.join(" ")),
            undo: String::new(),
        });
        actions.push(Action {
            what: "remove the cgroup, and detach again what was attached for the run".into(),
            undo: String::new(),
        });
        Ok(actions)
    }
}

fn warn(ran: &Ran) {
    if ran.left_behind > 0 {
        tracing::warn!("processes that the command left behind go on: {}", ran.left_behind);
    }
    let detached = match &ran.detached {
        Ok(detached) => detached.iter(),
        // The exit code is the command's.
        Err(error) => {
            say(&format!("error: {error}"));
            return;
        }
    };
    for users in detached.clone().flat_map(|detached| &detached.stragglers) {
        tracing::warn!("sockets still on the detached code in {}: {}", users.namespace, users.sockets);
    }
    for place in detached.flat_map(|detached| &detached.unseen) {
        tracing::warn!("not looked into, so something may still use the detached code: {place}");
    }
}

/// `None`: it has been started.
fn not_started(error: &Error) -> Option<u8> {
    match error {
        Error::Io { action: "start", source, .. } => Some(failure::not_started(source)),
        _ => None,
    }
}
