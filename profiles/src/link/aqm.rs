// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Description of active queue management.

use serde::{Deserialize, Serialize};

use super::{RATES_BPS, RangeError, within};

/// Active queue management.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AqmSpec {
    /// Drops an arriving packet with a fixed probability while the queue is above a share of its limit.
    RandomDrop {
        /// Share of the queue's limit above which packets are dropped, 0 to 1.
        above_fraction: f64,
        /// Share of arriving packets that is dropped then, 0 to 1.
        drop_probability: f64,
    },
    /// Controlled Delay, RFC 8289: drops, or marks, at the head of the queue while packets have waited too long for too
    /// long.
    #[serde(rename = "codel")]
    CoDel {
        /// Wait that is acceptable, microseconds, 100 to 10 000 000. RFC 8289, section 4.3: 5 ms.
        target_us: u64,
        /// Time in which the wait must have been acceptable once, microseconds, 1 000 to 100 000 000. RFC 8289,
        /// section 4.3: 100 ms, a long round-trip time.
        interval_us: u64,
        /// Packets whose sender takes part in explicit congestion notification (RFC 3168) are marked and not dropped.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ecn: bool,
    },
    /// A queue for each flow, which take turns, each with Controlled Delay (RFC 8290): of the link's flows and of cross traffic,
    /// which is one. Where the queue is full, the longest of them loses its first packet.
    FqCodel {
        /// As of [`AqmSpec::CoDel`].
        target_us: u64,
        /// As of [`AqmSpec::CoDel`].
        interval_us: u64,
        /// As of [`AqmSpec::CoDel`].
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ecn: bool,
    },
    /// A token bucket: what comes faster than the rate, and is not covered by what was saved up, is dropped at once. Flach
    /// et al. 2016 describe such policers, and how TCP meets them.
    Policer {
        /// Rate at which tokens come, bit/s, 1 000 to 100 000 000 000.
        rate_bps: u64,
        /// Size of the bucket, which is full at the begin, bytes, 1 500 to 1 000 000 000.
        burst_bytes: u64,
    },
}

impl AqmSpec {
    pub(super) fn validate(&self, key: &str) -> Result<(), RangeError> {
        let of = |name: &str| format!("{key}.{name}");
        match self {
            Self::RandomDrop { above_fraction, drop_probability } => {
                within(of("above_fraction"), *above_fraction, 0.0..=1.0)?;
                within(of("drop_probability"), *drop_probability, 0.0..=1.0)
            }
            Self::CoDel { target_us, interval_us, ecn: _ }
            | Self::FqCodel { target_us, interval_us, ecn: _ } => {
                within(of("target_us"), *target_us, 100..=10_000_000)?;
                within(of("interval_us"), *interval_us, 1_000..=100_000_000)
            }
            Self::Policer { rate_bps, burst_bytes } => {
                within(of("rate_bps"), *rate_bps, RATES_BPS)?;
                within(of("burst_bytes"), *burst_bytes, 1_500..=1_000_000_000)
            }
        }
    }
}
