// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The path of Barakat et al. 1999, for any size of its buffer, and its closed forms.

use onramp_lab::experiment::Run;
use onramp_lab::model::threshold::Bottleneck;
use onramp_lab::question::NoEvidence;
use onramp_profiles::Profile;
use onramp_profiles::link::{CrossSpec, DirectionSpec, Limit, LinkSpec};

/// Whole packets, of TCP and of others.
pub(super) const PACKET_BYTES: f64 = 512.0;
/// Payload of a packet: without IP and TCP headers and timestamps.
pub(super) const PAYLOAD_BYTES: f64 = PACKET_BYTES - 52.0;
/// Rate of the link, packets per second.
pub(super) const RATE: f64 = 1_500_000.0 / 8.0 / PACKET_BYTES;
/// Rate of others, packets per second.
pub(super) const OTHERS: f64 = 100.0;
/// What background traffic leaves, packets per second.
pub(super) const AVAILABLE: f64 = RATE - OTHERS;
/// Round-trip time of the empty path, seconds: a satellite link of 250 ms and an access link of 30 ms, both ways.
pub(super) const RTT_SECONDS: f64 = 0.56;

/// The path with a buffer of so many packets. The access link of 10 Mb/s and 30 ms has its delay here and no queue of its
/// own.
pub(super) fn path<const PACKETS: u64>(profile: &mut Profile) {
    let cross = CrossSpec::Constant { rate_bps: 409_600, packet_bytes: 512 };
    let forward = DirectionSpec::new(1_500_000, 280_000, Limit::Packets(PACKETS));
    profile.link = LinkSpec {
        forward: DirectionSpec { cross: Some(cross), ..forward },
        back: DirectionSpec::new(10_000_000, 280_000, Limit::Packets(10_000)),
    };
    profile.host.mtu_bytes = 512;
    profile.host.tcp_sack = true;
    profile.host.quickack = true;
    profile.algorithm = "plain".into();
    profile.params.clear();
}

/// The path as its model sees it.
pub(super) fn bottleneck(packets: u64) -> Result<Bottleneck, NoEvidence> {
    let made = Bottleneck::new(RATE, OTHERS, RTT_SECONDS, packets);
    made.map_err(|_| NoEvidence::Other("closed forms of this path"))
}

/// Throughput, packets per second.
pub(super) fn packets_per_second(run: &Run) -> f64 {
    run.goodput_bps / 8.0 / PAYLOAD_BYTES
}
