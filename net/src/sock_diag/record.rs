// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a dump yields, and which sockets it asks for.

use std::fmt;
use std::net::SocketAddr;
use std::ops::BitOr;

use super::TcpInfo;

/// A TCP socket as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Local address. An IPv4 connection over an IPv6 socket appears as an IPv4-mapped IPv6 address;
    /// `IpAddr::to_canonical` makes it IPv4.
    pub local: SocketAddr,
    /// Remote address; unspecified with port 0 for a listening socket.
    pub remote: SocketAddr,
    /// Connection state.
    pub state: TcpState,
    /// The kernel's identifier of the socket (`SO_COOKIE`), never reused until reboot.
    pub cookie: u64,
    /// Index of the interface the socket is bound to, 0 if none.
    pub interface: u32,
    /// Bytes received and not yet read. For a listening socket: connections waiting.
    pub receive_queue_bytes: u32,
    /// Bytes written and not yet acknowledged. For a listening socket: limit of the backlog.
    pub send_queue_bytes: u32,
    /// User that owns the socket.
    pub uid: u32,
    /// Inode of the socket (`socket:[N]` in `/proc/PID/fd`), 0 once no descriptor refers to it.
    pub inode: u32,
    /// Number of its cgroup (version 2), which it has had since it was made; `None` where the kernel has no cgroups.
    pub cgroup_id: Option<u64>,
    /// Name of the congestion control; `None` for sockets that have none (TIME-WAIT, SYN-RECV).
    pub congestion_control: Option<String>,
    /// State of the connection; `None` for sockets that have none (TIME-WAIT, SYN-RECV).
    pub info: Option<TcpInfo>,
    /// Memory of the socket; `None` where the kernel does not say.
    pub memory: Option<SocketMemory>,
    /// Values of the BPF socket storages that were asked for and exist on this socket.
    pub storages: Vec<Storage>,
}

/// Memory of a socket for sending (`INET_DIAG_SKMEMINFO`), bytes; the kernel's own structures are counted too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketMemory {
    /// Handed to the queueing discipline and the device, which have not freed it yet (`sk_wmem_alloc`).
    pub in_host_queue_bytes: u32,
    /// Written and not acknowledged yet (`sk_wmem_queued`).
    pub queued_bytes: u32,
    /// Limit of that (`sk_sndbuf`); the kernel raises it, unless the application has set `SO_SNDBUF`.
    pub send_buffer_bytes: u32,
}

/// One BPF socket storage of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Id of the map, as in `bpftool map`. Not the descriptor it was asked for by.
    pub map_id: u32,
    /// The value, of the map's value size.
    pub value: Vec<u8>,
}

/// State of a TCP connection (RFC 9293), with the kernel's own additions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the RFC's names")]
pub enum TcpState {
    Established,
    SynSent,
    SynRecv,
    FinWait1,
    FinWait2,
    TimeWait,
    Close,
    CloseWait,
    LastAck,
    Listen,
    Closing,
    /// A connection request in a listener's queue.
    NewSynRecv,
    /// Bound, neither connected nor listening (Linux 6.8).
    BoundInactive,
    /// A number this version does not know.
    Other(u8),
}

impl TcpState {
    /// From the kernel's number (linux/tcp_states.h).
    pub fn from_raw(raw: u8) -> Self {
        match raw {
            1 => Self::Established,
            2 => Self::SynSent,
            3 => Self::SynRecv,
            4 => Self::FinWait1,
            5 => Self::FinWait2,
            6 => Self::TimeWait,
            7 => Self::Close,
            8 => Self::CloseWait,
            9 => Self::LastAck,
            10 => Self::Listen,
            11 => Self::Closing,
            12 => Self::NewSynRecv,
            13 => Self::BoundInactive,
            other => Self::Other(other),
        }
    }

    /// The name that ss(8) prints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Established => "ESTAB",
            Self::SynSent => "SYN-SENT",
            Self::SynRecv | Self::NewSynRecv => "SYN-RECV",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::TimeWait => "TIME-WAIT",
            Self::Close | Self::BoundInactive => "UNCONN",
            Self::CloseWait => "CLOSE-WAIT",
            Self::LastAck => "LAST-ACK",
            Self::Listen => "LISTEN",
            Self::Closing => "CLOSING",
            Self::Other(_) => "UNKNOWN",
        }
    }
}

/// ss(8)'s name.
impl fmt::Display for TcpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of states to ask for; the kernel leaves out the others, so that a dump costs only what it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct States(u32);

impl States {
    /// Established connections only.
    pub const ESTABLISHED: Self = Self(1 << 1);
    /// Listening sockets only.
    pub const LISTEN: Self = Self(1 << 10);
    /// Sockets with a peer and a congestion control: all but LISTEN, CLOSE, TIME-WAIT and requests.
    pub const CONNECTED: Self = Self(1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11);
    /// Every state.
    pub const ALL: Self = Self(0x1fff << 1);

    /// The kernel's bit mask: bit N for state N.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl BitOr for States {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
