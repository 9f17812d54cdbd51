//! The rules of this host, as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use onramp_algorithm::Algorithm;

use super::cgroup::Cgroup;
use super::program::{Linked, Selector, require};
use super::rule::{Rule, name_cgroups};
use super::sets;
use crate::pins::Lock;
use crate::system::error::Error;
use crate::system::hierarchy;
use crate::system::kernel;

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

/// The selection as `status` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesSummary {
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
pub(crate) fn rules_summary() -> Result<Option<RulesSummary>, Error> {
    let selector = Selector::here();
    if !selector.exists()? {
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
    Ok(Some(RulesSummary {
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
    if !selector.exists()? {
        return Ok(None);
    }
    let mut rules = selector.table()?.map_or_else(|| Ok(Vec::new()), |table| table.rules())?;
    name_cgroups(&mut rules)?;
    rules.sort();
    let active = selector.linked()? == Linked::Everywhere;
    Ok(Some(Selection { rules, active, holds_in: selector.holds_in()? }))
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
