// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The closed form of startup over bandwidth on demand compared with simulated startup.

use super::MARGIN;
use super::on_demand::{Channel, RTT_SECONDS, VOLUMES, arm, bytes, schedule, startup, trial, unlimited};
use crate::Claim;
use onramp_lab::figure::Dash;
use onramp_lab::question::plots::{curves, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence, Trial};
use onramp_profiles::Profile;

/// Initial windows W0, packets.
const WINDOWS: [u32; 3] = [1, 2, 3];
/// ρ as it is written, allocation delay, seconds (τ + Tr/2 + Ta/2 where there are requests), for how long a grant goes on,
/// seconds, and the channel.
const DELAYS: [(&str, f64, f64, Channel); 3] = [
    ("1", 0.0, 0.0, assigned),
    ("2", RTT_SECONDS, 0.1, prompt),
    ("2.73", RTT_SECONDS + 0.546, 0.819, unlimited),
];
/// How much later than its own equation the closed form is at most, for k = 1 (docs/models.md).
const MODEL_ERROR: f64 = 0.1;

pub(crate) const CLAIM: Claim = Claim {
    id: "bod-model",
    source: "Gotta et al. 2006, figure 3 and equation (15)",
    statement: "The closed form gives the time to send a volume of data over bandwidth on demand, for initial windows of 1, 2 and 3 \
                packets and ρ of 1, 2 and 2.73: the allocation delay costs short transfers seconds, and a larger initial window \
                saves round trips.",
    trials: || {
        let each = |(name, _, _, adapt): (&str, f64, f64, Channel)| trial(trial_name(name), adapt, &WINDOWS);
        DELAYS.into_iter().map(each).collect::<Vec<Trial>>()
    },
    evaluate,
};

fn trial_name(delay: &str) -> String {
    format!("bod-model-{delay}")
}

/// The whole channel, assigned in advance.
fn assigned(profile: &mut Profile) {
    unlimited(profile);
    profile.link.forward.schedule = None;
}

/// As little delay as can be: τ in all, of which requests and grants take their halves of a tenth of a second. Sending is
/// smooth, because grants come more often than the terminal's frames.
fn prompt(profile: &mut Profile) {
    unlimited(profile);
    schedule(profile, |[request, grant, propagation, _, frame], _| {
        (*request, *grant, *propagation, *frame) = (100_000, 100_000, 650_000, 0);
    });
}

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let (mut comparands, mut checks, mut panels) = (Vec::new(), Vec::new(), Vec::new());
    let mut times = Vec::new();
    for (delay, seconds, granted, _) in DELAYS {
        let mut shown = Vec::new();
        for window in WINDOWS {
            let model = startup(seconds, 1.0, window)?;
            let later = startup(seconds + granted / 2.0, 1.0, window)?;
            let (mut points, mut closed) = (Vec::new(), Vec::new());
            for packets in VOLUMES {
                let simulated = evidence.arm(&trial_name(delay), &arm(window))?.object(bytes(packets))?;
                let predicted = model.completion_seconds(packets as f64).unwrap_or(f64::NAN);
                let what = format!("ρ = {delay}, W0 = {window}, {packets} packets");
                comparands.push(Comparand::new(
                    format!("{what}, s"),
                    format!("{predicted:.2}"),
                    simulated,
                    2,
                ));
                if granted > 0.0 {
                    let late = later.completion_seconds(packets as f64).unwrap_or(f64::NAN);
                    let what = format!("{what}, closed form with half of a grant more, s");
                    comparands.push(Comparand::new(what, "", late, 2));
                }
                let what = format!("{what}, simulated over the closed form");
                checks.push(Check::between(what, simulated / predicted, 1.0 - MODEL_ERROR, 1.0 + MARGIN));
                points.push(((packets as f64).log10(), simulated));
                closed.push(((packets as f64).log10(), predicted));
                times.push(simulated);
            }
            shown.push((format!("W0 = {window}, simulated"), points, Dash::Solid));
            shown.push((format!("W0 = {window}, closed form"), closed, Dash::Short));
        }
        panels.push(curves(&format!("ρ = {delay}"), "packets, power of ten", "seconds", shown));
    }
    let per_delay = WINDOWS.len() * VOLUMES.len();
    for at in 0..per_delay {
        let (window, packets) = (WINDOWS[at / VOLUMES.len()], VOLUMES[at % VOLUMES.len()]);
        let [none, little, much] = [0, 1, 2].map(|delay| times[delay * per_delay + at]);
        let what = format!("W0 = {window}, {packets} packets");
        checks.push(Check::at_least(format!("{what}, time with ρ = 2 over ρ = 1"), little / none, 1.0));
        checks.push(Check::at_least(format!("{what}, time with ρ = 2.73 over ρ = 2"), much / little, 1.0));
    }
    Ok(Evaluation {
        comparands,
        checks,
        figure: figure("Startup over bandwidth on demand: closed form and simulation", panels),
    })
}
