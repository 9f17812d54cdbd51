//! `onramp detach`.

use clap::Args;
use onramp_loader::algorithm::Algorithm;
use onramp_loader::select::{self, Rule};
use onramp_loader::telemetry::Level;
use onramp_loader::{
    Action, AttachedState, Base, Basis, Defaults, Detachable, Detached, Error, Held, Host, Kind, Leftover,
};
use serde::Serialize;

use super::select::undo::{COMMANDS_MAX, Sets, Undo as RulesUndo};
use super::stragglers::{self, Holder, Sockets};
use super::{elsewhere, plan};
use crate::basis;
use crate::failure::{self, FAILURE, PARTIAL};
use crate::guard;
use crate::output::{Output, escape_line, say};
use crate::profile;
use crate::settings::{self, AlgorithmName};
use crate::units::count;

/// Detach an algorithm and restore what attaching changed
///
/// The previous default of every network namespace is restored, open connections move to the default of
/// their namespace and go on transferring, the congestion control is unregistered and the pins are removed. Listening
/// sockets stay as they are: connections that they accept get the default, and the code stays loaded until they close.
///
/// Connections that cannot be moved are reported by namespace, and what holds the code by state and process; the exit code
/// is 5. So it is where a process or namespace could not be looked into. The kernel gets up to ten seconds to free the code.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp detach search
  onramp detach --all   # also rules of onramp select, and what interrupted commands left
  onramp detach search --dry-run

Undo: printed; the same attach with the same parameters, and what it does not bring back")]
pub(crate) struct Detach {
    /// Algorithm
    #[arg(value_name = "ALG", value_parser = AlgorithmName, hide_possible_values = true, required_unless_present = "all", conflicts_with = "all")]
    algorithm: Option<String>,
    /// Detach all, clear half attached ones, remove the rules of `onramp select` and the cgroups of runs that have died
    #[arg(long)]
    all: bool,
    /// Leave open sockets on the detached code until they close
    #[arg(long)]
    leave_sockets: bool,
    /// Say what would be done; change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What detaching did.
#[derive(Default, Serialize)]
pub(super) struct DetachReport {
    detached: Vec<DetachRow>,
    /// Rules of `onramp select` that went with --all.
    selection_removed: Option<usize>,
    /// None: no command brings them back, or they are more than one can name.
    selection_undo: Option<String>,
    /// Which rules the undo does not bring back, and why.
    selection_undo_leaves_out: Vec<String>,
    cgroups_removed: Vec<String>,
    pub failed: Vec<Failed>,
    /// Where it could not be looked.
    unseen: Vec<String>,
}

#[derive(Serialize)]
struct DetachRow {
    algorithm: &'static str,
    /// False: only sockets or namespaces had its code still.
    was_attached: bool,
    defaults_restored: Vec<Default>,
    sockets_moved: usize,
    /// The listening ones, whose application had chosen the control.
    listening_moved: usize,
    stragglers: Vec<Sockets>,
    sockets_left: bool,
    still_loaded: usize,
    held_by: Vec<Holder>,
    #[serde(skip)]
    held: Held,
    /// Why pins are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pins_left: Option<String>,
    /// Rules of `onramp select` that use it: their connections get the default.
    selection_rules: usize,
    unseen: Vec<String>,
    undo: Option<String>,
    /// What the undo does not bring back.
    undo_leaves: Vec<&'static str>,
}

#[derive(Serialize)]
struct Default {
    namespace: String,
    congestion_control: String,
}

/// What could not be cleared, and why.
#[derive(Serialize)]
pub(super) struct Failed {
    what: String,
    error: String,
    /// Something of it was done.
    #[serde(skip)]
    in_part: bool,
}

impl Detach {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        match &self.algorithm {
            Some(name) => self.one(onramp_loader::find(name)?, output),
            None if self.dry_run => plan::print(&self.plan_all()?, output),
            None => finish(&self.all()?, output),
        }
    }

    /// With --all.
    pub fn everything() -> Self {
        Self { algorithm: None, all: true, leave_sockets: false, dry_run: false }
    }

    fn one(&self, algorithm: Algorithm, output: &Output) -> anyhow::Result<u8> {
        if self.dry_run {
            return plan::print(&planned(algorithm, self.leave_sockets)?, output);
        }
        let undo = Undo::new(algorithm, &everywhere());
        let detached = vec![self.detach(algorithm, undo)?];
        let mut report = DetachReport { detached, ..DetachReport::default() };
        report.see_what_is_held(&[algorithm]);
        finish(&report, output)
    }

