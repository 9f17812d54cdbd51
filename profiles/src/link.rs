// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a link is made of, as profiles write it. Numbers are integers with their unit in the name, so that what is
//! read back is exactly what was written.

mod aqm;
mod columns;
mod cross;
mod delay;
mod loss;
mod mahimahi;
mod measured;
mod one_way;
mod outage;
mod rate;
mod reordering;
mod round_trips;
mod schedule;
#[cfg(test)]
mod tests;
mod trace;

use std::ops::RangeInclusive;
use std::path::Path;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use aqm::AqmSpec;
pub use cross::CrossSpec;
pub use delay::{DelayStep, JitterSpec};
pub use loss::LossSpec;
pub use measured::{Format, Measured};
pub use one_way::OneWayDelays;
pub use outage::{HandoverSpec, OutageSpec};
pub use rate::{RateSpec, RateStep};
pub use reordering::ReorderingSpec;
pub use round_trips::RoundTrips;
pub use schedule::ScheduleSpec;
pub use trace::{Row, TraceError};

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
///
/// # Errors
/// [`RangeError`] for `key`.
pub fn within<T: PartialOrd + ToString>(
    key: String,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), RangeError> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = (range.start().to_string(), range.end().to_string());
    let allowed =
        if least == most { format!("expected {least}") } else { format!("expected {least} to {most}") };
    Err(RangeError::new(key, value, allowed))
}

/// Checks that `text` is one line, which names nothing that a terminal acts on.
///
/// # Errors
/// [`RangeError`] for `key`.
pub fn one_line(key: &str, text: &str) -> Result<(), RangeError> {
    if text.chars().any(char::is_control) {
        return Err(RangeError::new(
            key,
            format!("{text:?}"),
            "expected one line without control characters",
        ));
    }
    Ok(())
}

/// What transmitters can do, bit/s.
pub const RATES_BPS: RangeInclusive<u64> = 1_000..=100_000_000_000;
/// Delays, microseconds.
pub(crate) const DELAYS_US: RangeInclusive<u64> = 0..=10_000_000;
/// Latest time of a series of steps, microseconds: eleven days.
pub(crate) const LATEST_US: u64 = 1_000_000_000_000;
/// Lengths of periods and pauses, microseconds: 1 ms to 1000 s.
pub(crate) const PERIODS_US: RangeInclusive<u64> = 1_000..=1_000_000_000;

