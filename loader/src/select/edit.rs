//! Changing the rules of this host.

use super::program::{Selector, require};
use super::rule::{RULES_MAX, Rule, Target};
use super::selection::{selection, selection_locked};
use super::sets::{self, Profile};
use super::table::Table;
use crate::object::algorithms;
use crate::pins::profiles::{self, Names};
use crate::pins::{Lock, parameters};
use crate::system::error::Error;
use crate::system::kernel;

/// The names of congestion controls that rules may use: `name` may be an algorithm, then it must be attached, or a control
/// of the kernel. Returns the kernel's name of it.
///
/// # Errors
/// [`Error::Privilege`], [`Error::UnknownControl`], [`Error::NotAttached`], [`Error::AttachedForRun`].
pub fn control(name: &str) -> Result<String, Error> {
    require()?;
    let Ok(algorithm) = algorithms::find(name) else {
        let registered = kernel::registered()?;
        if registered.iter().any(|control| control == name) {
            return Ok(name.into());
        }
        let registered = registered.join(", ");
        return Err(Error::UnknownControl { name: name.into(), known: algorithms::known(), registered });
    };
    let (_lock, pins) = parameters::hold(algorithm)?;
    pins.require_no_run()?;
    Ok(algorithm.congestion_control())
}

fn exists(rule: &Rule) -> Error {
    Error::RuleExists { target: rule.target.to_string(), rule: rule.to_string() }
}

/// What [`add`] would replace; changes nothing.
///
/// # Errors
/// What [`add`] fails with.
pub fn check_add(rule: &Rule, replace: bool) -> Result<Option<Rule>, Error> {
    require()?;
    Selector::here().require_root()?;
    let existing = selection()?.map_or_else(Vec::new, |selection| selection.rules);
    match existing.into_iter().find(|one| one.target == rule.target) {
        Some(existing) if !replace => Err(exists(&existing)),
        existing => Ok(existing),
    }
}

/// Adds a rule; the first one attaches the program. With `replace` it takes the place of the rule for the same connections,
/// which is returned: each of them is decided by the one or by the other. What it names and its algorithm has not is made of
/// the profiles.
///
/// # Errors
/// [`Error::RuleExists`], [`Error::TooManyRules`], [`Error::UnknownProfile`], [`Error::TooManyProfiles`],
/// [`Error::SelectionBroken`], [`Error::PartOfCgroups`], [`Error::Privilege`], or what the kernel refuses; nothing is changed
/// then.
pub fn add(rule: &Rule, profiles: &[Profile], replace: bool) -> Result<Option<Rule>, Error> {
    require()?;
    kernel::ensure_bpffs()?;
    let _lock = Lock::take()?;
    let selector = Selector::here();
    let choice = selector.table()?.map_or(Ok(None), |table| table.get(&rule.target))?;
    let existing = choice.map(|choice| Rule { target: rule.target.clone(), choice });
    if let Some(existing) = existing.as_ref().filter(|_| !replace) {
        // What was cut off may be mended by asking again.
        selector.ensure()?;
        return Err(exists(existing));
    }
    let rules = std::slice::from_ref(rule);
    let work = || {
        let names = Names::with(rule.choice.named())?;
        match selector.table()? {
            Some(mut table) => table.insert(rule, &names),
            None => selector.put(&Table::new(rules, &names)?),
        }
    };
    tidied(sets::provide(rules, profiles).and_then(|()| selector.with(work)))?;
    Ok(existing)
}

/// Removes what no rule names any more. If that fails, `status` reports it and the next change tries again.
pub(super) fn tidied<T>(done: T) -> T {
    if let Err(error) = sets::tidy() {
        tracing::debug!("{error}");
    }
    done
}

/// Removes the rule of a target and returns it; the last one takes the program with it.
///
/// # Errors
/// [`Error::NoRule`], [`Error::SelectionBroken`], [`Error::Privilege`].
pub fn remove(target: &Target) -> Result<Rule, Error> {
    require()?;
    let missing = || Error::NoRule { target: target.to_string() };
    if !kernel::has_bpffs() {
        return Err(missing());
    }
    let _lock = Lock::take()?;
    let selector = Selector::here();
    let table = selector.table()?.ok_or_else(missing)?;
    let choice = table.get(target)?.ok_or_else(missing)?;
    if table.has_one() {
        selector.remove()?;
    } else {
        selector.with(|| selector.table()?.ok_or_else(missing)?.remove(target))?;
    }
    Ok(tidied(Rule { target: target.clone(), choice }))
}

/// Replaces all rules by these, at once: a connection is decided by the previous or by the new. Returns how many the previous
/// were. What they name and their algorithms have not is made of the profiles.
///
/// # Errors
/// [`Error::TooManyRules`], [`Error::UnknownProfile`], [`Error::TooManyProfiles`], [`Error::SelectionBroken`], [`Error::Privilege`], or what the kernel refuses; nothing is
/// changed then.
pub fn replace(rules: &[Rule], profiles: &[Profile]) -> Result<usize, Error> {
    require()?;
    if rules.len() > RULES_MAX {
        return Err(Error::TooManyRules { most: RULES_MAX });
    }
    kernel::ensure_bpffs()?;
    let _lock = Lock::take()?;
    let selector = Selector::here();
    let previous = selector.table()?.map_or(0, |table| table.count());
    let work = || {
        let names = Names::with(rules.iter().filter_map(|rule| rule.choice.named()))?;
        selector.put(&Table::new(rules, &names)?)
    };
    tidied(sets::provide(rules, profiles).and_then(|()| selector.with(work)))?;
    Ok(previous)
}

/// Removes all rules and the program, whatever is left of them. Returns the rules; `None`: there was no selection.
///
/// # Errors
/// [`Error::Privilege`], or pins that cannot be removed.
pub fn clear() -> Result<Option<Vec<Rule>>, Error> {
    require()?;
    if !kernel::has_bpffs() {
        return Ok(None);
    }
    let _lock = Lock::take()?;
    let selector = Selector::here();
    if !selector.exists()? {
        profiles::tidy()?;
        return Ok(tidied(None));
    }
    // What cannot be read any more is removed all the same.
    let rules = selection_locked().ok().flatten().map_or_else(Vec::new, |selection| selection.rules);
    selector.remove()?;
    Ok(Some(tidied(rules)))
}
