//! What `onramp status` says as text.

use std::time::Duration;

use onramp_loader::telemetry::Level;

use super::{Attached, DeadRun, Listener, MissingProfile, Selecting, Set, SettingRow, StatusReport};
use crate::guard;
use crate::output::{Output, escape_line};
use crate::settings;
use crate::units::{count, show_us};
use crate::verb::elsewhere::{self, unseen_text};
use crate::verb::stragglers::{self, Sockets};
use crate::verb::undo;

pub(super) fn text(report: &StatusReport, output: &Output) -> String {
    let mut text = String::new();
    for row in &report.algorithms {
        text += &format!("{}  {} as {}\n", output.bold(row.algorithm), row.state, row.congestion_control);
        if let Some(explanation) = &row.explanation {
            text += &format!("  {}\n", escape_line(explanation));
        }
        if let Some(attached) = &row.attached {
            text += &attached_text(row.algorithm, attached);
        }
        text += &stragglers::held_text("old", &row.held);
        if row.attached.is_some() && row.held.may_run() {
            text += &format!("  `onramp detach {}` moves what can be moved\n", row.algorithm);
        }
        for Sockets { namespace, sockets } in &row.sockets {
            let namespace = escape_line(namespace);
            text += &format!("  {} in network namespace {namespace}\n", count(*sockets, "socket"));
        }
    }
    text += &report.selection.as_ref().map_or_else(String::new, selecting_text);
    for DeadRun { cgroup, pid, processes } in &report.dead_runs {
        let cgroup = escape_line(cgroup);
        let processes = if *processes == 1 { "1 process" } else { &format!("{processes} processes") };
        text += &format!(
            "cgroup {cgroup} of a run (pid {pid}) that has died, with {processes}: `onramp detach --all` removes it\n"
        );
    }
    for Listener { name, pid, level, sampling, lost_events, unobserved_us, .. } in &report.consumers {
        let name = escape_line(name);
        let flows = if *sampling == 1 { "all flows" } else { &format!("one flow in {sampling}") };
        text += &format!(
            "{name} (pid {pid}) subscribes to {flows} at level {level}, {lost_events} events dropped"
        );
        text += &match unobserved_us {
            0 => "\n".to_owned(),
            time => format!(", and all events of {}\n", show_us(*time)),
        };
    }
    for SettingRow { namespace, setting, before, set } in &report.settings {
        text += &format!(
            "{setting} {} was set to {set} (before: {before}): `{}` restores it\n",
            undo::place(namespace.as_deref()),
            undo::SETTINGS
        );
    }
    if let Some(paths) = report.paths.as_ref().filter(|paths| paths.remembered > 0) {
        text += &format!("{} remembered, {}", count(paths.remembered, "path"), paths.settings.line());
    }
    if let Some(why) = &report.consumers_unknown {
        text += &format!("consumers of telemetry are not known: {}\n", escape_line(why));
    }
    for what in &report.unreadable {
        text += &format!("cannot be read: {}\n", escape_line(what));
    }
    text += &unseen_text(&report.unseen);
    if text.is_empty() { "nothing is attached\n".into() } else { text }
}

/// Who has a parameter set that is there for rules.
fn used_text(set: &Set) -> String {
    let Some(flows) = set.flows else { return String::new() };
    let flows = count(flows as usize, "open flow");
    match set.rules {
        Some(0) => format!(
            ", named by no rule, with {flows} (without flows the next change of a rule, or `onramp select del --all`, removes it)"
        ),
        Some(rules) => format!(", for {}, with {flows}", count(rules, "rule")),
        None => format!(", for rules, with {flows}"),
    }
}

fn show(time: Duration) -> String {
    show_us(time.as_micros() as u64)
}

