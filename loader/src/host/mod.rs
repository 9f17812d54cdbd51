//! Settings of the host that are not onramp's own: changed only on request, and restored exactly.
//!
//! What each was before is recorded first, in a pinned map by the network namespace's cookie. It goes with a reboot, as the
//! settings do.

mod change;
mod place;
mod records;
mod setting;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use onramp_net::namespace::Namespace;

use crate::pins::Lock;
use crate::system::error::Error;
use crate::system::kernel;
use change::Changes;
use place::{HOST_COOKIE, Place};
pub(crate) use place::{HYSTART, QDISC, is_of_host, parameter};
use records::Records;
pub use setting::Setting;

/// A setting that is recorded as changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// What was changed.
    pub setting: Setting,
    /// Whose it is.
    pub owner: Owner,
}

/// Whose a setting is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The host has it once, whatever the network namespace.
    Host,
    /// A network namespace.
    Namespace {
        /// Its label.
        label: String,
        /// The file by which it is entered; `None`: it is the caller's.
        path: Option<PathBuf>,
    },
    /// A network namespace that was not found.
    Unseen,
}

/// What became of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is again what it was before.
    Restored,
    /// Another process has set it since, to this: it was left alone, and is recorded no more.
    Left(String),
    /// It could not be set, for this reason, and is still recorded.
    Failed(String),
}

/// What a restore did.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    /// The settings, with the network namespace of each; `None`: the host has it once.
    pub settings: Vec<(Option<String>, Setting, Outcome)>,
    /// Where it could not be looked, and why, if settings are recorded of a namespace that was not found: they still are.
    pub unseen: Vec<String>,
}

/// The value of a setting, its words separated by single spaces, as it is seen from a network namespace.
///
/// # Errors
/// [`Error::Namespace`] or [`Error::Io`]: there is none of that name here.
pub(crate) fn value(namespace: &Namespace, name: &str) -> Result<String, Error> {
    Place::new(name, namespace).get(name)
}

/// Sets sysctls of the current network namespace and parameters of its host, and records what they were. Those that have
/// their value already are left alone. Returns what was changed.
///
/// # Errors
/// [`Error::Privilege`], or a setting that cannot be set: then all are as before.
pub fn change(wanted: &[(&str, &str)]) -> Result<Vec<Setting>, Error> {
    kernel::require_privilege("doctor --fix")?;
    kernel::ensure_bpffs()?;
    let _lock = Lock::take()?;
    let namespace = Namespace::current()?;
    let mut records = Records::open_or_create()?;
    let mut changes = Changes::new(&namespace, &mut records);
    let mut result = Ok(());
    for (name, to) in wanted {
        result = changes.set(name, to);
        if result.is_err() {
            changes.take_back();
            break;
        }
    }
    let changed = changes.into_settings();
    records.tidy()?;
    result.map(|()| changed)
}

/// What is recorded, of all network namespaces.
///
/// # Errors
/// [`Error::Privilege`], or a map that cannot be read.
pub fn changed() -> Result<Vec<Changed>, Error> {
    kernel::require_privilege("status")?;
    if !kernel::has_bpffs() {
        return Ok(Vec::new());
    }
    let _lock = Lock::take()?;
    changed_locked()
}

/// [`changed`] for a caller that holds the lock.
pub(crate) fn changed_locked() -> Result<Vec<Changed>, Error> {
    let recorded = Records::open()?.map_or_else(|| Ok(Vec::new()), |records| records.all())?;
    let mut owners = HashMap::from([(HOST_COOKIE, Owner::Host)]);
    if recorded.iter().any(|(cookie, _)| *cookie != HOST_COOKIE) {
        let here = Namespace::current()?;
        for namespace in Namespace::survey()?.namespaces().flatten() {
            let Ok(cookie) = namespace.cookie() else { continue };
            let is_here = namespace == here;
            let path = namespace.path().filter(|_| !is_here).map(Path::to_owned);
            owners.insert(cookie, Owner::Namespace { label: namespace.to_string(), path });
        }
    }
    let owner = |cookie| owners.get(&cookie).cloned().unwrap_or(Owner::Unseen);
    let changed = |(cookie, setting)| Changed { setting, owner: owner(cookie) };
    Ok(recorded.into_iter().map(changed).collect())
}

/// Restores all recorded settings, in every network namespace. What another process has set since stays.
///
/// # Errors
/// [`Error::Privilege`], or what is recorded cannot be read.
pub fn restore_all() -> Result<Restored, Error> {
    kernel::require_everywhere("undo settings")?;
    let mut given = Restored::default();
    if !kernel::has_bpffs() {
        return Ok(given);
    }
    let _lock = Lock::take()?;
    let Some(mut records) = Records::open()? else { return Ok(given) };
    given.settings = restore_settings(Place::Host, None, &mut records)?;
    let survey = Namespace::survey()?;
    for namespace in survey.namespaces() {
        match namespace {
            Ok(namespace) => {
                let label = Some(namespace.to_string());
                given.settings.extend(restore_settings(Place::Namespace(&namespace), label, &mut records)?);
            }
            Err(error) => given.unseen.push(error.to_string()),
        }
    }
    let mut unseen = std::mem::take(&mut given.unseen);
    unseen.extend(survey.unseen());
    if given.settings.iter().any(|(_, _, outcome)| matches!(outcome, Outcome::Failed(_))) {
        given.unseen = unseen;
        return Ok(given);
    }
    if unseen.is_empty() {
        // Their namespaces have gone.
        for (cookie, setting) in records.all()? {
            records.remove(cookie, &setting.name)?;
        }
    } else if !records.all()?.is_empty() {
        given.unseen = unseen;
    }
    records.tidy()?;
    Ok(given)
}

fn restore_settings(
    place: Place<'_>,
    label: Option<String>,
    records: &mut Records,
) -> Result<Vec<(Option<String>, Setting, Outcome)>, Error> {
    let cookie = place.cookie()?;
    let mut given = Vec::new();
    for setting in records.settings(cookie)? {
        let outcome = restore(place, &setting)
            .and_then(|outcome| records.remove(cookie, &setting.name).map(|()| outcome))
            .unwrap_or_else(|error| Outcome::Failed(error.to_string()));
        given.push((label.clone(), setting, outcome));
    }
    Ok(given)
}

fn restore(place: Place<'_>, setting: &Setting) -> Result<Outcome, Error> {
    let now = place.get(&setting.name)?;
    if now == setting.set {
        place.set(&setting.name, &setting.before)?;
    } else if now != setting.before {
        return Ok(Outcome::Left(now));
    }
    Ok(Outcome::Restored)
}
