//! What network namespaces have of ours, and taking it away: their defaults and their open sockets. A namespace that
//! cannot be looked into is said to be unseen, for it may have something.

use std::collections::BTreeMap;

use onramp_net::namespace::Namespace;

use crate::attachment::defaults::{self, Records, Restored};
use crate::attachment::migrate::{self, Iterators, Moved, Users};
use crate::object::abi::Holder;
use crate::object::open::Migrating;
use crate::system::error::Error;
use crate::system::everywhere::{SYSCTL, each};
use crate::system::kernel::CONTROL_PREFIX;

/// What all namespaces have of ours, by the control's name.
#[derive(Default)]
pub(crate) struct NamespaceScan {
    /// Namespaces whose default it is.
    pub defaults: BTreeMap<String, Vec<String>>,
    /// Namespaces whose default is another: their names, and those of their controls.
    pub others: Vec<(String, String)>,
    /// Open sockets.
    pub users: BTreeMap<String, Vec<Users>>,
    /// Where it could not be looked, and why.
    pub unseen: Vec<String>,
}

impl NamespaceScan {
    /// Looks everywhere.
    pub fn of_all() -> Result<Self, Error> {
        let mut scan = Self::default();
        scan.unseen = each(|namespace| {
            let (name, users) = look(namespace)?;
            if name.starts_with(CONTROL_PREFIX) {
                scan.defaults.entry(name).or_default().push(namespace.to_string());
            } else {
                scan.others.push((namespace.to_string(), name));
            }
            for (name, sockets) in users {
                let users = Users { namespace: namespace.to_string(), sockets };
                scan.users.entry(name).or_default().push(users);
            }
            Ok(())
        })?;
        Ok(scan)
    }

    /// Namespaces whose default is another control than this: their names, and those of their controls.
    pub fn not_of(&self, name: &str) -> Vec<(String, String)> {
        let ours = self.defaults.iter().filter(|(other, _)| *other != name);
        let ours = ours.flat_map(|(other, all)| all.iter().map(|one| (one.clone(), other.clone())));
        self.others.iter().cloned().chain(ours).collect()
    }

    /// Whether a namespace has anything of this control.
    pub fn has(&self, name: &str) -> bool {
        self.defaults.contains_key(name) || self.users.contains_key(name)
    }
}

/// A namespace's default, and its open sockets by their control. A thread that enters the namespace for it costs more than
/// either: it is one for both.
fn look(namespace: &Namespace) -> Result<(String, BTreeMap<String, usize>), Error> {
    namespace.run(|| Ok((defaults::here()?, migrate::count()?)))?
}

/// What was taken away from a control.
#[derive(Default)]
pub(crate) struct Taken {
    pub restored: Vec<Restored>,
    /// A namespace has kept it as default, because that could not be written.
    pub kept: bool,
    pub moved: usize,
    /// The listening ones.
    pub listening: usize,
    /// Open sockets that still run its code.
    pub stragglers: Vec<Users>,
    pub unseen: Vec<String>,
}

/// Restores defaults that are the control `name`, and moves its sockets to the defaults unless they are to be left.
pub(crate) fn take_away(
    name: &str,
    records: &Records,
    leave_sockets: bool,
    iterators: &mut Iterators,
) -> Result<Taken, Error> {
    let mut taken = Taken::default();
    taken.unseen = each(|namespace| {
        let (default, mut users) = look(namespace)?;
        if default == name {
            let restored = defaults::restore(namespace, name, records);
            taken.kept |= restored.is_err();
            taken.restored.push(restored?);
            users = namespace.run(migrate::count)??;
        }
        if !users.contains_key(name) {
            return Ok(());
        }
        let to = namespace.sysctl_get(SYSCTL)?;
        let migrating = Migrating { from: name, to: (!leave_sockets).then_some(&to), current: None };
        let Moved { moved, listening, left, .. } =
            namespace.run(|| migrate::here(migrating, iterators))??;
        tracing::debug!("moved {moved} sockets of network namespace {namespace} from {name} to {to}");
        taken.moved += moved;
        taken.listening += listening;
        let idle = left.iter().filter(|holder| holder.only_listens()).count();
        let count = namespace.run(migrate::count)??.remove(name).unwrap_or(0);
        let sockets = count.saturating_sub(idle);
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
    /// Open sockets that stay on the old code.
    pub stragglers: Vec<Users>,
    pub unseen: Vec<String>,
}

/// Has defaults that are the control `name`, and its sockets, use the code that has the name now, which is `current`. A
/// default keeps the code that it was set with until it is set again.
pub(crate) fn renew(name: &str, current: Option<u32>) -> Result<Renewed, Error> {
    let mut renewed = Renewed::default();
    renewed.unseen = each(|namespace| {
        if namespace.sysctl_get(SYSCTL)? == name {
            namespace.sysctl_set(SYSCTL, name)?;
            renewed.defaults += 1;
        }
        Ok(())
    })?;
    // When no default makes sockets with the old code any more.
    let mut iterators = Iterators::default();
    let unseen = each(|namespace| {
        if namespace.run(migrate::count)??.contains_key(name) {
            let migrating = Migrating { from: name, to: Some(name), current };
            let Moved { moved, refused, .. } =
                namespace.run(|| migrate::here(migrating, &mut iterators))??;
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

/// Sockets that have a control, with their code: those of every namespace that a look has found to have some.
pub(crate) fn sockets_on(name: &str, iterators: &mut Iterators) -> Result<Vec<Holder>, Error> {
    let mut sockets = Vec::new();
    each(|namespace| {
        if namespace.run(migrate::count)??.contains_key(name) {
            let migrating = Migrating { from: name, to: None, current: None };
            sockets.extend(namespace.run(|| migrate::here(migrating, iterators))??.left);
        }
        Ok(())
    })?;
    Ok(sockets)
}
