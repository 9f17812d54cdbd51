// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the documents show by simulations and closed forms, for the simulator.

pub(super) mod bod_k;
pub(super) mod bod_model;
pub(super) mod early_loss;
pub(super) mod gamma_sweep;
mod on_demand;
pub(super) mod rate_sweep;

use super::small_buffer::{packets_per_second, path};
use onramp_lab::experiment::Amount;
use onramp_lab::question::{Evidence, NoEvidence, Trial, Valid};
use onramp_profiles::Profile;
use onramp_profiles::link::CrossSpec;

/// Seconds of a connection: some three cycles between two losses after the first, which the source does not count among them.
/// It does not say how long its simulations are; docs/reproduction.md has the figures of others.
const SECONDS: u32 = 200;
/// How far a simulated figure may be from the source's.
const MARGIN: f64 = 0.05;

/// The path of Barakat et al. 1999 from the first window of its time on. The source's background traffic has an "average rate";
/// here its packets come at independent intervals.
fn tahoe_path<const PACKETS: u64>(profile: &mut Profile) {
    path::<PACKETS>(profile);
    profile.link.forward.cross = Some(CrossSpec::Poisson { rate_bps: 409_600, packet_bytes: 512 });
    profile.host.initial_window_segments = Some(1);
}

/// A long connection of Tahoe in each arm over that path.
fn tahoe<const PACKETS: u64>(name: &str, arms: &[&str]) -> Trial {
    Trial {
        adapt: tahoe_path::<PACKETS>,
        amount: Amount::Seconds(SECONDS),
        repetitions: 100,
        quick: 4,
        ..Trial::new(name, "geo", arms)
    }
}

/// Buffers of the sweeps: normalized, β, and in packets: β τ (μ - λ) of the source's path, in whole ones.
const BUFFERS: [(f64, u64); 3] = [(0.5, 75), (0.25, 38), (0.125, 19)];

/// The name of a sweep's trial with a normalized buffer.
fn swept(id: &str, buffer: f64) -> String {
    format!("{id}-{buffer}")
}

/// A sweep's arms over the path with each of the buffers.
fn sweep(id: &str, arms: &[String]) -> Vec<Trial> {
    let arms: Vec<_> = arms.iter().map(String::as_str).collect();
    let [large, middle, small] = BUFFERS.map(|(buffer, _)| swept(id, buffer));
    vec![tahoe::<75>(&large, &arms), tahoe::<38>(&middle, &arms), tahoe::<19>(&small, &arms)]
}

/// Mean throughput of an arm, packets per second.
fn throughput(evidence: &Evidence, trial: &str, arm: &str) -> Result<f64, NoEvidence> {
    evidence.arm(trial, arm).map(|arm: Valid<'_>| arm.mean(packets_per_second))
}
