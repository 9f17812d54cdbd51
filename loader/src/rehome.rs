//! Sockets that use a congestion control: finding them and moving them, in one network namespace.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};

use libbpf_rs::Iter;
use onramp_net::sock_diag::{SockDiag, States};

use crate::error::Error;
use crate::kernel::{CONTROL_PREFIX, Kernel};
use crate::open;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// They run the other code.
    pub moved: usize,
    /// They stay: their control may not be changed.
    pub refused: usize,
}

/// Moves the sockets of the calling thread's namespace from one control to another, or to the code that has a name now
/// from that which had it before. The kernel's types are read for the first namespace, and kept for the next.
pub(crate) fn move_here(from: &str, to: &str, kernel: &mut Option<Kernel>) -> Result<Moved, Error> {
    let failed = |action| open::failed(action, "rehome");
    let kernel = match kernel {
        Some(kernel) => kernel,
        None => kernel.insert(Kernel::read()?),
    };
    let loaded = open::rehome(from, to, kernel)?;
    // Between a namespace's listening sockets and the others the iterator of Linux 6.1 (tcp_seek_last_pos) goes on at the place
    // in the table where it was: with none that listens that is the first, whose sockets it leaves out. Where loopback is
    // down nothing can listen there, and they stay.
    let _listening = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let mut answers = Vec::new();
    for program in loaded.progs_mut() {
        let link = program.attach().map_err(failed("attach"))?;
        Iter::new(&link)
            .map_err(failed("iterate"))?
            .read_to_end(&mut answers)
            .map_err(Error::io("read", "the TCP socket iterator"))?;
    }
    let count = |which: u8| answers.iter().filter(|answer| **answer == which).count();
    Ok(Moved { moved: count(1), refused: count(0) })
}
