// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Seeded randomness. Each part of a model draws from a stream of its own, so that adding one part does not change
//! what the others draw.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Numbers of the streams. Lists have one for each entry, from the given number on.
pub(super) mod purpose {
    pub const AQM: u64 = 1;
    pub const SCHEDULE: u64 = 2;
    pub const RATE: u64 = 3;
    pub const LOSS: u64 = 4;
    pub const CROSS: u64 = 5;
    pub const HANDOVER: u64 = 6;
    pub const REORDERING: u64 = 7;
    pub const JITTER: u64 = 16;
    pub const OUTAGES: u64 = 1 << 16;
    pub const SATELLITES: u64 = 1 << 32;
}

/// A stream of random numbers, the same for the same seed and purpose on every platform.
#[derive(Clone, Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// Stream number `purpose` of `seed`.
    pub fn new(seed: u64, purpose: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(purpose);
        Self(rng)
    }

    /// Uniform in `0..=max`. The bias is below 2^-64 × max.
    pub fn up_to(&mut self, max: u64) -> u64 {
        let range = u128::from(max) + 1;
        ((u128::from(self.0.next_u64()) * range) >> 64) as u64
    }

    /// Uniform in [0, 1), with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Exponentially distributed with this mean.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        // 1 - unit is never 0.
        (-(1.0 - self.unit()).ln() * mean as f64) as u64
    }
}
