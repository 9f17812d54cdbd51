//! The default congestion control of network namespaces: taking it, and restoring it.
//!
//! What a namespace's default was before is kept in a pinned map of the control that replaced it, by the namespace's
//! cookie, which is never reused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use aya::maps::MapError;
use nix::errno::Errno;
use onramp_net::namespace::{Namespace, NamespaceError};

use crate::object::abi::{Base, NAMESPACES_MAX, padded, text};
use crate::object::algorithms;
use crate::pins::{self, Pins};
use crate::system::error::Error;
use crate::system::everywhere::{self, SYSCTL};
use crate::system::kernel::{self, LAST_RESORT};

/// Controls that every namespace may choose.
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
/// What a namespace gets whose previous default is not known or not there any more.
const PREFERRED: &str = "cubic";

/// A namespace whose default was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The namespace.
    pub namespace: String,
    /// Its default now.
    pub name: String,
}

/// What namespaces had before a control became their default, by the namespace's cookie. Read while its pins are there,
/// and used also when they are not any more.
#[derive(Debug, Default)]
pub(crate) struct Records(BTreeMap<u64, String>);

impl Records {
    /// Those of `pins`; what cannot be read is not recorded.
    pub fn new(pins: &Pins) -> Self {
        let Ok(map) = pins.defaults() else { return Self::default() };
        Self(map.iter().filter_map(Result::ok).map(|(cookie, name)| (cookie, text(&name))).collect())
    }

    /// That of one namespace, or all where none is named.
    fn of(pins: &Pins, only: Option<u64>) -> Self {
        let Some(cookie) = only else { return Self::new(pins) };
        let name = pins.defaults().ok().and_then(|map| map.get(&cookie, 0).ok());
        Self(name.into_iter().map(|name| (cookie, text(&name))).collect())
    }

    /// Controls among them that do not end up as `base` after slow start, each once.
    pub fn other_than(&self, base: Base) -> Vec<String> {
        let others = self.0.values().filter(|control| pins::base_of(control) != Some(base));
        others.cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// What a namespace may get instead of `control`, best first: what it had; else what was replaced elsewhere, since a
    /// new namespace copies its default from the first; else a control of the kernel that every namespace may choose.
    fn candidates<'a>(
        &'a self,
        control: &'a str,
        cookie: Option<u64>,
        registered: &'a [String],
        allowed: &'a str,
    ) -> impl Iterator<Item = &'a str> {
        let own = cookie.and_then(|cookie| self.0.get(&cookie));
        let preferred = allowed.split_whitespace().find(|name| *name == PREFERRED);
        let names = own.into_iter().chain(self.0.values()).map(String::as_str).chain(preferred);
        let there = move |name: &&str| *name != control && registered.iter().any(|one| one == name);
        names.filter(there).chain([LAST_RESORT])
    }
}

/// What a namespace had before the control of `pins`; `None`: that is not recorded.
pub(crate) fn recorded(pins: &Pins, namespace: &Namespace) -> Option<String> {
    let cookie = namespace.cookie().ok()?;
    Records::new(pins).0.remove(&cookie)
}

/// The default of a network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultOf {
    /// The namespace.
    pub namespace: String,
    /// A file that stands for it, such as /run/netns/NAME or /proc/PID/ns/net; `None`: it is that of this process.
    pub path: Option<PathBuf>,
    /// The name of its congestion control.
    pub name: String,
}

/// Defaults of network namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// Those that could be read.
    pub of: Vec<DefaultOf>,
    /// Where it could not be looked, and why.
    pub unseen: Vec<String>,
    /// Those that keep their default although they were to get another, and why.
    pub kept: Vec<(String, String)>,
}

/// Network namespaces other than that of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// All that can be found.
    All,
    /// Those that these files stand for.
    These(Vec<PathBuf>),
}

/// The defaults of all network namespaces, that of this process among them.
///
/// # Errors
/// [`Error::Privilege`], or /proc cannot be read.
pub fn defaults_everywhere() -> Result<Defaults, Error> {
    kernel::require_everywhere("a look at the defaults of all network namespaces")?;
    let here = Namespace::current()?;
    let mut of = Vec::new();
    let unseen = everywhere::each(|namespace| {
        of.push(default_of(namespace, &here, namespace.sysctl_get(SYSCTL)?));
        Ok(())
    })?;
    Ok(Defaults { of, unseen, kept: Vec::new() })
}

fn default_of(namespace: &Namespace, here: &Namespace, name: String) -> DefaultOf {
    let path = if namespace == here { None } else { namespace.path().map(Path::to_owned) };
    DefaultOf { namespace: namespace.to_string(), path, name }
}

