// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! TCP sockets of a network namespace over `NETLINK_SOCK_DIAG`, what ss(8) uses: one request and a stream of
//! records, with `tcp_info`, congestion control name and BPF socket storage. It needs no BPF program and no
//! daemon, and costs nothing while there is no request.
//!
//! ```no_run
//! use onramp_net::sock_diag::{SockDiag, States};
//!
//! let mut diag = SockDiag::open()?;
//! diag.dump(States::ESTABLISHED, &[], |socket| {
//!     if let Some(info) = socket.info {
//!         println!("{} {} segments, {} us", socket.remote, info.snd_cwnd, info.rtt_us);
//!     }
//! })?;
//! # Ok::<(), onramp_net::sock_diag::SockDiagError>(())
//! ```

mod record;
mod tcp_info;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::HashSet;
use std::io;
use std::os::fd::BorrowedFd;

use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket as NetlinkSocket, SocketAddr as NetlinkAddress};
use nix::errno::Errno;
use thiserror::Error;

pub use record::{Socket, SocketMemory, States, Storage, TcpState};
pub use tcp_info::{TcpInfo, ca_state};

use crate::netlink::{messages, u32_at};

/// Receive buffer, of the socket and of each call. The kernel fills datagrams up to the buffer it is offered (at
/// most 32 KiB unless one record needs more), so a large one means few calls.
const BUFFER_BYTES: usize = 256 * 1024;

/// How often a dump is begun again when sockets came and went while it ran.
const ATTEMPTS: usize = 4;

/// Longest wait for the kernel's next datagram, seconds. A dump is answered from the system call itself; this
/// only guards against waiting for ever.
const TIMEOUT_SECONDS: i64 = 5;

/// What can go wrong with a dump.
#[derive(Debug, Error)]
pub enum SockDiagError {
    /// The netlink socket could not be made ready.
    #[error("cannot open a socket for NETLINK_SOCK_DIAG: {0}; the kernel needs CONFIG_INET_DIAG")]
    Open(#[source] io::Error),
    /// Sending the request or receiving the answer failed.
    #[error("cannot {action} NETLINK_SOCK_DIAG: {source}")]
    Transfer {
        /// `send to` or `receive from`.
        action: &'static str,
        /// Reason.
        source: io::Error,
    },
    /// The kernel refused the dump.
    #[error("the kernel refused to list {family} TCP sockets{with}: {source}", with = storage_note(*.storages))]
    Refused {
        /// `IPv4` or `IPv6`.
        family: &'static str,
        /// How many BPF socket storages were asked for.
        storages: usize,
        /// Why. EPERM with storages: CAP_BPF is missing; EBADF: a map's descriptor is wrong.
        source: Errno,
    },
    /// More than one record's worth of storage, larger than any map allows.
    #[error(
        "the kernel's answer of {bytes} bytes exceeds the buffer of {BUFFER_BYTES}: ask for fewer storages"
    )]
    TooLong {
        /// Size of the datagram.
        bytes: usize,
    },
    /// The answer is not netlink.
    #[error("the kernel's answer of {bytes} bytes cannot be parsed")]
    Malformed {
        /// Size of the datagram.
        bytes: usize,
    },
    /// Sockets came and went faster than they could be listed.
    #[error("the list of TCP sockets changed during each of {ATTEMPTS} attempts: try again")]
    Interrupted,
}

fn storage_note(storages: usize) -> &'static str {
    if storages == 0 { "" } else { " with BPF socket storage (needs CAP_BPF and open socket-storage maps)" }
}

/// A netlink socket for dumps.
///
/// It shows the namespace of the thread that opened it, for good: open it inside
/// [`Namespace::run`](crate::Namespace::run) and use it from any thread.
pub struct SockDiag {
    socket: NetlinkSocket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl SockDiag {
    /// Opens a netlink socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`SockDiagError::Open`] when the kernel has no sock_diag.
    pub fn open() -> Result<Self, SockDiagError> {
        let mut socket = NetlinkSocket::new(NETLINK_SOCK_DIAG).map_err(SockDiagError::Open)?;
        socket.bind_auto().map_err(SockDiagError::Open)?;
        socket.set_rx_buf_sz(BUFFER_BYTES as libc::c_int).map_err(SockDiagError::Open)?;
        let timeout = nix::sys::time::TimeVal::new(TIMEOUT_SECONDS, 0);
        nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::ReceiveTimeout, &timeout)
            .map_err(|errno| SockDiagError::Open(errno.into()))?;
        socket.connect(&NetlinkAddress::new(0, 0)).map_err(SockDiagError::Open)?;
        Ok(Self { socket, sequence: 0, buffer: vec![0; BUFFER_BYTES] })
    }

