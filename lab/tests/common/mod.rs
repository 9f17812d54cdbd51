// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the tests with real packets share.

use onramp_lab::emulator::Tun;
use onramp_lab::host::HostSpec;
use onramp_lab::link::{DirectionSpec, Limit, LinkSpec};
use onramp_net::Namespace;

/// Whether namespaces and TUN devices can be made here; prints why not.
pub fn can_emulate() -> bool {
    let attempt = Namespace::create().map_err(|error| error.to_string()).and_then(|namespace| {
        Tun::create(&namespace, "onramp0").map(drop).map_err(|error| error.to_string())
    });
    if let Err(reason) = &attempt {
        println!("SKIP: {reason}");
    }
    attempt.is_ok()
}

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
