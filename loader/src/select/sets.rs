//! Parameter sets that rules name, in addition to the one that an algorithm was attached with. A set is made with the first rule
//! that names it, and goes with the last one, once no flow has it any more.

use std::collections::{BTreeMap, BTreeSet};

use onramp_algorithm::{Algorithm, Parameters};

use super::program::Selector;
use super::rule::Rule;
use crate::object::abi::{Attachment, PROFILE_MAX, padded, text};
use crate::object::algorithms;
use crate::object::level::Level;
use crate::pins::profiles::Names;
use crate::pins::{self, Pins, parameters};
use crate::system::error::Error;

/// Parameters of an algorithm, by the name that rules have for them.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name, at most 31 bytes.
    pub name: String,
    /// The algorithm's parameters.
    pub parameters: Parameters,
    /// Maximum telemetry level for its flows.
    pub telemetry_max: Level,
}

/// What rules name: controls, each with a profile.
pub(super) type Named = BTreeSet<(String, String)>;

pub(super) fn named(rules: &[Rule]) -> Named {
    let pair = |rule: &Rule| Some((rule.choice.control.clone(), rule.choice.profile.clone()?));
    rules.iter().filter_map(pair).collect()
}

/// What rules name and their algorithm has not, as far as it is attached; its own parameters take the place.
pub(super) fn missing(named: &Named) -> Named {
    let has = |(control, profile): &&(String, String)| {
        algorithms::find_control(control).is_some_and(|algorithm| {
            let pins = Pins::new(algorithm);
            !pins.exist().unwrap_or(true)
                || pins.attachment().map_or(true, |attachment| find(&attachment, profile).is_some())
        })
    };
    named.iter().filter(|pair| !has(pair)).cloned().collect()
}

/// Fails unless each algorithm has room for the sets that rules name. `anew`: those that will have none.
///
/// # Errors
/// [`Error::TooManyProfiles`].
pub(super) fn require_room(rules: &[Rule], anew: &[Algorithm]) -> Result<(), Error> {
    let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (control, profile) in named(rules) {
        wanted.entry(control).or_default().push(profile);
    }
    for (control, profiles) in wanted {
        let Some(algorithm) = algorithms::find_control(&control) else { continue };
        let mut taken = Vec::new();
        if !anew.contains(&algorithm)
            && let Some((pins, attachment)) = others(algorithm)
        {
            let flows = pins.counters()?.profile_flows;
            let numbers = 1..PROFILE_MAX;
            let used = numbers.filter(|at| attachment.profile_names[*at] != [0; 32] || flows[*at] != 0);
            taken.extend(used.map(|at| text(&attachment.profile_names[at])));
        }
        let added = profiles.iter().filter(|profile| !taken.contains(profile)).count();
        if taken.len() + added > PROFILE_MAX - 1 {
            let all: BTreeSet<_> =
                taken.into_iter().chain(profiles).filter(|name| !name.is_empty()).collect();
            let all = all.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Error::TooManyProfiles {
                most: PROFILE_MAX - 1,
                profiles: format!("of {}: {all}", algorithm.name()),
            });
        }
    }
    Ok(())
}

/// Makes the sets that rules name and that are not there, of these profiles. Those that are there stay as they are.
///
/// # Errors
/// [`Error::NotAttached`], [`Error::UnknownProfile`] for one that is neither there nor among the profiles,
/// [`Error::TooManyProfiles`].
pub(super) fn provide(rules: &[Rule], profiles: &[Profile]) -> Result<(), Error> {
    for (control, name) in named(rules) {
        let Some(algorithm) = algorithms::find_control(&control) else { continue };
        let pins = parameters::attached(algorithm)?;
        let mut attachment = pins.attachment()?;
        if find(&attachment, &name).is_some() {
            continue;
        }
        let of_it = |one: &&Profile| one.name == name && one.parameters.algorithm() == algorithm;
        let profile = profiles.iter().find(of_it).ok_or_else(|| Error::UnknownProfile {
            algorithm: algorithm.name(),
            profile: name.clone(),
            known: names(&attachment).join(", "),
        })?;
        let number = free(&pins, &attachment)?.ok_or_else(|| Error::TooManyProfiles {
            most: PROFILE_MAX - 1,
            profiles: format!("of {}: {}", algorithm.name(), names(&attachment)[1..].join(", ")),
        })?;
        parameters::begin(&pins, number as u32, &profile.name, &profile.parameters, profile.telemetry_max)?;
        attachment.profile_names[number] = padded(&name);
        write(&pins, attachment)?;
    }
    Ok(())
}

/// Gives up sets, and numbers, that no rule names any more, unless flows have them. The caller holds the lock.
pub(super) fn tidy() -> Result<(), Error> {
    let sets: Vec<_> = pins::pinned()?.into_iter().filter_map(others).collect();
    let names = Names::read()?;
    if sets.iter().all(|(_, attachment)| attachment.profiles < 2) && names.is_empty() {
        return Ok(());
    }
    let selector = Selector::here();
    let mut rules = selector.table()?.map_or_else(|| Ok(Vec::new()), |table| table.rules())?;
    rules.extend(selector.applied()?.map_or_else(|| Ok(Vec::new()), |table| table.rules())?);
    let named = named(&rules);
    for (pins, mut attachment) in sets.into_iter().filter(|(_, attachment)| attachment.profiles > 1) {
        let (control, flows) = (pins.algorithm.congestion_control(), pins.counters()?.profile_flows);
        for (number, name) in attachment.profile_names.iter_mut().enumerate().skip(1) {
            if flows[number] == 0 && !named.contains(&(control.clone(), text(name))) {
                *name = [0; 32];
            }
        }
        write(&pins, attachment)?;
    }
    names.keep(|control, profile| named.contains(&(control.to_owned(), profile.to_owned())))
}

/// The pins of an algorithm, and its attachment if this build can read it.
fn others(algorithm: Algorithm) -> Option<(Pins, Attachment)> {
    let pins = parameters::attached(algorithm).ok()?;
    let attachment = pins.attachment().ok()?;
    Some((pins, attachment))
}

fn find(attachment: &Attachment, name: &str) -> Option<usize> {
    attachment.profile_names.iter().position(|have| text(have) == name)
}

fn names(attachment: &Attachment) -> Vec<String> {
    attachment.profile_names.iter().map(|name| text(name)).filter(|name| !name.is_empty()).collect()
}

/// A number that has no name and no flow.
fn free(pins: &Pins, attachment: &Attachment) -> Result<Option<usize>, Error> {
    let flows = pins.counters()?.profile_flows;
    Ok((1..PROFILE_MAX).find(|number| attachment.profile_names[*number] == [0; 32] && flows[*number] == 0))
}

/// Writes the names of an attachment, if they are new.
fn write(pins: &Pins, mut attachment: Attachment) -> Result<(), Error> {
    let last = attachment.profile_names.iter().rposition(|name| *name != [0; 32]);
    attachment.profiles = last.map_or(1, |last| last as u32 + 1);
    if pins.attachment()?.profile_names == attachment.profile_names {
        return Ok(());
    }
    pins.array("attachment")?.set(0, attachment, 0).map_err(pins.failed("write", "attachment"))
}