/// Makes the control of `pins` the default of the current namespace; returns what it was, `None` if it was that already.
pub(crate) fn take(pins: &Pins) -> Result<Option<String>, Error> {
    take_in(pins, &Namespace::current()?)
}

/// The same of other namespaces; returns what they had. Of all of them, one that cannot be given it hinders no other.
pub(crate) fn take_elsewhere(pins: &Pins, which: &Elsewhere) -> Result<Defaults, Error> {
    let here = Namespace::current()?;
    let (mut of, mut kept) = (Vec::new(), Vec::new());
    let mut take = |namespace: &Namespace| {
        if let Some(before) = take_in(pins, namespace)? {
            of.push(default_of(namespace, &here, before));
        }
        Ok::<_, Error>(())
    };
    let unseen = match which {
        Elsewhere::All => everywhere::each(|namespace| {
            if let Err(error) = take(namespace) {
                kept.push((namespace.to_string(), error.to_string()));
            }
            Ok(())
        })?,
        Elsewhere::These(paths) => {
            // First, so that a file that is no namespace changes nothing.
            let opened: Result<Vec<_>, _> = paths.iter().map(Namespace::open).collect();
            opened?.iter().try_for_each(take)?;
            Vec::new()
        }
    };
    Ok(Defaults { of, unseen, kept })
}

fn take_in(pins: &Pins, namespace: &Namespace) -> Result<Option<String>, Error> {
    let name = pins.algorithm.congestion_control();
    let before = namespace.sysctl_get(SYSCTL)?;
    if before == name {
        return Ok(None);
    }
    let cookie = namespace.cookie()?;
    // What it replaced there once is below it no more.
    pass_on(pins, Some(cookie))?;
    // Recorded first: an interruption in between leaves a record of a default that was never replaced, which
    // restoring ignores.
    record(pins, cookie, &before)?;
    namespace.sysctl_set(SYSCTL, &name)?;
    tracing::debug!("{SYSCTL} of network namespace {namespace} was {before}");
    Ok(Some(before))
}

/// Records what a namespace had; where there is no room, in place of namespaces that have ended.
fn record(pins: &Pins, cookie: u64, before: &str) -> Result<(), Error> {
    let mut map = pins.defaults()?;
    let mut insert = || map.insert(cookie, padded::<16>(before), 0);
    match insert() {
        Err(error) if is_full(&error) => forget_ended(pins)?,
        other => return other.map_err(pins.failed("write", "defaults")),
    }
    insert().map_err(|error| {
        if is_full(&error) {
            Error::TooManyDefaults { algorithm: pins.algorithm.name(), most: NAMESPACES_MAX }
        } else {
            pins.failed("write", "defaults")(error)
        }
    })
}

/// A map that has as many elements as it may have.
fn is_full(error: &MapError) -> bool {
    matches!(error, MapError::SyscallError(error) if error.io_error.raw_os_error() == Some(Errno::E2BIG as i32))
}

/// Drops the records of namespaces that have ended. A namespace that cannot be looked into may be any of them: then all
/// stay.
fn forget_ended(pins: &Pins) -> Result<(), Error> {
    let mut live = BTreeSet::new();
    let unseen = everywhere::each(|namespace| {
        live.insert(namespace.cookie()?);
        Ok(())
    })?;
    if !unseen.is_empty() {
        return Ok(());
    }
    let mut map = pins.defaults()?;
    let ended: Vec<u64> = map.keys().filter_map(Result::ok).filter(|cookie| !live.contains(cookie)).collect();
    for cookie in &ended {
        map.remove(cookie).map_err(pins.failed("write", "defaults"))?;
    }
    tracing::debug!("dropped the previous defaults of {} network namespaces that have ended", ended.len());
    Ok(())
}

/// What the current namespace would get instead of the control of `pins`; `None`: its default is another.
pub(crate) fn previous(pins: &Pins) -> Result<Option<String>, Error> {
    let name = pins.algorithm.congestion_control();
    let Some(namespace) = here_with(&name)? else { return Ok(None) };
    let cookie = namespace.cookie().ok();
    let (records, registered, allowed) = (Records::new(pins), kernel::registered()?, allowed());
    Ok(records.candidates(&name, cookie, &registered, &allowed).next().map(str::to_owned))
}

/// Gives the current namespace what it had before the control of `pins`; returns that, `None` if its default is another.
pub(crate) fn restore_here(pins: &Pins) -> Result<Option<String>, Error> {
    let name = pins.algorithm.congestion_control();
    let Some(namespace) = here_with(&name)? else { return Ok(None) };
    let restored = restore(&namespace, &name, &Records::new(pins))?;
    // What was set without being recorded has no record.
    let _ = pins.defaults()?.remove(&namespace.cookie()?);
    Ok(Some(restored.name))
}

