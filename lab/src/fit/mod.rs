// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A path fitted to a recorded flow: what its ACKs show of rate, round-trip time, queue and jitter, as a profile, and
//! how well a link of these properties explains what was recorded.
//!
//! * While the smallest round-trip time of a window stays above that of the empty path there is a queue, and what is
//!   delivered then is the rate of the bottleneck. A flow that never kept a queue shows a lower bound.
//! * Round-trip times may rise without a queue, because the way back varies. So the path is also taken as one without: its rate is the most
//!   that was delivered, as a lower bound. The one that explains the recorded round-trip times better is the path.
//! * A queue is as large as the longest wait in it: all of it where a loss followed, a lower bound where none did.
//! * What round-trip times have beyond propagation and queue is kept as it was, over time.
//!
//! A path says nothing as long as it is not checked: [`check`] simulates the flow over it, and others.

mod check;
mod estimate;
mod explain;
mod flow;
mod variation;
mod way_back;

pub use check::{ArmTimes, Checked, Disagreement, Left, Moved, check};
use explain::Errors;
pub use explain::Explained;
pub use flow::{Driver, FitError, RecordedFlow, Seen};

use std::collections::BTreeMap;

use serde::Serialize;

use crate::host::{HEADER_BYTES, HostSpec};
use crate::link::spec::{DelayStep, RateStep};
use crate::link::{DirectionSpec, JitterSpec, Limit, LinkSpec, RangeError, RateSpec};
use crate::profile::{self, Params, Profile, Value};
use crate::sim::opening_us;

/// Smallest queue of a fitted path, bytes: ten full packets.
const LEAST_QUEUE_BYTES: u64 = 15_000;
/// Largest queue of a link, bytes.
const MOST_QUEUE_BYTES: u64 = 4_000_000_000;
/// A queue that did not overflow has this more room, a part of it: its longest wait is that of a packet that was acknowledged.
const ROOM: u64 = 4;
/// Packets of the hosts, bytes.
const MTU_BYTES: std::ops::RangeInclusive<u32> = 256..=1_500;
/// Of the way back, which acknowledgments do not fill, bit/s at least.
const LEAST_RETURN_BPS: u64 = 1_000_000;

/// A path with a queue is taken where its error is no more than so many times that of one without, and this in addition,
/// microseconds.
const BETTER: f64 = 1.1;
const LEAST_ERROR_US: f64 = 500.0;

/// The way has become longer where errors deviate from their median by less than this share of them.
const SHIFTED: f64 = 0.25;

/// How much is known of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Known {
    /// It was reached and limited the flow.
    Measured,
    /// The flow did not reach it: it is this or more.
    AtLeast,
}

/// What the ACKs of a flow show of its path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fitted {
    /// Number of the connection in the recording.
    pub flow: u64,
    /// Acknowledgments that were recorded.
    pub acks: usize,
    /// From the first data to the last acknowledgment, microseconds.
    pub duration_us: u64,
    /// Rate of the bottleneck, IP packets, bit/s; the median where it varies.
    pub rate_bps: u64,
    /// Whether it limited the flow.
    pub rate_known: Known,
    /// For how long the bottleneck was seen to limit the flow, microseconds.
    pub rate_seen_us: u64,
    /// Rate over time, from the first data on; empty where it varies by less than a tenth.
    pub rate_steps: Vec<RateStep>,
    /// Round-trip time of the empty path, microseconds.
    pub base_rtt_us: u64,
    /// Largest queue, bytes.
    pub queue_bytes: u64,
    /// Whether it overflowed.
    pub queue_known: Known,
    /// Largest variation of the round-trip time without the queue's, microseconds; 0: none that shows.
    pub jitter_us: u64,
    /// This variation over time, from the first data on.
    pub variation: Vec<DelayStep>,
    /// Payload of a segment, bytes.
    pub mss: u32,
    /// What a link of these properties makes of the recorded packets.
    pub explained: Explained,
}

/// Fits a path.
///
/// # Errors
/// [`FitError`]: too little was recorded, or what was makes no path.
pub fn fit(flow: &RecordedFlow) -> Result<Fitted, FitError> {
    let (queued, open) = estimate::paths(flow)?;
    let Some(queued) = queued else { return open.varying(flow) };
    let errors = queued.errors(flow)?;
    // Where the way has become longer, by how round-trip times change.
    let measure = if errors.spread_us < SHIFTED * errors.median_us {
        |errors: Errors| errors.spread_us
    } else {
        |errors: Errors| errors.median_us
    };
    let error_us = |one: &Fitted| one.errors(flow).map(measure);
    let queued = queued.finer(error_us)?;
    let taken = error_us(&queued)? <= BETTER * error_us(&open)? + LEAST_ERROR_US;
    if taken { queued } else { open }.varying(flow)
}

impl Fitted {
    /// How far round-trip times are from those of the link without variation, with room for every packet in its queue.
    fn errors(&self, flow: &RecordedFlow) -> Result<Errors, FitError> {
        Ok(explain::pass(flow, &self.roomy())?.errors())
    }

    fn roomy(&self) -> LinkSpec {
        let mut link = self.link();
        link.forward.queue_bytes = Some(MOST_QUEUE_BYTES);
        link
    }

