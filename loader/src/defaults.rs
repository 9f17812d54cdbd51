//! The default congestion control of network namespaces: taking it, and giving it back.
//!
//! What a namespace's default was before is kept in a pinned map of the control that replaced it, by the namespace's
//! cookie, which is never reused.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;

use onramp_net::namespace::{Namespace, NamespaceError};

use crate::abi::{padded, text};
use crate::error::Error;
use crate::kernel;
use crate::pins::Pins;

/// Per-namespace sysctl with the default.
pub(crate) const SYSCTL: &str = "net.ipv4.tcp_congestion_control";
/// Controls that every namespace may choose.
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
/// What a namespace gets whose former default is not known or not there any more.
const PREFERRED: &str = "cubic";
/// Always there and always allowed.
const LAST_RESORT: &str = "reno";

/// A namespace whose default was given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The namespace.
    pub namespace: String,
    /// Its default now.
    pub name: String,
}

/// Makes the control of `pins` the default of the current namespace; returns what it was.
pub(crate) fn take(pins: &Pins) -> Result<String, Error> {
    let namespace = Namespace::current()?;
    let before = namespace.sysctl_get(SYSCTL)?;
    // Recorded first: an interruption in between leaves a record of a default that was never replaced, which
    // restoring ignores.
    let mut map = pins.defaults()?;
    map.insert(namespace.cookie()?, padded::<16>(&before), 0).map_err(pins.failed("write", "defaults"))?;
    namespace.sysctl_set(SYSCTL, &pins.algorithm.congestion_control())?;
    tracing::debug!("{SYSCTL} of network namespace {namespace} was {before}");
    Ok(before)
}

/// Namespaces whose default is `name`. Those that end meanwhile are left out.
pub(crate) fn having(name: &str) -> Result<Vec<Namespace>, Error> {
    Ok(all()?.remove(name).unwrap_or_default())
}

/// Namespaces by their default, for every default whose name begins with `onramp_`.
pub(crate) fn all() -> Result<BTreeMap<String, Vec<Namespace>>, Error> {
    let mut found: BTreeMap<String, Vec<Namespace>> = BTreeMap::new();
    for namespace in Namespace::all()? {
        match namespace.sysctl_get(SYSCTL) {
            Ok(name) if name.starts_with("onramp_") => found.entry(name).or_default().push(namespace),
            _ => {}
        }
    }
    Ok(found)
}

/// Gives every namespace whose default is the control of `pins` what it had before.
pub(crate) fn restore(pins: &Pins) -> Result<Vec<Restored>, Error> {
    let name = pins.algorithm.congestion_control();
    let mut restored = Vec::new();
    for namespace in having(&name)? {
        for to in candidates(pins, &namespace)? {
            match namespace.sysctl_set(SYSCTL, &to) {
                Ok(()) => {
                    tracing::debug!("{SYSCTL} of network namespace {namespace} is {to} again");
                    restored.push(Restored { namespace: namespace.to_string(), name: to });
                    break;
                }
                // It ended while we looked.
                Err(NamespaceError::Enter { .. }) => break,
                // Not every control may be chosen outside the first namespace.
                Err(NamespaceError::Sysctl { source, .. })
                    if source.kind() == ErrorKind::PermissionDenied && to != LAST_RESORT => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(restored)
}

/// What a namespace may get, best first: what it had; else what was replaced elsewhere, since a new namespace copies
/// its default from the first; else a control of the kernel that every namespace may choose.
fn candidates(pins: &Pins, namespace: &Namespace) -> Result<Vec<String>, Error> {
    let registered = kernel::registered()?;
    let allowed = fs::read_to_string(ALLOWED).unwrap_or_default();
    let mut names = Vec::new();
    if let Ok(map) = pins.defaults() {
        names.extend(namespace.cookie().ok().and_then(|cookie| map.get(&cookie, 0).ok()));
        names.extend(map.iter().filter_map(|record| Some(record.ok()?.1)));
    }
    let mut names: Vec<String> = names.iter().map(|name| text(name)).collect();
    names.extend(allowed.split_whitespace().find(|name| *name == PREFERRED).map(str::to_owned));
    names.retain(|name| *name != pins.algorithm.congestion_control() && registered.contains(name));
    names.push(LAST_RESORT.into());
    Ok(names)
}