    /// Detaches and clears all.
    pub(super) fn all(&self) -> anyhow::Result<DetachReport> {
        let Detachable { algorithms, unseen } = onramp_loader::detachable()?;
        let mut report = DetachReport { unseen, ..DetachReport::default() };
        // All of them first: which default is that of a namespace changes with each that goes.
        let everywhere = everywhere();
        let algorithms: Vec<_> =
            algorithms.into_iter().map(|one| (one, Undo::new(one, &everywhere))).collect();
        // First: else its connections would be given the control that is being detached.
        let sets = Sets::now();
        match select::clear() {
            Ok(rules) => report.removed(rules, &sets),
            Err(error) => report.failed.push(Failed::new("selection", error)),
        }
        let mut done = Vec::new();
        for (algorithm, undo) in algorithms {
            match self.detach(algorithm, undo) {
                Ok(row) => {
                    report.detached.push(row);
                    done.push(algorithm);
                }
                // Another command was faster.
                Err(Error::NotAttached { .. }) => {}
                Err(error) => report.failed.push(Failed::new(algorithm.name(), error)),
            }
        }
        match onramp_loader::clear_leftovers() {
            Ok(cleared) => report.cgroups_removed = cleared.iter().map(path).collect(),
            Err(error) => report.failed.push(Failed::new("cgroups of dead runs", error)),
        }
        report.see_what_is_held(&done);
        Ok(report)
    }

    /// What [`Self::all`] would do.
    pub fn plan_all(&self) -> anyhow::Result<Vec<Action>> {
        let mut actions = Vec::new();
        for algorithm in onramp_loader::detachable()?.algorithms {
            actions.extend(planned(algorithm, self.leave_sockets)?);
        }
        let Host { selection, leftovers, .. } = onramp_loader::status()?;
        actions.extend(selection.map(|_| Action {
            what: "remove all rules of onramp select and their program".into(),
            undo: "onramp select load FILE, with FILE from `onramp select list`".into(),
        }));
        actions.extend(leftovers.iter().map(|leftover| Action {
            what: format!("remove cgroup {} of a run that has died", path(leftover)),
            undo: String::new(),
        }));
        Ok(actions)
    }

    /// `undo`: what it takes to attach it again is known only as long as it is there.
    fn detach(&self, algorithm: Algorithm, undo: Option<Undo>) -> Result<DetachRow, Error> {
        let detached = onramp_loader::begin_detach(algorithm, self.leave_sockets)?;
        let Detached {
            was_attached, restored, moved, listening_moved, stragglers, unseen, pins_left, ..
        } = detached;
        let default =
            |one: onramp_loader::Restored| Default { namespace: one.namespace, congestion_control: one.name };
        let mut undo_leaves = undo.as_ref().map(|undo| undo.leaves.clone()).unwrap_or_default();
        if moved > 0 && undo.is_some() {
            undo_leaves.push("open connections, which keep the default");
        }
        Ok(DetachRow {
            algorithm: algorithm.name(),
            was_attached,
            defaults_restored: restored.into_iter().map(default).collect(),
            sockets_moved: moved,
            listening_moved,
            stragglers: Sockets::all(stragglers),
            sockets_left: self.leave_sockets,
            still_loaded: 0,
            held_by: Vec::new(),
            held: Held::default(),
            pins_left,
            selection_rules: select::rules_of(algorithm),
            unseen,
            undo: undo.map(|undo| undo.command),
            undo_leaves,
        })
    }
}

impl Failed {
    pub fn new(what: &str, error: Error) -> Self {
        let in_part = error.kind() == Kind::Partial;
        Self { what: what.into(), error: failure::sentence(&error.into()), in_part }
    }
}

fn path(leftover: &Leftover) -> String {
    leftover.path.display().to_string()
}

fn planned(algorithm: Algorithm, leave_sockets: bool) -> Result<Vec<Action>, Error> {
    let undo = Undo::new(algorithm, &everywhere()).map(|undo| undo.command);
    onramp_loader::plan_detach(algorithm, leave_sockets, &undo.unwrap_or_default())
}

/// The defaults of all network namespaces; else what could not be seen.
fn everywhere() -> Defaults {
    onramp_loader::defaults_everywhere()
        .unwrap_or_else(|error| Defaults { unseen: vec![error.to_string()], ..Defaults::default() })
}

