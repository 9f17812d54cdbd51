// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! HyStart's delay threshold with and without its ceiling of 16 ms, over GEO.

use crate::Claim;
use onramp_lab::question::plots::{columns, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence, Trial, Valid};

const TRIAL: &str = "geo-ceiling";
const CLAMP: &str = "hystart:delay_rule=clamp";
const AVERAGE: &str = "hystart:delay_rule=ewma";
const DEVIATION: &str = "hystart:delay_rule=deviation";
/// An exit below this share of the BDP is premature.
const PREMATURE: f64 = 0.5;

pub(super) const CLAIM: Claim = Claim {
    id: "hystart-ceiling",
    source: "Peters et al. 2021, recommendations",
    statement: "A delay threshold without the 16 ms ceiling, from the average or the deviation of the RTT, avoids the premature \
                exit.",
    trials: || vec![Trial::new(TRIAL, "geo", &[CLAMP, AVERAGE, DEVIATION])],
    evaluate,
};

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let bdp = evidence.trial(TRIAL)?.bdp_bytes as f64;
    let arm = |name| evidence.arm(TRIAL, name);
    let (clamp, average, deviation) = (arm(CLAMP)?, arm(AVERAGE)?, arm(DEVIATION)?);
    let premature = |arm: Valid<'_>| {
        let early =
            arm.exits(|exit| exit.window_bytes as f64 / bdp).into_iter().filter(|share| *share < PREMATURE);
        early.count() as f64 / arm.runs().count() as f64
    };
    let names = ["clamp", "average", "deviation"].map(str::to_owned);
    let arms = [clamp, average, deviation];
    let windows = arms.map(|arm| arm.exits(|exit| exit.window_bytes as f64 / bdp));
    let times = arms.map(|arm| arm.each(|run| run.seconds));
    Ok(Evaluation {
        comparands: vec![
            Comparand::new(
                "clamp, share of runs with an exit below 0.5 BDP",
                "regularly",
                premature(clamp),
                2,
            ),
            Comparand::new("average, the same", "fewer", premature(average), 2),
            Comparand::new("deviation, the same", "fewer", premature(deviation), 2),
            Comparand::new("clamp, 80 MB, s", "", clamp.seconds(), 2),
            Comparand::new("average, 80 MB, s", "shorter", average.seconds(), 2),
            Comparand::new("deviation, 80 MB, s", "shorter", deviation.seconds(), 2),
        ],
        checks: vec![
            Check::at_least("clamp, share of premature exits", premature(clamp), 0.5),
            Check::at_most("average, share of premature exits", premature(average), 0.2),
            Check::at_most("deviation, share of premature exits", premature(deviation), 0.2),
            Check::at_most("average over clamp, time", average.seconds() / clamp.seconds(), 0.75),
            Check::at_most("deviation over clamp, time", deviation.seconds() / clamp.seconds(), 0.75),
        ],
        figure: figure(
            "HyStart's delay threshold over GEO",
            vec![
                columns(
                    "Window at the exit",
                    "BDP",
                    &names.clone().into_iter().zip(windows).collect::<Vec<_>>(),
                ),
                columns("Download time", "seconds", &names.into_iter().zip(times).collect::<Vec<_>>()),
            ],
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{exit, failing};
    use onramp_lab::experiment::Run;
    use onramp_lab::question::testing::{add, run};

    #[test]
    fn rules_that_stay_hold_and_rules_that_leave_early_do_not() {
        let early = || Run { exit: exit(1.2, 60_000), ..run(25.0, 0) };
        let late = || Run { exit: exit(7.0, 20_000_000), ..run(10.0, 300) };
        let evaluate = |average: Run, deviation: Run| {
            let mut evidence = Evidence::default();
            add(&mut evidence, TRIAL, vec![(CLAMP, early()), (AVERAGE, average), (DEVIATION, deviation)]);
            failing(&CLAIM, &evidence)
        };
        assert_eq!(evaluate(late(), late()), [""; 0]);
        assert_eq!(evaluate(late(), early()).len(), 2);
        // No exit at all is not premature either.
        assert_eq!(evaluate(run(10.0, 0), late()), [""; 0]);
    }
}
