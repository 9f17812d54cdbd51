//! Rules as `onramp apply` wants them: those that it made and does not want any more go, those of others stay.

use std::collections::{BTreeMap, BTreeSet};

use onramp_algorithm::Algorithm;

use super::edit::tidied;
use super::program::{Selector, require};
use super::rule::{Choice, RULES_MAX, Rule, Target, name_cgroups};
use super::selection::{Selection, selection_locked};
use super::sets::{self, Profile};
use super::table::Table;
use crate::pins::Lock;
use crate::pins::profiles::Names;
use crate::system::error::Error;
use crate::system::kernel;

/// What it takes to have the rules that are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Rules that are new.
    pub added: Vec<Rule>,
    /// Rules that take the place of others for the same connections, which come first.
    pub replaced: Vec<(Rule, Rule)>,
    /// Rules that `onramp apply` made and that are not wanted any more.
    pub removed: Vec<Rule>,
    /// Profiles that rules name and that their algorithm, which is attached, has not: by control and name.
    pub profiles: BTreeSet<(String, String)>,
    /// There are rules, and no connection is asked about: a command was cut off, or a pin was removed.
    pub out_of_use: bool,
}

impl Changes {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What [`apply`] would change; changes nothing. `anew`: algorithms that will be attached before, and have none of the profiles
/// that they have now.
///
/// # Errors
/// What [`apply`] fails with, as far as it can be known before.
pub fn plan_apply(wanted: &[Rule], anew: &[Algorithm]) -> Result<Changes, Error> {
    require_number(wanted)?;
    sets::require_room(wanted, anew)?;
    let selector = Selector::here();
    if wanted.is_empty() && (!kernel::has_bpffs() || !selector.exists_as_seen()?) {
        return Ok(Changes::default());
    }
    require()?;
    selector.require_root()?;
    if !kernel::has_bpffs() {
        return Ok(Changes { added: wanted.to_vec(), ..Changes::default() });
    }
    let _lock = Lock::take()?;
    let merge = Merge::new(&selector, wanted)?;
    require_number(&merge.next)?;
    Ok(merge.changes)
}

/// Has these rules, at once, next to those that others have made. What they name and their algorithms have not is made of
/// the profiles.
///
/// # Errors
/// [`Error::TooManyRules`], [`Error::UnknownProfile`], [`Error::TooManyProfiles`], [`Error::SelectionBroken`], [`Error::Privilege`], or what the kernel refuses.
pub fn apply(wanted: &[Rule], profiles: &[Profile]) -> Result<Changes, Error> {
    require()?;
    kernel::ensure_bpffs()?;
    let _lock = Lock::take()?;
    let selector = Selector::here();
    let Merge { changes, next, made, made_before } = Merge::new(&selector, wanted)?;
    if changes.is_empty() {
        return Ok(changes);
    }
    if next.is_empty() {
        selector.remove()?;
        return Ok(tidied(changes));
    }
    require_number(&next)?;
    // A mark without its rule says nothing, so what is marked first is never taken for another's.
    let either: BTreeMap<_, _> = made_before.iter().chain(&made).map(pair).collect();
    let work = || {
        let names = Names::with(next.iter().filter_map(|rule| rule.choice.named()))?;
        let table = Table::new(&next, &names)?;
        selector.mark_applied(&rules(either)).and_then(|()| selector.put(&table))?;
        selector.mark_applied(&made)
    };
    tidied(sets::provide(wanted, profiles).and_then(|()| selector.with(work)))?;
    Ok(changes)
}

fn require_number(rules: &[Rule]) -> Result<(), Error> {
    if rules.len() > RULES_MAX { Err(Error::TooManyRules { most: RULES_MAX }) } else { Ok(()) }
}

/// What there will be.
struct Merge {
    changes: Changes,
    /// All rules.
    next: Vec<Rule>,
    /// Those of them that `onramp apply` made.
    made: Vec<Rule>,
    /// Those that it made before.
    made_before: Vec<Rule>,
}

impl Merge {
    fn new(selector: &Selector, wanted: &[Rule]) -> Result<Self, Error> {
        let Selection { rules: existing, active, .. } = selection_locked()?.unwrap_or_default();
        let marks = selector.applied()?.map_or_else(|| Ok(Vec::new()), |table| table.rules())?;
        let mut merge = Self::between(&existing, &marks, wanted);
        name_cgroups(&mut merge.changes.removed)?;
        merge.changes.profiles = sets::missing(&sets::named(wanted));
        merge.changes.out_of_use = !active && !existing.is_empty();
        Ok(merge)
    }