/// How an algorithm is attached again as it is attached now.
pub(super) struct Undo {
    pub command: String,
    /// What it does not bring back.
    leaves: Vec<&'static str>,
}

impl Undo {
    /// `None`: it is not attached, or by another build.
    fn new(algorithm: Algorithm, everywhere: &Defaults) -> Option<Self> {
        let state = onramp_loader::attached_state(algorithm).ok()??;
        let defaults = elsewhere::options(&algorithm.congestion_control(), everywhere);
        let default_base = Basis::here(algorithm, state.base).ok().and_then(|basis| basis.default_base);
        let leaves = [
            (state.parameter_sets.len() > 1, "profiles of rules, until the rules are loaded again"),
            (state.applied, "the mark of onramp apply, which does not detach it then"),
            (!everywhere.unseen.is_empty(), "defaults of network namespaces that could not be looked into"),
        ];
        Some(Self {
            command: command(algorithm, &state, &defaults, default_base),
            leaves: leaves.into_iter().filter(|(left, _)| *left).map(|(_, what)| what).collect(),
        })
    }

    /// The same for a caller that looks at one algorithm.
    pub fn now(algorithm: Algorithm) -> Option<Self> {
        Self::new(algorithm, &everywhere())
    }
}

/// The command that attaches an algorithm like this. A profile that its name does not lead to is spelled out. `defaults`:
/// options that say where it is the default; `default_base`: the base that it would have without being asked for one.
fn command(
    algorithm: Algorithm,
    state: &AttachedState,
    defaults: &[String],
    default_base: Option<Base>,
) -> String {
    let mut words = vec![format!("onramp attach {}", algorithm.argument())];
    if let Some(set) = state.parameter_sets.first() {
        let mut parameters = algorithm.parameters();
        let mut telemetry_max = Level::Ack;
        if let Ok(profile) = profile::load(&set.profile)
            && profile::apply(&profile, &mut parameters).is_ok()
        {
            words.push(format!("--profile {}", set.profile));
            telemetry_max = settings::telemetry_max(&profile).unwrap_or(telemetry_max);
        }
        let settings = settings::changes(&parameters, &set.parameters);
        words.extend(settings.into_iter().map(|one| format!("--set {one}")));
        if set.telemetry_max != telemetry_max {
            words.push(format!("--telemetry {}", set.telemetry_max.name()));
        }
    }
    if default_base != Some(state.base) {
        words.push(basis::option(state.base.name()));
    }
    if state.after_exit != onramp_loader::usual(algorithm, state.base, state.observe) {
        words.push(format!("--after-exit {}", state.after_exit));
    }
    if state.start != onramp_loader::usual(algorithm, state.base, state.observe) {
        words.push(format!("--start {}", state.start));
    }
    if state.observe {
        words.push("--observe".into());
    }
    if let Some(guard) = &state.guard {
        words.push(guard::words(&guard.options));
    }
    words.extend(defaults.iter().cloned());
    if let Some(left) = state.expires_in {
        // What is left of it, and never nothing.
        words.push(format!("--for {}s", left.as_micros().div_ceil(1_000_000).max(1)));
    }
    words.join(" ")
}

/// Prints the report; the exit code says whether all of it was done.
fn finish(report: &DetachReport, output: &Output) -> anyhow::Result<u8> {
    output.report(report, || text(report));
    report.say_failed();
    Ok(report.code())
}

impl DetachReport {
    /// These rules were removed, with these parameter sets; what they name is attached still.
    fn removed(&mut self, removed: Option<Vec<Rule>>, sets: &Sets) {
        let Some(removed) = removed else { return };
        self.selection_removed = Some(removed.len());
        if removed.len() <= COMMANDS_MAX {
            let undo = RulesUndo::adding(&removed, sets, &Sets::default(), false);
            self.selection_undo = undo.command;
            self.selection_undo_leaves_out = undo.leaves_out;
        }
    }

    /// Adds what holds the code of what was detached, once for all of them because it takes time. `detached`: the rows'
    /// algorithms.
    fn see_what_is_held(&mut self, detached: &[Algorithm]) {
        match onramp_loader::held(detached) {
            Ok(all) => {
                for (row, held) in self.detached.iter_mut().zip(all) {
                    row.still_loaded = held.copies;
                    row.held_by = Holder::all(&held);
                    row.held = held;
                }
            }
            Err(error) => self.failed.push(Failed::new("what holds detached code", error)),
        }
    }