/// The current namespace, if this is its default.
fn here_with(name: &str) -> Result<Option<Namespace>, Error> {
    let namespace = Namespace::current()?;
    let default = namespace.sysctl_get(SYSCTL)?;
    Ok((default == name).then_some(namespace))
}

fn allowed() -> String {
    fs::read_to_string(ALLOWED).unwrap_or_default()
}

fn path_here() -> String {
    format!("/proc/sys/{}", SYSCTL.replace('.', "/"))
}

/// The default of the current namespace, read by this thread: also where no other can be started.
pub(crate) fn here() -> Result<String, Error> {
    let path = path_here();
    let text = fs::read_to_string(&path).map_err(Error::io("read", path))?;
    Ok(text.trim_end().to_owned())
}

/// Fails unless this process may set the default of the current namespace; sets nothing.
pub(crate) fn require_settable() -> Result<(), Error> {
    let path = path_here();
    match fs::OpenOptions::new().write(true).open(&path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(Error::Privilege { verb: "attach --default", capabilities: "CAP_NET_ADMIN" })
        }
        other => other.map(|_| ()).map_err(Error::io("open", path)),
    }
}

/// Where other controls have replaced this one as default (of one namespace, or of all), makes them restore what this
/// one had replaced: it is about to go. Writing the same again changes nothing, so this can be interrupted anywhere.
pub(crate) fn pass_on(pins: &Pins, only: Option<u64>) -> Result<(), Error> {
    let name = pins.algorithm.congestion_control();
    let records = Records::of(pins, only);
    for other in algorithms::all().filter(|other| *other != pins.algorithm) {
        let other = Pins::new(other);
        for (cookie, to) in rewritten(&Records::of(&other, only), &name, &records) {
            let failed = other.failed("write", "defaults");
            other.defaults()?.insert(cookie, padded::<16>(&to), 0).map_err(failed)?;
        }
    }
    Ok(())
}

/// The records of another control that have to change when `gone` goes, whose own records are `below`.
fn rewritten(above: &Records, gone: &str, below: &Records) -> Vec<(u64, String)> {
    let named = above.0.iter().filter(|(_, name)| *name == gone);
    named.filter_map(|(cookie, _)| Some((*cookie, below.0.get(cookie)?.clone()))).collect()
}

/// Gives a namespace whose default is `control` what it had before.
pub(crate) fn restore(namespace: &Namespace, control: &str, records: &Records) -> Result<Restored, Error> {
    let cookie = namespace.cookie().ok();
    let (registered, allowed) = (kernel::registered()?, allowed());
    for to in records.candidates(control, cookie, &registered, &allowed) {
        match namespace.sysctl_set(SYSCTL, to) {
            Ok(()) => {
                tracing::debug!("{SYSCTL} of network namespace {namespace} is {to} again");
                return Ok(Restored { namespace: namespace.to_string(), name: to.to_owned() });
            }
            // Not every control may be chosen outside the first namespace.
            Err(NamespaceError::Sysctl { source, .. })
                if source.kind() == ErrorKind::PermissionDenied && to != LAST_RESORT => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The last resort is always among them, and its refusal an error.
    Ok(Restored { namespace: namespace.to_string(), name: namespace.sysctl_get(SYSCTL)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(all: &[(u64, &str)]) -> Records {
        Records(all.iter().map(|(cookie, name)| (*cookie, (*name).to_owned())).collect())
    }

    fn candidates(records: &Records, cookie: u64) -> Vec<String> {
        let registered = ["reno", "bbr", "cubic", "onramp_plain"].map(str::to_owned);
        let names = records.candidates("onramp_search", Some(cookie), &registered, "reno cubic");
        names.map(str::to_owned).collect()
    }

    #[test]
    fn a_namespace_gets_what_it_had_and_else_what_is_likely_and_there() {
        let records = records(&[(1, "bbr"), (2, "onramp_plain"), (3, "gone"), (4, "onramp_search")]);
        assert_eq!(candidates(&records, 1)[0], "bbr");
        assert_eq!(candidates(&records, 2)[0], "onramp_plain");
        for without_own in [3, 4, 5] {
            assert_eq!(candidates(&records, without_own), ["bbr", "onramp_plain", "cubic", "reno"]);
        }
        assert_eq!(candidates(&Records::default(), 1), ["cubic", "reno"]);
    }

    #[test]
    fn what_goes_from_the_middle_of_a_stack_hands_down_what_it_had_replaced() {
        let below = records(&[(1, "bbr"), (2, "reno")]);
        let above = records(&[(1, "onramp_plain"), (2, "cubic"), (3, "onramp_plain")]);
        let to_bbr = vec![(1, "bbr".to_owned())];
        assert_eq!(rewritten(&above, "onramp_plain", &below), to_bbr);
    }
}
