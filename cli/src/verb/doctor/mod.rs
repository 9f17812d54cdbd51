//! `onramp doctor`.

mod fix;
mod receiver;

use std::time::Duration;

use clap::{Args, ValueEnum};
use onramp_loader::{Check, Path, Scope, Verdict, Wanted};
use serde::Serialize;

use crate::failure::Usage;
use crate::output::Output;
use crate::profile;
use crate::table::Table;
use crate::units;

/// Say what this kernel and host can do, and what to do where something is missing
///
/// Loads objects to see whether the kernel accepts them, and attaches a program without rules for a moment; changes
/// nothing. With a path (--rate and --rtt, or --profile) the settings of this network namespace are compared with what
/// the path requires: socket buffers that hold its BDP, and slow starts after a pause. Exit code 1 if something is missing.
///
/// --receiver measures instead, by a connection in a network namespace of its own, what window this host offers to whoever
/// sends to it, as it is and with a larger initial buffer, and what that costs over the path (100 Mbit/s and 100 ms unless given).
/// It takes some tens of round trips. With --fix the larger buffer is set if it saves time.
///
/// --fix sets what the path requires and records the previous values, until a reboot undoes both. Two settings of the whole
/// host stay as they are unless --also names them: TCP paces by itself where there is no fq, and flows of onramp do not use
/// the kernel's HyStart.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp doctor
  onramp doctor --rate 150mbit --rtt 600ms
  onramp doctor --profile geo --json
  onramp doctor --profile geo --fix --dry-run
  onramp doctor --profile geo --fix --also hystart
  onramp doctor --receiver --rate 150mbit --rtt 600ms

Undo of --fix: onramp undo settings")]
pub(crate) struct Doctor {
    /// Bottleneck rate of the path: kbit, mbit or gbit per second
    #[arg(long, value_name = "RATE", value_parser = units::rate, requires = "rtt", conflicts_with = "profile")]
    rate: Option<u64>,
    /// Base round-trip time of the path: us, ms or s
    #[arg(long, value_name = "TIME", value_parser = units::duration, requires = "rate")]
    rtt: Option<Duration>,
    /// Take the path from this profile
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Measure what this host offers as a receiver
    #[arg(long)]
    receiver: bool,
    /// Set what the path wants of this network namespace
    #[arg(long)]
    fix: bool,
    /// With --fix: a setting that all traffic of the host has
    #[arg(long, value_name = "SETTING", value_enum, requires = "fix", conflicts_with = "receiver")]
    also: Vec<Also>,
    /// With --fix: say what would be done; change nothing
    #[arg(long)]
    dry_run: bool,
}

const HOST: &str = "host";
const NAMESPACE: &str = "network-namespace";

/// Whose a setting of this scope is. `host_network`: this network namespace is the host's own.
fn owner(scope: &str, host_network: bool) -> &'static str {
    match (scope, host_network) {
        (HOST, _) => "the host, all its network namespaces",
        (_, true) => "this network namespace, the host's own",
        (_, false) => "this network namespace alone",
    }
}

/// What `--also` names.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Also {
    /// The kernel's own HyStart off
    Hystart,
    /// fq as the queueing discipline of interfaces made from now on
    Qdisc,
}

impl Also {
    fn wanted(self) -> Result<Wanted, onramp_loader::Error> {
        match self {
            Self::Hystart => onramp_loader::hystart_off(),
            Self::Qdisc => onramp_loader::fq_by_default(),
        }
    }
}

#[derive(Serialize)]
struct DoctorReport {
    /// Whether this network namespace is the host's own.
    host_network: bool,
    missing: usize,
    warnings: usize,
    path: Option<PathReport>,
    checks: Vec<CheckRow>,
}

#[derive(Serialize)]
struct PathReport {
    rate_bps: u64,
    rtt_us: u64,
    bdp_bytes: u64,
}

