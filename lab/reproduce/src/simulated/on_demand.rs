// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The terminal of Gotta et al. 2006 as its closed forms see it: no limit but the channel, every packet acknowledged.

use onramp_lab::experiment::Amount;
use onramp_lab::model::on_demand::Startup;
use onramp_lab::question::{NoEvidence, Trial};
use onramp_profiles::Profile;
use onramp_profiles::link::ScheduleSpec;

/// τ: round-trip time of the empty path, seconds.
pub(super) const RTT_SECONDS: f64 = 0.75;
/// Packets per second of the carrier, 2.112 Mb/s, in packets of 1500 bytes.
pub(super) const CAPACITY: f64 = 2_112_000.0 / 8.0 / 1_500.0;
/// Payload of a packet, bytes.
const PAYLOAD_BYTES: u64 = 1_448;
/// Long enough for the largest volume.
const SECONDS: u32 = 40;
/// Volumes of data, packets.
pub(super) const VOLUMES: [u64; 3] = [10, 100, 1_000];

/// What makes a profile the channel of a trial.
pub(super) type Channel = fn(&mut Profile);

/// The profile without what the closed forms do not have: buffers that fill up and acknowledgments that wait.
pub(super) fn unlimited(profile: &mut Profile) {
    profile.link.forward.queue_bytes = Some(100_000_000);
    profile.link.back.queue_bytes = Some(100_000_000);
    profile.host.quickack = true;
    profile.algorithm = "plain".into();
    profile.params.clear();
}

/// Changes the profile's bandwidth on demand: requests, grants, propagation, microseconds; k; slots and length of a frame.
pub(super) fn schedule(profile: &mut Profile, change: impl FnOnce([&mut u64; 5], &mut f64)) {
    if let Some(ScheduleSpec::BandwidthOnDemand {
        request_every_us,
        grant_every_us,
        propagation_us,
        factor,
        frame_slots,
        frame_us,
    }) = &mut profile.link.forward.schedule
    {
        change([request_every_us, grant_every_us, propagation_us, frame_slots, frame_us], factor);
    }
}

/// An arm with a first window of so many packets.
pub(super) fn arm(window: u32) -> String {
    format!("plain:base=reno:host.initial_window_segments={window}")
}

/// A greedy connection in each arm; the volumes are its first bytes.
pub(super) fn trial(name: String, adapt: Channel, windows: &[u32]) -> Trial {
    let arms: Vec<_> = windows.iter().map(|window| arm(*window)).collect();
    let arms: Vec<_> = arms.iter().map(String::as_str).collect();
    Trial {
        adapt,
        amount: Amount::Seconds(SECONDS),
        objects: VOLUMES.map(bytes).to_vec(),
        repetitions: 100,
        quick: 20,
        ..Trial::new(name, "bod", &arms)
    }
}

/// Payload of so many packets.
pub(super) fn bytes(packets: u64) -> u64 {
    packets * PAYLOAD_BYTES
}

/// The closed forms.
pub(super) fn startup(allocation_delay: f64, factor: f64, window: u32) -> Result<Startup, NoEvidence> {
    let made = Startup::new(RTT_SECONDS, allocation_delay, factor, window.into(), CAPACITY);
    made.map_err(|_| NoEvidence::Other("closed forms of this path"))
}
