//! Choosing who gets what: rules that give connections a congestion control by their peer's prefix, port or cgroup.
//!
//! Rules lie in one pinned table, which a program at the root of cgroup v2 asks; both are there as long as there is a rule.
//! What is in the kernel is the only record of them.

mod apply;
mod cgroup;
mod decide;
mod deciders;
mod former;
pub(crate) mod program;
pub(crate) mod rule;
mod sets;
pub(crate) mod table;

pub use apply::{Changes, apply, plan_apply};
pub use cgroup::Cgroup;
pub use decide::Connection;
pub use deciders::{By, Deciders, Decision};
pub use rule::{Choice, RULES_MAX, Rule, Side, Target};
pub use sets::Profile;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use onramp_algorithm::Algorithm;

use crate::attach;
use crate::error::Error;
use crate::hierarchy;
use crate::kernel::{self, Capability};
use crate::pins::Lock;
use crate::profiles::{self, Names};
use crate::tune;
use program::{Linked, Selector};
use table::Table;

/// The selection of this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Its rules: those of prefixes, then those of ports, then those of cgroups.
    pub rules: Vec<Rule>,
    /// Whether all connections are given what the rules say. Not so where its link is missing, or elsewhere.
    pub active: bool,
    /// The cgroup, not the root, whose connections alone are given what the rules say.
    pub holds_in: Option<Cgroup>,
}

/// The rules of this host; `None`: there is no selection.
///
/// # Errors
/// [`Error::Privilege`], [`Error::SelectionBroken`], or maps that cannot be read.
pub fn selection() -> Result<Option<Selection>, Error> {
    require()?;
    if !kernel::has_bpffs() {
        return Ok(None);
    }
    let _lock = Lock::take()?;
    selection_locked()
}

/// The same without the lock, and with CAP_BPF alone: a command that is changing it may be seen half done.
///
/// # Errors
/// [`Error::SelectionBroken`], or maps that cannot be read.
pub fn peek() -> Result<Option<Selection>, Error> {
    if kernel::has_bpffs() { selection_locked() } else { Ok(None) }
}

/// The selection as `status` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Whether all connections are asked about.
    pub active: bool,
    /// The cgroup, not the root, whose connections alone are.
    pub holds_in: Option<Cgroup>,
    /// How many rules there are, or why they cannot be read.
    pub rules: Result<usize, String>,
    /// Controls that rules use and that are not registered.
    pub missing: BTreeSet<String>,
    /// Rules whose cgroup is gone.
    pub without_cgroup: usize,
    /// How many rules name a profile, by control and profile.
    pub profiles: BTreeMap<(String, String), usize>,
    /// Those of them that an attached algorithm has not: its own parameters take their place.
    pub missing_profiles: BTreeSet<(String, String)>,
}

/// A look at the selection, for a caller that holds the lock; `None`: there is none.
pub(crate) fn glance() -> Result<Option<Glance>, Error> {
    let selector = Selector::here();
    if !selector.exists() {
        return Ok(None);
    }
    let read = require().and_then(|()| selection_locked());
    let rules = read.as_ref().map(|selection| selection.as_ref().map_or(0, |one| one.rules.len()));
    let rules = rules.map_err(ToString::to_string);
    let selected = read.ok().flatten().map_or_else(Vec::new, |selection| selection.rules);
    let mut profiles = BTreeMap::new();
    for choice in selected.iter().map(|rule| &rule.choice) {
        if let Some(profile) = &choice.profile {
            *profiles.entry((choice.control.clone(), profile.clone())).or_default() += 1;
        }
    }
    Ok(Some(Glance {
        missing_profiles: missing_profiles(&selected),
        profiles,
        active: selector.linked().map_or(true, |linked| linked == Linked::Everywhere),
        holds_in: selector.holds_in().unwrap_or_default(),
        rules,
        missing: missing_controls(&selected)?,
        without_cgroup: selected.iter().filter(|rule| rule.is_orphan()).count(),
    }))
}

/// [`selection`] for a caller that holds the lock.
pub(crate) fn selection_locked() -> Result<Option<Selection>, Error> {
    let selector = Selector::here();
    if !selector.exists() {
        return Ok(None);
    }
    let mut rules = selector.table()?.map_or_else(|| Ok(Vec::new()), |table| table.rules())?;
    cgroup::name_all(&mut rules)?;
    rules.sort();
    let active = selector.linked()? == Linked::Everywhere;
    Ok(Some(Selection { rules, active, holds_in: selector.holds_in()? }))
}

