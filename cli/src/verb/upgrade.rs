//! `onramp upgrade`.

use anyhow::Context;
use clap::Args;
use onramp_loader::algorithm::{AfterExitOptions, Algorithm, StartPolicies};
use onramp_loader::{Action, Base, BaseChange, Error, Held, Upgraded};
use serde::Serialize;

use super::stragglers::{self, Holder, Sockets};
use super::{elsewhere, expire, plan};
use crate::exit;
use crate::failure::{self, FAILURE, PARTIAL};
use crate::output::{Output, say};
use crate::settings::{self, AlgorithmName, BaseName};
use crate::units::count;

/// Replace the code of attached algorithms with this build's while traffic continues
///
/// For after an update of onramp, in either direction. Parameters (those tuned since, too), the time limit, the defaults
/// of all namespaces, rules of `onramp select` and listening sockets stay as they are. New connections get the old code
/// or the new code and never another control, except before Linux 6.4: there is a short moment in which routes, rules
/// and applications do not find the name. Open connections move to the new code with the window that they have; their
/// slow start ends there, or starts anew if it has hardly begun. Counters start at 0. Listening sockets keep the old
/// code loaded until they close; connections that they accept run the new code.
///
/// It is refused, and nothing is changed, if this build lacks a parameter that is set or does not know what the old
/// build's parameters mean, or if a consumer of telemetry would misread the new events.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp upgrade                    # all attached algorithms, one after the other
  onramp upgrade search --dry-run
  onramp upgrade search --base reno # with another base, too
  onramp upgrade ramp --after-exit plateau,floor

Undo: printed; new code is undone by the previous build")]
pub(crate) struct Upgrade {
    /// Algorithm [default: all that are attached]
    #[arg(value_name = "ALG", value_parser = AlgorithmName, hide_possible_values = true)]
    algorithm: Option<String>,
    /// Another base than it has
    #[arg(long, value_enum, requires = "algorithm")]
    base: Option<BaseName>,
    #[arg(long, value_name = "OPTIONS", requires = "algorithm", help = settings::after_exit_help("as it has them"))]
    after_exit: Option<AfterExitOptions>,
    #[arg(long, value_name = "POLICY", requires = "algorithm", help = settings::start_help("as it has it"))]
    start: Option<StartPolicies>,
    /// Say what would be done; change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Default, Serialize)]
struct UpgradeReport {
    upgraded: Vec<UpgradeRow>,
    failed: Vec<Failed>,
}

#[derive(Serialize)]
struct UpgradeRow {
    algorithm: &'static str,
    congestion_control: String,
    base: &'static str,
    after_exit: AfterExitOptions,
    start: StartPolicies,
    generation: String,
    from_version: String,
    /// A command.
    undo: String,
    /// Version of the onramp that has to run it; none: this one.
    undo_by_version: Option<String>,
    #[serde(skip)]
    undo_text: String,
    /// Parameters that the old code did not have.
    new_parameters: Vec<&'static str>,
    defaults: usize,
    sockets_moved: usize,
    stragglers: Vec<Sockets>,
    still_loaded: usize,
    held_by: Vec<Holder>,
    #[serde(skip)]
    held: Held,
    unseen: Vec<String>,
}

#[derive(Serialize)]
struct Failed {
    algorithm: &'static str,
    error: String,
    /// Something of it was done.
    #[serde(skip)]
    in_part: bool,
}

impl Upgrade {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let change =
            BaseChange { base: self.base.map(Base::from), after_exit: self.after_exit, start: self.start };
        let named = self.algorithm.as_deref().map(onramp_loader::find).transpose()?;
        let algorithms = named.map_or_else(onramp_loader::pinned, |algorithm| Ok(vec![algorithm]))?;
        if self.dry_run {
            return plan::print(&planned(&algorithms, change)?, output);
        }
        let mut report = UpgradeReport::default();
        for algorithm in algorithms {
            match upgrade(algorithm, change) {
                Ok(row) => report.upgraded.push(row),
                Err(error) if named.is_some() => return Err(error),
                Err(error) => report.failed.push(Failed {
                    algorithm: algorithm.name(),
                    error: failure::sentence(&error),
                    in_part: exit::code(&error) == PARTIAL,
                }),
            }
        }
        output.report(&report, || text(&report));
        for failed in &report.failed {
            say(&format!("error: {}: {}", failed.algorithm, failed.error));
        }
        let in_part =
            |row: &UpgradeRow| !row.stragglers.is_empty() || row.held.may_run() || !row.unseen.is_empty();
        let in_part = report.upgraded.iter().any(in_part);
        let done = !report.upgraded.is_empty() || report.failed.iter().any(|failed| failed.in_part);
        Ok(match report.failed.is_empty() {
            true if !in_part => 0,
            false if !done => FAILURE,
            _ => PARTIAL,
        })
    }
}

fn planned(algorithms: &[Algorithm], change: BaseChange) -> Result<Vec<Action>, Error> {
    let mut actions = Vec::new();
    for algorithm in algorithms {
        actions.extend(onramp_loader::plan_upgrade(*algorithm, change)?.actions);
    }
    Ok(actions)
}

fn upgrade(algorithm: Algorithm, change: BaseChange) -> anyhow::Result<UpgradeRow> {
    let planned = onramp_loader::plan_upgrade(algorithm, change)?;
    // That of the old attachment ends with it.
    let watch = planned.expires_at_us.map(|_| expire::Watch::start(algorithm)).transpose();
    let watch =
        watch.context("cannot start the process that would detach in time, so nothing was changed")?;
    let upgraded = onramp_loader::upgrade(algorithm, change)?;
    if let Some(watch) = watch {
        watch.begin();
    }
    Ok(row(upgraded))
}

fn row(upgraded: Upgraded) -> UpgradeRow {
    UpgradeRow {
        algorithm: upgraded.algorithm.name(),
        congestion_control: upgraded.algorithm.congestion_control(),
        base: upgraded.base.name(),
        after_exit: upgraded.after_exit,
        start: upgraded.start,
        generation: format!("{:x}", upgraded.generation),
        from_version: upgraded.from_version,
        undo_text: upgraded.undo.to_string(),
        undo: upgraded.undo.command,
        undo_by_version: upgraded.undo.by,
        new_parameters: upgraded.new_parameters,
        defaults: upgraded.defaults,
        sockets_moved: upgraded.moved,
        stragglers: Sockets::all(upgraded.stragglers),
        still_loaded: upgraded.held.copies,
        held_by: Holder::all(&upgraded.held),
        held: upgraded.held,
        unseen: upgraded.unseen,
    }
}

fn text(report: &UpgradeReport) -> String {
    let mut text = String::new();
    for row in &report.upgraded {
        text += &format!(
            "upgraded {} from the code of onramp {}, base {}, generation {}\n",
            row.algorithm, row.from_version, row.base, row.generation
        );
        if !row.new_parameters.is_empty() {
            text += &format!("  new parameters, at their defaults: {}\n", row.new_parameters.join(", "));
        }
        if row.defaults > 0 {
            text += &format!("  default of {} as before\n", count(row.defaults, "network namespace"));
        }
        if row.sockets_moved > 0 {
            text += &format!("  moved {} to the newer code\n", count(row.sockets_moved, "socket"));
        }
        text += &stragglers::text("old", &row.stragglers, &row.held);
        text += &elsewhere::unseen_text(&row.unseen);
        text += &format!("  undo: {}\n", row.undo_text);
    }
    if text.is_empty() && report.failed.is_empty() {
        text += "nothing is attached\n";
    }
    text
}
