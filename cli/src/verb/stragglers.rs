//! Sockets by network namespace, and those that still run code that was detached or replaced, as `detach` and `upgrade`
//! tell it.

use onramp_loader::Users;
use serde::Serialize;

use crate::units::count;

/// Open sockets of a network namespace.
#[derive(Serialize)]
pub(super) struct Sockets {
    pub namespace: String,
    pub sockets: usize,
}

impl Sockets {
    pub fn all(users: Vec<Users>) -> Vec<Self> {
        let one = |Users { namespace, sockets }| Self { namespace, sockets };
        users.into_iter().map(one).collect()
    }
}

/// A line for each namespace; without any, one if code is still loaded. `which`: the code's name.
pub(super) fn text(which: &str, stragglers: &[Sockets], still_loaded: usize) -> String {
    if stragglers.is_empty() && still_loaded > 0 {
        return format!(
            "  {which} code is still loaded: the kernel has not freed it yet, or sockets have it that are neither connected nor listening, which no list shows; `onramp status` says it until it is gone\n"
        );
    }
    let line = |Sockets { namespace, sockets }: &Sockets| {
        let sockets = count(*sockets, "socket");
        format!(
            "  still on the {which} code: {sockets} in network namespace {namespace}; it stays loaded until they close\n"
        )
    };
    stragglers.iter().map(line).collect()
}
