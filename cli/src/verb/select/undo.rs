//! What reverts a change of rules: a command that a shell runs, or in words what no command restores.

use std::collections::BTreeMap;
use std::path::Path;

use onramp_loader::ParameterSet;
use onramp_loader::select::{self, Choice, Rule};

use super::words;
use crate::units::count;

/// As many commands as one line may have.
pub(in crate::verb) const COMMANDS_MAX: usize = 8;

/// Why a rule cannot be made again that is for no connection.
const NO_CGROUP: &str = "its cgroup is gone";

/// What reverts a change.
#[derive(Debug, Default, PartialEq)]
pub(in crate::verb) struct Undo {
    /// `None`: no command does.
    pub command: Option<String>,
    /// What it does not restore.
    pub leaves_out: Vec<String>,
}

/// The parameter sets of what is attached, by control. One that no rule names any more is gone after a change.
#[derive(Default)]
pub(in crate::verb) struct Sets(BTreeMap<String, Vec<ParameterSet>>);

impl Sets {
    /// Those that there are now; none of what cannot be read.
    pub fn now() -> Self {
        let attached = onramp_loader::pinned().unwrap_or_default().into_iter();
        let sets = attached.filter_map(|algorithm| {
            let sets = onramp_loader::parameter_sets(algorithm).ok()?;
            Some((algorithm.congestion_control(), sets))
        });
        Self(sets.collect())
    }

    fn find(&self, control: &str, profile: &str) -> Option<&ParameterSet> {
        self.0.get(control)?.iter().find(|set| set.profile == profile)
    }
}

impl Undo {
    /// Of a change that only adds.
    pub fn by(command: String) -> Self {
        Self { command: Some(command), leaves_out: Vec::new() }
    }

    /// Of a removal of these rules, with the sets before it and after it. `replace`: others have taken their places.
    pub fn adding(rules: &[Rule], before: &Sets, after: &Sets, replace: bool) -> Self {
        if rules.len() > COMMANDS_MAX {
            return Self::not_kept(rules.len());
        }
        let Sorted { restored, lost } = Sorted::new(rules, before, after);
        let replace = if replace { " --replace" } else { "" };
        let commands: Vec<_> =
            restored.iter().map(|rule| format!("onramp select add {rule:#}{replace}")).collect();
        let command = Some(commands.join(" && ")).filter(|commands| !commands.is_empty());
        Self { command, leaves_out: omitted(&lost) }
    }

    /// Of rules that a file has, with the sets before and after it was written.
    pub fn loading(kept: &Path, rules: &[Rule], before: &Sets, after: &Sets) -> Self {
        let Sorted { lost, .. } = Sorted::new(rules, before, after);
        // A rule whose cgroup is gone is a comment in the file; what else cannot be made again fails the whole of it.
        let whole = lost.keys().all(|why| why == NO_CGROUP);
        let kept = onramp_loader::quoted(&kept.display().to_string());
        Self { command: whole.then(|| format!("onramp select load {kept}")), leaves_out: omitted(&lost) }
    }

    /// Of more rules than a line has room for.
    pub fn not_kept(rules: usize) -> Self {
        let left = format!("{}, which --keep FILE would have written to a file", count(rules, "rule"));
        Self { command: None, leaves_out: vec![left] }
    }

    /// As lines below what was done.
    pub fn text(&self) -> String {
        let mut text = self.command.as_ref().map_or_else(String::new, |undo| format!("  undo: {undo}\n"));
        let word = if self.command.is_some() { "the undo leaves out" } else { "no undo" };
        for left in &self.leaves_out {
            text += &format!("  {word}: {left}\n");
        }
        text
    }
}

/// Rules that can be made again as they were, and others, by the reason.
struct Sorted<'a> {
    restored: Vec<&'a Rule>,
    lost: BTreeMap<String, Vec<&'a Rule>>,
}

impl<'a> Sorted<'a> {
    fn new(rules: &'a [Rule], before: &Sets, after: &Sets) -> Self {
        // There are few choices, each of which is looked up once.
        let mut known: BTreeMap<(&str, Option<&str>), Option<String>> = BTreeMap::new();
        let mut sorted = Self { restored: Vec::new(), lost: BTreeMap::new() };
        for rule in rules {
            let choice = &rule.choice;
            let key = (choice.control.as_str(), choice.profile.as_deref());
            let why = if rule.is_orphan() {
                Some(NO_CGROUP.to_owned())
            } else {
                known.entry(key).or_insert_with(|| lost(choice, before, after)).clone()
            };
            match why {
                None => sorted.restored.push(rule),
                Some(why) => sorted.lost.entry(why).or_default().push(rule),
            }
        }
        sorted
    }
}

/// A sentence for each reason.
fn omitted(lost: &BTreeMap<String, Vec<&Rule>>) -> Vec<String> {
    let sentence = |(why, rules): (&String, &Vec<&Rule>)| match rules[..] {
        [rule] => format!("{rule}: {why}"),
        [first, ..] => format!("{}, the first of which is {first}: {why}", count(rules.len(), "rule")),
        [] => String::new(),
    };
    lost.iter().map(sentence).collect()
}

/// Why `select add` would not give this choice again as it was; `None`: it would.
fn lost(choice: &Choice, before: &Sets, after: &Sets) -> Option<String> {
    if let Err(why) = select::control(choice.name()) {
        return Some(why.to_string());
    }
    let (control, profile) = (&choice.control, choice.profile.as_ref()?);
    if after.find(control, profile).is_some() {
        return None;
    }
    let found = onramp_loader::find(control).ok().map(|algorithm| words::made(algorithm, profile));
    match (found, before.find(control, profile)) {
        (Some(Ok(found)), Some(was)) if !was.has(&found.parameters, found.telemetry_max) => {
            Some(format!("profile {profile} had other values than it has by its name"))
        }
        (Some(Ok(_)), _) => None,
        _ => {
            Some(format!("profile {profile} is not found by its name: add the rule with the profile's file"))
        }
    }
}
