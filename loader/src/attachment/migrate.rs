//! Sockets that use a congestion control: finding them and moving them, in one network namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};

use libbpf_rs::{Iter, MapCore, MapFlags, Object};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use onramp_net::sock_diag::{SockDiag, States};

use crate::object::abi::{Holder, Migrated, bytes_of, read, text};
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

/// The iterator of sockets as it was loaded last, with the kernel's types: the next namespace most often asks the same of it.
#[derive(Default)]
pub(crate) struct Iterators {
    kernel: Option<Kernel>,
    loaded: Option<(Asked, Object)>,
}

/// What [`Migrating`] has.
type Asked = (String, Option<String>, Option<u32>);

impl Iterators {
    fn asked(&mut self, migrating: Migrating<'_>) -> Result<&Object, Error> {
        let Migrating { from, to, current } = migrating;
        let asked = (from.to_owned(), to.map(str::to_owned), current);
        let loaded = match self.loaded.take() {
            Some(loaded) if loaded.0 == asked => loaded,
            _ => (asked, load(migrating, open::MIGRATE, &mut self.kernel)?),
        };
        Ok(&self.loaded.insert(loaded).1)
    }
}

/// Moves the sockets of the calling thread's namespace, or reports them.
pub(crate) fn here(migrating: Migrating<'_>, iterators: &mut Iterators) -> Result<Moved, Error> {
    let loaded = iterators.asked(migrating)?;
    let counts = loaded.maps().find(|map| map.name() == "migrated");
    let failed = |action| open::failed(action, "migrate");
    if let Some(counts) = &counts {
        // Of this namespace alone.
        counts.update(&[0; 4], bytes_of(&Migrated::default()), MapFlags::ANY).map_err(failed("fill"))?;
    }
    // Between a namespace's listening sockets and the others the iterator of Linux 6.1 (tcp_seek_last_pos) goes on at the place
    // in the table where it was: without a listening socket that is the first, whose sockets it leaves out. Where loopback is
    // down nothing can listen there, and they stay.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    if let Ok(listener) = &listener {
        // So that it is none of those that are looked for.
        let _ = setsockopt(listener, TcpCongestion, &LAST_RESORT.into());
    }
    let left = iterate(loaded, open::MIGRATE)?;
    let counts = counts.map(|map| map.lookup(&[0; 4], MapFlags::ANY)).transpose();
    let counts = counts.map_err(failed("read"))?.flatten().unwrap_or_default();
    let Migrated { moved, listening, refused, .. } =
        read(&counts).map(|(counts, _)| counts).unwrap_or_default();
    Ok(Moved { moved: moved as usize, listening: listening as usize, refused: refused as usize, left })
}

/// Sockets on our controls that processes have open, in whichever network namespace, each by the first process found.
pub(crate) fn of_processes(iterators: &mut Iterators) -> Result<Vec<Holder>, Error> {
    let loaded = load(Migrating::NOTHING, open::HOLDERS, &mut iterators.kernel)?;
    let mut holders = iterate(&loaded, open::HOLDERS)?;
    holders.sort_by_key(|holder| (holder.socket, holder.pid));
    holders.dedup_by_key(|holder| holder.socket);
    Ok(holders)
}

/// What servers of the current network namespace have chosen for the connections that they accept, by port. Where several
/// listen on a port, all of them have to have chosen the same.
pub(crate) fn choices() -> Result<BTreeMap<u16, String>, Error> {
    let loaded = load(Migrating::NOTHING, open::LISTENERS, &mut None)?;
    let mut chosen = BTreeMap::<u16, BTreeSet<Option<String>>>::new();
    for listener in iterate(&loaded, open::LISTENERS)? {
        let control = (listener.chosen != 0).then(|| text(&listener.control));
        chosen.entry(listener.port).or_default().insert(control);
    }
    let agreed = |(port, controls): (u16, BTreeSet<Option<String>>)| match controls.len() {
        1 => Some((port, controls.into_iter().next()??)),
        _ => None,
    };
    Ok(chosen.into_iter().filter_map(agreed).collect())
}

fn load(migrating: Migrating<'_>, program: &str, kernel: &mut Option<Kernel>) -> Result<Object, Error> {
    let kernel = match kernel {
        Some(kernel) => kernel,
        None => kernel.insert(Kernel::read()?),
    };
    open::migrate(migrating, &[program], kernel)
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
