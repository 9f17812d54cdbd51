// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Rates that pairs of ACKs show, by round.

use super::geo_download::trial;
use crate::Claim;
use onramp_lab::figure::Dash;
use onramp_lab::question::plots::{curves, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence, RoundRates};

const ROUNDS: u32 = 5;
/// What Ataei Kachooei et al. 2022 call low, bytes per second.
const LOW: f64 = 1e6;

pub(super) const CLAIM: Claim = Claim {
    id: "geo-pairs",
    source: "Ataei Kachooei et al. 2022, figure 11",
    statement: "In rounds 1 to 3 there are few ACK pairs and most show less than 1 MB/s; in rounds 4 and 5 the median is near \
                the rate of the link.",
    trials: || vec![trial()],
    evaluate,
};

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let link = evidence.trial("geo")?.rate_bps as f64 / 8.0;
    let rounds: Vec<_> = (1..=ROUNDS).map(|round| RoundRates::pooled(&evidence.pairs, round)).collect();
    if rounds.iter().any(|round| round.pairs() == 0) {
        return Err(NoEvidence::Other("ACK pairs of rounds 1 to 5"));
    }
    let runs = |round: u32| evidence.pairs.iter().filter(|one| one.round == round).count().max(1) as f64;
    let median = |round: &RoundRates| round.median().unwrap_or(f64::NAN);
    let low = |round: &RoundRates| round.share_below(LOW);
    let comparand = |round: &RoundRates| {
        let early = round.round <= 3;
        Comparand {
            what: format!("round {}: pairs, share below 1 MB/s, median in MB/s", round.round),
            source: if early { "few, most, below 1" } else { "enough, few, near 18.75" }.into(),
            ours: format!(
                "{:.0}, {:.2}, {:.2}",
                f64::from(round.pairs()) / runs(round.round),
                low(round),
                median(round) / 1e6
            ),
        }
    };
    let cumulative = |round: &RoundRates| {
        let mut seen = 0;
        let points = round.bins.iter().map(|(rate, count)| {
            seen += count;
            // Beyond twice the link's rate all is the same.
            ((rate / 1e6).min(2.0 * link / 1e6), f64::from(seen) / f64::from(round.pairs()))
        });
        (format!("round {}", round.round), points.collect(), Dash::Solid)
    };
    let mut lines: Vec<_> = rounds.iter().map(cumulative).collect();
    lines.push(("link".into(), vec![(link / 1e6, 0.0), (link / 1e6, 1.0)], Dash::Long));
    let nearest = [3, 4].map(|at: usize| median(&rounds[at]) / link);
    let nearness = |ratio: &f64| ratio.ln().abs();
    let best = nearest.into_iter().min_by(|a, b| nearness(a).total_cmp(&nearness(b))).unwrap_or(f64::NAN);
    Ok(Evaluation {
        comparands: rounds.iter().map(comparand).collect(),
        checks: vec![
            Check::at_most("round 1, pairs per run (few)", f64::from(rounds[0].pairs()) / runs(1), 10.0),
            Check::at_least("round 1, share below 1 MB/s (most)", low(&rounds[0]), 0.5),
            Check::at_least("round 2, share below 1 MB/s (most)", low(&rounds[1]), 0.5),
            Check::at_least("round 3, share below 1 MB/s (most)", low(&rounds[2]), 0.5),
            Check::between("round 4 or 5, the nearer median over the link's rate", best, 0.5, 2.0),
            Check::at_most("round 5, share below 1 MB/s", low(&rounds[4]), 0.25),
        ],
        figure: figure(
            "ACK pairs over GEO",
            vec![curves("Rates shown by ACK pairs, by round", "MB/s", "share of pairs below", lines)],
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::failing;
    use onramp_lab::question::testing::{add, run};

    fn evidence(rounds: [Vec<(f64, u32)>; 5]) -> Evidence {
        let mut evidence = Evidence::default();
        add(&mut evidence, "geo", vec![("best", run(10.0, 0))]);
        evidence.pairs = (1..).zip(rounds).map(|(round, bins)| RoundRates { round, bins }).collect();
        evidence
    }

    #[test]
    fn low_early_rounds_and_a_right_late_one_hold() {
        let low = || vec![(5e5, 6), (3e7, 2)];
        let right = || vec![(5e5, 5), (1.8e7, 60), (9e7, 20)];
        assert_eq!(failing(&CLAIM, &evidence([low(), low(), low(), low(), right()])), [""; 0]);
        let early = failing(&CLAIM, &evidence([right(), low(), low(), low(), right()]));
        assert_eq!(early.len(), 2, "{early:?}");
        let never = failing(&CLAIM, &evidence([low(), low(), low(), low(), low()]));
        assert_eq!(never.len(), 2, "{never:?}");
        assert!((CLAIM.evaluate)(&evidence([low(), low(), low(), low(), vec![]])).is_err());
    }
}
