// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the tests with real packets share.

use onramp_profiles::host::HostSpec;
use onramp_profiles::link::{DirectionSpec, Limit, LinkSpec};

/// A link without random parts, the same both ways; the queue's limit in packets.
pub fn link(rate_bps: u64, one_way_us: u64, queue_packets: u64) -> LinkSpec {
    let direction = DirectionSpec::new(rate_bps, one_way_us, Limit::Packets(queue_packets));
    LinkSpec { forward: direction.clone(), back: direction }
}

/// Buffers that limit nothing here.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn host() -> HostSpec {
    HostSpec::new([4_096, 131_072, 67_108_864], [4_096, 131_072, 67_108_864])
}