    /// With the constant rate, near the one estimated, that explains the flow best: what is wrong by a hundredth fills or
    /// empties the queue by a hundredth of all that passes.
    fn finer(self, error_us: impl Fn(&Self) -> Result<f64, FitError>) -> Result<Self, FitError> {
        if !self.rate_steps.is_empty() {
            return Ok(self);
        }
        let mut best = (error_us(&self)?, self);
        for part in [100, 400, 1_600] {
            let center = best.1.rate_bps;
            for number in (-4..=4_i64).filter(|number| *number != 0) {
                let rate_bps = center.saturating_add_signed(center as i64 / part * number).max(1_000);
                let other = Self { rate_bps, ..best.1.clone() };
                let error = error_us(&other)?;
                if error < best.0 {
                    best = (error, other);
                }
            }
        }
        Ok(best.1)
    }

    /// With the variation that the link leaves unexplained, and with how well it then explains the flow.
    fn varying(mut self, flow: &RecordedFlow) -> Result<Self, FitError> {
        let passed = explain::pass(flow, &self.roomy())?;
        if self.queue_known == Known::AtLeast {
            self.queue_bytes = passed.max_queue_bytes;
        }
        self.variation = variation::steps(&passed.acks);
        self.jitter_us = self.variation.iter().map(|step| step.extra_us).max().unwrap_or(0);
        let link = self.link();
        link.validate("link")?;
        self.explained = explain::pass(flow, &link)?.explained();
        Ok(self)
    }

    /// The link of these properties. Half of the round-trip time is on each way, and its variation on the way back, from when
    /// data would be sent first. What follows the recording is as if that began anew.
    pub fn link(&self) -> LinkSpec {
        let room = if self.queue_known == Known::AtLeast { self.queue_bytes / ROOM } else { 0 };
        let queue = Limit::Bytes((self.queue_bytes + room).clamp(LEAST_QUEUE_BYTES, MOST_QUEUE_BYTES));
        let data_us = opening_us(self.base_rtt_us);
        let from_data = |at_us: u64| if at_us == 0 { 0 } else { at_us + data_us };
        let mut forward = DirectionSpec::new(self.rate_bps, self.base_rtt_us / 2, queue);
        if !self.rate_steps.is_empty() {
            let at = |step: &RateStep| RateStep { at_us: from_data(step.at_us), ..*step };
            forward.rate =
                Some(RateSpec::Steps { steps: self.rate_steps.iter().map(at).collect(), repeat_us: None });
        }
        let back_bps = self.rate_bps.max(LEAST_RETURN_BPS);
        let mut back =
            DirectionSpec::new(back_bps, self.base_rtt_us - self.base_rtt_us / 2, Limit::Bytes(100_000_000));
        if let Some(last) = self.variation.last() {
            let at = |step: &DelayStep| DelayStep { at_us: from_data(step.at_us), ..*step };
            let steps = self.variation.iter().map(at).collect();
            let end_us = data_us + self.duration_us.max(last.at_us + 1);
            back.jitter = vec![JitterSpec::Steps { steps, repeat_us: Some(end_us) }];
        }
        LinkSpec { forward, back }
    }

    /// The link with hosts that do not limit it, as a profile of this name, for what drove the flow.
    pub fn profile(&self, name: &str, driver: Option<&Driver>) -> Profile {
        let link = self.link();
        let mtu_bytes = (self.mss + HEADER_BYTES).clamp(*MTU_BYTES.start(), *MTU_BYTES.end());
        let value = |text: &String| text.parse().map_or_else(|_| Value::Text(text.clone()), Value::Integer);
        let parameters = driver.map_or_else(BTreeMap::new, |driver| driver.parameters.clone());
        Profile {
            version: profile::VERSION,
            name: name.to_owned(),
            about: self.about(),
            algorithm: driver
                .and_then(|driver| onramp_algorithm::find(&driver.algorithm))
                .unwrap_or_else(onramp_algorithm::default)
                .name()
                .to_owned(),
            telemetry: None,
            params: parameters.iter().map(|(name, text)| (name.clone(), Params::Own(value(text)))).collect(),
            host: HostSpec { mtu_bytes, ..HostSpec::roomy(&link) },
            link,
        }
    }

    /// A queue that holds eight times what was seen, and two bandwidth-delay products.
    fn roomy_queue_bytes(&self) -> u64 {
        let bdp_bytes = u128::from(self.rate_bps) * u128::from(self.base_rtt_us) / 8_000_000;
        u64::try_from(u128::from(self.queue_bytes) * 8 + bdp_bytes * 2).unwrap_or(MOST_QUEUE_BYTES)
    }

    fn about(&self) -> String {
        let mut text = format!("fitted to flow {} of a recording", self.flow);
        for (known, name) in [(self.rate_known, "rate"), (self.queue_known, "queue")] {
            if known == Known::AtLeast {
                text += &format!("; the {name} is a lower bound: the flow did not reach it");
            }
        }
        text
    }
}

impl From<RangeError> for FitError {
    fn from(error: RangeError) -> Self {
        Self::Range(error)
    }
}
