// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Startup over a carrier with bandwidth on demand: without SACK, with it, and with a bound on what is in flight.

use crate::Claim;
use onramp_lab::experiment::{Amount, Run};
use onramp_lab::question::plots::{columns, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence, Trial, Valid};

const TRIAL: &str = "bod";
/// FreeBSD's bound takes the mean of the smoothed and the best RTT.
/// Linux begins with three segments in Gotta et al. 2006, FreeBSD with one.
const NO_SACK: &str = "plain:base=reno:host.tcp_sack=off:host.initial_window_segments=3";
const SACK: &str = "plain:base=reno:host.initial_window_segments=3";
const INFLIGHT: &str = "inflight:rtt_source=mean:base=reno:host.initial_window_segments=1";

pub(super) const CLAIM: Claim = Claim {
    id: "bod-startup",
    source: "Gotta et al. 2006, figures 1 and 2",
    statement: "Without SACK the first loss stalls the connection; with it the connection is fast and irregular; bounding what is in \
                flight loses nothing, is regular and nearly as fast. Windows double in more than a round trip.",
    trials: || {
        let arms = [NO_SACK, SACK, INFLIGHT];
        vec![Trial {
            amount: Amount::Seconds(60),
            repetitions: 9,
            quick: 2,
            ..Trial::new(TRIAL, "bod", &arms)
        }]
    },
    evaluate,
};

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let rtt = evidence.trial(TRIAL)?.base_rtt_us as f64 / 1e6;
    let arm = |name| evidence.arm(TRIAL, name);
    let arms = [arm(NO_SACK)?, arm(SACK)?, arm(INFLIGHT)?];
    let [bare, sack, inflight] = arms;
    let names = ["no SACK", "SACK", "bounded in flight"];
    let goodput = |run: &Run| run.goodput_bps / 1e6;
    let stall = |run: &Run| run.measures.longest_stall_seconds;
    let variation = |run: &Run| run.measures.rate_variation.unwrap_or(f64::NAN);
    let doubling = |run: &Run| run.measures.doubling_seconds.unwrap_or(f64::NAN);
    let mut comparands = Vec::new();
    for ((name, arm), source) in names.iter().zip(arms).zip([
        ["severely hindered", "many losses", "stalls"],
        ["as fast as the channel permits", "", "irregular"],
        ["almost as fast", "0", "extremely regular"],
    ]) {
        let row = |what: &str, source: &str, value: f64, digits| {
            Comparand::new(format!("{name}: {what}"), source, value, digits)
        };
        comparands.push(row("goodput, Mb/s", source[0], arm.mean(goodput), 2));
        comparands.push(row("retransmissions", source[1], arm.retransmitted(), 0));
        comparands.push(row("longest stall, s", source[2], arm.mean(stall), 2));
        comparands.push(row("variation of the rate", source[2], arm.mean(variation), 2));
        comparands.push(row("doubling of the window, s", "longer than the RTT", arm.median(doubling), 2));
    }
    let group = |value: &dyn Fn(Valid<'_>) -> Vec<f64>| {
        names.iter().zip(arms).map(|(name, arm)| ((*name).to_owned(), value(arm))).collect::<Vec<_>>()
    };
    Ok(Evaluation {
        comparands,
        checks: vec![
            Check::at_most("goodput, no SACK over SACK", bare.mean(goodput) / sack.mean(goodput), 0.9),
            Check::at_least("longest stall, no SACK over SACK", bare.mean(stall) / sack.mean(stall), 1.5),
            Check::at_least("SACK, retransmissions", sack.retransmitted(), 1.0),
            Check::at_most("bounded in flight, retransmissions", inflight.retransmitted(), 0.0),
            Check::at_most(
                "variation of the rate, bounded in flight over SACK",
                inflight.mean(variation) / sack.mean(variation),
                0.8,
            ),
            Check::at_least(
                "goodput, bounded in flight over SACK",
                inflight.mean(goodput) / sack.mean(goodput),
                0.85,
            ),
            Check::at_least("SACK, doubling of the window, RTT", sack.median(doubling) / rtt, 1.2),
        ],
        figure: figure(
            "Startup over bandwidth on demand",
            vec![
                columns("Goodput over a minute", "Mb/s", &group(&|arm| arm.each(goodput))),
                columns("Longest stall", "seconds", &group(&|arm| arm.each(stall))),
                columns(
                    "Variation of the rate",
                    "standard deviation over mean",
                    &group(&|arm| arm.each(variation)),
                ),
            ],
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::failing;
    use onramp_lab::experiment::Measures;
    use onramp_lab::question::testing::{add, run};

    fn measured(goodput: f64, lost: u64, stall: f64, variation: f64) -> Run {
        let measures = Measures {
            longest_stall_seconds: stall,
            rate_variation: Some(variation),
            doubling_seconds: Some(1.5),
            ..Measures::default()
        };
        Run { goodput_bps: goodput * 1e6, measures, ..run(60.0, lost) }
    }

    #[test]
    fn the_sources_picture_holds_and_a_bound_that_loses_does_not() {
        let evaluate = |inflight: Run| {
            let mut evidence = Evidence::default();
            let bare = measured(0.9, 300, 12.0, 1.0);
            let sack = measured(1.9, 200, 2.0, 0.5);
            add(&mut evidence, TRIAL, vec![(NO_SACK, bare), (SACK, sack), (INFLIGHT, inflight)]);
            failing(&CLAIM, &evidence)
        };
        assert_eq!(evaluate(measured(1.8, 0, 1.5, 0.1)), [""; 0]);
        assert_eq!(evaluate(measured(1.2, 40, 1.5, 0.6)).len(), 3);
    }
}
