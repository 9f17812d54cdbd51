// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Description of packets that overtake each other.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::{DELAYS_US, RangeError, within};

/// How much longer it may be, microseconds.
const LATER_US: RangeInclusive<u64> = 1..=*DELAYS_US.end();

/// Packets that take a longer way after the transmitter, each for itself: those that leave it within `later_us` after one
/// arrive before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderingSpec {
    /// Share of packets that take it, 0 to 1.
    pub probability: f64,
    /// How much longer it is, microseconds, 1 to 10 000 000.
    pub later_us: u64,
}

impl ReorderingSpec {
    pub(super) fn validate(&self, key: &str) -> Result<(), RangeError> {
        within(format!("{key}.probability"), self.probability, 0.0..=1.0)?;
        within(format!("{key}.later_us"), self.later_us, LATER_US)
    }
}
