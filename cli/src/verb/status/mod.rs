//! `onramp status`.

mod brief;
mod guarded;
mod text;

use std::time::Duration;

use clap::Args;
use onramp_loader::abi::Counters;
use onramp_loader::algorithm::{AfterExitOptions, Algorithm, StartPolicies};
use onramp_loader::guard::GuardState;
use onramp_loader::host::{Changed, Owner, Setting};
use onramp_loader::select::RulesSummary;
use onramp_loader::telemetry::Consumer;
use onramp_loader::{
    AttachedState, Error, ExitReason, Held, Host, LearnedPaths, Leftover, ParameterSet, State,
};
use onramp_recording::rows::FlowCountRow;
use serde::Serialize;

pub(super) use brief::{Brief, Cost};

use self::text::text;
use super::elsewhere::Other;
use super::paths::SettingsRow as PathSettingsRow;
use super::stragglers::{Holder, Sockets};
use crate::failure::PARTIAL;
use crate::guard::Guarded;
use crate::output::{Named, Output};
use crate::settings::Value;

/// The state of an algorithm whose pins cannot be read.
const UNREADABLE: &str = "unreadable";

/// Show what is attached: base, generation, parameters, who has it as default, sockets on it, and what its flows did
///
/// Also what interrupted commands have left, and how to clear it. Reads the kernel; there is no other record.
/// Counters begin when the algorithm is attached: flows that have started less those that have ended are open now, as in
/// `onramp flows`. Flows that never sent more than an initial window, or ran on the base alone, have no state. Exits are
/// counted for all other ended flows, outcomes for all verdicts: those of an open flow that are alike once another follows.
///
/// What cannot be read hides nothing else: such an algorithm is `unreadable`, with the reason, and the exit code is 5.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp status
  onramp status --json | jq '.algorithms[].generation'
  onramp status --guard")]
pub(crate) struct Status {
    /// Show only guarded algorithms (`attach --guard`), their flows compared with the control, which stays on the base
    ///
    /// Flows that began under the guard and have had 100 kB acknowledged when they end are counted: the mean share of
    /// retransmitted bytes, the geometric mean of goodput (bytes acknowledged by time with data to send), and, of all that have had
    /// 64 kB acknowledged, that of the time with data to send until then. Each difference has
    /// a 95 % confidence interval that holds at every moment at once, however often it is looked at. Differences of
    /// retransmit_ratio are in percentage points.
    #[arg(long)]
    guard: bool,
}

#[derive(Serialize)]
struct StatusReport {
    algorithms: Vec<StatusRow>,
    selection: Option<Selecting>,
    dead_runs: Vec<DeadRun>,
    consumers: Vec<Listener>,
    /// By `onramp doctor --fix`.
    settings: Vec<SettingRow>,
    /// None: nothing remembers paths.
    paths: Option<Remembered>,
    /// Why the consumers are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    consumers_unknown: Option<String>,
    /// What else cannot be read, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
    /// Where it could not be looked.
    unseen: Vec<String>,
}

impl StatusReport {
    /// Done in part where something is there that cannot be read.
    fn code(&self) -> u8 {
        let broken = self.algorithms.iter().any(|row| row.state == UNREADABLE);
        if broken || !self.unreadable.is_empty() { PARTIAL } else { 0 }
    }

    fn guards(&self) -> Vec<(&'static str, &GuardState)> {
        let rows = self.algorithms.iter();
        rows.filter_map(|row| Some((row.algorithm, row.attached.as_ref()?.guard_state.as_ref()?))).collect()
    }
}

#[derive(Serialize)]
struct StatusRow {
    algorithm: &'static str,
    congestion_control: String,
    state: &'static str,
    explanation: Option<String>,
    sockets: Vec<Sockets>,
    /// Earlier attachments whose code is still loaded, and what has it.
    older_code: usize,
    held_by: Vec<Holder>,
    #[serde(skip)]
    held: Held,
    #[serde(flatten)]
    attached: Option<Attached>,
}

