//! Sockets that use a congestion control, in all network namespaces: finding them and moving them.

use std::collections::BTreeMap;
use std::io::Read;

use libbpf_rs::Iter;
use onramp_net::namespace::Namespace;
use onramp_net::sock_diag::{SockDiag, States};

use crate::error::Error;
use crate::{defaults, open};

/// Sockets of one namespace on one control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Users {
    /// The namespace.
    pub namespace: String,
    /// Its sockets, listening ones among them.
    pub sockets: usize,
}

/// Sockets by congestion control and namespace, for every control whose name begins with `onramp_`.
pub(crate) fn all_users() -> Result<BTreeMap<String, Vec<Users>>, Error> {
    let mut users: BTreeMap<String, Vec<Users>> = BTreeMap::new();
    for namespace in Namespace::all()? {
        // One that ended meanwhile has no sockets.
        let Ok(counted) = namespace.run(count) else { continue };
        for (name, sockets) in counted? {
            users.entry(name).or_default().push(Users { namespace: namespace.to_string(), sockets });
        }
    }
    Ok(users)
}

fn count() -> Result<BTreeMap<String, usize>, Error> {
    let mut counted = BTreeMap::new();
    SockDiag::open()?.dump(States::ALL, &[], |socket| {
        if let Some(name) = socket.congestion_control.filter(|name| name.starts_with("onramp_")) {
            *counted.entry(name).or_default() += 1;
        }
    })?;
    Ok(counted)
}

/// Sockets that use the control `name`, by namespace.
pub(crate) fn users(name: &str) -> Result<Vec<Users>, Error> {
    Ok(all_users()?.remove(name).unwrap_or_default())
}

/// Moves the sockets that use `name` to their namespace's default; returns how many went. Those that refuse stay,
/// and are found by [`users`].
pub(crate) fn move_sockets(name: &str) -> Result<usize, Error> {
    let mut moved = 0;
    for namespace in Namespace::all()? {
        let Ok(counted) = namespace.run(count) else { continue };
        if !counted?.contains_key(name) {
            continue;
        }
        let to = namespace.sysctl_get(defaults::SYSCTL)?;
        if to != name {
            let here = namespace.run(|| move_here(name, &to))??;
            tracing::debug!("moved {here} sockets of network namespace {namespace} from {name} to {to}");
            moved += here;
        }
    }
    Ok(moved)
}

/// Moves the sockets of the calling thread's namespace.
fn move_here(from: &str, to: &str) -> Result<usize, Error> {
    let failed = |action| open::failed(action, "rehome");
    let loaded = open::rehome(from, to)?;
    let mut moved = 0;
    for program in loaded.progs_mut() {
        let link = program.attach().map_err(failed("attach"))?;
        let mut answers = Vec::new();
        Iter::new(&link)
            .map_err(failed("iterate"))?
            .read_to_end(&mut answers)
            .map_err(Error::io("read", "the TCP socket iterator"))?;
        moved += answers.iter().filter(|answer| **answer == 1).count();
    }
    Ok(moved)
}