fn attached_text(algorithm: &str, attached: &Attached) -> String {
    let mut text = format!(
        "  base {}, generation {}, attached {} ago by onramp {}\n",
        attached.base,
        attached.generation,
        show(attached.age),
        attached.version
    );
    if !attached.other_defaults.is_empty() {
        text += &format!(
            "  its base is not what network namespaces had as default before: {}\n",
            attached.other_defaults.join(", ")
        );
    }
    if attached.applied {
        text += "  by onramp apply, which detaches it when no file names it any more\n";
    }
    text += &settings::after_exit_line(attached.after_exit);
    text += &settings::start_line(attached.start);
    if attached.observe {
        text += "  observes only: what it would do is recorded, the base does everything\n";
    }
    if let Some(state) = &attached.guard_state {
        text += &guard::line(algorithm, state);
    }
    if let Some(left) = attached.expires_in {
        text += &if left.is_zero() {
            format!(
                "  its time was over {} ago, and the base runs alone: onramp detach {algorithm}\n",
                show(attached.overdue)
            )
        } else {
            format!("  detaches in {} unless confirmed: onramp confirm {algorithm}\n", show(left))
        };
    }
    if let (Some(pid), Some(true)) = (attached.owner_pid, attached.owner_alive) {
        text += &format!("  attached for `onramp run`, pid {pid}\n");
    }
    for set in &attached.parameter_sets {
        let values: Vec<_> =
            set.parameters.0.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        text += &format!(
            "  profile {}, generation {}{}:{}\n",
            set.profile,
            set.parameters_generation,
            used_text(set),
            values.concat()
        );
        if set.telemetry_max != Level::Ack.name() {
            text += &format!("    telemetry of its flows is limited to level {}\n", set.telemetry_max);
        }
    }
    for namespace in attached.default_in.iter().flatten() {
        text += &format!("  default of network namespace {}\n", escape_line(namespace));
    }
    text += &elsewhere::text(attached.default_not_in.as_deref().unwrap_or_default());
    let counts = &attached.counts;
    text += &format!(
        "  flows: {} started, {} taken over, {} ended, {} of them without state\n",
        counts.flows_started, counts.flows_adopted, attached.flows_ended, counts.flows_without_state
    );
    if counts.state_failures > 0 {
        text += &format!("  {} times there was no memory for a flow's state\n", counts.state_failures);
    }
    let mut exits = vec![format!("{} in slow start", attached.ended_in_slow_start)];
    exits.extend(
        attached.exits.0.iter().filter(|(_, number)| *number > 0).map(|(name, n)| format!("{n} by {name}")),
    );
    text + &format!("  ended flows exited slow start: {}; {} undone\n", exits.join(", "), counts.exits_undone)
}

fn selecting_text(selecting: &Selecting) -> String {
    let mut text = match (&selecting.rules_unknown, selecting.rules) {
        (Some(why), _) => format!("selection by rules, which cannot be read: {why}\n"),
        (None, rules) => format!("selection by {}: onramp select list\n", count(rules.unwrap_or(0), "rule")),
    };
    if let Some(cgroup) = &selecting.holds_in {
        text += &format!(
            "  in use in cgroup {} and below it alone, where the program sits: on the host the next change of a rule has them hold everywhere\n",
            escape_line(cgroup)
        );
    } else if !selecting.active {
        text += "  not in use: a command was cut off, or its pin `link` was removed; the next change of a rule mends it, `onramp select del --all` clears it\n";
    } else if selecting.rules == Some(0) {
        text += "  left by a command that was cut off: `onramp select del --all` clears it\n";
    }
    for control in &selecting.controls_missing {
        text +=
            &format!("  rules use {control}, which is not registered: their connections get the default\n");
    }
    for MissingProfile { congestion_control, profile } in &selecting.profiles_missing {
        text += &format!(
            "  rules name profile {profile}, which {congestion_control} has not now: their connections get its own parameters, until the rules are added or loaded again\n"
        );
    }
    if selecting.rules_without_cgroup > 0 {
        let rules = count(selecting.rules_without_cgroup, "rule");
        text += &format!("  the cgroup of {rules} is gone: no connection is asked about there\n");
    }
    text
}
