//! What network namespaces have of ours, and taking it away: their defaults and their open sockets. A namespace that
//! cannot be looked into is said to be unseen, for it may have something.

use std::collections::BTreeMap;

use onramp_net::namespace::Namespace;

use crate::defaults::{self, Records, Restored, SYSCTL};
use crate::error::Error;
use crate::kernel::CONTROL_PREFIX;
use crate::rehome::{self, Moved, Users};

/// What all namespaces have of ours, by the control's name.
#[derive(Default)]
pub(crate) struct Sight {
    /// Namespaces whose default it is.
    pub defaults: BTreeMap<String, Vec<String>>,
    /// Open sockets.
    pub users: BTreeMap<String, Vec<Users>>,
    /// Where it could not be looked, and why.
    pub unseen: Vec<String>,
}

impl Sight {
    /// Looks everywhere.
    pub fn of_all() -> Result<Self, Error> {
        let mut sight = Self::default();
        sight.unseen = each(|namespace| {
            let name = namespace.sysctl_get(SYSCTL)?;
            if name.starts_with(CONTROL_PREFIX) {
                sight.defaults.entry(name).or_default().push(namespace.to_string());
            }
            for (name, sockets) in namespace.run(rehome::count)?? {
                let users = Users { namespace: namespace.to_string(), sockets };
                sight.users.entry(name).or_default().push(users);
            }
            Ok(())
        })?;
        Ok(sight)
    }

    /// Whether a namespace has anything of this control.
    pub fn has(&self, name: &str) -> bool {
        self.defaults.contains_key(name) || self.users.contains_key(name)
    }
}

/// What was taken away from a control.
#[derive(Default)]
pub(crate) struct Taken {
    pub restored: Vec<Restored>,
    /// A namespace has kept it as default, because that could not be written.
    pub kept: bool,
    pub moved: usize,
    /// Open sockets that still have it.
    pub stragglers: Vec<Users>,
    pub unseen: Vec<String>,
}

/// Gives defaults back that are the control `name`, and moves its sockets to the defaults unless they are to be left.
pub(crate) fn take_away(name: &str, records: &Records, leave_sockets: bool) -> Result<Taken, Error> {
    let (mut taken, mut kernel) = (Taken::default(), None);
    taken.unseen = each(|namespace| {
        if namespace.sysctl_get(SYSCTL)? == name {
            let restored = defaults::restore(namespace, name, records);
            taken.kept |= restored.is_err();
            taken.restored.push(restored?);
        }
        let count = || Ok::<_, Error>(namespace.run(rehome::count)??.remove(name).unwrap_or(0));
        let mut sockets = count()?;
        if sockets > 0 && !leave_sockets {
            let to = namespace.sysctl_get(SYSCTL)?;
            let moved = namespace.run(|| rehome::move_here(name, &to, &mut kernel))??.moved;
            tracing::debug!("moved {moved} sockets of network namespace {namespace} from {name} to {to}");
            taken.moved += moved;
            sockets = count()?;
        }
        if sockets > 0 {
            taken.stragglers.push(Users { namespace: namespace.to_string(), sockets });
        }
        Ok(())
    })?;
    Ok(taken)
}

/// What went over to newer code of the same control.
#[derive(Default)]
pub(crate) struct Renewed {
    /// Namespaces whose default it is.
    pub defaults: usize,
    pub moved: usize,
    /// Open sockets that stay on the former code.
    pub stragglers: Vec<Users>,
    pub unseen: Vec<String>,
}

/// Has defaults that are the control `name`, and its sockets, use the code that has the name now. A default keeps the code
/// that it was set with until it is set again.
pub(crate) fn renew(name: &str) -> Result<Renewed, Error> {
    let mut renewed = Renewed::default();
    renewed.unseen = each(|namespace| {
        if namespace.sysctl_get(SYSCTL)? == name {
            namespace.sysctl_set(SYSCTL, name)?;
            renewed.defaults += 1;
        }
        Ok(())
    })?;
    // When no default makes sockets with the former code any more.
    let mut kernel = None;
    let unseen = each(|namespace| {
        if namespace.run(rehome::count)??.contains_key(name) {
            let Moved { moved, refused } = namespace.run(|| rehome::move_here(name, name, &mut kernel))??;
            tracing::debug!("{moved} sockets of network namespace {namespace} went over to the newer {name}");
            renewed.moved += moved;
            if refused > 0 {
                let namespace = namespace.to_string();
                renewed.stragglers.push(Users { namespace, sockets: refused });
            }
        }
        Ok(())
    })?;
    renewed.unseen.extend(unseen);
    renewed.unseen.sort();
    renewed.unseen.dedup();
    Ok(renewed)
}

/// Does something in every namespace; returns where it could not be done, and why.
fn each(mut work: impl FnMut(&Namespace) -> Result<(), Error>) -> Result<Vec<String>, Error> {
    let survey = Namespace::survey()?;
    let mut unseen = survey.unseen();
    for namespace in survey.namespaces() {
        match namespace {
            Ok(namespace) => {
                if let Err(error) = work(&namespace) {
                    unseen.push(format!("network namespace {namespace}: {error}"));
                }
            }
            Err(error) => unseen.push(error.to_string()),
        }
    }
    Ok(unseen)
}
