// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A policer: a token bucket that drops what it has no tokens for, and delays nothing.

use super::aqm::{Aqm, Depth};
use super::{Limit, NANOBITS_PER_BYTE, Nanos};

/// The policer described by [`super::AqmSpec::Policer`].
pub(super) struct Policer {
    rate_bps: u64,
    /// Size of the bucket and what it holds, nanobits.
    size: u64,
    held: u64,
    filled: Nanos,
}

impl Policer {
    /// With a full bucket.
    pub fn new(rate_bps: u64, burst_bytes: u64) -> Self {
        let size = burst_bytes * NANOBITS_PER_BYTE;
        Self { rate_bps, size, held: size, filled: 0 }
    }
}

impl Aqm for Policer {
    fn drops_arriving(&mut self, now: Nanos, bytes: u32, _depth: Depth, _limit: Limit) -> bool {
        let came = self.rate_bps.saturating_mul(now - self.filled);
        self.held = self.held.saturating_add(came).min(self.size);
        self.filled = now;
        let needed = u64::from(bytes) * NANOBITS_PER_BYTE;
        let conforms = needed <= self.held;
        if conforms {
            self.held -= needed;
        }
        !conforms
    }
}
