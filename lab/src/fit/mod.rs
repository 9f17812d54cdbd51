// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A path fitted to a recorded flow: what its acknowledgements tell of rate, round-trip time, queue and jitter, as a profile, and
//! how well a link of these properties explains what was recorded.
//!
//! * While the smallest round-trip time of a window stays above that of the empty path there is a queue, and what is
//!   delivered then is the rate of the bottleneck. A flow that never kept a queue tells a lower bound.
//! * Round-trip times may rise without a queue, because the way back varies. So the path is also taken as one without: its rate is the most
//!   that was delivered, as a lower bound. The one that explains the recorded round-trip times better is the path.
//! * A queue is as large as the longest wait in it: all of it where a loss followed, a lower bound where none did.
//! * What round-trip times of neighbours differ by, beside the line that they lie on, is jitter. Links keep the order of packets,
//!   so close ones share theirs, and the estimate is low rather than high.

mod estimate;
mod explain;
mod flow;

pub use explain::Explained;
pub use flow::{FitError, RecordedFlow, Seen};

use std::collections::BTreeMap;

use serde::Serialize;

use crate::host::HostSpec;
use crate::link::spec::RateStep;
use crate::link::{DirectionSpec, JitterSpec, Limit, LinkSpec, RangeError, RateSpec};
use crate::profile::{self, Profile};

/// Smallest queue of a fitted path, bytes: ten full packets.
const LEAST_QUEUE_BYTES: u64 = 15_000;
/// Of the way back, which acknowledgements do not fill, bit/s at least.
const LEAST_RETURN_BPS: u64 = 1_000_000;

/// A path with a queue is taken where its error is no more than so many times that of one without, and this beside it,
/// microseconds.
const BETTER: f64 = 1.1;
const LEAST_ERROR_US: f64 = 500.0;

/// How much is known of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Known {
    /// It was reached and limited the flow.
    Measured,
    /// The flow did not reach it: it is this or more.
    AtLeast,
}

/// What the acknowledgements of a flow tell of its path.
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
    /// Rate over time, from the first data on; empty where it varies by less than a tenth.
    pub rate_steps: Vec<RateStep>,
    /// Round-trip time of the empty path, microseconds.
    pub base_rtt_us: u64,
    /// Largest queue, bytes.
    pub queue_bytes: u64,
    /// Whether it overflowed.
    pub queue_known: Known,
    /// Largest variation of the round-trip time beside the queue's, microseconds; 0: none that shows.
    pub jitter_us: u64,
    /// What a link of these properties makes of the recorded packets.
    pub explained: Explained,
}

/// Fits a path.
///
/// # Errors
/// [`FitError`]: too little was recorded, or what was makes no path.
pub fn fit(flow: &RecordedFlow) -> Result<Fitted, FitError> {
    let (queued, open) = estimate::of(flow)?;
    let queued = queued.map(|fitted| fitted.explaining(flow)).transpose()?;
    let better = |queued: &Fitted, open: &Fitted| {
        queued.explained.rtt_error_us <= BETTER * open.explained.rtt_error_us + LEAST_ERROR_US
    };
    let open = open.explaining(flow)?;
    Ok(queued.filter(|queued| better(queued, &open)).unwrap_or(open))
}

impl Fitted {
    /// With how well it explains the flow.
    fn explaining(self, flow: &RecordedFlow) -> Result<Self, FitError> {
        let link = self.link();
        link.validate("link")?;
        Ok(Self { explained: explain::explain(flow, &link, self.jitter_us)?, ..self })
    }

    /// The link of these properties. Half of the round-trip time is on each way, and jitter on the way back. A queue that the flow
    /// did not fill holds a bandwidth-delay product at least.
    pub fn link(&self) -> LinkSpec {
        let bdp_bytes = (u128::from(self.rate_bps) * u128::from(self.base_rtt_us) / 8_000_000) as u64;
        let least = if self.queue_known == Known::AtLeast { bdp_bytes } else { 0 };
        let queue = Limit::Bytes(self.queue_bytes.max(least).max(LEAST_QUEUE_BYTES));
        let mut forward = DirectionSpec::new(self.rate_bps, self.base_rtt_us / 2, queue);
        if !self.rate_steps.is_empty() {
            forward.rate = Some(RateSpec::Steps { steps: self.rate_steps.clone(), repeat_us: None });
        }
        let back_bps = self.rate_bps.max(LEAST_RETURN_BPS);
        let mut back =
            DirectionSpec::new(back_bps, self.base_rtt_us - self.base_rtt_us / 2, Limit::Bytes(100_000_000));
        if self.jitter_us > 0 {
            back.jitter = vec![JitterSpec::Uniform { max_us: self.jitter_us }];
        }
        LinkSpec { forward, back }
    }

    /// The link with hosts that do not limit it, as a profile of this name.
    pub fn profile(&self, name: &str) -> Profile {
        let link = self.link();
        Profile {
            version: profile::VERSION,
            name: name.to_owned(),
            about: format!("fitted to flow {} of a recording", self.flow),
            algorithm: "plain".into(),
            telemetry: None,
            params: BTreeMap::new(),
            host: HostSpec::roomy(&link),
            link,
        }
    }
}

impl From<RangeError> for FitError {
    fn from(error: RangeError) -> Self {
        Self::Range(error)
    }
}
