//! `onramp doctor --fix`.

use onramp_loader::{Action, Path, Wanted, host};
use serde::Serialize;

use super::Also;
use crate::output::Output;
use crate::verb::plan;
use crate::verb::undo::SETTINGS;

#[derive(Serialize)]
struct Fixed {
    changed: Vec<Change>,
    undo: Option<&'static str>,
}

#[derive(Serialize)]
struct Change {
    /// Whose it is: host, or network-namespace.
    scope: &'static str,
    setting: &'static str,
    before: String,
    set: String,
    reason: String,
    source: &'static str,
    effect: &'static str,
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
    set(wanted, dry_run, output)
}

/// Sets what there is to set.
pub(super) fn set(wanted: Vec<Wanted>, dry_run: bool, output: &Output) -> anyhow::Result<u8> {
    if dry_run {
        let actions: Vec<_> = wanted.iter().map(action).collect();
        return plan::print(&actions, output);
    }
    let settings: Vec<_> = wanted.iter().filter_map(|one| Some((one.name, one.to.as_deref()?))).collect();
    let changed = host::change(&settings)?;
    let is_changed = |one: &Wanted| changed.iter().any(|setting| setting.name == one.name);
    let changed: Vec<_> = wanted.into_iter().filter(is_changed).map(change).collect();
    let fixed = Fixed { undo: (!changed.is_empty()).then_some(SETTINGS), changed };
    output.report(&fixed, || fixed_text(&fixed));
    Ok(0)
}

fn change(wanted: Wanted) -> Change {
    let scope = super::scope_name(wanted.scope());
    let Wanted { name, now, to, found, source, effect, .. } = wanted;
    Change { scope, setting: name, before: now, set: to.unwrap_or_default(), reason: found, source, effect }
}

fn action(wanted: &Wanted) -> Action {
    let Wanted { name, now, to, found, .. } = wanted;
    Action {
        what: format!(
            "set {name} to {} (now {now}; of {}): {found}",
            to.as_deref().unwrap_or_default(),
            owner_of(super::scope_name(wanted.scope()))
        ),
        undo: SETTINGS.into(),
    }
}

/// Whose a setting of this scope is.
fn owner_of(scope: &str) -> &'static str {
    super::owner(scope, onramp_loader::is_hosts_own())
}

fn fixed_text(fixed: &Fixed) -> String {
    if fixed.changed.is_empty() {
        return "nothing to change: this network namespace is as the path wants it\n".into();
    }
    let mut text = String::new();
    for Change { scope, setting, before, set, reason, source, effect } in &fixed.changed {
        text += &format!("{setting} = {set} (was {before})\n  of: {}\n", owner_of(scope));
        text += &format!("  why: {reason}\n  source: {source}\n  effect: {effect}\n");
    }
    text + &format!("undo: {SETTINGS}\n")
}