    /// Calls `each` for every TCP socket, IPv4 and IPv6, that is in one of `states`, and returns their number.
    ///
    /// `storages` are descriptors of `BPF_MAP_TYPE_SK_STORAGE` maps, each at most once; their values come with
    /// the sockets that have one. Every socket is delivered once, also when the kernel reports that the list
    /// changed underneath and it has to be read again.
    ///
    /// # Errors
    /// [`SockDiagError::Refused`] (for instance storages without CAP_BPF), [`SockDiagError::Interrupted`], or
    /// trouble with the netlink socket. `each` may have been called before an error.
    pub fn dump(
        &mut self,
        states: States,
        storages: &[BorrowedFd<'_>],
        mut each: impl FnMut(Socket),
    ) -> Result<usize, SockDiagError> {
        let mut total = 0;
        for (family, name) in [(libc::AF_INET, "IPv4"), (libc::AF_INET6, "IPv6")] {
            let mut seen = Seen::default();
            let mut complete = false;
            for _ in 0..ATTEMPTS {
                self.sequence = self.sequence.wrapping_add(1);
                let request = wire::request(family as u8, states.bits(), storages, self.sequence);
                self.socket
                    .send(&request, 0)
                    .map_err(|source| SockDiagError::Transfer { action: "send to", source })?;
                complete = match self.receive(&mut seen, &mut each) {
                    Ok(complete) => complete,
                    // A kernel without IPv6 knows no such family.
                    Err(Failure::Kernel(Errno::ENOENT)) if family == libc::AF_INET6 => true,
                    Err(Failure::Kernel(source)) => {
                        return Err(SockDiagError::Refused {
                            family: name,
                            storages: storages.len(),
                            source,
                        });
                    }
                    Err(Failure::Other(error)) => return Err(error),
                };
                if complete {
                    break;
                }
                seen.begin_again();
            }
            if !complete {
                return Err(SockDiagError::Interrupted);
            }
            total += seen.delivered.len();
        }
        Ok(total)
    }

    /// Reads datagrams until the dump is done. `Ok(false)`: it has to be repeated.
    fn receive(&mut self, seen: &mut Seen, each: &mut impl FnMut(Socket)) -> Result<bool, Failure> {
        let mut consistent = true;
        loop {
            let bytes = loop {
                // MSG_TRUNC: the length of the datagram, also when the buffer is shorter.
                match self.socket.recv(&mut &mut self.buffer[..], libc::MSG_TRUNC) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(source) => {
                        return Err(SockDiagError::Transfer { action: "receive from", source }.into());
                    }
                    Ok(bytes) => break bytes,
                }
            };
            let datagram = self.buffer.get(..bytes).ok_or(SockDiagError::TooLong { bytes })?;
            for message in messages(datagram) {
                let message = message.map_err(|()| SockDiagError::Malformed { bytes })?;
                // What is left of a dump that ended in an error.
                if message.sequence != self.sequence {
                    continue;
                }
                consistent &= i32::from(message.flags) & libc::NLM_F_DUMP_INTR == 0;
                match i32::from(message.kind) {
                    libc::NLMSG_DONE | libc::NLMSG_ERROR => {
                        // Both begin with a negative errno; DONE has none before Linux 4.11 or so.
                        let errno = u32_at(message.payload, 0).unwrap_or(0).cast_signed();
                        if errno != 0 {
                            return Err(Failure::Kernel(Errno::from_raw(errno.wrapping_neg())));
                        }
                        return Ok(consistent);
                    }
                    libc::NLMSG_NOOP => {}
                    _ => {
                        let socket =
                            wire::socket(message.payload).ok_or(SockDiagError::Malformed { bytes })?;
                        if seen.is_new(socket.cookie) {
                            each(socket);
                        }
                    }
                }
            }
        }
    }
}

/// How reading one answer failed.
enum Failure {
    Kernel(Errno),
    Other(SockDiagError),
}

impl From<SockDiagError> for Failure {
    fn from(error: SockDiagError) -> Self {
        Self::Other(error)
    }
}

/// Which sockets were delivered, so that repeating a dump delivers none twice. The set is only filled when a dump
/// is repeated, which is rare.
#[derive(Default)]
struct Seen {
    delivered: Vec<u64>,
    before: HashSet<u64>,
}

impl Seen {
    fn is_new(&mut self, cookie: u64) -> bool {
        let new = !self.before.contains(&cookie);
        if new {
            self.delivered.push(cookie);
        }
        new
    }

    fn begin_again(&mut self) {
        self.before.extend(&self.delivered);
    }
}
