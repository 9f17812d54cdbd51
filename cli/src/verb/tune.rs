//! `onramp tune`.

use clap::Args;
use onramp_loader::{ParameterSet, Tuned};
use serde::Serialize;

use crate::output::{Named, Output};
use crate::settings::{AlgorithmName, Value};
use crate::table::Table;

/// Show or change the parameters of an attached algorithm
///
/// Without settings: values, defaults and what may be given. With settings: all of them or none are set, at once;
/// flows under way read the new values with their next ACK, except what an algorithm latches when slow start begins
/// (`onramp list ALG` says which).
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp tune search
  onramp tune search threshold_pct=30 exit_action=drain
  onramp tune search --profile geo look_back=min --dry-run

Undo: printed; `onramp tune` with the former values")]
pub(crate) struct Tune {
    /// Algorithm
    #[arg(value_name = "ALG", value_parser = AlgorithmName)]
    algorithm: String,
    /// The parameter set of this name; `onramp status` lists them [default: the first]
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// New values
    #[arg(value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Say what would change; change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Report {
    algorithm: &'static str,
    profile: String,
    parameters_generation: u32,
    dry_run: bool,
    changed: Vec<Change>,
    parameters: Named<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undo: Option<String>,
}

/// A parameter that has another value than before.
#[derive(Serialize)]
pub(super) struct Change {
    pub name: &'static str,
    unit: &'static str,
    pub before: Value,
    pub after: Value,
}

impl Tune {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let algorithm = onramp_loader::find(&self.algorithm)?;
        let look_only = self.settings.is_empty();
        let tuned = onramp_loader::tune(
            algorithm,
            self.profile.as_deref(),
            &self.settings,
            self.dry_run || look_only,
        )?;
        let changed = changes(&tuned);
        let undo = (!changed.is_empty()).then(|| self.undo(&changed));
        let Tuned { after, .. } = tuned;
        let report = Report {
            algorithm: algorithm.name(),
            profile: after.profile.clone(),
            parameters_generation: after.generation,
            dry_run: self.dry_run,
            parameters: Named(
                after.parameters.iter().map(|(one, value)| (one.name, Value::of(&one, value))).collect(),
            ),
            changed,
            undo,
        };
        if look_only {
            output.data(&report, || show(&after, output))?;
        } else {
            output.report(&report, || text(&report))?;
        }
        Ok(0)
    }

    fn undo(&self, changed: &[Change]) -> String {
        let mut words = vec![format!("onramp tune {}", self.algorithm)];
        words.extend(self.profile.iter().map(|profile| format!("--profile {profile}")));
        words.extend(changed.iter().map(|change| format!("{}={}", change.name, change.before)));
        words.join(" ")
    }
}

/// The parameters that a change changed.
pub(super) fn changes(tuned: &Tuned) -> Vec<Change> {
    let both = tuned.before.parameters.iter().zip(tuned.after.parameters.iter());
    both.filter(|((_, before), (_, after))| before != after)
        .map(|((parameter, before), (_, after))| Change {
            name: parameter.name,
            unit: parameter.unit,
            before: Value::of(&parameter, before),
            after: Value::of(&parameter, after),
        })
        .collect()
}

fn show(set: &ParameterSet, output: &Output) -> String {
    let mut table = Table::new(["PARAMETER", "VALUE", "DEFAULT", "ALLOWED", ""]);
    for (parameter, value) in set.parameters.iter() {
        table.push([
            parameter.name.to_owned(),
            parameter.show(value),
            parameter.show(parameter.default),
            parameter.allowed(),
            parameter.help.to_owned(),
        ]);
    }
    format!("{}profile {}, generation {}\n", table.render(output), set.profile, set.generation)
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    for Change { name, before, after, .. } in &report.changed {
        text += &format!("{name}: {before} -> {after}\n");
    }
    if report.changed.is_empty() {
        text += "nothing changes: these are the values already\n";
    }
    let would = if report.dry_run { ", not changed: a dry run" } else { "" };
    text += &format!("profile {}, generation {}{would}\n", report.profile, report.parameters_generation);
    if let Some(undo) = report.undo.as_ref().filter(|_| !report.dry_run) {
        text += &format!("  undo: {undo}\n");
    }
    text
}
