// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Description of how the delay varies.

use serde::{Deserialize, Serialize};

use super::{DELAYS_US, PERIODS_US, RangeError, series, within};

/// Variation of a delay, never below the propagation delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum JitterSpec {
    /// Independent and uniform for each packet, between 0 and `max_us`.
    Uniform {
        /// Largest extra delay, microseconds, 1 to 10 000 000.
        max_us: u64,
    },
    /// A slow wave between 0 and `peak_to_peak_us`, its phase drawn once per run.
    Wave {
        /// Period, microseconds, 1 000 to 1 000 000 000.
        period_us: u64,
        /// Largest extra delay, microseconds, 1 to 10 000 000.
        peak_to_peak_us: u64,
    },
    /// The given extra delays at the given times.
    Steps {
        /// In order of time, the first at 0.
        steps: Vec<DelayStep>,
        /// When the first follows the last again, microseconds; the last holds if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repeat_us: Option<u64>,
    },
    /// Retransmission below IP: a packet that needs several attempts comes later, and those behind it wait for it.
    Retransmission {
        /// Share of attempts that fails, 0 to 1.
        probability: f64,
        /// From one attempt to the next, microseconds, 1 to 10 000 000.
        delay_us: u64,
        /// Attempts after the first, at most, 1 to 100; what then still fails counts as received.
        max_retries: u32,
    },
}

/// An extra delay from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayStep {
    /// Microseconds from the start of the link.
    pub at_us: u64,
    /// Extra delay from then on, microseconds, 0 to 10 000 000.
    pub extra_us: u64,
}

impl JitterSpec {
    pub(super) fn validate(&self, key: &str) -> Result<(), RangeError> {
        let of = |name: &str| format!("{key}.{name}");
        match self {
            Self::Uniform { max_us } => within(of("max_us"), *max_us, 1..=10_000_000),
            Self::Wave { period_us, peak_to_peak_us } => {
                within(of("period_us"), *period_us, PERIODS_US)?;
                within(of("peak_to_peak_us"), *peak_to_peak_us, 1..=10_000_000)
            }
            Self::Steps { steps, repeat_us } => {
                series(key, "steps", steps.iter().map(|step| step.at_us), *repeat_us)?;
                steps.iter().enumerate().try_for_each(|(at, step)| {
                    within(of(&format!("steps[{at}].extra_us")), step.extra_us, DELAYS_US)
                })
            }
            Self::Retransmission { probability, delay_us, max_retries } => {
                within(of("probability"), *probability, 0.0..=1.0)?;
                within(of("delay_us"), *delay_us, 1..=10_000_000)?;
                within(of("max_retries"), *max_retries, 1..=100)
            }
        }
    }
}