    fn between(existing: &[Rule], marks: &[Rule], wanted: &[Rule]) -> Self {
        let before: BTreeMap<_, _> = existing.iter().map(pair).collect();
        // What has been changed by hand since is its own.
        let is_there = |rule: &&Rule| before.get(&rule.target) == Some(&rule.choice);
        let made_before: Vec<Rule> = marks.iter().filter(is_there).cloned().collect();
        let after: BTreeMap<_, _> = wanted.iter().map(pair).collect();
        let mut changes = Changes::default();
        let mut made: BTreeMap<_, _> = made_before.iter().map(pair).collect();
        let mut next = before.clone();
        for rule in made_before.iter().filter(|rule| !after.contains_key(&rule.target)) {
            changes.removed.push(rule.clone());
            made.remove(&rule.target);
            next.remove(&rule.target);
        }
        for rule in wanted {
            let (target, choice) = pair(rule);
            match next.insert(target.clone(), choice.clone()) {
                Some(same) if same == choice => continue,
                Some(choice) => {
                    changes.replaced.push((Rule { target: target.clone(), choice }, rule.clone()))
                }
                None => changes.added.push(rule.clone()),
            }
            made.insert(target, choice);
        }
        Self { changes, next: rules(next), made: rules(made), made_before }
    }
}

fn pair(rule: &Rule) -> (Target, Choice) {
    (rule.target.clone(), rule.choice.clone())
}

fn rules(pairs: BTreeMap<Target, Choice>) -> Vec<Rule> {
    pairs.into_iter().map(|(target, choice)| Rule { target, choice }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Side;
    use super::*;

    fn rule(port: u16, control: &str) -> Rule {
        let choice = Choice { control: control.into(), profile: None, initial_window: None, resume: None };
        Rule { target: Target { to: None, port: Some(port), cgroup: None, side: Side::Both }, choice }
    }

    #[test]
    fn only_what_was_made_and_is_as_it_was_made_is_taken_away() {
        let by_hand = rule(1, "cubic");
        let existing = [by_hand.clone(), rule(2, "reno"), rule(3, "bbr"), rule(4, "cubic"), rule(5, "reno")];
        // The rule of port 3 has been changed by hand since, that of port 6 removed; that of port 5 was never made.
        let marks = [rule(2, "reno"), rule(3, "reno"), rule(4, "cubic"), rule(6, "reno")];
        let wanted = [rule(4, "bbr"), rule(5, "reno"), rule(7, "reno")];
        let merge = Merge::between(&existing, &marks, &wanted);
        assert_eq!(merge.changes.added, [rule(7, "reno")]);
        assert_eq!(merge.changes.replaced, [(rule(4, "cubic"), rule(4, "bbr"))]);
        assert_eq!(merge.changes.removed, [rule(2, "reno")]);
        assert_eq!(merge.next, [by_hand, rule(3, "bbr"), rule(4, "bbr"), rule(5, "reno"), rule(7, "reno")]);
        assert_eq!(merge.made, [rule(4, "bbr"), rule(7, "reno")]);
        assert_eq!(merge.made_before, [rule(2, "reno"), rule(4, "cubic")]);

        let again = Merge::between(&merge.next, &merge.made, &wanted);
        assert!(again.changes.is_empty(), "{:?}", again.changes);
        assert_eq!(again.made, merge.made);
        let nothing = Merge::between(&merge.next, &merge.made, &[]);
        assert_eq!(nothing.changes.removed, merge.made);
        assert_eq!(nothing.next, [rule(1, "cubic"), rule(3, "bbr"), rule(5, "reno")]);
    }
}
