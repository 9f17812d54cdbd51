// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Drops before the queue is full.

use super::{Limit, Nanos};

/// What the queue holds when a packet arrives, without that packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Packets, the one being transmitted included.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
}

/// Active queue management: decides when packets come, or when it is their turn.
pub trait Aqm: Send {
    /// Whether to drop an arriving packet of `bytes` that would fit into the queue.
    fn drops_arriving(&mut self, _now: Nanos, _bytes: u32, _depth: Depth, _limit: Limit) -> bool {
        false
    }

    /// Whether what it drops at the head is only marked where its sender takes part in explicit congestion notification.
    fn marks(&self) -> bool {
        false
    }

    /// Whether to drop the packet whose turn it is. After a drop the next one is asked about, at the same time.
    fn drops_head(&mut self, _now: Nanos, _turn: Turn) -> bool {
        false
    }
}

/// A packet whose turn to be sent it is.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Its size, bytes.
    pub bytes: u32,
    /// How long it has waited.
    pub sojourn: Nanos,
    /// Bytes in the queue behind it.
    pub behind_bytes: u64,
}
