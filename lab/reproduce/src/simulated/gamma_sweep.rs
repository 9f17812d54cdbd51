// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Throughput over the reduction of the threshold, for three sizes of the buffer.

use super::{BUFFERS, sweep, swept, throughput};
use crate::Claim;
use crate::small_buffer::bottleneck;
use onramp_lab::figure::Dash;
use onramp_lab::model::threshold::Bottleneck;
use onramp_lab::question::plots::{curves, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence};

const ID: &str = "gamma-sweep";
/// Reductions γ, percent; the last is the standard's.
const PERCENT: [u32; 9] = [10, 15, 20, 25, 30, 35, 40, 45, 50];

pub(crate) const CLAIM: Claim = Claim {
    id: ID,
    source: "Barakat et al. 1999, figure 3",
    statement: "Throughput jumps up where the threshold γ falls below γmax. That is a gain over half of the window for a normalized \
                buffer of 0.25; for 0.125 γmax is below a quarter and no γ is better than half, and for 0.5 every smaller one is worse.",
    trials: || sweep(ID, &PERCENT.map(arm)),
    evaluate,
};

fn arm(percent: u32) -> String {
    format!("threshold:gamma=fixed:gamma_pct={percent}:base=tahoe")
}

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let (mut comparands, mut checks, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for (buffer, packets) in BUFFERS {
        let trial = swept(ID, buffer);
        let rates: Result<Vec<_>, _> =
            PERCENT.iter().map(|percent| throughput(evidence, &trial, &arm(*percent))).collect();
        let points: Vec<_> = PERCENT.iter().map(|percent| f64::from(*percent) / 100.0).zip(rates?).collect();
        let path: Bottleneck = bottleneck(packets)?;
        let largest = path.largest_factor();
        let (standard, lower) = points.split_last().ok_or(NoEvidence::Other("arms"))?;
        let best = |below: f64| {
            let points = lower.iter().filter(|(gamma, _)| *gamma < below);
            points.fold((0.0, 0.0), |best, point| if point.1 > best.1 { *point } else { best })
        };
        let gain = best(largest).1 / standard.1;
        let row = |what: &str, source: &str, value: f64, digits| {
            Comparand::new(format!("β = {buffer}: {what}"), source, value, digits)
        };
        comparands.push(row("γmax by equation (4)", "", largest, 3));
        comparands.push(row("best γ below it", "", best(largest).0, 2));
        comparands.push(row("packets/s with it", "", best(largest).1, 1));
        comparands.push(row("packets/s with γ = 0.5", "", standard.1, 1));
        let over = format!("β = {buffer}, best smaller γ over γ = 0.5");
        checks.push(if buffer == 0.25 {
            Check::at_least(over, gain, 1.01)
        } else {
            Check::at_most(over, best(0.5).1 / standard.1, 1.0)
        });
        if largest < 0.5 {
            // The arms next to γmax on either side, but for those within a tenth of it.
            let below = lower.iter().rev().find(|(gamma, _)| *gamma < 0.9 * largest);
            let above = points.iter().find(|(gamma, _)| *gamma > 1.1 * largest);
            let (below, above) = below.zip(above).ok_or(NoEvidence::Other("arms on both sides of γmax"))?;
            let what =
                format!("β = {buffer}, throughput below γmax ({}) over above it ({})", below.0, above.0);
            checks.push(Check::at_least(what, below.1 / above.1, 1.01));
        }
        shown.push((format!("β = {buffer}"), points, Dash::Solid));
    }
    Ok(Evaluation {
        comparands,
        checks,
        figure: figure(
            "Tahoe with a smaller threshold",
            vec![curves(
                "Throughput over γ",
                "γ: threshold over window at loss",
                "packets per second",
                shown,
            )],
        ),
    })
}
