// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Drops before the queue is full.

use super::random::Random;
use super::{AqmSpec, Limit};

/// What the queue holds when a packet arrives, without that packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Packets, the one being transmitted included.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
}

/// Decides about an arriving packet that would fit into the queue.
pub trait Aqm: Send {
    /// Whether to drop it.
    fn drops(&mut self, depth: Depth, limit: Limit) -> bool;
}

/// [`AqmSpec::RandomDrop`]: what the gateway of source 000 does with 25 % above half of 36 MB.
pub struct RandomDrop {
    above_fraction: f64,
    drop_probability: f64,
    random: Random,
}

impl RandomDrop {
    /// From its description.
    pub fn new(spec: &AqmSpec, random: Random) -> Self {
        let AqmSpec::RandomDrop { above_fraction, drop_probability } = *spec;
        Self { above_fraction, drop_probability, random }
    }
}

impl Aqm for RandomDrop {
    fn drops(&mut self, depth: Depth, limit: Limit) -> bool {
        let (held, limit) = match limit {
            Limit::Bytes(bytes) => (depth.bytes, bytes),
            Limit::Packets(packets) => (depth.packets, packets),
        };
        held as f64 > limit as f64 * self.above_fraction && self.random.unit() < self.drop_probability
    }
}
