// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Description of times in which nothing is sent.

use serde::{Deserialize, Serialize};

use super::{DELAYS_US, PERIODS_US, RangeError, within};

/// Times in which the transmitter is silent. A packet that is being sent waits and goes on where it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum OutageSpec {
    /// At fixed times: `first_us`, and every `period_us` after it.
    Scheduled {
        /// Begin of the first, microseconds from the start of the link, 0 to 1 000 000 000.
        first_us: u64,
        /// From one begin to the next, microseconds, 1 000 to 1 000 000 000.
        period_us: u64,
        /// Length, microseconds, 1 to `period_us - 1`.
        duration_us: u64,
    },
    /// After exponentially distributed pauses, with uniformly distributed lengths.
    Random {
        /// Mean pause from the end of one to the begin of the next, microseconds, 1 000 to 1 000 000 000.
        mean_pause_us: u64,
        /// Shortest, microseconds, 1 to `max_duration_us`.
        min_duration_us: u64,
        /// Longest, microseconds, to 10 000 000.
        max_duration_us: u64,
    },
}

impl OutageSpec {
    pub(super) fn validate(&self, key: &str) -> Result<(), RangeError> {
        let of = |name: &str| format!("{key}.{name}");
        match *self {
            Self::Scheduled { first_us, period_us, duration_us } => {
                within(of("first_us"), first_us, 0..=1_000_000_000)?;
                within(of("period_us"), period_us, PERIODS_US)?;
                within(of("duration_us"), duration_us, 1..=period_us - 1)
            }
            Self::Random { mean_pause_us, min_duration_us, max_duration_us } => {
                within(of("mean_pause_us"), mean_pause_us, PERIODS_US)?;
                within(of("max_duration_us"), max_duration_us, 1..=10_000_000)?;
                within(of("min_duration_us"), min_duration_us, 1..=max_duration_us)
            }
        }
    }
}

/// A constellation gives the terminal another satellite at fixed intervals: the delay jumps, and for a moment nothing
/// is sent. The times follow from the seed of the link, so that both directions change at once, and by the same share
/// of their `max_extra_us`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandoverSpec {
    /// From one to the next, microseconds, 1 000 to 1 000 000 000. The first comes at a random point of one.
    pub period_us: u64,
    /// Largest delay on top of the propagation delay, microseconds, 0 to 10 000 000. After each handover it is drawn
    /// anew, uniform from 0 to this.
    pub max_extra_us: u64,
    /// Time without transmission from each handover on, microseconds, 0 to `period_us - 1`.
    pub outage_us: u64,
}

impl HandoverSpec {
    pub(super) fn validate(&self, key: &str) -> Result<(), RangeError> {
        let of = |name: &str| format!("{key}.{name}");
        within(of("period_us"), self.period_us, PERIODS_US)?;
        within(of("max_extra_us"), self.max_extra_us, DELAYS_US)?;
        within(of("outage_us"), self.outage_us, 0..=self.period_us - 1)
    }
}