    /// The errors, on standard error.
    pub fn say_failed(&self) {
        for failed in &self.failed {
            say(&format!("error: {}: {}", failed.what, failed.error));
        }
    }

    /// Whether anything was cleared.
    pub fn is_something_done(&self) -> bool {
        !self.detached.is_empty()
            || self.selection_removed.is_some()
            || !self.cgroups_removed.is_empty()
            || self.failed.iter().any(|failed| failed.in_part)
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        let in_part = |row: &DetachRow| {
            let runs = !row.stragglers.is_empty() || row.held.may_run();
            (runs && !row.sockets_left) || !row.unseen.is_empty() || row.pins_left.is_some()
        };
        let in_part = self.detached.iter().any(in_part) || !self.unseen.is_empty();
        match self.failed.is_empty() {
            true if in_part => PARTIAL,
            true => 0,
            false if self.is_something_done() => PARTIAL,
            false => FAILURE,
        }
    }
}

pub(super) fn text(report: &DetachReport) -> String {
    let mut text = String::new();
    for row in &report.detached {
        text += &if row.was_attached {
            format!("detached {}\n", row.algorithm)
        } else {
            format!("{} was not attached; what has its old code:\n", row.algorithm)
        };
        for Default { namespace, congestion_control } in &row.defaults_restored {
            text += &format!("  default of network namespace {namespace}: {congestion_control} again\n");
        }
        if row.sockets_moved > 0 {
            text += &format!("  moved {} to the default\n", count(row.sockets_moved, "socket"));
        }
        if row.listening_moved > 0 {
            text += &format!(
                "  {} of them are listening: their application had chosen {}, and their new connections get the default of now until it chooses again\n",
                row.listening_moved, row.algorithm
            );
        }
        text += &stragglers::text("detached", &row.stragglers, &row.held);
        if let Some(why) = &row.pins_left {
            text += &format!("  pins are left: {}\n", escape_line(why));
        }
        if row.selection_rules > 0 {
            text += &format!(
                "  rules of onramp select use it ({}): their connections get the default until it is attached again\n",
                row.selection_rules
            );
        }
        text += &elsewhere::unseen_text(&row.unseen);
        if let Some(undo) = &row.undo {
            text += &format!("  undo: {undo}\n");
            if !row.undo_leaves.is_empty() {
                text += &format!("  the undo leaves: {}\n", row.undo_leaves.join("; "));
            }
        }
    }
    text += &elsewhere::unseen_text(&report.unseen);
    if let Some(rules) = report.selection_removed {
        text += &format!("removed the selection of {}\n", count(rules, "rule"));
        if rules > COMMANDS_MAX {
            text += "  undo: none; `onramp select load FILE`, if FILE was written by `onramp select list` before\n";
        }
        let (command, leaves_out) = (report.selection_undo.clone(), report.selection_undo_leaves_out.clone());
        text += &RulesUndo { command, leaves_out }.text();
    }
    for path in &report.cgroups_removed {
        text += &format!("removed cgroup {path} of a run that had died\n");
    }
    if text.is_empty() && report.failed.is_empty() {
        text += "nothing is attached\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;
    use onramp_loader::abi::Counters;
    use onramp_loader::guard::{Arm, GuardState};
    use onramp_loader::{AttachOptions, ParameterSet, algorithm};

    use super::*;
    use crate::arguments::Arguments;
    use crate::verb::Verb;

    /// A moment, microseconds since 1970.
    const NOW_US: u64 = 1_700_000_000_000_000;

    /// What is attached by these options at [`NOW_US`].
    fn attached_by(options: &AttachOptions) -> AttachedState {
        AttachedState {
            base: options.base.unwrap_or(Base::Cubic),
            after_exit: options.after_exit_over(options.base.unwrap_or(Base::Cubic)),
            start: options.start_over(options.base.unwrap_or(Base::Cubic)),
            observe: options.observe,
            guard: options.guard.map(|options| GuardState {
                options,
                treated: Arm::default(),
                control: Arm::default(),
                comparisons: Vec::new(),
                tripped: None,
            }),
            generation: NOW_US,
            attached_at_us: NOW_US,
            age: Duration::ZERO,
            other_defaults: Vec::new(),
            expires_at_us: options.expires_in.map(|delay| NOW_US + delay.as_micros() as u64),
            expires_in: options.expires_in,
            overdue: Duration::ZERO,
            applied: false,
            owner: None,
            version: String::new(),
            parameter_sets: vec![ParameterSet {
                number: 0,
                profile: options.profile.clone(),
                generation: 0,
                parameters: options.parameters.clone(),
                telemetry_max: options.telemetry_max,
            }],
            counters: Counters::default(),
        }
    }

    fn options_of(command: &str) -> AttachOptions {
        let arguments =
            Arguments::try_parse_from(command.split(' ')).unwrap_or_else(|error| panic!("{error}"));
        let Verb::Attach(attach) = arguments.verb else { panic!("{command}") };
        attach.options().unwrap()
    }

    /// Every algorithm with each of its parameters at both ends, alone and over its profiles, with every other option.
    fn attachments() -> Vec<String> {
        let mut heads: Vec<(Algorithm, String)> =
            algorithm::all().map(|one| (one, format!("onramp attach {}", one.name()))).collect();
        for name in profile::names() {
            let loaded = profile::load(&name).unwrap();
            let algorithm = onramp_loader::find(&loaded.algorithm).unwrap();
            heads.push((algorithm, format!("onramp attach {} --profile {name}", algorithm.name())));
        }
        let mut commands = Vec::new();
        for (algorithm, head) in heads {
            for others in [
                "",
                " --observe",
                " --base reno --default",
                " --base bbr",
                " --base reno --after-exit floor",
                " --after-exit plateau,floor --for 90s",
                " --after-exit none",
                " --start double",
                " --start suss",
                " --base bbr --start double",
                " --telemetry exit --for 90s",
                " --telemetry ack",
                " --guard goodput=-10%",
                " --guard retransmit_ratio=0.1%,goodput=-33.3% --control-share 2.5% --for 90s",
            ] {
                commands.push(format!("{head}{others}"));
            }
            for one in algorithm.declarations() {
                for value in [one.minimum, one.maximum, one.default] {
                    commands.push(format!("{head} --set {}={}", one.name, one.show(value)));
                }
            }
        }
        commands
    }

    #[test]
    fn the_printed_undo_attaches_the_same_again() {
        let commands = attachments();
        assert!(commands.len() > 100, "{}", commands.len());
        for asked in commands {
            let before = options_of(&asked);
            let algorithm = before.parameters.algorithm();
            let default: &[String] = if before.default { &["--default".to_owned()] } else { &[] };
            let undo = command(algorithm, &attached_by(&before), default, Some(Base::Cubic));
            let after = options_of(&undo);
            let all = |options: &AttachOptions| {
                let AttachOptions {
                    parameters,
                    profile,
                    observe,
                    guard,
                    default,
                    expires_in,
                    telemetry_max,
                    ..
                } = options.clone();
                let base = options.base.unwrap_or(Base::Cubic);
                let after_exit = options.after_exit_over(base);
                let start_and_telemetry = (options.start_over(base), telemetry_max);
                (
                    parameters,
                    profile,
                    base,
                    after_exit,
                    observe,
                    guard,
                    default,
                    expires_in,
                    start_and_telemetry,
                )
            };
            assert_eq!(all(&after), all(&before), "{asked}: {undo}");
        }
    }

    #[test]
    fn of_a_time_limit_the_undo_has_what_is_left() {
        let plain = onramp_loader::find("plain").unwrap();
        let with_left = |left| {
            let mut state = attached_by(&options_of("onramp attach plain --for 10m"));
            state.expires_in = Some(left);
            command(plain, &state, &[], Some(Base::Cubic))
        };
        assert_eq!(with_left(Duration::from_secs(600)), "onramp attach plain --for 600s");
        assert_eq!(with_left(Duration::from_micros(119_000_001)), "onramp attach plain --for 120s");
        assert_eq!(with_left(Duration::ZERO), "onramp attach plain --for 1s");
    }

    #[test]
    fn a_profile_whose_name_leads_nowhere_is_spelled_out() {
        let mut options = options_of("onramp attach search --profile geo");
        options.profile = "gone".into();
        let undo = command(options.parameters.algorithm(), &attached_by(&options), &[], Some(Base::Cubic));
        assert!(!undo.contains("--profile") && undo.contains("--set look_back=min"), "{undo}");
    }
}
