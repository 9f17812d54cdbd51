// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! SEARCH over Wi-Fi, many short transfers.

use crate::Claim;
use onramp_lab::experiment::{Amount, Run};
use onramp_lab::question::plots::{columns, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence, Trial};

const TRIAL: &str = "wifi";
const ARMS: [(&str, &str); 4] =
    [("HyStart on", "cubic"), ("HyStart off", "plain"), ("BBR", "bbr"), ("SEARCH", "search")];

pub(super) const CLAIM: Claim = Claim {
    id: "search-wifi",
    source: "Chung et al. 2024, Wi-Fi testbed",
    statement: "In transfers of 3 s SEARCH's median throughput is no less than HyStart's, and it retransmits no more than CUBIC without \
                HyStart.",
    trials: || {
        let amount = Amount::Seconds(3);
        vec![Trial {
            amount,
            repetitions: 100,
            quick: 20,
            ..Trial::new(TRIAL, "wifi", &ARMS.map(|(_, arm)| arm))
        }]
    },
    evaluate,
};

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let goodput = |run: &Run| run.goodput_bps / 1e6;
    let (mut comparands, mut rates, mut losses, mut exits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, arm) in ARMS {
        let arm = evidence.arm(TRIAL, arm)?;
        let row =
            |what: &str, value: f64, digits| Comparand::new(format!("{name}: {what}"), "", value, digits);
        comparands.push(row("median throughput, Mb/s", arm.median(goodput), 1));
        comparands.push(row("retransmissions", arm.retransmitted(), 1));
        if let Ok(seconds) = arm.median_exit(|exit| exit.seconds) {
            comparands.push(row("median exit, s", seconds, 3));
        }
        rates.push((name.to_owned(), arm.each(goodput)));
        losses.push((name.to_owned(), arm.each(|run| run.retransmitted_segments as f64)));
        exits.push((name.to_owned(), arm.exits(|exit| exit.seconds)));
    }
    let (on, off, search) =
        (evidence.arm(TRIAL, "cubic")?, evidence.arm(TRIAL, "plain")?, evidence.arm(TRIAL, "search")?);
    Ok(Evaluation {
        comparands,
        checks: vec![
            Check::at_least(
                "median throughput, SEARCH over HyStart on (3 % of noise)",
                search.median(goodput) / on.median(goodput),
                0.97,
            ),
            Check::at_most(
                "retransmissions, SEARCH over HyStart off",
                search.retransmitted() / off.retransmitted().max(1.0),
                1.0,
            ),
        ],
        figure: figure(
            "Transfers of 3 s over Wi-Fi",
            vec![
                columns("Throughput", "Mb/s", &rates),
                columns("Segments retransmitted", "segments", &losses),
                columns("Exit time", "seconds", &exits),
            ],
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::failing;
    use onramp_lab::question::testing::{add, run};

    #[test]
    fn faster_than_on_and_cleaner_than_off_holds() {
        let evaluate = |seconds: f64, lost: u64| {
            let mut evidence = Evidence::default();
            let arms = vec![
                ("cubic", run(10.0, 1)),
                ("plain", run(9.0, 900)),
                ("bbr", run(9.0, 9)),
                ("search", run(seconds, lost)),
            ];
            add(&mut evidence, TRIAL, arms);
            failing(&CLAIM, &evidence)
        };
        assert_eq!(evaluate(9.5, 20), [""; 0]);
        assert_eq!(evaluate(11.0, 1_000).len(), 2);
    }
}
