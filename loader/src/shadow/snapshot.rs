//! Fields of a snapshot.

use std::net::SocketAddr;

use crate::object::abi::{SocketSnapshot, address, snapshot_kind, text};

/// States of loss recovery, as wide as in a snapshot.
pub(crate) mod state {
    use onramp_net::sock_diag::ca_state;

    pub const OPEN: u32 = ca_state::OPEN as u32;
    pub const CWR: u32 = ca_state::CWR as u32;
    pub const RECOVERY: u32 = ca_state::RECOVERY as u32;
    pub const LOSS: u32 = ca_state::LOSS as u32;
}

impl SocketSnapshot {
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
    pub fn is_established(&self) -> bool {
        self.established != 0
    }

    /// Whether nothing more comes of this flow.
    pub fn is_last(&self) -> bool {
        self.kind == snapshot_kind::END
    }

    pub(crate) fn control(&self) -> String {
        text(&self.control)
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
