// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! More capacity asked for than packets came in: completion and utilisation over the factor k.

use super::on_demand::{Channel, VOLUMES, arm, bytes, schedule, trial, unlimited};
use crate::Claim;
use onramp_lab::experiment::Run;
use onramp_lab::figure::Dash;
use onramp_lab::question::plots::{curves, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence, Trial};
use onramp_lab::stats::mean;
use onramp_profiles::Profile;

/// Tenths of k, with the channel of each.
const FACTORS: [(u64, Channel); 8] = [
    (10, asking::<10>),
    (15, asking::<15>),
    (20, asking::<20>),
    (30, asking::<30>),
    (40, asking::<40>),
    (48, asking::<48>),
    (60, asking::<60>),
    (80, asking::<80>),
];
/// Of these, the source's best.
const BEST: usize = 5;
const WINDOW: u32 = 1;

pub(crate) const CLAIM: Claim = Claim {
    id: "bod-k",
    source: "Gotta et al. 2006, figure 4",
    statement: "Completion improves with the factor k between granted and incoming rate, with gains that diminish up to k near 4.8 and \
                are largest for large volumes; utilization of the assigned channel worsens, most for small volumes.",
    trials: || {
        let each = |(tenths, adapt): (u64, Channel)| trial(trial_name(tenths), adapt, &[WINDOW]);
        FACTORS.into_iter().map(each).collect::<Vec<Trial>>()
    },
    evaluate,
};

fn trial_name(tenths: u64) -> String {
    format!("bod-k-{tenths}")
}

/// The terminal with its slots and bursts, and k.
fn asking<const TENTHS: u64>(profile: &mut Profile) {
    unlimited(profile);
    schedule(profile, |_, factor| *factor = TENTHS as f64 / 10.0);
}

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let (mut comparands, mut checks) = (Vec::new(), Vec::new());
    let (mut times, mut shares) = (Vec::new(), Vec::new());
    let label = arm(WINDOW);
    for packets in VOLUMES {
        let (mut time, mut share) = (Vec::new(), Vec::new());
        for (tenths, _) in FACTORS {
            let factor = tenths as f64 / 10.0;
            let name = trial_name(tenths);
            let arm = evidence.arm(&name, &label)?;
            let object = |run: &Run| {
                run.measures.objects.iter().find(|object| object.bytes == bytes(packets))?.utilization
            };
            let used: Vec<f64> = arm.runs().filter_map(object).collect();
            if used.is_empty() {
                return Err(NoEvidence::Figure { arm: name, what: "a utilization" });
            }
            let seconds = arm.object(bytes(packets))?;
            time.push((factor, seconds));
            share.push((factor, mean(&used)));
            comparands.push(Comparand::new(format!("{packets} packets, k = {factor}, s"), "", seconds, 2));
            comparands.push(Comparand::new(
                format!("{packets} packets, k = {factor}, utilization"),
                "",
                mean(&used),
                3,
            ));
        }
        let at = |index: usize| time[index].1;
        let last = time.len() - 1;
        checks.push(Check::at_most(
            format!("{packets} packets, time with k = 4.8 over k = 1"),
            at(BEST) / at(0),
            0.97,
        ));
        let later = (at(BEST) - at(last)) / (at(0) - at(BEST));
        checks.push(Check::at_most(
            format!("{packets} packets, gain from k = 4.8 to 8 over that from 1 to 4.8"),
            later,
            0.25,
        ));
        let gains = (at(2) - at(4)) / (at(0) - at(2));
        checks.push(Check::at_most(
            format!("{packets} packets, gain from k = 2 to 4 over that from 1 to 2"),
            gains,
            1.0,
        ));
        checks.push(Check::at_most(
            format!("{packets} packets, utilization with k = 4.8 over k = 1"),
            share[BEST].1 / share[0].1,
            1.0,
        ));
        times.push(time);
        shares.push(share);
    }
    let gain = |volume: usize| times[volume][0].1 - times[volume][BEST].1;
    checks.push(Check::at_least("seconds gained with k = 4.8, 1000 packets over 10", gain(2) / gain(0), 1.0));
    let kept = |volume: usize| shares[volume][BEST].1 / shares[volume][0].1;
    checks.push(Check::at_most(
        "utilization kept with k = 4.8, 10 packets over 1000",
        kept(0) / kept(2),
        1.0,
    ));
    let named = |values: Vec<Vec<(f64, f64)>>| {
        let name = |(packets, points): (u64, _)| (format!("{packets} packets"), points, Dash::Solid);
        VOLUMES.into_iter().zip(values).map(name).collect()
    };
    Ok(Evaluation {
        comparands,
        checks,
        figure: figure(
            "Bandwidth on demand: more than came in",
            vec![
                curves("Completion", "k", "seconds", named(times)),
                curves("Utilization of what was assigned", "k", "share", named(shares)),
            ],
        ),
    })
}