#[derive(Serialize)]
struct Attached {
    base: &'static str,
    after_exit: AfterExitOptions,
    start: StartPolicies,
    observe: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    guard: Option<Guarded>,
    #[serde(skip)]
    guard_state: Option<GuardState>,
    generation: String,
    version: String,
    attached_at_us: u64,
    #[serde(skip)]
    age: Duration,
    /// Previous defaults of network namespaces that its base is not.
    other_defaults: Vec<String>,
    expires_at_us: Option<u64>,
    #[serde(skip)]
    expires_in: Option<Duration>,
    #[serde(skip)]
    overdue: Duration,
    /// By `onramp apply`.
    applied: bool,
    owner_pid: Option<u32>,
    owner_alive: Option<bool>,
    /// Only where it was looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    default_in: Option<Vec<String>>,
    /// Likewise, where it is the default of any.
    #[serde(skip_serializing_if = "Option::is_none")]
    default_not_in: Option<Vec<Other>>,
    parameter_sets: Vec<Set>,
    #[serde(flatten)]
    counts: FlowCountRow,
    flows_ended: u64,
    ended_in_slow_start: u64,
    exits: Named<u64>,
    outcomes: Named<u64>,
}

#[derive(Serialize)]
struct Set {
    /// 0: that of the attachment; others are there for rules.
    parameter_set: u32,
    profile: String,
    /// Open flows that have it, and rules that name it, where it is there for rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    flows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<usize>,
    parameters_generation: u32,
    parameters: Named<Value>,
    telemetry_max: &'static str,
}

/// Paths.
#[derive(Serialize)]
struct Remembered {
    remembered: usize,
    #[serde(flatten)]
    settings: PathSettingsRow,
}

#[derive(Serialize)]
struct SettingRow {
    /// None: the host has it once.
    namespace: Option<String>,
    setting: String,
    before: String,
    set: String,
}

#[derive(Serialize)]
struct Listener {
    name: String,
    pid: u32,
    level: &'static str,
    sampling: u32,
    ring_bytes: u32,
    lost_events: u64,
    unobserved_us: u64,
}

/// The rules of `onramp select`.
#[derive(Serialize)]
struct Selecting {
    active: bool,
    /// The cgroup, not the root, whose connections alone are asked about.
    holds_in: Option<String>,
    rules: Option<usize>,
    /// Why the rules cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules_unknown: Option<String>,
    /// Controls that rules use and that are not registered.
    controls_missing: Vec<String>,
    rules_without_cgroup: usize,
    profiles_missing: Vec<MissingProfile>,
}

/// A profile that rules name and that an attached control has not.
#[derive(Serialize)]
struct MissingProfile {
    congestion_control: String,
    profile: String,
}

#[derive(Serialize)]
struct DeadRun {
    cgroup: String,
    pid: u32,
    processes: usize,
}

impl Status {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let Host { algorithms, selection, leftovers, settings, paths, consumers, mut unreadable, unseen } =
            onramp_loader::status()?;
        // Another build's, or pins that were removed, are known and explained.
        match &consumers {
            Ok(_) | Err(Error::OtherTelemetry { .. } | Error::TelemetryBroken { .. }) => {}
            Err(why) => unreadable.push(format!("consumers of telemetry: {why}")),
        }
        let (consumers, consumers_unknown) = listeners(consumers);
        let report = StatusReport {
            algorithms: algorithms.into_iter().map(|status| row(status, selection.as_ref())).collect(),
            selection: selection.map(selecting),
            dead_runs: leftovers.into_iter().map(dead_run).collect(),
            consumers,
            settings: settings.into_iter().map(setting).collect(),
            paths: paths.map(|LearnedPaths { paths, settings }| Remembered {
                remembered: paths.len(),
                settings: PathSettingsRow::new(&settings),
            }),
            consumers_unknown,
            unreadable,
            unseen,
        };
        if self.guard {
            let guarded = guarded::GuardReport::new(&report.guards(), output);
            output.data(&guarded, || guarded.text())?;
        } else {
            output.data(&report, || text(&report, output))?;
        }
        Ok(report.code())
    }
}

/// Consumers, and why they cannot be listed.
fn listeners(consumers: Result<Vec<Consumer>, Error>) -> (Vec<Listener>, Option<String>) {
    match consumers {
        Ok(consumers) => (consumers.into_iter().map(listener).collect(), None),
        Err(why) => (Vec::new(), Some(why.to_string())),
    }
}

