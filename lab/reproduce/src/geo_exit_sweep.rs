// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Download time against the window at which slow start is left, for three sizes of the queue.

use crate::Claim;
use onramp_lab::figure::Dash;
use onramp_lab::question::plots::{curves, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence, Trial};

/// Exit points in hundredths of the BDP of 11.25 MB.
const POINTS: [u64; 9] = [10, 25, 50, 75, 100, 125, 150, 200, 300];
const BDP_BYTES: u64 = 11_250_000;
/// Queue in hundredths of the BDP, and the profile.
const QUEUES: [(u32, &str); 3] =
    [(100, "geo-tail-drop-100"), (50, "geo-tail-drop-50"), (25, "geo-tail-drop-25")];

pub(super) const CLAIM: Claim = Claim {
    id: "geo-exit-sweep",
    source: "Ataei Kachooei et al. 2022, figure 13",
    statement: "Leaving too early is slow with every queue, the optimum is near the BDP, leaving late is slow with small \
                queues, and BEST is near the optimum.",
    trials,
    evaluate,
};

fn arm(point: u64) -> String {
    format!("fixed:exit_window_bytes={}", BDP_BYTES * point / 100)
}

fn trials() -> Vec<Trial> {
    let arms: Vec<_> = POINTS.into_iter().map(arm).chain(["best".to_owned()]).collect();
    let of = |(_, profile)| Trial {
        arms: arms.clone(),
        repetitions: 5,
        quick: 1,
        ..Trial::new(profile, profile, &[])
    };
    QUEUES.into_iter().map(of).collect()
}

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let (mut comparands, mut checks, mut lines, mut late) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (queue, trial) in QUEUES {
        let mut points = Vec::new();
        for point in POINTS {
            points.push((point as f64 / 100.0, evidence.arm(trial, &arm(point))?.seconds()));
        }
        let best = evidence.arm(trial, "best")?.seconds();
        let (at, optimum) =
            points.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((f64::NAN, f64::NAN));
        let (early, latest) = (points[0].1 / optimum, points[POINTS.len() - 1].1 / optimum);
        let row = |what: &str, source: &str, value: f64| {
            Comparand::new(format!("queue {queue} %: {what}"), source, value, 2)
        };
        comparands.push(row("optimum, s", "", optimum));
        comparands.push(row("optimum at, BDP", "near 1", at));
        comparands.push(row("exit at 0.1 BDP over the optimum", "high", early));
        comparands.push(row("exit at 3 BDP over the optimum", "rises, most for small queues", latest));
        comparands.push(row("BEST over the optimum", "near 1", best / optimum));
        checks.push(Check::at_least(
            format!("queue {queue} %: exit at 0.1 BDP over the optimum"),
            early,
            1.3,
        ));
        checks.push(Check::between(format!("queue {queue} %: optimum at, BDP"), at, 0.5, 1.5));
        checks.push(Check::at_most(format!("queue {queue} %: BEST over the optimum"), best / optimum, 1.15));
        late.push(latest);
        let right = points[POINTS.len() - 1].0;
        lines.push((format!("queue {queue} %"), points, Dash::Solid));
        lines.push((format!("BEST, queue {queue} %"), vec![(0.0, best), (right, best)], Dash::Short));
    }
    checks.push(Check::at_least("queue 25 %: exit at 3 BDP over the optimum", late[2], 1.05));
    checks.push(Check::at_least(
        "late exit, queue 25 % over queue 100 % (worse for small queues)",
        late[2] / late[0],
        1.0,
    ));
    let panel = curves("Time to download 80 MB", "exit point, BDP", "seconds", lines);
    Ok(Evaluation { comparands, checks, figure: figure("Exit points over GEO without AQM", vec![panel]) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::failing;
    use onramp_lab::question::testing::{add, run};

    /// Time by exit point in BDP and queue in hundredths.
    fn evidence(time: impl Fn(f64, u32) -> f64, best: f64) -> Evidence {
        let mut evidence = Evidence::default();
        for (queue, trial) in QUEUES {
            let names: Vec<_> =
                POINTS.iter().map(|point| (arm(*point), time(*point as f64 / 100.0, queue))).collect();
            let mut arms: Vec<_> =
                names.iter().map(|(name, seconds)| (name.as_str(), run(*seconds, 0))).collect();
            arms.push(("best", run(best, 0)));
            add(&mut evidence, trial, arms);
        }
        evidence
    }

    #[test]
    fn a_valley_near_the_bdp_holds_and_a_slope_does_not() {
        let valley = |at: f64, queue: u32| {
            10.0 + if at < 1.0 { 8.0 * (1.0 - at) } else { (at - 1.0) * 100.0 / f64::from(queue) }
        };
        assert_eq!(failing(&CLAIM, &evidence(valley, 10.5)), [""; 0]);
        let slope = failing(&CLAIM, &evidence(|at, _| 20.0 - at, 17.0));
        assert_eq!(slope.len(), 7, "{slope:?}");
        assert_eq!(failing(&CLAIM, &evidence(valley, 12.0)).len(), 3);
    }
}