impl From<Path> for PathReport {
    fn from(path: Path) -> Self {
        Self { rate_bps: path.rate_bps, rtt_us: path.rtt_us, bdp_bytes: path.bdp_bytes() }
    }
}

#[derive(Serialize)]
struct CheckRow {
    name: &'static str,
    verdict: &'static str,
    found: String,
    /// Whose it is, if it is a setting: host, or network-namespace.
    scope: Option<&'static str>,
    enables: &'static str,
    advice: Option<String>,
}

impl Doctor {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let path = self.path()?;
        match (self.fix, path) {
            (true, path) if self.receiver => {
                let wanted = receiver::wanted(path.unwrap_or(receiver::PATH), output)?;
                return fix::set(wanted, self.dry_run, output);
            }
            (true, Some(path)) => return fix::fix(path, &self.also, self.dry_run, output),
            (true, None) => {
                return Err(Usage::error("--fix needs a path: give --profile, or --rate and --rtt"));
            }
            _ if self.dry_run => {
                return Err(Usage::error("--dry-run goes with --fix: doctor alone changes nothing"));
            }
            (false, path) if self.receiver => {
                return receiver::report(path.unwrap_or(receiver::PATH), output);
            }
            _ => {}
        }
        let mut checks = onramp_loader::doctor();
        if let Some(path) = path {
            let wanted: Vec<_> = onramp_loader::wanted(path)?.iter().map(Wanted::check).collect();
            // One of them holds on any path.
            checks.retain(|check| wanted.iter().all(|other| other.name != check.name));
            checks.extend(wanted);
        }
        let number = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
        let report = DoctorReport {
            host_network: onramp_loader::is_hosts_own(),
            missing: number(Verdict::Missing),
            warnings: number(Verdict::Warning),
            path: path.map(PathReport::from),
            checks: checks.into_iter().map(row).collect(),
        };
        output.data(&report, || text(&report))?;
        Ok(u8::from(report.missing > 0))
    }

    fn path(&self) -> anyhow::Result<Option<Path>> {
        let path = match (&self.profile, self.rate, self.rtt) {
            (Some(given), ..) => {
                let link = profile::load(given)?.link;
                Path { rate_bps: link.forward.rate_bps, rtt_us: link.base_rtt_us() }
            }
            (None, Some(rate_bps), Some(rtt)) => Path { rate_bps, rtt_us: rtt.as_micros() as u64 },
            _ => return Ok(None),
        };
        if path.rtt_us == 0 {
            return Err(Usage::error("a round-trip time of 0 holds nothing: give --rtt, for instance 600ms"));
        }
        Ok(Some(path))
    }
}

fn row(check: Check) -> CheckRow {
    let verdict = match check.verdict {
        Verdict::Ok => "ok",
        Verdict::Warning => "warning",
        Verdict::Missing => "missing",
    };
    CheckRow {
        name: check.name,
        verdict,
        found: check.found,
        scope: check.scope.map(scope_name),
        enables: check.enables,
        advice: Some(check.advice).filter(|advice| !advice.is_empty()),
    }
}

/// As JSON has it.
fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Host => HOST,
        Scope::Namespace => NAMESPACE,
    }
}

fn text(report: &DoctorReport) -> String {
    let mut table = Table::new([""; 3]);
    for row in &report.checks {
        let scope = row.scope.map(|scope| format!("of: {}", owner(scope, report.host_network)));
        let enables = (!row.enables.is_empty()).then(|| format!("for: {}", row.enables));
        let notes: Vec<_> = scope.into_iter().chain(enables).collect();
        let enables = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join("; ")) };
        table.push([row.verdict.into(), row.name.to_string(), format!("{}{enables}", row.found)]);
        if let Some(advice) = &row.advice {
            table.push([String::new(), String::new(), format!("-> {advice}")]);
        }
    }
    table.text() + &format!("{} missing, {} to look at\n", report.missing, report.warnings)
}
