//! The default congestion control of network namespaces: taking it, and giving it back.
//!
//! What a namespace's default was before is kept in a pinned map of the control that replaced it, by the namespace's
//! cookie, which is never reused.

use onramp_net::namespace::{Namespace, NamespaceError};

use crate::abi::{padded, text};
use crate::error::Error;
use crate::kernel;
use crate::pins::Pins;

/// Per-namespace sysctl with the default.
pub(crate) const SYSCTL: &str = "net.ipv4.tcp_congestion_control";
/// What a namespace gets whose former default is not known or not there any more, in order.
const FALLBACKS: [&str; 2] = ["cubic", "reno"];

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
    Ok(before)
}

/// Namespaces whose default is `name`. Those that end meanwhile are left out.
pub(crate) fn having(name: &str) -> Result<Vec<Namespace>, Error> {
    let has = |namespace: &Namespace| namespace.sysctl_get(SYSCTL).is_ok_and(|default| default == name);
    Ok(Namespace::all()?.into_iter().filter(has).collect())
}

/// Gives every namespace whose default is the control of `pins` what it had before.
pub(crate) fn restore(pins: &Pins) -> Result<Vec<Restored>, Error> {
    let name = pins.algorithm.congestion_control();
    let mut restored = Vec::new();
    for namespace in having(&name)? {
        let before = recorded(pins, &namespace);
        let to = usable(before, &name)?;
        match namespace.sysctl_set(SYSCTL, &to) {
            Ok(()) => restored.push(Restored { namespace: namespace.to_string(), name: to }),
            // It ended while we looked.
            Err(NamespaceError::Enter { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(restored)
}

fn recorded(pins: &Pins, namespace: &Namespace) -> Option<String> {
    let map = pins.defaults().ok()?;
    let bytes = map.get(&namespace.cookie().ok()?, 0).ok()?;
    Some(text(&bytes))
}

fn usable(before: Option<String>, leaving: &str) -> Result<String, Error> {
    let registered = kernel::registered()?;
    let there = |name: &String| name != leaving && registered.contains(name);
    let fallback = || FALLBACKS.into_iter().map(str::to_owned).find(|name| registered.contains(name));
    Ok(before.filter(there).or_else(fallback).unwrap_or_else(|| "reno".into()))
}
