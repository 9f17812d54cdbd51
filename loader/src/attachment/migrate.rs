//! Sockets that use a congestion control: finding them and moving them, in one network namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};

use libbpf_rs::{Iter, MapCore, MapFlags, Object};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use onramp_net::sock_diag::{SockDiag, States};

use crate::object::abi::{Holder, Migrated, read, text};
use crate::object::open::{self, Migrating};
use crate::system::error::Error;
use crate::system::kernel::{CONTROL_PREFIX, Kernel, LAST_RESORT};

/// Sockets of one namespace on one control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Users {
    /// The namespace.
    pub namespace: String,
    /// Its sockets, listening ones among them.
    pub sockets: usize,
}

/// Sockets of the calling thread's namespace by congestion control, for every control whose name begins with `onramp_`.
pub(crate) fn count() -> Result<BTreeMap<String, usize>, Error> {
    let mut counted = BTreeMap::new();
    SockDiag::open()?.dump(States::ALL, &[], |socket| {
        if let Some(name) = socket.congestion_control.filter(|name| name.starts_with(CONTROL_PREFIX)) {
            *counted.entry(name).or_default() += 1;
        }
    })?;
    Ok(counted)
}

/// What became of sockets that were to move.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moved {
    /// They run the other code.
    pub moved: usize,
    /// The listening ones.
    pub listening: usize,
    /// They stay: their control may not be changed.
    pub refused: usize,
    /// They were left as they are: listening sockets on which TCP_CONGESTION was not set; all, where none was to move.
    pub left: Vec<Holder>,
}

/// Moves the sockets of the calling thread's namespace, or reports them. The kernel's types are read for the first
/// namespace, and kept for the next.
pub(crate) fn here(migrating: Migrating<'_>, kernel: &mut Option<Kernel>) -> Result<Moved, Error> {
    let loaded = load(migrating, kernel)?;
    // Between a namespace's listening sockets and the others the iterator of Linux 6.1 (tcp_seek_last_pos) goes on at the place
    // in the table where it was: without a listening socket that is the first, whose sockets it leaves out. Where loopback is
    // down nothing can listen there, and they stay.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    if let Ok(listener) = &listener {
        // So that it is none of those that are looked for.
        let _ = setsockopt(listener, TcpCongestion, &LAST_RESORT.into());
    }
    let left = iterate(&loaded, "migrate")?;
    let counts = loaded.maps().find(|map| map.name() == "migrated");
    let counts = counts.map(|map| map.lookup(&[0; 4], MapFlags::ANY)).transpose();
    let counts = counts.map_err(open::failed("read", "migrate"))?.flatten().unwrap_or_default();
    let Migrated { moved, listening, refused, .. } =
        read(&counts).map(|(counts, _)| counts).unwrap_or_default();
    Ok(Moved { moved: moved as usize, listening: listening as usize, refused: refused as usize, left })
}

/// Sockets on our controls that processes have open, in whichever network namespace, each by the first process found.
pub(crate) fn of_processes(kernel: &mut Option<Kernel>) -> Result<Vec<Holder>, Error> {
    let none = Migrating { from: "", to: None, current: None };
    let mut holders = iterate(&load(none, kernel)?, "holders")?;
    holders.sort_by_key(|holder| (holder.cookie, holder.pid));
    holders.dedup_by_key(|holder| holder.cookie);
    Ok(holders)
}

/// What servers of the current network namespace have chosen for the connections that they accept, by port. Where several
/// listen on a port, all of them have to have chosen the same.
pub(crate) fn choices() -> Result<BTreeMap<u16, String>, Error> {
    let none = Migrating { from: "", to: None, current: None };
    let mut chosen = BTreeMap::<u16, BTreeSet<Option<String>>>::new();
    for listener in iterate(&load(none, &mut None)?, "listeners")? {
        let control = (listener.chosen != 0).then(|| text(&listener.control));
        chosen.entry(listener.port).or_default().insert(control);
    }
    let agreed = |(port, controls): (u16, BTreeSet<Option<String>>)| match controls.len() {
        1 => Some((port, controls.into_iter().next()??)),
        _ => None,
    };
    Ok(chosen.into_iter().filter_map(agreed).collect())
}

fn load(migrating: Migrating<'_>, kernel: &mut Option<Kernel>) -> Result<Object, Error> {
    let kernel = match kernel {
        Some(kernel) => kernel,
        None => kernel.insert(Kernel::read()?),
    };
    open::migrate(migrating, kernel)
}

/// What one of the iterators writes.
fn iterate(loaded: &Object, name: &str) -> Result<Vec<Holder>, Error> {
    let failed = |action| open::failed(action, "migrate");
    let mut bytes = Vec::new();
    for program in loaded.progs_mut().filter(|program| program.name() == name) {
        let link = program.attach().map_err(failed("attach"))?;
        Iter::new(&link)
            .map_err(failed("iterate"))?
            .read_to_end(&mut bytes)
            .map_err(Error::io("read", "the iterator of sockets"))?;
    }
    let mut rest = bytes.as_slice();
    let mut holders = Vec::new();
    while let Some((holder, after)) = read(rest) {
        holders.push(holder);
        rest = after;
    }
    Ok(holders)
}
