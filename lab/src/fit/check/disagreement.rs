// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Why a fitted path must not be used.

use std::fmt;

use onramp_recording::replay::Exit;
use serde::Serialize;

use super::LEAST_SAMPLES;
use super::moved::Moved;

/// Why a path must not be used.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Disagreement {
    /// Too few round-trip times could be compared.
    Unchecked {
        /// So many.
        samples: usize,
    },
    /// It explains the recorded round-trip times less than their mean does.
    WorseThanConstant {
        /// Share of the variance that it explains.
        rtt_variance: f64,
    },
    /// What was taken for a queue is on the way back.
    WayBack {
        /// Share of the waits that were there, by the receiver's clock.
        share: f64,
    },
    /// The rate varies, and is known only on the average of windows.
    Varies {
        /// Rates that were seen.
        rates: usize,
    },
    /// What drove the flow is not known, or not simulated.
    Driver {
        /// Reason.
        reason: String,
    },
    /// The flow takes another time over the path.
    Completion {
        /// Arm.
        arm: String,
        /// From its first data to its last acknowledgment, seconds.
        recorded_seconds: f64,
        /// The same over the path.
        simulated_seconds: f64,
    },
    /// Slow start ends elsewhere over the path.
    Exit {
        /// Algorithm that leaves; the flow's own arm: its real exit.
        of: String,
        /// Recorded; none: not before the flow itself left.
        recorded: Option<Left>,
        /// Over the path.
        simulated: Option<Left>,
    },
    /// How long an arm takes depends on what the flow did not reach.
    Open {
        /// Arm.
        arm: String,
        /// Bytes of the transfer.
        bytes: u64,
        /// What was not reached: `rate` or `queue`.
        figure: &'static str,
        /// Time with the lower bound, seconds.
        seconds: f64,
        /// Time with more of it, seconds.
        with_more_seconds: f64,
    },
    /// The flow reduced its window another number of times over the path: losses that the path does not show, or too many.
    Losses {
        /// Recorded.
        recorded: usize,
        /// Over the path.
        simulated: usize,
    },
    /// How long an arm takes depends on what the recording does not show that exactly.
    Moved {
        /// Arm.
        arm: String,
        /// Bytes of the transfer.
        bytes: u64,
        /// What is moved, by as much as the recording leaves open.
        figure: Moved,
        /// Time over the path, seconds.
        seconds: f64,
        /// Time with the figure moved, seconds.
        moved_seconds: f64,
    },
    /// Which of two arms is faster depends on what the recording does not show, or not that exactly.
    Order {
        /// The arm that is faster over the path.
        arm: String,
        /// Bytes of the transfer.
        bytes: u64,
        /// What decides.
        figure: Moved,
    },
    /// A transfer is larger than the recorded one, or takes longer, and the rate varies, was not seen for long enough to say that it does not, or
    /// losses were recorded that the path does not show.
    Beyond {
        /// Arm.
        arm: String,
        /// Bytes of the transfer.
        bytes: u64,
        /// It takes so long, seconds.
        seconds: f64,
        /// So long was recorded, seconds.
        recorded_seconds: f64,
    },
}

/// An exit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Left {
    /// Since the first data, seconds.
    pub seconds: f64,
    /// Window, bytes.
    pub window_bytes: u64,
}

impl Left {
    pub(super) fn new(exit: &Exit) -> Self {
        Self { seconds: exit.since_start_us as f64 / 1e6, window_bytes: exit.window_bytes }
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {:.2} s at {:.0} kB", self.seconds, self.window_bytes as f64 / 1e3)
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exit = |exit: &Option<Left>| {
            exit.map_or_else(|| "not before the flow itself left".to_owned(), |left| left.to_string())
        };
        let megabytes = |bytes: &u64| *bytes as f64 / 1e6;
        match self {
            Self::Unchecked { samples } => write!(
                f,
                "the path cannot be checked: {samples} round-trip times could be compared, {LEAST_SAMPLES} are needed"
            ),
            Self::WorseThanConstant { rtt_variance } => write!(
                f,
                "the path explains the round-trip times less than their mean does: {:.0} % of their variance",
                100.0 * rtt_variance
            ),
            Self::WayBack { share } => write!(
                f,
                "{:.0} % of what packets have waited was on the way back, whose rate is not fitted",
                100.0 * share
            ),
            Self::Varies { rates } => write!(
                f,
                "the rate varies: {rates} rates show, each the average of a round trip or 100 ms, which does not say how long \
                 others take"
            ),
            Self::Driver { reason } => write!(f, "the flow cannot be simulated: {reason}"),
            Self::Completion { arm, recorded_seconds, simulated_seconds } => write!(
                f,
                "{arm} took {recorded_seconds:.2} s when it was recorded, and takes {simulated_seconds:.2} s over the path"
            ),
            Self::Exit { of, recorded, simulated } => write!(
                f,
                "{of} leaves {} over what was recorded, and {} over the path",
                exit(recorded),
                exit(simulated)
            ),
            Self::Open { arm, bytes, figure, seconds, with_more_seconds } => write!(
                f,
                "how long {arm} takes for {:.1} MB depends on the {figure}, which the flow did not reach: {seconds:.2} s with \
                 what is known of it, {with_more_seconds:.2} s with more",
                megabytes(bytes)
            ),
            Self::Losses { recorded, simulated } => write!(
                f,
                "the flow reduced its window {recorded} times, and {simulated} times over the path: packets are lost otherwise \
                 than by a full queue, or the queue is another"
            ),
            Self::Moved { arm, bytes, figure, seconds, moved_seconds } => write!(
                f,
                "how long {arm} takes for {:.1} MB depends on what is not known that exactly: {seconds:.2} s, and with {figure} \
                 {moved_seconds:.2} s",
                megabytes(bytes)
            ),
            Self::Order { arm, bytes, figure } => write!(
                f,
                "{arm} is the faster one for {:.1} MB, and with {figure} it is not",
                megabytes(bytes)
            ),
            Self::Beyond { arm, bytes, seconds, recorded_seconds } => write!(
                f,
                "{arm} takes {seconds:.2} s for {:.1} MB, and the rate may vary or packets be lost after the {recorded_seconds:.2} s \
                 that were recorded",
                megabytes(bytes)
            ),
        }
    }
}
