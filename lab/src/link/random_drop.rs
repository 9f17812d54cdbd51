// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Random drops of a queue that fills.

use super::aqm::{Aqm, Depth};
use super::random::Random;
use super::{Limit, Nanos};

/// [`super::AqmSpec::RandomDrop`]: what the gateway of Ataei Kachooei et al. 2022 does with 25 % above half of 36 MB.
pub(super) struct RandomDrop {
    pub above_fraction: f64,
    pub drop_probability: f64,
    pub random: Random,
}

impl Aqm for RandomDrop {
    fn drops_arriving(&mut self, _now: Nanos, _bytes: u32, depth: Depth, limit: Limit) -> bool {
        let (held, limit) = match limit {
            Limit::Bytes(bytes) => (depth.bytes, bytes),
            Limit::Packets(packets) => (depth.packets, packets),
        };
        held as f64 > limit as f64 * self.above_fraction && self.random.unit() < self.drop_probability
    }
}
