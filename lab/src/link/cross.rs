// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Cross traffic: when the packets of others arrive.

use super::random::Random;
use super::spec::CrossSpec;
use super::{NANOBITS_PER_BYTE, Nanos};

/// A source of packets of one size, from the start of the link on.
pub(super) struct Cross {
    bytes: u32,
    rate_bps: u64,
    next: Nanos,
    /// What even intervals have left over of a nanosecond; it goes to the next one.
    remainder: u64,
    /// For exponential intervals.
    random: Option<Random>,
}

impl Cross {
    pub fn new(spec: &CrossSpec, mut random: Random) -> Self {
        let (CrossSpec::Constant { rate_bps, packet_bytes } | CrossSpec::Poisson { rate_bps, packet_bytes }) =
            *spec;
        let mut cross = Self { bytes: packet_bytes, rate_bps, next: 0, remainder: 0, random: None };
        let interval = cross.nanobits() / rate_bps;
        match spec {
            CrossSpec::Constant { .. } => cross.next = random.up_to(interval),
            CrossSpec::Poisson { .. } => {
                cross.next = random.exponential(interval);
                cross.random = Some(random);
            }
        }
        cross
    }

    /// When the next packet arrives.
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Takes that packet; its size in bytes.
    pub fn take(&mut self) -> u32 {
        self.next += match &mut self.random {
            Some(random) => random.exponential(u64::from(self.bytes) * NANOBITS_PER_BYTE / self.rate_bps),
            None => {
                let nanobits = self.nanobits() + self.remainder;
                self.remainder = nanobits % self.rate_bps;
                nanobits / self.rate_bps
            }
        };
        self.bytes
    }

    fn nanobits(&self) -> u64 {
        u64::from(self.bytes) * NANOBITS_PER_BYTE
    }
}
