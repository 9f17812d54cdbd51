//! `onramp doctor --fix` and `--undo`.

use onramp_loader::host::{self, Outcome, Restored};
use onramp_loader::{Action, Path, Wanted};
use serde::Serialize;

use super::Also;
use crate::failure::{FAILURE, PARTIAL};
use crate::output::{Output, say};
use crate::verb::elsewhere::unseen_text;
use crate::verb::plan;

/// The command that restores settings.
pub(in crate::verb) const UNDO: &str = "onramp doctor --undo";

#[derive(Serialize)]
struct Fixed {
    changed: Vec<Change>,
    undo: Option<&'static str>,
}

#[derive(Serialize)]
struct Change {
    setting: &'static str,
    before: String,
    set: String,
    reason: String,
    source: &'static str,
    effect: &'static str,
}

/// What was restored.
#[derive(Serialize)]
pub(in crate::verb) struct Undone {
    restored: Vec<Row>,
    left: Vec<Row>,
    /// What could not be set; it is still recorded.
    failed: Vec<Failed>,
    /// Where it could not be looked.
    unseen: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    /// None: the host has it once.
    namespace: Option<String>,
    setting: String,
    before: String,
    /// By --fix.
    set: String,
    now: String,
}

/// Sets what a path wants, and what was asked for in addition to it.
pub(super) fn fix(path: Path, also: &[Also], dry_run: bool, output: &Output) -> anyhow::Result<u8> {
    let mut wanted = onramp_loader::wanted(path)?;
    for also in also {
        let one = also.wanted()?;
        if !wanted.contains(&one) {
            wanted.push(one);
        }
    }
    wanted.retain(|one| one.to.is_some());
    if dry_run {
        let actions: Vec<_> = wanted.iter().map(action).collect();
        return plan::print(&actions, output);
    }
    let settings: Vec<_> = wanted.iter().filter_map(|one| Some((one.name, one.to.as_deref()?))).collect();
    let changed = host::change(&settings)?;
    let is_changed = |one: &Wanted| changed.iter().any(|setting| setting.name == one.name);
    let changed: Vec<_> = wanted.into_iter().filter(is_changed).map(change).collect();
    let fixed = Fixed { undo: (!changed.is_empty()).then_some(UNDO), changed };
    output.report(&fixed, || fixed_text(&fixed));
    Ok(0)
}

fn change(Wanted { name, now, to, found, source, effect, .. }: Wanted) -> Change {
    Change { setting: name, before: now, set: to.unwrap_or_default(), reason: found, source, effect }
}

fn action(wanted: &Wanted) -> Action {
    let Wanted { name, now, to, found, .. } = wanted;
    Action {
        what: format!("set {name} to {} (now {now}): {found}", to.as_deref().unwrap_or_default()),
        undo: UNDO.into(),
    }
}

fn fixed_text(fixed: &Fixed) -> String {
    if fixed.changed.is_empty() {
        return "nothing to change: this network namespace is as the path wants it\n".into();
    }
    let mut text = String::new();
    for Change { setting, before, set, reason, source, effect } in &fixed.changed {
        text += &format!("{setting} = {set} (was {before})\n");
        text += &format!("  why: {reason}\n  source: {source}\n  effect: {effect}\n");
    }
    text + &format!("undo: {UNDO}\n")
}

/// Restores what was set, everywhere.
pub(super) fn undo(dry_run: bool, output: &Output) -> anyhow::Result<u8> {
    if dry_run {
        return plan::print(&planned()?, output);
    }
    let undone = Undone::of(host::restore_all()?);
    output.report(&undone, || undone.text());
    undone.say_failed();
    Ok(undone.code())
}

/// What a restore would do.
pub(in crate::verb) fn planned() -> anyhow::Result<Vec<Action>> {
    let action = |setting: host::Setting| {
        let undo = setting.command();
        let host::Setting { name, before, set } = setting;
        Action { what: format!("set {name} to {before} again, where it is still {set}"), undo }
    };
    Ok(host::changed()?.into_iter().map(action).collect())
}

#[derive(Serialize)]
struct Failed {
    namespace: Option<String>,
    setting: String,
    error: String,
}

impl Row {
    fn place(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("in network namespace {namespace}"),
            None => "of this host".into(),
        }
    }
}

impl Undone {
    pub fn of(given: Restored) -> Self {
        let (mut restored, mut left, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for (namespace, setting, outcome) in given.settings {
            let host::Setting { name: setting, before, set } = setting;
            match outcome {
                Outcome::Restored => {
                    restored.push(Row { namespace, setting, now: before.clone(), before, set });
                }
                Outcome::Left(now) => left.push(Row { namespace, setting, before, set, now }),
                Outcome::Failed(error) => failed.push(Failed { namespace, setting, error }),
            }
        }
        Self { restored, left, failed, unseen: given.unseen }
    }

    pub fn code(&self) -> u8 {
        match (self.failed.is_empty(), self.restored.is_empty()) {
            (false, true) => FAILURE,
            (true, _) if self.left.is_empty() && self.unseen.is_empty() => 0,
            _ => PARTIAL,
        }
    }

    /// Whether anything is as it was before.
    pub fn is_something_restored(&self) -> bool {
        !self.restored.is_empty()
    }

    /// The errors, on standard error.
    pub fn say_failed(&self) {
        for Failed { setting, error, .. } in &self.failed {
            say(&format!("error: {setting} is not restored: {error}"));
        }
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for row @ Row { setting, now, .. } in &self.restored {
            text += &format!("{setting} = {now} again {}\n", row.place());
        }
        for row @ Row { setting, before, set, now, .. } in &self.left {
            let place = row.place();
            text += &format!(
                "{setting} {place} is left as it is, {now}: another process has set it since it was set to {set}; it was {before} before\n"
            );
        }
        text += &unseen_text(&self.unseen);
        if text.is_empty() && self.failed.is_empty() { "no setting was changed\n".into() } else { text }
    }
}
