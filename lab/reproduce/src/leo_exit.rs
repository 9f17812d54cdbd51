// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! When slow start is left over LEO, with HyStart and without.

use crate::Claim;
use onramp_lab::experiment::Amount;
use onramp_lab::question::plots::{columns, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence, Trial};
use onramp_lab::stats::median;

const PROFILES: [&str; 2] = ["leo", "leo-100"];

pub(super) const CLAIM: Claim = Claim {
    id: "leo-exit",
    source: "Ataei Kachooei et al. 2022, figures 6 to 8",
    statement: "With HyStart slow start is left earlier and at a smaller window; without it more is retransmitted.",
    trials,
    evaluate,
};

/// Downloads of 5 s: long enough to leave by loss, and short enough that congestion avoidance loses little.
fn trials() -> Vec<Trial> {
    let of = |profile| Trial {
        amount: Amount::Seconds(5),
        repetitions: 20,
        quick: 6,
        ..Trial::new(profile, profile, &["cubic", "plain"])
    };
    PROFILES.into_iter().map(of).collect()
}

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let (mut comparands, mut checks, mut panels) = (Vec::new(), Vec::new(), Vec::new());
    for profile in PROFILES {
        let (on, off) = (evidence.arm(profile, "cubic")?, evidence.arm(profile, "plain")?);
        let times = [on.exits(|exit| exit.seconds), off.exits(|exit| exit.seconds)];
        let windows = [on, off].map(|arm| arm.exits(|exit| exit.window_bytes as f64 / 1e6));
        let [on_time, off_time] = times.clone().map(median);
        let [on_window, off_window] = windows.clone().map(median);
        let (on_loss, off_loss) = (on.retransmitted(), off.retransmitted());
        let row = |what: &str, source: &str, value: f64, digits| {
            Comparand::new(format!("{profile}: {what}"), source, value, digits)
        };
        comparands.extend([
            row("HyStart on, exit, s", "earlier", on_time, 3),
            row("HyStart off, exit, s", "later", off_time, 3),
            row("HyStart on, window at exit, MB", "small", on_window, 3),
            row("HyStart off, window at exit, MB", "larger", off_window, 3),
            row("HyStart on, retransmissions", "fewer", on_loss, 0),
            row("HyStart off, retransmissions", "more", off_loss, 0),
        ]);
        let check = |what: &str| format!("{profile}: {what}");
        checks.push(Check::at_most(check("exit time, HyStart on over off"), on_time / off_time, 0.8));
        checks.push(Check::at_most(
            check("window at exit, HyStart on over off"),
            on_window / off_window,
            0.8,
        ));
        checks.push(Check::at_least(
            check("retransmissions, HyStart off over on"),
            off_loss / on_loss.max(1.0),
            1.2,
        ));
        let names = ["HyStart on", "HyStart off"].map(str::to_owned);
        let groups = |values: [Vec<f64>; 2]| names.clone().into_iter().zip(values).collect::<Vec<_>>();
        panels.push(columns(&check("exit time"), "seconds", &groups(times)));
        panels.push(columns(&check("window at exit"), "MB", &groups(windows)));
        let losses = [on, off].map(|arm| arm.each(|run| run.retransmitted_segments as f64));
        panels.push(columns(&check("retransmissions"), "segments", &groups(losses)));
    }
    Ok(Evaluation { comparands, checks, figure: figure("Leaving slow start over LEO", panels) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{exit, failing};
    use onramp_lab::experiment::Run;
    use onramp_lab::question::testing::{add, run};

    fn evidence(on: impl Fn() -> Run, off: impl Fn() -> Run) -> Evidence {
        let mut evidence = Evidence::default();
        for profile in PROFILES {
            add(&mut evidence, profile, vec![("cubic", on()), ("plain", off())]);
        }
        evidence
    }

    #[test]
    fn earlier_smaller_and_fewer_hold_and_their_opposite_does_not() {
        let early = || Run { exit: exit(0.1, 300_000), ..run(5.0, 100) };
        let late = || Run { exit: exit(0.5, 3_000_000), ..run(5.0, 2_000) };
        assert_eq!(failing(&CLAIM, &evidence(early, late)), [""; 0]);
        assert_eq!(failing(&CLAIM, &evidence(late, early)).len(), 6);
        // Without any exit nothing is shown.
        assert_eq!(failing(&CLAIM, &evidence(|| run(5.0, 0), late)).len(), 4);
    }
}
