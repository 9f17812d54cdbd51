// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What an oracle knows of its path, and what it makes of it: the spacing of `bpf/algorithm/ramp.h` from the first round
//! trip on, and an exit where `ramp` would leave with a perfect estimate.

use onramp_algorithm::{Ack, Verdict};

use crate::host::HostSpec;
use crate::link::LinkSpec;

/// Window at which to leave, percent of what the path holds, as `ramp` does.
const EXIT_PCT: u128 = 110;
/// The queue that spacing may build, as a part of the target.
const QUEUE_PART: u64 = 24;
/// Rate from half of the target on, and most before, percent.
const FLAT_PCT: u64 = 102;
const GAIN_MOST_PCT: u64 = 200;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The rate that the path has for a flow, bytes per second.
    rate: u64,
    /// Window at which to leave, segments.
    pub target: u32,
}

impl Told {
    /// Of a link and its hosts.
    pub fn of(host: &HostSpec, link: &LinkSpec) -> Self {
        let bits = u128::from(link.available_bps()) * u128::from(link.most_rtt_us()) / 1_000_000;
        let held = bits * EXIT_PCT / 100 / (8 * u128::from(host.mtu_bytes));
        Self { rate: link.available_bps() / 8, target: u32::try_from(held).unwrap_or(u32::MAX) }
    }

    /// The rate at which data leave while the window doubles.
    pub fn spaced(&self, ack: &Ack) -> Verdict {
        let (cwnd, target) = (u64::from(ack.cwnd), u64::from(self.target));
        let window = QUEUE_PART * cwnd;
        let percent = if 2 * cwnd >= target {
            FLAT_PCT
        } else if window > 2 * target {
            100 * window / (window - target)
        } else {
            GAIN_MOST_PCT
        };
        Verdict { pacing_rate: (self.rate * percent / 100).max(1), ..Verdict::default() }
    }
}
