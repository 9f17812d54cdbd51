// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Throughput over the rate at which packets leave in slow start, for three sizes of the buffer.

use super::{BUFFERS, MARGIN, sweep, swept, throughput};
use crate::Claim;
use crate::small_buffer::{AVAILABLE, PACKET_BYTES, bottleneck};
use onramp_lab::figure::Dash;
use onramp_lab::model::threshold::SafeRate;
use onramp_lab::question::plots::{curves, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence};

const ID: &str = "rate-sweep";
/// Rates of slow start, packets per second: from the available bandwidth, 266, to what slow start sends by itself, 632.
const RATES: [u32; 8] = [270, 300, 330, 366, 400, 450, 500, 600];
/// Slow start sends as it does.
const UNSPACED: &str = "plain:base=tahoe";

pub(crate) const CLAIM: Claim = Claim {
    id: ID,
    source: "Barakat et al. 1999, figure 4",
    statement: "With packets that leave slow start at a rate near the available bandwidth the loss is gone for every size of the \
                buffer. Every rate below Rmax is as good as another, and above it throughput falls.",
    trials: || {
        let arms: Vec<_> = RATES.map(arm).into_iter().chain([UNSPACED.to_owned()]).collect();
        sweep(ID, &arms)
    },
    evaluate,
};

fn arm(rate: u32) -> String {
    format!("spacing:rate_bytes_per_s={}:exit_pct=0:base=tahoe", rate * PACKET_BYTES as u32)
}

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let (mut comparands, mut checks, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for (buffer, packets) in BUFFERS {
        let trial = swept(ID, buffer);
        let rates: Result<Vec<_>, _> =
            RATES.iter().map(|rate| throughput(evidence, &trial, &arm(*rate))).collect();
        let points: Vec<_> = RATES.iter().map(|rate| f64::from(*rate)).zip(rates?).collect();
        let unspaced = throughput(evidence, &trial, UNSPACED)?;
        let path = bottleneck(packets)?;
        let largest = match path.safe_rate() {
            SafeRate::Below(rate) => rate,
            SafeRate::Unbounded => f64::INFINITY,
        };
        let row = |what: &str, value: f64, digits| {
            Comparand::new(format!("β = {buffer}: {what}"), "", value, digits)
        };
        let safe: Vec<_> = points.iter().filter(|(rate, _)| *rate < largest).map(|point| point.1).collect();
        let (least, most) = safe
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
        comparands.push(row("Rmax by equation (6), packets/s", largest, 0));
        comparands.push(row("throughput at 300 packets/s", points[1].1, 1));
        comparands.push(row("throughput without spacing", unspaced, 1));
        let what = format!("β = {buffer}, least over most throughput of the rates below Rmax");
        checks.push(Check::at_least(what, least / most, 1.0 - MARGIN));
        if path.is_lossless() {
            let what = format!("β = {buffer}, spaced at 300 packets/s over not spaced");
            checks.push(Check::between(what, points[1].1 / unspaced, 1.0 - MARGIN, 1.0 + MARGIN));
        } else {
            let what = format!("β = {buffer}, spaced at 300 packets/s over not spaced");
            checks.push(Check::at_least(what, points[1].1 / unspaced, 1.05));
            let above = points.iter().find(|(rate, _)| *rate > 1.1 * largest);
            let above = above.ok_or(NoEvidence::Other("rates above Rmax"))?;
            let what =
                format!("β = {buffer}, throughput at {} packets/s, above Rmax, over that at 300", above.0);
            checks.push(Check::at_most(what, above.1 / points[1].1, 0.97));
        }
        shown.push((format!("β = {buffer}"), points, Dash::Solid));
    }
    comparands.push(Comparand::new("available, packets/s", "266", AVAILABLE, 0));
    Ok(Evaluation {
        comparands,
        checks,
        figure: figure(
            "Tahoe with spaced packets",
            vec![curves(
                "Throughput over the rate of slow start",
                "packets per second in slow start",
                "packets per second",
                shown,
            )],
        ),
    })
}
