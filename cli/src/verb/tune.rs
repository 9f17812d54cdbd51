//! `onramp tune`.

use clap::Args;
use onramp_loader::telemetry::Level;
use onramp_loader::{Changes, ParameterSet, Tuned};
use serde::Serialize;

use crate::consumer::level_from;
use crate::output::{Named, Output};
use crate::settings::{AlgorithmName, Value};
use crate::table::Table;

/// Show or change the parameters of an attached algorithm, and the telemetry level of its flows
///
/// Without settings: values, defaults and ranges. With settings: all of them or none are set, at once;
/// open flows read the new values with their next ACK, except what an algorithm latches when slow start begins
/// (`onramp list ALG` says which). --telemetry limits the level that `watch`, `top`, `record` and other programs get of
/// the flows of this parameter set, also of open ones.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp tune search
  onramp tune search threshold_pct=30 exit_action=drain
  onramp tune search --profile geo look_back=min --dry-run
  onramp tune search --telemetry exit

Undo: printed; `onramp tune` with the previous values")]
pub(crate) struct Tune {
    /// Algorithm
    #[arg(value_name = "ALG", value_parser = AlgorithmName, hide_possible_values = true)]
    algorithm: String,
    /// The parameter set of this name; `onramp status` lists them [default: the first]
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Maximum telemetry level for the flows; a consumer that subscribes to more gets this level
    #[arg(long, value_name = "LEVEL", value_parser = level_from(Level::Off))]
    telemetry: Option<Level>,
    /// New values
    #[arg(value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Say what would change; change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
pub(super) struct TuneReport {
    algorithm: &'static str,
    profile: String,
    parameters_generation: u32,
    dry_run: bool,
    changed: Vec<Change>,
    parameters: Named<Value>,
    telemetry_max: &'static str,
    /// If it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    telemetry_max_before: Option<&'static str>,
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
        let look_only = self.settings.is_empty() && self.telemetry.is_none();
        let asked = Changes { settings: &self.settings, telemetry_max: self.telemetry, ..Changes::default() };
        let tuned =
            onramp_loader::tune(algorithm, self.profile.as_deref(), &asked, self.dry_run || look_only)?;
        let report = report(&self.algorithm, self.profile.as_deref(), self.dry_run, &tuned);
        if look_only {
            output.data(&report, || show(&tuned.after, output))?;
        } else {
            output.report(&report, || text(&report));
        }
        Ok(0)
    }
}

/// What a change did, or would do, to the set that was asked for.
pub(super) fn report(algorithm: &str, profile: Option<&str>, dry_run: bool, tuned: &Tuned) -> TuneReport {
    let Tuned { before, after } = tuned;
    let changed = changes(tuned);
    let told_before = (before.telemetry_max != after.telemetry_max).then(|| before.telemetry_max.name());
    TuneReport {
        algorithm: after.parameters.algorithm().name(),
        profile: after.profile.clone(),
        parameters_generation: after.generation,
        dry_run,
        parameters: Named(
            after.parameters.iter().map(|(one, value)| (one.name, Value::new(&one, value))).collect(),
        ),
        telemetry_max: after.telemetry_max.name(),
        telemetry_max_before: told_before,
        undo: (before != after).then(|| undo(algorithm, profile, &changed, told_before)),
        changed,
    }
}

fn undo(algorithm: &str, profile: Option<&str>, changed: &[Change], told_before: Option<&str>) -> String {
    let mut words = vec![format!("onramp tune {algorithm}")];
    words.extend(profile.map(|profile| format!("--profile {profile}")));
    words.extend(told_before.map(|level| format!("--telemetry {level}")));
    words.extend(changed.iter().map(|change| format!("{}={}", change.name, change.before)));
    words.join(" ")
}

/// The parameters that a change changed.
pub(super) fn changes(tuned: &Tuned) -> Vec<Change> {
    let both = tuned.before.parameters.iter().zip(tuned.after.parameters.iter());
    both.filter(|((_, before), (_, after))| before != after)
        .map(|((parameter, before), (_, after))| Change {
            name: parameter.name,
            unit: parameter.unit,
            before: Value::new(&parameter, before),
            after: Value::new(&parameter, after),
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
    format!(
        "{}profile {}, generation {}, telemetry is limited to level {}\n",
        table.render(output),
        set.profile,
        set.generation,
        set.telemetry_max.name()
    )
}

fn text(report: &TuneReport) -> String {
    let mut text = String::new();
    for Change { name, before, after, .. } in &report.changed {
        text += &format!("{name}: {before} -> {after}\n");
    }
    if let Some(before) = report.telemetry_max_before {
        text += &format!("telemetry: {before} -> {}\n", report.telemetry_max);
    }
    if report.undo.is_none() {
        text += "nothing changes: these are the values already\n";
    }
    let would = if report.dry_run { ", not changed: a dry run" } else { "" };
    text += &format!("profile {}, generation {}{would}\n", report.profile, report.parameters_generation);
    if let Some(undo) = report.undo.as_ref().filter(|_| !report.dry_run) {
        text += &format!("  undo: {undo}\n");
    }
    text
}
