//! What takes a change of rules back: a command that a shell runs, or in words what no command restores.

use std::collections::BTreeMap;
use std::path::Path;

use onramp_loader::ParameterSet;
use onramp_loader::select::{self, Rule};

use super::words;
use crate::units::count;

/// As many commands as one line may have.
const COMMANDS_MAX: usize = 8;

/// What takes a change back.
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
        let attached = onramp_loader::pinned().into_iter();
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
        let mut undo = Self::default();
        let mut commands = Vec::new();
        for rule in rules.iter().take(COMMANDS_MAX + 1) {
            let replace = if replace { " --replace" } else { "" };
            match lost(rule, before, after) {
                None => commands.push(format!("onramp select add {rule}{replace}")),
                Some(why) => undo.leaves_out.push(format!("{rule}: {why}")),
            }
        }
        if rules.len() > COMMANDS_MAX {
            return Self::not_kept(rules.len());
        }
        undo.command = Some(commands.join(" && ")).filter(|commands| !commands.is_empty());
        undo
    }

    /// Of rules that a file has, with the sets before and after it was written.
    pub fn loading(kept: &Path, rules: &[Rule], before: &Sets, after: &Sets) -> Self {
        let mut undo =
            Self::by(format!("onramp select load {}", onramp_loader::quoted(&kept.display().to_string())));
        for rule in rules {
            let Some(why) = lost(rule, before, after) else { continue };
            // One that is gone is a comment in the file; what else cannot be made again fails the whole of it.
            if !rule.is_orphan() {
                undo.command = None;
            }
            undo.leaves_out.push(format!("{rule}: {why}"));
        }
        undo
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

/// Why `select add` would not make a rule again as it was; `None`: it would.
fn lost(rule: &Rule, before: &Sets, after: &Sets) -> Option<String> {
    if rule.is_orphan() {
        return Some("its cgroup is gone".into());
    }
    if let Err(why) = select::control(rule.choice.name()) {
        return Some(why.to_string());
    }
    let (control, profile) = (&rule.choice.control, rule.choice.profile.as_ref()?);
    if after.find(control, profile).is_some() {
        return None;
    }
    let found = onramp_loader::find(control).ok().map(|algorithm| words::made(algorithm, profile));
    match (found, before.find(control, profile)) {
        (Some(Ok(found)), Some(was)) if !was.has(&found.parameters, found.telemetry_max) => {
            Some(format!("profile {profile} had other values than it has by its name"))
        }
        (Some(Ok(_)), _) => None,
        _ => Some(format!("profile {profile} is not found by its name: add it with the profile's file")),
    }
}
