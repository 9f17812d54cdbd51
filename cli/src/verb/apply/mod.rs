//! `onramp apply`.

mod files;
mod step;

use std::path::PathBuf;

use clap::Args;
use onramp_loader::Action;
use serde::Serialize;

use self::files::Desired;
use self::step::Step;
use super::plan;
use crate::exit;
use crate::failure::{FAILURE, PARTIAL, sentence};
use crate::output::{Output, say};
use crate::units::count;

/// Make this host match its configuration files: attached algorithms, their options, and select rules
///
/// Reads /etc/onramp/*.toml, compares it with the kernel, and does what is missing, each step with the command that
/// undoes it; where nothing is missing, nothing is done. An algorithm that a file names becomes as the file says,
/// also if it was attached by hand; one that no file names any more is detached if `apply` attached it. Likewise,
/// rules that apply made and that no file has any more are removed; other rules stay. A default is that of the network namespace that
/// apply runs in. All files are checked before the first step. docs/apply.md has every key.
///
/// Exits 0 if all is as the files say. With --check 1 if there is something to do. Else 5 if steps were done and one
/// failed, or something is left that could not be done.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp apply --check
  onramp apply
  onramp apply --config ./edge.toml --json

Undo: printed for each step; or the previous files, and apply")]
pub(crate) struct Apply {
    /// A directory, of which all *.toml are read, or a file [default: /etc/onramp]
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Say what would be done; change nothing
    #[arg(long)]
    check: bool,
}

#[derive(Serialize)]
struct ApplyReport {
    files: Vec<String>,
    steps: Vec<StepRow>,
    /// What connections lose by a base.
    warnings: Vec<String>,
    /// What could not be done for want of a look, or of sockets that can be moved.
    left: Vec<String>,
    /// Why the step failed that has.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct StepRow {
    what: String,
    undo: Option<String>,
    /// `done`, `failed` or `not_done`.
    result: &'static str,
}

impl Apply {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let desired = files::read(self.config.as_deref())?;
        let steps = step::plan(&desired)?;
        let warnings: Vec<_> = steps.iter().filter_map(|step| step.warning.clone()).collect();
        if self.check {
            let actions: Vec<_> = steps.iter().flat_map(|step| step.actions.clone()).collect();
            plan::print_warned(&actions, &warnings, output)?;
            return Ok(if actions.is_empty() { 0 } else { FAILURE });
        }
        take(&desired, &steps, warnings, output)
    }
}

fn take(desired: &Desired, steps: &[Step], warnings: Vec<String>, output: &Output) -> anyhow::Result<u8> {
    let files = desired.files.iter().map(|file| file.display().to_string()).collect();
    let mut report = ApplyReport { files, steps: Vec::new(), warnings, left: Vec::new(), error: None };
    let mut failed = None;
    for (done, step) in steps.iter().enumerate() {
        let result = if failed.is_some() {
            "not_done"
        } else {
            match step.take() {
                Ok(left) => {
                    report.left.extend(left);
                    "done"
                }
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    report.error = Some(sentence(&error));
                    failed = Some((done, error));
                    "failed"
                }
            }
        };
        report.steps.extend(step.actions.iter().map(|action| row(action, result)));
    }
    output.report(&report, || text(&report, desired));
    for left in report.warnings.iter().chain(&report.left) {
        say(&format!("warning: {left}"));
    }
    Ok(match failed {
        Some((done, error)) => {
            say(&format!("error: {}", sentence(&error)));
            // A step that could not be reverted has its own code for it.
            if done > 0 { PARTIAL } else { exit::code(&error) }
        }
        None if report.left.is_empty() => 0,
        None => PARTIAL,
    })
}

fn row(action: &Action, result: &'static str) -> StepRow {
    let undo = Some(&action.undo).filter(|undo| !undo.is_empty()).cloned();
    StepRow { what: action.what.clone(), undo, result }
}

fn text(report: &ApplyReport, desired: &Desired) -> String {
    if report.steps.is_empty() {
        return format!(
            "nothing to do: {} and {} are as wanted by {}\n",
            count(desired.attach.len(), "algorithm"),
            count(desired.rules.len(), "rule"),
            count(report.files.len(), "file")
        );
    }
    let mut text = String::new();
    for row in &report.steps {
        text += &format!("{}: {}\n", row.result.replace('_', " "), row.what);
        if let Some(undo) = row.undo.as_ref().filter(|_| row.result == "done") {
            text += &format!("  undo: {undo}\n");
        }
    }
    text
}
