// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What an exit cost, measured by what the link gives. The lab knows that; a flow can only estimate it, see
//! [`onramp_recording::replay::PathEstimate`].

use onramp_recording::replay::{CARRIES_PERCENT, PathEstimate, ROUNDS, Regret};
use serde::{Deserialize, Serialize};

use super::arm::{Arm, Exit};
use super::flow::Flow;
use super::plan::Plan;

/// What an exit cost, by the link's rate and delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkRegret {
    /// What it cost.
    #[serde(flatten)]
    pub cost: Regret,
    /// The flow never carried the link's rate, and `early_us` counts until its end.
    pub at_least: bool,
}

impl LinkRegret {
    /// Of the exit of a flow that had the link to itself. None where others share the link, or where it was changed on
    /// the way: it does not give one rate to one flow then.
    pub(crate) fn new(plan: &Plan, arm: &Arm, flow: &Flow, exit: Option<&Exit>) -> Option<Self> {
        let exit = exit?;
        if plan.flows > 1 || plan.competitor.is_some() || !(plan.changes.is_empty() && plan.paths.is_empty())
        {
            return None;
        }
        let host = arm.host.as_ref().unwrap_or(&plan.profile.host);
        let link = &plan.profile.link;
        // The link counts packets, windows count what they carry.
        let payload = f64::from(host.mss()) / f64::from(host.mtu_bytes);
        let rate = link.available_bps() as f64 / 8.0 * payload;
        let base_rtt_us = link.base_rtt_us() + plan.extra_rtt_us(0);
        let began_ns = flow.began_ns()?;
        let carried_ns = carried_ns(flow, rate, ROUNDS as u64 * base_rtt_us * 1_000);
        let given = PathEstimate {
            rate_bytes_per_second: rate as u64,
            base_rtt_us: base_rtt_us.try_into().ok()?,
            window_bytes: (rate * base_rtt_us as f64 / 1e6) as u64,
            at_least: false,
            carried_since_start_us: Some(carried_ns.or(flow.ended_ns())?.saturating_sub(began_ns) / 1_000),
        };
        let left_us = (exit.seconds * 1e6) as u64;
        let rtt_us = flow.rtt_after(began_ns + left_us * 1_000);
        let cost = given.regret(left_us, exit.window_bytes, rtt_us)?;
        Some(Self { cost, at_least: carried_ns.is_none() && cost.window_to_bdp < 1.0 })
            .filter(|_| given.window_bytes > 0)
    }
}

/// When the first time of this length began in which nearly this rate was delivered, bytes per second.
fn carried_ns(flow: &Flow, rate: f64, length_ns: u64) -> Option<u64> {
    let enough = CARRIES_PERCENT as f64 / 100.0 * rate * length_ns as f64 / 1e9;
    let delivered =
        |from_ns| flow.delivered_at(from_ns + length_ns).saturating_sub(flow.delivered_at(from_ns));
    let carries = |at_ns| delivered(at_ns) as f64 >= enough;
    flow.samples.iter().map(|sample| sample.at_ns).find(|at_ns| carries(*at_ns))
}
