//! `onramp doctor --fix` and `--undo`.

use onramp_loader::host::{self, GivenBack, Outcome};
use onramp_loader::{Action, Path, Wanted};
use serde::Serialize;

use crate::failure::PARTIAL;
use crate::output::Output;
use crate::verb::detach::unseen_text;
use crate::verb::plan;

/// The command that gives settings back.
pub(in crate::verb) const UNDO: &str = "onramp doctor --undo";

#[derive(Serialize)]
struct Fixed {
    changed: Vec<Change>,
    undo: Option<&'static str>,
}

#[derive(Serialize)]
struct Change {
    sysctl: &'static str,
    before: String,
    set: String,
    reason: String,
    source: &'static str,
    effect: &'static str,
}

/// What was given back.
#[derive(Serialize)]
pub(in crate::verb) struct Undone {
    given_back: Vec<Row>,
    left: Vec<Row>,
    /// Where it could not be looked.
    unseen: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    namespace: String,
    sysctl: String,
    before: String,
    /// By --fix.
    set: String,
    now: String,
}

/// Sets what a path wants.
pub(super) fn fix(path: Path, dry_run: bool, output: &Output) -> anyhow::Result<u8> {
    let wanted: Vec<_> = onramp_loader::wanted(path)?.into_iter().filter(|one| one.to.is_some()).collect();
    if dry_run {
        let actions: Vec<_> = wanted.iter().map(action).collect();
        return plan::print(&actions, output);
    }
    let sysctls: Vec<_> = wanted.iter().filter_map(|one| Some((one.sysctl, one.to.as_deref()?))).collect();
    let changed = host::change(&sysctls)?;
    let is_changed = |one: &Wanted| changed.iter().any(|setting| setting.sysctl == one.sysctl);
    let changed: Vec<_> = wanted.into_iter().filter(is_changed).map(change).collect();
    let fixed = Fixed { undo: (!changed.is_empty()).then_some(UNDO), changed };
    output.report(&fixed, || fixed_text(&fixed))?;
    Ok(0)
}

fn change(Wanted { sysctl, now, to, found, source, effect, .. }: Wanted) -> Change {
    Change { sysctl, before: now, set: to.unwrap_or_default(), reason: found, source, effect }
}

fn action(wanted: &Wanted) -> Action {
    let Wanted { sysctl, now, to, found, .. } = wanted;
    Action {
        what: format!("set {sysctl} to {} (now {now}): {found}", to.as_deref().unwrap_or_default()),
        undo: UNDO.into(),
    }
}

fn fixed_text(fixed: &Fixed) -> String {
    if fixed.changed.is_empty() {
        return "nothing to change: this network namespace is as the path wants it\n".into();
    }
    let mut text = String::new();
    for Change { sysctl, before, set, reason, source, effect } in &fixed.changed {
        text += &format!("{sysctl} = {set} (was {before})\n");
        text += &format!("  why: {reason}\n  source: {source}\n  effect: {effect}\n");
    }
    text + &format!("undo: {UNDO}\n")
}

/// Gives back what was set, everywhere.
pub(super) fn undo(dry_run: bool, output: &Output) -> anyhow::Result<u8> {
    if dry_run {
        return plan::print(&planned()?, output);
    }
    let undone = Undone::of(host::give_back()?);
    output.report(&undone, || undone.text())?;
    Ok(undone.code())
}

/// What giving back would do.
pub(in crate::verb) fn planned() -> anyhow::Result<Vec<Action>> {
    let action = |host::Setting { sysctl, before, set }| Action {
        what: format!("set {sysctl} to {before} again, where it is still {set}"),
        undo: format!("sysctl -w {sysctl}=\"{set}\""),
    };
    Ok(host::changed()?.into_iter().map(action).collect())
}

impl Undone {
    pub fn of(given: GivenBack) -> Self {
        let (mut given_back, mut left) = (Vec::new(), Vec::new());
        for (namespace, setting, outcome) in given.settings {
            let host::Setting { sysctl, before, set } = setting;
            match outcome {
                Outcome::GivenBack => {
                    given_back.push(Row { namespace, sysctl, now: before.clone(), before, set });
                }
                Outcome::Left(now) => left.push(Row { namespace, sysctl, before, set, now }),
            }
        }
        Self { given_back, left, unseen: given.unseen }
    }

    pub fn code(&self) -> u8 {
        if self.left.is_empty() && self.unseen.is_empty() { 0 } else { PARTIAL }
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for Row { namespace, sysctl, now, .. } in &self.given_back {
            text += &format!("{sysctl} = {now} again in network namespace {namespace}\n");
        }
        for Row { namespace, sysctl, before, set, now } in &self.left {
            text += &format!(
                "{sysctl} in network namespace {namespace} is left as it is, {now}: somebody has set it since it was set to {set}; it was {before} before\n"
            );
        }
        text += &unseen_text(&self.unseen);
        if text.is_empty() { "no setting was changed\n".into() } else { text }
    }
}