fn setting(Changed { setting: Setting { name, before, set }, owner }: Changed) -> SettingRow {
    let namespace = match owner {
        Owner::Host => None,
        Owner::Namespace { label, .. } => Some(label),
        Owner::Unseen => Some("not found".into()),
    };
    SettingRow { namespace, setting: name, before, set }
}

/// `selection`: where it was looked for.
fn row(status: onramp_loader::Status, selection: Option<&RulesSummary>) -> StatusRow {
    let onramp_loader::Status { algorithm, state, default_in, default_not_in, users, held } = status;
    let used = held.may_run() || !default_in.is_empty();
    let (state, explanation, mut attached) = standing(algorithm, state, &default_in, used);
    if let Some(attached) = &mut attached {
        attached.default_in = Some(default_in);
        attached.default_not_in = Some(default_not_in.into_iter().map(Other::new).collect());
        let rules_known = selection.is_none_or(|summary| summary.rules.is_ok());
        for set in attached.parameter_sets.iter_mut().filter(|set| set.parameter_set > 0) {
            let name = (algorithm.congestion_control(), set.profile.clone());
            let named = selection.and_then(|summary| summary.profiles.get(&name));
            set.rules = rules_known.then(|| named.copied().unwrap_or(0));
        }
    }
    StatusRow {
        algorithm: algorithm.name(),
        congestion_control: algorithm.congestion_control(),
        state,
        explanation,
        sockets: Sockets::all(users),
        older_code: held.copies,
        held_by: Holder::all(&held),
        held,
        attached,
    }
}

/// How an algorithm stands: as a stable word, and in a sentence where it is not simply attached. `used`: connections may run
/// its code.
fn standing(
    algorithm: Algorithm,
    state: State,
    default_in: &[String],
    used: bool,
) -> (&'static str, Option<String>, Option<Attached>) {
    let name = algorithm.name();
    match state {
        State::OtherBuild(difference) => {
            let explanation = format!(
                "attached by another onramp ({difference}): this one would misread it; `onramp upgrade {name}` has this one take over, `onramp detach {name}` (or --all) clears it"
            );
            ("other_build", Some(explanation), None)
        }
        State::Attached(state) => {
            let dead = matches!(state.owner, Some((_, false)));
            let explanation = dead.then(|| {
                format!("attached for a run that has died: `onramp detach {name}` (or --all) clears it")
            });
            ("attached", explanation, Some(attached(algorithm, *state)))
        }
        State::Unreadable(why) => {
            let explanation = format!(
                "attached, but its pins cannot be read: {why}; flows go on, `onramp detach {name}` (or --all) clears it"
            );
            (UNREADABLE, Some(explanation), None)
        }
        State::Interrupted => {
            let explanation = format!(
                "half attached: an attach or detach was cut off, or pins were removed; `onramp detach {name}` (or --all) clears it"
            );
            ("interrupted", Some(explanation), None)
        }
        State::DefaultKept => {
            let explanation = format!(
                "not attached, but still the default of network namespace {}, whose previous one could not be restored: `onramp detach {name}` tries again",
                default_in.join(", ")
            );
            ("lingering", Some(explanation), None)
        }
        State::UpgradeCutOff => {
            let explanation = format!(
                "an upgrade was cut off: flows go on, on the old code or the new; `onramp upgrade {name}` finishes it, `onramp detach {name}` (or --all) clears it"
            );
            ("interrupted", Some(explanation), None)
        }
        State::Foreign => {
            let explanation = "registered, but not pinned by onramp: attached by other means, or the BPF file system of another mount namespace";
            ("foreign", Some(explanation.to_owned()), None)
        }
        State::Lingering => {
            let explanation = if used {
                format!(
                    "not attached, but its code is still in use; `onramp detach {name}` moves what can be moved"
                )
            } else {
                "not attached; listening sockets keep its code loaded, and no connection runs it".to_owned()
            };
            ("lingering", Some(explanation), None)
        }
    }
}