/// Limit of a queue. It covers all packets not yet sent completely, the one being transmitted included, so that a
/// packet that fits waits at most the limit's transmission time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of IP packets.
    Bytes(u64),
    /// Packets of any size.
    Packets(u64),
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
    /// Rate of the transmitter in bit/s, 1 000 to 100 000 000 000, counting IP packets (header and payload). Where
    /// `rate` varies it, this is the mean (checked, see [`RateSpec`]): bandwidth-delay products rest on it.
    pub rate_bps: u64,
    /// Propagation delay, microseconds, 0 to 10 000 000. Where it varies, this is the smallest.
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
    /// How the rate varies; constant if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateSpec>,
    /// When the transmitter may send; always if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleSpec>,
    /// Loss of packets that have left the transmitter; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossSpec>,
    /// Traffic of others that shares queue and transmitter; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross: Option<CrossSpec>,
    /// Changes of satellite; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<HandoverSpec>,
    /// Times in which the transmitter is silent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageSpec>,
    /// Variation of the propagation delay. Entries add up; packets do not overtake each other because of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jitter: Vec<JitterSpec>,
    /// Packets that overtake each other; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordering: Option<ReorderingSpec>,
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

    /// Reads the trace files that the description names, relative to `directory`.
    ///
    /// # Errors
    /// [`TraceError`] naming the file and the line.
    pub fn load_traces(&mut self, directory: &Path) -> Result<(), TraceError> {
        for direction in [&mut self.forward, &mut self.back] {
            match &mut direction.rate {
                Some(RateSpec::Trace { file, rows, .. }) => *rows = trace::load(&directory.join(file))?,
                Some(RateSpec::Mahimahi { file, steps, repeat_us }) => {
                    let measured = mahimahi::load(&directory.join(file))?;
                    (*steps, *repeat_us) = (measured.steps, Some(measured.repeat_us));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Round-trip time of an empty link without variation of the delay and transmission time, microseconds.
    pub fn base_rtt_us(&self) -> u64 {
        self.forward.delay_us + self.back.delay_us
    }

    /// Bandwidth-delay product of the forward rate (where it varies: its mean) and the base round-trip time (where
    /// the delay varies: the smallest), bytes. What outages and schedules leave of the rate is not counted.
    pub fn bdp_bytes(&self) -> u64 {
        (u128::from(self.forward.rate_bps) * u128::from(self.base_rtt_us()) / 8_000_000) as u64
    }

    /// What the forward direction has for a flow, bit/s: its rate, or that of its policer where that is lower, less the
    /// traffic of others on average; 1 at least.
    pub fn available_bps(&self) -> u64 {
        let rate_bps = match self.forward.aqm {
            Some(AqmSpec::Policer { rate_bps, .. }) => self.forward.rate_bps.min(rate_bps),
            _ => self.forward.rate_bps,
        };
        let others_bps = self.forward.cross.as_ref().map_or(0, CrossSpec::rate_bps);
        rate_bps.saturating_sub(others_bps).max(1)
    }

    /// Round-trip time of an empty link whose uniform and wave-like jitter is at its largest, and where aggregates wait
    /// longest, microseconds: what packets spread over time see of it between two of their acknowledgments.
    pub fn most_rtt_us(&self) -> u64 {
        self.base_rtt_us() + self.forward.variation_us() + self.back.variation_us()
    }

    /// The same link at its mean rate and smallest delay, with the limits of its queues and nothing else.
    pub fn constant(&self) -> Self {
        let constant = |spec: &DirectionSpec| DirectionSpec {
            queue_bytes: spec.queue_bytes,
            queue_packets: spec.queue_packets,
            ..DirectionSpec::new(spec.rate_bps, spec.delay_us, Limit::Packets(1))
        };
        Self { forward: constant(&self.forward), back: constant(&self.back) }
    }
}

impl DirectionSpec {
    /// What jitter and aggregates add to the delay at most, microseconds.
    fn variation_us(&self) -> u64 {
        let jitter = self.jitter.iter().map(|jitter| match *jitter {
            JitterSpec::Uniform { max_us } => max_us,
            JitterSpec::Wave { peak_to_peak_us, .. } => peak_to_peak_us,
            JitterSpec::Steps { .. } | JitterSpec::Retransmission { .. } => 0,
        });
        let gap_us = match self.schedule {
            Some(ScheduleSpec::Aggregate { max_gap_us, .. }) => max_gap_us,
            _ => 0,
        };
        jitter.sum::<u64>() + gap_us
    }

    /// A constant rate and delay behind a queue with tail drop.
    pub fn new(rate_bps: u64, delay_us: u64, queue: Limit) -> Self {
        let (queue_bytes, queue_packets) = match queue {
            Limit::Bytes(bytes) => (Some(bytes), None),
            Limit::Packets(packets) => (None, Some(packets)),
        };
        Self {
            rate_bps,
            delay_us,
            queue_bytes,
            queue_packets,
            aqm: None,
            rate: None,
            schedule: None,
            loss: None,
            cross: None,
            handover: None,
            outages: Vec::new(),
            jitter: Vec::new(),
            reordering: None,
        }
    }

    /// Checks every value against its range. `key` is where the direction stands in the file.
    ///
    /// # Errors
    /// [`RangeError`] with the first value that is out of range.
    pub fn validate(&self, key: &str) -> Result<(), RangeError> {
        let of = |name: &str| format!("{key}.{name}");
        within(of("rate_bps"), self.rate_bps, RATES_BPS)?;
        within(of("delay_us"), self.delay_us, DELAYS_US)?;
        match (self.queue_bytes, self.queue_packets) {
            (Some(bytes), None) => within(of("queue_bytes"), bytes, 1_500..=4_000_000_000)?,
            (None, Some(packets)) => within(of("queue_packets"), packets, 1..=10_000_000)?,
            (given, _) => {
                let found = if given.is_some() { "queue_bytes and queue_packets" } else { "no limit" };
                return Err(RangeError::new(of("queue"), found, "expected exactly one of the two limits"));
            }
        }
        checked(&self.aqm, |aqm| aqm.validate(&of("aqm")))?;
        checked(&self.rate, |rate| rate.validate(key, self))?;
        checked(&self.schedule, |schedule| schedule.validate(&of("schedule")))?;
        checked(&self.loss, |loss| loss.validate(&of("loss")))?;
        checked(&self.cross, |cross| cross.validate(&of("cross")))?;
        checked(&self.handover, |handover| handover.validate(&of("handover")))?;
        for (at, outage) in self.outages.iter().enumerate() {
            outage.validate(&of(&format!("outages[{at}]")))?;
        }
        for (at, jitter) in self.jitter.iter().enumerate() {
            jitter.validate(&of(&format!("jitter[{at}]")))?;
        }
        checked(&self.reordering, |reordering| reordering.validate(&of("reordering")))
    }
}

fn checked<T>(part: &Option<T>, check: impl FnOnce(&T) -> Result<(), RangeError>) -> Result<(), RangeError> {
    part.as_ref().map_or(Ok(()), check)
}

/// Checks the times of a series of steps: the first at 0, each later than the one before, the end later than all.
fn series(
    key: &str,
    name: &str,
    times_us: impl Iterator<Item = u64>,
    repeat_us: Option<u64>,
) -> Result<(), RangeError> {
    let mut last = None;
    for (at, time) in times_us.enumerate() {
        let least = last.map_or(0, |last| last + 1);
        let most = if at == 0 { 0 } else { LATEST_US };
        within(format!("{key}.{name}[{at}].at_us"), time, least..=most)?;
        last = Some(time);
    }
    let Some(last) = last else {
        return Err(RangeError::new(format!("{key}.{name}"), "none", "expected at least one"));
    };
    checked(&repeat_us, |end| within(format!("{key}.repeat_us"), *end, last + 1..=LATEST_US))
}
