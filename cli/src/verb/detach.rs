//! `onramp detach`.

use clap::Args;
use onramp_loader::algorithm::Algorithm;
use onramp_loader::telemetry::Level;
use onramp_loader::{Action, Base, Detached, Error, Leftover, State, Users};
use onramp_net::Namespace;
use serde::Serialize;

use super::plan;
use crate::failure::{self, PARTIAL};
use crate::output::Output;
use crate::settings::{self, AlgorithmName};
use crate::units::count;

/// Detach an algorithm and restore what attaching changed
///
/// Every network namespace whose default it was gets its former default back, open sockets move to the default of
/// their namespace and go on transferring, the congestion control is unregistered and the pins are removed. Sockets
/// that cannot be moved are reported by namespace; their code stays loaded until the last of them closes, and the
/// exit code is 5.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp detach search
  onramp detach --all        # also what interrupted commands left behind
  onramp detach search --dry-run

Undo: printed; the same attach with the same parameters")]
pub(crate) struct Detach {
    /// Algorithm
    #[arg(value_name = "ALG", value_parser = AlgorithmName, required_unless_present = "all", conflicts_with = "all")]
    algorithm: Option<String>,
    /// Detach all, clear half attached ones and remove the cgroups of runs that have died
    #[arg(long)]
    all: bool,
    /// Leave open sockets on the detached code until they close
    #[arg(long)]
    leave_sockets: bool,
    /// Say what would be done; change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Report {
    detached: Vec<Row>,
    cgroups_removed: Vec<String>,
    failed: Vec<Failed>,
}

#[derive(Serialize)]
struct Row {
    algorithm: &'static str,
    defaults_restored: Vec<Default>,
    sockets_moved: usize,
    stragglers: Vec<Straggler>,
    sockets_left: bool,
    undo: String,
}

#[derive(Serialize)]
struct Default {
    namespace: String,
    congestion_control: String,
}

#[derive(Serialize)]
struct Straggler {
    namespace: String,
    sockets: usize,
}

#[derive(Serialize)]
struct Failed {
    what: String,
    error: String,
}

impl Detach {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        match &self.algorithm {
            Some(name) => self.one(onramp_loader::find(name)?, output),
            None => self.all(output),
        }
    }

    fn one(&self, algorithm: Algorithm, output: &Output) -> anyhow::Result<u8> {
        if self.dry_run {
            return plan::print(&onramp_loader::plan_detach(algorithm, self.leave_sockets)?, output);
        }
        let row = self.detach(algorithm)?;
        finish(&Report { detached: vec![row], cgroups_removed: Vec::new(), failed: Vec::new() }, output)
    }

    fn all(&self, output: &Output) -> anyhow::Result<u8> {
        let algorithms = onramp_loader::detachable()?;
        if self.dry_run {
            return plan::print(&plan_all(&algorithms, self.leave_sockets)?, output);
        }
        let mut report = Report { detached: Vec::new(), cgroups_removed: Vec::new(), failed: Vec::new() };
        for algorithm in algorithms {
            match self.detach(algorithm) {
                Ok(row) => report.detached.push(row),
                // Another command was faster.
                Err(Error::NotAttached { .. }) => {}
                Err(error) => report.failed.push(Failed::new(algorithm.name(), error)),
            }
        }
        match onramp_loader::clear_leftovers() {
            Ok(cleared) => report.cgroups_removed = cleared.iter().map(path).collect(),
            Err(error) => report.failed.push(Failed::new("cgroups of dead runs", error)),
        }
        finish(&report, output)
    }

    fn detach(&self, algorithm: Algorithm) -> Result<Row, Error> {
        // What it takes to attach it again is known only as long as it is there.
        let undo = undo(algorithm);
        let Detached { restored, moved, stragglers, .. } =
            onramp_loader::detach(algorithm, self.leave_sockets)?;
        let default =
            |one: onramp_loader::Restored| Default { namespace: one.namespace, congestion_control: one.name };
        Ok(Row {
            algorithm: algorithm.name(),
            defaults_restored: restored.into_iter().map(default).collect(),
            sockets_moved: moved,
            stragglers: stragglers.into_iter().map(Straggler::new).collect(),
            sockets_left: self.leave_sockets,
            undo,
        })
    }
}

impl Failed {
    fn new(what: &str, error: Error) -> Self {
        Self { what: what.into(), error: failure::sentence(&error.into()) }
    }
}

impl Straggler {
    fn new(users: Users) -> Self {
        Self { namespace: users.namespace, sockets: users.sockets }
    }
}

fn path(leftover: &Leftover) -> String {
    leftover.path.display().to_string()
}

fn plan_all(algorithms: &[Algorithm], leave_sockets: bool) -> anyhow::Result<Vec<Action>> {
    let mut actions = Vec::new();
    for algorithm in algorithms {
        actions.extend(onramp_loader::plan_detach(*algorithm, leave_sockets)?);
    }
    let (_, leftovers) = onramp_loader::status()?;
    actions.extend(leftovers.iter().map(|leftover| Action {
        what: format!("remove cgroup {} of a run that has died", path(leftover)),
        undo: String::new(),
    }));
    Ok(actions)
}

/// The command that attaches it as it is attached now.
fn undo(algorithm: Algorithm) -> String {
    let mut words = vec![format!("onramp attach {}", algorithm.name())];
    if let Some(set) =
        onramp_loader::parameter_sets(algorithm).ok().and_then(|mut sets| sets.drain(..).next())
    {
        words.extend(settings::changed(&set.parameters).into_iter().map(|one| format!("--set {one}")));
        if set.telemetry_max != Level::Ack {
            words.push(format!("--telemetry {}", set.telemetry_max.name()));
        }
    }
    let status = onramp_loader::status().map(|(all, _)| all).unwrap_or_default();
    if let Some(State::Attached(state)) =
        status.into_iter().find(|one| one.algorithm == algorithm).map(|one| one.state)
    {
        if state.base == Base::Reno {
            words.push("--base reno".into());
        }
        // Elsewhere it has to be asked for there.
        let here = Namespace::current().and_then(|here| here.sysctl_get("net.ipv4.tcp_congestion_control"));
        if here.is_ok_and(|name| name == algorithm.congestion_control()) {
            words.push("--default".into());
        }
    }
    words.join(" ")
}

/// Prints the report; the exit code says whether all of it was done.
fn finish(report: &Report, output: &Output) -> anyhow::Result<u8> {
    output.report(report, || text(report))?;
    for failed in &report.failed {
        eprintln!("error: {}: {}", failed.what, failed.error);
    }
    let straggling = report.detached.iter().any(|row| !row.sockets_left && !row.stragglers.is_empty());
    Ok(if straggling || !report.failed.is_empty() { PARTIAL } else { 0 })
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    for row in &report.detached {
        text += &format!("detached {}\n", row.algorithm);
        for Default { namespace, congestion_control } in &row.defaults_restored {
            text += &format!("  default of network namespace {namespace}: {congestion_control} again\n");
        }
        if row.sockets_moved > 0 {
            text += &format!("  moved {} to the default\n", count(row.sockets_moved, "socket"));
        }
        for Straggler { namespace, sockets } in &row.stragglers {
            let sockets = count(*sockets, "socket");
            text += &format!(
                "  still on the detached code: {sockets} in network namespace {namespace}; it stays loaded until they close\n"
            );
        }
        text += &format!("  undo: {}\n", row.undo);
    }
    for path in &report.cgroups_removed {
        text += &format!("removed cgroup {path} of a run that had died\n");
    }
    if text.is_empty() && report.failed.is_empty() {
        text += "nothing is attached\n";
    }
    text
}
