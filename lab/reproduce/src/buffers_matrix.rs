// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Steady throughput over GEO with raised socket buffers, with and without autotuning of the receive buffer.

use crate::Claim;
use onramp_lab::experiment::{Amount, Run};
use onramp_lab::question::plots::{columns, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence, Trial};
use onramp_profiles::Profile;

const DEFAULT_RMEM: &str = "4096/131072/6291456";
const DEFAULT_WMEM: &str = "4096/16384/4194304";
const RAISED: &str = "60000000/60000000/60000000";
/// Name, receive and send buffers.
const BUFFERS: [(&str, &str, &str); 4] = [
    ("default", DEFAULT_RMEM, DEFAULT_WMEM),
    ("rmem raised", RAISED, DEFAULT_WMEM),
    ("wmem raised", DEFAULT_RMEM, RAISED),
    ("both raised", RAISED, RAISED),
];
const TRIAL: &str = "geo-buffers";

pub(super) const CLAIM: Claim = Claim {
    id: "buffers-matrix",
    source: "Peters et al. 2021",
    statement: "The default buffers stay below the capacity; rmem alone helps only without autotuning, wmem alone helps with \
                it but the receiver still limits; both give full use with and without autotuning.",
    trials,
    evaluate,
};

fn arm(rmem: &str, wmem: &str, autotuning: bool) -> String {
    let moderate = if autotuning { "on" } else { "off" };
    format!("cubic:host.tcp_rmem={rmem}:host.tcp_wmem={wmem}:host.tcp_moderate_rcvbuf={moderate}")
}

/// The link of Peters et al. 2021: 18 MB/s.
pub(super) fn link_of_001(profile: &mut Profile) {
    profile.link.forward.rate_bps = 144_000_000;
}

/// A minute each: with HyStart the steady state is reached after some 25 s.
fn trials() -> Vec<Trial> {
    let arms = BUFFERS.iter().flat_map(|(_, rmem, wmem)| [true, false].map(|on| arm(rmem, wmem, on)));
    vec![Trial {
        adapt: link_of_001,
        arms: arms.collect(),
        amount: Amount::Seconds(60),
        repetitions: 5,
        quick: 1,
        ..Trial::new(TRIAL, "geo", &[])
    }]
}

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let capacity = evidence.trial(TRIAL)?.rate_bps as f64;
    let steady = |run: &Run| run.measures.steady_goodput_bps.unwrap_or(0.0);
    let (mut groups, mut comparands, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    let sources = [
        ("below capacity", "below capacity"),
        ("as default with autotuning", "some improvement"),
        ("improved, limited by the receiver", "limited by the receiver"),
        ("full", "full"),
    ];
    for ((name, rmem, wmem), source) in BUFFERS.into_iter().zip(sources) {
        for (on, tuning, source) in [(true, "autotuning", source.0), (false, "fixed", source.1)] {
            let label = arm(rmem, wmem, on);
            let each = evidence.arm(TRIAL, &label)?.each(steady);
            let mean = onramp_lab::stats::mean(&each);
            comparands.push(Comparand::new(format!("{name}, {tuning}: Mb/s"), source, mean / 1e6, 1));
            groups.push((format!("{name}, {tuning}"), each.into_iter().map(|rate| rate / 1e6).collect()));
            shares.push(mean / capacity);
        }
    }
    let [default_on, default_off, rmem_on, rmem_off, wmem_on, wmem_off, both_on, both_off] = shares[..]
    else {
        return Err(NoEvidence::Other("results of all eight arms"));
    };
    Ok(Evaluation {
        comparands,
        checks: vec![
            Check::at_most("default, autotuning, share of the capacity", default_on, 0.6),
            Check::at_most("default, fixed, share of the capacity", default_off, 0.6),
            Check::between(
                "rmem raised, autotuning, over default (no help)",
                rmem_on / default_on,
                0.8,
                1.25,
            ),
            Check::at_least("rmem raised, fixed, over default (helps)", rmem_off / default_off, 1.5),
            Check::between("rmem raised, fixed over autotuning (similar)", rmem_off / rmem_on, 0.8, 1.25),
            Check::at_least("wmem raised, autotuning, over default (helps)", wmem_on / default_on, 1.1),
            Check::at_most("wmem raised, autotuning, share of the capacity", wmem_on, 0.85),
            Check::at_most("wmem raised, fixed, over default (no help)", wmem_off / default_off, 1.25),
            Check::at_least("both raised, autotuning, share of the capacity", both_on, 0.85),
            Check::at_least("both raised, fixed, share of the capacity", both_off, 0.85),
        ],
        figure: figure(
            "Socket buffers over GEO",
            vec![columns("Goodput in the last third of a minute", "Mb/s", &groups)],
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::failing;
    use onramp_lab::experiment::Measures;
    use onramp_lab::question::testing::{add, run};

    fn evidence(rates: [f64; 8]) -> Evidence {
        let mut names = Vec::new();
        for (_, rmem, wmem) in BUFFERS {
            names.extend([arm(rmem, wmem, true), arm(rmem, wmem, false)]);
        }
        let steady = |rate: f64| Run {
            measures: Measures { steady_goodput_bps: Some(rate * 1e6), ..Measures::default() },
            ..run(60.0, 0)
        };
        let mut evidence = Evidence::default();
        let arms = names.iter().zip(rates).map(|(name, rate)| (name.as_str(), steady(rate))).collect();
        add(&mut evidence, TRIAL, arms);
        evidence
    }

    #[test]
    fn the_sources_pattern_holds_and_each_departure_is_named() {
        let pattern = [36.0, 1.0, 36.0, 36.0, 55.0, 1.0, 140.0, 140.0];
        assert_eq!(failing(&CLAIM, &evidence(pattern)), [""; 0]);
        let limited = failing(&CLAIM, &evidence([36.0, 1.0, 36.0, 36.0, 55.0, 1.0, 100.0, 140.0]));
        assert_eq!(limited, ["both raised, autotuning, share of the capacity"]);
        let unlimited = failing(&CLAIM, &evidence([140.0; 8]));
        assert_eq!(unlimited.len(), 5, "{unlimited:?}");
    }
}
