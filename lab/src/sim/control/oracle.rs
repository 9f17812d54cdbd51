// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What an oracle knows of its path, and what it makes of it: the spacing of `ramp` from the first round trip on, and an
//! exit where `ramp` would leave with a perfect estimate.

use onramp_algorithm::{Verdict, ramp};

use crate::host::HostSpec;
use crate::link::LinkSpec;

/// Window at which to leave, percent of what the path holds, as `ramp` does.
const EXIT_PCT: u128 = 110;

/// Rate, RTT and BDP of the path, and the exit window that follows.
#[derive(Clone, Copy, Debug)]
pub struct Oracle {
    /// The rate that the path has for a flow, bytes per second.
    rate: u64,
    /// Window at which to leave, segments.
    pub target: u32,
}

impl Oracle {
    /// Of a link and its hosts.
    pub fn new(host: &HostSpec, link: &LinkSpec) -> Self {
        let bits = u128::from(link.available_bps()) * u128::from(link.most_rtt_us()) / 1_000_000;
        let held = bits * EXIT_PCT / 100 / (8 * u128::from(host.mtu_bytes));
        Self { rate: link.available_bps() / 8, target: u32::try_from(held).unwrap_or(u32::MAX) }
    }

    /// The rate at which data leave while the window doubles.
    pub fn paced(&self) -> Verdict {
        let percent = u64::from(ramp::gain_pct());
        Verdict { pacing_rate: (self.rate * percent / 100).max(1), ..Verdict::default() }
    }
}