fn attached(algorithm: Algorithm, state: AttachedState) -> Attached {
    let flows_ended = state.counters.flows_ended();
    let Counters { flows, exits, outcomes, profile_flows } = state.counters;
    let mut counts = FlowCountRow::default();
    counts.set_flow_counts(&flows);
    let reasons = ExitReason::ALL.into_iter().zip(exits.into_iter().skip(1));
    let named = algorithm.outcomes().zip(outcomes).filter(|(outcome, _)| !outcome.name.is_empty());
    Attached {
        base: state.base.name(),
        after_exit: state.after_exit,
        start: state.start,
        applied: state.applied,
        observe: state.observe,
        guard: state.guard.as_ref().map(Guarded::from),
        guard_state: state.guard,
        generation: format!("{:x}", state.generation),
        version: state.version,
        attached_at_us: state.attached_at_us,
        age: state.age,
        other_defaults: state.other_defaults,
        expires_at_us: state.expires_at_us,
        expires_in: state.expires_in,
        overdue: state.overdue,
        owner_pid: state.owner.map(|(pid, _)| pid),
        owner_alive: state.owner.map(|(_, alive)| alive),
        default_in: None,
        default_not_in: None,
        parameter_sets: state.parameter_sets.into_iter().map(|one| set(one, &profile_flows)).collect(),
        counts,
        flows_ended,
        ended_in_slow_start: exits[0],
        exits: Named(reasons.map(|(reason, number)| (reason.name(), number)).collect()),
        outcomes: Named(named.map(|(outcome, number)| (outcome.name, number)).collect()),
    }
}

fn set(set: ParameterSet, flows: &[u64]) -> Set {
    let values =
        set.parameters.iter().map(|(parameter, value)| (parameter.name, Value::new(&parameter, value)));
    Set {
        parameters: Named(values.collect()),
        parameter_set: set.number,
        profile: set.profile,
        flows: flows.get(set.number as usize).copied().filter(|_| set.number > 0),
        rules: None,
        parameters_generation: set.generation,
        telemetry_max: set.telemetry_max.name(),
    }
}

fn selecting(summary: RulesSummary) -> Selecting {
    let RulesSummary { active, holds_in, rules, missing, without_cgroup, missing_profiles, profiles: _ } =
        summary;
    let missing_profiles = missing_profiles.into_iter();
    Selecting {
        active,
        holds_in: holds_in.map(|cgroup| cgroup.to_string()),
        rules_unknown: rules.as_ref().err().cloned(),
        rules: rules.ok(),
        controls_missing: missing.into_iter().collect(),
        rules_without_cgroup: without_cgroup,
        profiles_missing: missing_profiles
            .map(|(congestion_control, profile)| MissingProfile { congestion_control, profile })
            .collect(),
    }
}

fn dead_run(leftover: Leftover) -> DeadRun {
    DeadRun { cgroup: leftover.path.display().to_string(), pid: leftover.pid, processes: leftover.processes }
}

fn listener(consumer: Consumer) -> Listener {
    Listener {
        name: consumer.name,
        pid: consumer.pid,
        level: consumer.level.name(),
        sampling: consumer.sampling,
        ring_bytes: consumer.ring_bytes,
        lost_events: consumer.lost,
        unobserved_us: consumer.unobserved.as_micros() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_others_begins_a_line() {
        let hostile = || "a\nnothing is attached\x1b[2J\u{202e}".to_owned();
        let listener = Listener {
            name: hostile(),
            pid: 1,
            level: "ack",
            sampling: 1,
            ring_bytes: 0,
            lost_events: 0,
            unobserved_us: 0,
        };
        let report = StatusReport {
            algorithms: Vec::new(),
            selection: None,
            dead_runs: vec![DeadRun { cgroup: hostile(), pid: 1, processes: 1 }],
            consumers: vec![listener],
            settings: Vec::new(),
            paths: None,
            consumers_unknown: Some(hostile()),
            unreadable: vec![hostile()],
            unseen: vec![hostile()],
        };
        let text = text(&report, &Output::plain());
        assert_eq!((text.lines().count(), report.code()), (5, PARTIAL), "{text}");
        assert!(
            !text.chars().any(|sign| crate::output::is_terminal_control(sign) && sign != '\n'),
            "{text:?}"
        );
    }
}
