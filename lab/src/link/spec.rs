// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a link is made of, as profiles write it. Numbers are integers with their unit in the name, so that what is
//! read back is exactly what was written.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A value outside its range.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{key} = {value} is out of range: {range}")]
pub struct RangeError {
    /// The key, from the top of the file: `link.forward.rate_bps`.
    pub key: String,
    /// The value found.
    pub value: String,
    /// What is allowed.
    pub range: String,
}

impl RangeError {
    /// An error for `key` which holds `value` and must be `range`.
    pub fn new(key: impl Into<String>, value: impl ToString, range: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.to_string(), range: range.into() }
    }
}

/// Checks that `value` lies in `range`.
pub(crate) fn within<T: PartialOrd + ToString>(
    key: String,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), RangeError> {
    if range.contains(&value) {
        return Ok(());
    }
    let allowed = format!("expected {} to {}", range.start().to_string(), range.end().to_string());
    Err(RangeError::new(key, value, allowed))
}

/// Both directions of a path. The data of a download travel forward, its acknowledgments return.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// From the sender of data to its receiver.
    pub forward: DirectionSpec,
    /// From the receiver of data to its sender.
    #[serde(rename = "return")]
    pub back: DirectionSpec,
}

/// One direction: a queue, a transmitter, a propagation delay and its variation, in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectionSpec {
    /// Rate of the transmitter in bit/s, 1 000 to 100 000 000 000, counting IP packets (header and payload).
    pub rate_bps: u64,
    /// Propagation delay, microseconds, 0 to 10 000 000.
    pub delay_us: u64,
    /// Limit of the queue in bytes of IP packets, 1 500 to 4 000 000 000. Either this or `queue_packets`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
    /// Limit of the queue in packets, 1 to 10 000 000. Either this or `queue_bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<u64>,
    /// Drops before the queue is full; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aqm: Option<AqmSpec>,
    /// When the transmitter may send; always if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleSpec>,
    /// Variation of the propagation delay. Entries add up; packets never overtake each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jitter: Vec<JitterSpec>,
}

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
}

/// When a transmitter may send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ScheduleSpec {
    /// A satellite terminal's return channel: a little guaranteed capacity, and the full rate some time after the
    /// terminal has shown that it needs it. See `link/on_demand.rs`.
    OnDemand {
        /// Longest wait of a terminal that was idle for its next opportunity, microseconds, 0 to 10 000 000.
        opportunity_us: u64,
        /// Guaranteed rate before a grant, bit/s, 1 000 to 100 000 000 000.
        guaranteed_bps: u64,
        /// Packets waiting that make the terminal ask for more, 1 to 1 000 000.
        request_packets: u64,
        /// From the request to the full rate, microseconds, 0 to 100 000 000.
        grant_after_us: u64,
        /// Idle time after which the grant is gone, microseconds, 0 to 1 000 000 000.
        release_after_us: u64,
    },
}

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
}

impl LinkSpec {
    /// Checks every value against its range. `key` is where the link stands in the file, such as `link`.
    ///
    /// # Errors
    /// [`RangeError`] with the first value that is out of range.
    pub fn validate(&self, key: &str) -> Result<(), RangeError> {
        self.forward.validate(&format!("{key}.forward"))?;
        self.back.validate(&format!("{key}.return"))
    }

    /// Round-trip time of an empty link without jitter and transmission time, microseconds.
    pub fn base_rtt_us(&self) -> u64 {
        self.forward.delay_us + self.back.delay_us
    }

    /// Bandwidth-delay product of the forward rate and the base round-trip time, bytes.
    pub fn bdp_bytes(&self) -> u64 {
        (u128::from(self.forward.rate_bps) * u128::from(self.base_rtt_us()) / 8_000_000) as u64
    }

    /// The same link without its random parts: no AQM, no schedule, no jitter.
    pub fn constant(&self) -> Self {
        let constant = |spec: &DirectionSpec| DirectionSpec {
            aqm: None,
            schedule: None,
            jitter: Vec::new(),
            ..spec.clone()
        };
        Self { forward: constant(&self.forward), back: constant(&self.back) }
    }
}

impl DirectionSpec {
    /// Checks every value against its range. `key` is where the direction stands in the file.
    ///
    /// # Errors
    /// [`RangeError`] with the first value that is out of range.
    pub fn validate(&self, key: &str) -> Result<(), RangeError> {
        let of = |name: &str| format!("{key}.{name}");
        within(of("rate_bps"), self.rate_bps, 1_000..=100_000_000_000)?;
        within(of("delay_us"), self.delay_us, 0..=10_000_000)?;
        match (self.queue_bytes, self.queue_packets) {
            (Some(bytes), None) => within(of("queue_bytes"), bytes, 1_500..=4_000_000_000)?,
            (None, Some(packets)) => within(of("queue_packets"), packets, 1..=10_000_000)?,
            (given, _) => {
                let found = if given.is_some() { "queue_bytes and queue_packets" } else { "no limit" };
                return Err(RangeError::new(of("queue"), found, "expected exactly one of the two limits"));
            }
        }
        if let Some(AqmSpec::RandomDrop { above_fraction, drop_probability }) = &self.aqm {
            within(of("aqm.above_fraction"), *above_fraction, 0.0..=1.0)?;
            within(of("aqm.drop_probability"), *drop_probability, 0.0..=1.0)?;
        }
        if let Some(schedule) = &self.schedule {
            schedule.validate(&of("schedule"))?;
        }
        self.jitter
            .iter()
            .enumerate()
            .try_for_each(|(at, jitter)| jitter.validate(&of(&format!("jitter[{at}]"))))
    }
}

impl ScheduleSpec {
    fn validate(&self, key: &str) -> Result<(), RangeError> {
        let of = |name: &str| format!("{key}.{name}");
        let Self::OnDemand {
            opportunity_us,
            guaranteed_bps,
            request_packets,
            grant_after_us,
            release_after_us,
        } = self;
        within(of("opportunity_us"), *opportunity_us, 0..=10_000_000)?;
        within(of("guaranteed_bps"), *guaranteed_bps, 1_000..=100_000_000_000)?;
        within(of("request_packets"), *request_packets, 1..=1_000_000)?;
        within(of("grant_after_us"), *grant_after_us, 0..=100_000_000)?;
        within(of("release_after_us"), *release_after_us, 0..=1_000_000_000)
    }
}

impl JitterSpec {
    fn validate(&self, key: &str) -> Result<(), RangeError> {
        let of = |name: &str| format!("{key}.{name}");
        match self {
            Self::Uniform { max_us } => within(of("max_us"), *max_us, 1..=10_000_000),
            Self::Wave { period_us, peak_to_peak_us } => {
                within(of("period_us"), *period_us, 1_000..=1_000_000_000)?;
                within(of("peak_to_peak_us"), *peak_to_peak_us, 1..=10_000_000)
            }
        }
    }
}