/// The names of congestion controls that rules may use: `name` may be an algorithm, then it must be attached, or a control
/// of the kernel. Returns the kernel's name of it.
///
/// # Errors
/// [`Error::Privilege`], [`Error::UnknownControl`], [`Error::NotAttached`], [`Error::AttachedForRun`].
pub fn control(name: &str) -> Result<String, Error> {
    require()?;
    let Ok(algorithm) = crate::find(name) else {
        let registered = kernel::registered()?;
        if registered.iter().any(|control| control == name) {
            return Ok(name.into());
        }
        let registered = registered.join(", ");
        return Err(Error::UnknownControl { name: name.into(), known: crate::known(), registered });
    };
    let (_lock, pins) = tune::hold(algorithm)?;
    attach::require_no_run(&pins)?;
    Ok(algorithm.congestion_control())
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
        Some(existing) if !replace => Err(Error::RuleExists { rule: Box::new(existing) }),
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
        return Err(Error::RuleExists { rule: Box::new(existing.clone()) });
    }
    let rules = std::slice::from_ref(rule);
    let work = || {
        let names = Names::with([&rule.choice])?;
        match selector.table()? {
            Some(mut table) => table.insert(rule, &names),
            None => selector.put(&Table::of(rules, &names)?),
        }
    };
    tidied(sets::provide(rules, profiles).and_then(|()| selector.with(work)))?;
    Ok(existing)
}

/// Gives up what no rule names any more. That it could not be is told by `status`, and the next change tries again.
fn tidied<T>(done: T) -> T {
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

/// Replaces all rules by these, at once: a connection is decided by the former or by the new. Returns how many the former
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
    let former = selector.table()?.map_or(0, |table| table.count());
    let work = || {
        let names = Names::with(rules.iter().map(|rule| &rule.choice))?;
        selector.put(&Table::of(rules, &names)?)
    };
    tidied(sets::provide(rules, profiles).and_then(|()| selector.with(work)))?;
    Ok(former)
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
    if !selector.exists() {
        profiles::tidy()?;
        return Ok(tidied(None));
    }
    // What cannot be read any more is removed all the same.
    let rules = selection_locked().ok().flatten().map_or_else(Vec::new, |selection| selection.rules);
    selector.remove()?;
    Ok(Some(tidied(rules)))
}

/// Names of the controls that rules use and that are not registered: their connections get the default.
///
/// # Errors
/// [`Error::Io`] if `/proc` does not say what is registered.
pub fn missing_controls(rules: &[Rule]) -> Result<BTreeSet<String>, Error> {
    let registered = kernel::registered()?;
    let used = rules.iter().map(|rule| rule.choice.control.as_str());
    Ok(used.filter(|used| !registered.iter().any(|name| name == used)).map(str::to_owned).collect())
}

/// What rules name of algorithms that are attached and have no such profile, by control and profile: their own parameters
/// take its place.
pub fn missing_profiles(rules: &[Rule]) -> BTreeSet<(String, String)> {
    sets::missing(&sets::named(rules))
}

/// The cgroup, not the root of all, whose connections alone are given what rules say; `None` also where this process may
/// not ask.
pub fn holds_in() -> Option<Cgroup> {
    if kernel::has_bpffs() { Selector::here().holds_in().ok()? } else { None }
}

/// How many rules use an algorithm; 0 where this process may not ask.
pub fn rules_of(algorithm: Algorithm) -> usize {
    let control = algorithm.congestion_control();
    let rules = selection().ok().flatten().map_or_else(Vec::new, |selection| selection.rules);
    rules.iter().filter(|rule| rule.choice.control == control).count()
}

/// Where cgroups are found by their paths; `None`: there is no cgroup v2.
pub fn cgroup_root() -> Option<PathBuf> {
    hierarchy::top().ok()
}

/// Fails unless this process may ask and change what is selected: the table is found by the number that the kernel gives
/// it.
///
/// # Errors
/// [`Error::Privilege`].
pub fn require() -> Result<(), Error> {
    if Capability::SysAdmin.held() {
        return Ok(());
    }
    Err(Error::Privilege { verb: "select", capabilities: "CAP_SYS_ADMIN" })
}
