//! `bpf/shadow.h` in Rust.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::abi::text;

/// `enum glimpse_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ack,
    State,
    Shut,
    End,
}

/// `enum tcp_ca_state`.
pub(crate) mod state {
    pub const OPEN: u32 = 0;
    pub const CWR: u32 = 2;
    pub const RECOVERY: u32 = 3;
    pub const LOSS: u32 = 4;
}

/// `struct glimpse`: a socket as it was at one moment.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Glimpse {
    pub(crate) time_ns: u64,
    pub(crate) flow: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_retransmitted: u64,
    pub(crate) pacing_rate: u64,
    pub(crate) kind: u32,
    pub(crate) sequence: u32,
    pub(crate) under_way: u32,
    pub(crate) state: u32,
    pub(crate) new_state: u32,
    pub(crate) snd_una: u32,
    pub(crate) snd_nxt: u32,
    pub(crate) rcv_nxt: u32,
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    pub(crate) mss: u32,
    pub(crate) srtt: u32,
    pub(crate) min_rtt_us: u32,
    pub(crate) rack_rtt_us: u32,
    pub(crate) packets_out: u32,
    pub(crate) sacked_out: u32,
    pub(crate) lost_out: u32,
    pub(crate) retrans_out: u32,
    pub(crate) delivered: u32,
    pub(crate) gso_max_size: u32,
    pub(crate) flags: u32,
    pub(crate) ecn: u32,
    pub(crate) receiver_clock: u32,
    pub(crate) unused: u32,
    pub(crate) netns: u32,
    pub(crate) local: [u8; 16],
    pub(crate) remote: [u8; 16],
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) control: [u8; 16],
}

/// `struct glimpse_counts`: what came of all flows.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Flows followed.
    pub flows: u64,
    /// Glimpses for which the ring had no room.
    pub lost: u64,
    /// Flows passed over, because they were under way.
    pub under_way: u64,
    /// Flows for which there was no memory.
    pub unfollowed: u64,
}

const _: () = assert!(size_of::<Glimpse>() == 200);
const _: () = assert!(size_of::<Counts>() == 32);

impl Counts {
    /// From the map's value; `None` if it is too short.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..size_of::<Self>())?;
        // SAFETY: the length was checked, the read is unaligned, and every bit pattern is a valid value.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

impl Glimpse {
    /// From a record of the ring; `None` if it is too short.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..size_of::<Self>())?;
        // SAFETY: the length was checked, the read is unaligned, and every bit pattern is a valid glimpse.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }

    /// Number of the flow.
    pub fn flow(&self) -> u64 {
        self.flow
    }

    /// Local address.
    pub fn local(&self) -> SocketAddr {
        address(self.local, self.local_port)
    }

    /// Remote address.
    pub fn remote(&self) -> SocketAddr {
        address(self.remote, self.remote_port)
    }

    /// Inode of the network namespace.
    pub fn netns(&self) -> u32 {
        self.netns
    }

    /// Whether the connection was established before it was seen first.
    pub fn is_under_way(&self) -> bool {
        self.under_way != 0
    }

    /// Whether nothing more comes of this flow.
    pub fn is_last(&self) -> bool {
        self.kind() == Some(Kind::End)
    }

    pub(crate) fn kind(&self) -> Option<Kind> {
        [Kind::Ack, Kind::State, Kind::Shut, Kind::End].get((self.kind as usize).wrapping_sub(1)).copied()
    }

    pub(crate) fn control(&self) -> String {
        text(&self.control)
    }

    /// Neither at nor beyond the threshold.
    pub(crate) fn below_threshold(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// In recovery the window may lie below the threshold without being in slow start.
    pub(crate) fn in_slow_start(&self) -> bool {
        self.below_threshold() && !matches!(self.state, state::CWR | state::RECOVERY)
    }

    /// Segments.
    pub(crate) fn in_flight(&self) -> u32 {
        self.packets_out
            .wrapping_sub(self.sacked_out.wrapping_add(self.lost_out))
            .wrapping_add(self.retrans_out)
    }

    pub(crate) fn min_rtt(&self) -> u32 {
        if self.min_rtt_us == u32::MAX { 0 } else { self.min_rtt_us }
    }
}

fn address(octets: [u8; 16], port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V6(Ipv6Addr::from(octets)).to_canonical(), port)
}
