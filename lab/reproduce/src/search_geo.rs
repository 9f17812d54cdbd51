// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! SEARCH over GEO.

use crate::Claim;
use onramp_lab::experiment::Run;
use onramp_lab::question::plots::{columns, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence, Trial, Valid};
use onramp_lab::stats::median;

const TRIAL: &str = "search-geo";
const NAMES: [(&str, &str); 3] = [("HyStart on", "cubic"), ("HyStart off", "plain"), ("SEARCH", "search")];

pub(super) const CLAIM: Claim = Claim {
    id: "search-geo",
    source: "Chung et al. 2024",
    statement: "SEARCH leaves slow start after the capacity is reached and close to it, and reaches the throughput of CUBIC without \
                HyStart with fewer retransmissions; HyStart leaves early.",
    trials: || {
        let arms = NAMES.map(|(_, arm)| arm);
        let adapt = |profile: &mut onramp_profiles::Profile| profile.link.forward.rate_bps = 144_000_000;
        vec![Trial { adapt, ..Trial::new(TRIAL, "geo", &arms) }]
    },
    evaluate,
};

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let bdp = evidence.trial(TRIAL)?.bdp_bytes as f64;
    let arm = |name| evidence.arm(TRIAL, name);
    let (on, off, search) = (arm("cubic")?, arm("plain")?, arm("search")?);
    let exits = |arm: Valid<'_>| arm.exits(|exit| exit.window_bytes as f64 / bdp);
    let (on_exit, search_exit) = (median(exits(on)), median(exits(search)));
    let time = search.seconds() / off.seconds();
    let lost = search.retransmitted() / off.retransmitted();
    let group = |value: &dyn Fn(Valid<'_>) -> Vec<f64>| {
        let groups = NAMES.iter().zip([on, off, search]);
        groups.map(|((name, _), arm)| ((*name).to_owned(), value(arm))).collect::<Vec<_>>()
    };
    Ok(Evaluation {
        comparands: vec![
            Comparand::new("SEARCH, window at the exit, BDP", "just above 1", search_exit, 2),
            Comparand::new("HyStart on, window at the exit, BDP", "early", on_exit, 2),
            Comparand::new("SEARCH over HyStart off, time", "about 1", time, 2),
            Comparand::new("SEARCH, retransmissions", "fewer", search.retransmitted(), 0),
            Comparand::new("HyStart off, retransmissions", "more", off.retransmitted(), 0),
        ],
        checks: vec![
            Check::between(
                "SEARCH, median window at the exit, BDP (reached, and close)",
                search_exit,
                1.0,
                3.0,
            ),
            Check::at_most("HyStart on, median window at the exit, BDP (early)", on_exit, 0.5),
            Check::at_most("SEARCH over HyStart off, time", time, 1.1),
            Check::at_most("SEARCH over HyStart off, retransmissions", lost, 0.5),
        ],
        figure: figure(
            "SEARCH over GEO, 144 Mb/s",
            vec![
                columns("Window at the exit", "BDP", &group(&exits)),
                columns(
                    "Download time of 80 MB",
                    "seconds",
                    &group(&|arm| arm.each(|run: &Run| run.seconds)),
                ),
                columns(
                    "Segments retransmitted",
                    "segments",
                    &group(&|arm| arm.each(|run: &Run| run.retransmitted_segments as f64)),
                ),
            ],
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{exit, failing};
    use onramp_lab::question::testing::{add, run};

    #[test]
    fn an_exit_just_past_the_capacity_holds_and_others_do_not() {
        let evaluate = |window: u64, seconds: f64, lost: u64| {
            let mut evidence = Evidence::default();
            let on = Run { exit: exit(1.0, 60_000), ..run(25.0, 0) };
            let off = Run { exit: exit(9.0, 50_000_000), ..run(10.0, 4_000) };
            let search = Run { exit: exit(7.0, window), ..run(seconds, lost) };
            add(&mut evidence, TRIAL, vec![("cubic", on), ("plain", off), ("search", search)]);
            failing(&CLAIM, &evidence)
        };
        assert_eq!(evaluate(20_000_000, 10.2, 300), [""; 0]);
        assert_eq!(evaluate(5_000_000, 14.0, 0).len(), 2);
        assert_eq!(evaluate(50_000_000, 10.0, 4_000).len(), 2);
    }
}
