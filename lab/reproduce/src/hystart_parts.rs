// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! HyStart's two detectors, one at a time, over GEO.

use super::buffers_matrix::link_of_001;
use crate::Claim;
use onramp_lab::experiment::{Amount, DEFAULT_BYTES, Run};
use onramp_lab::question::plots::{columns, figure};
use onramp_lab::question::{Check, Comparand, Evaluation, Evidence, NoEvidence, Trial};
use onramp_lab::stats::median;
use onramp_profiles::Profile;

const TRIAL: &str = "geo-hystart";
const SECONDS: u32 = 60;
const TRAIN: &str = "hystart:detect=train";
const DELAY: &str = "hystart:detect=delay";
const BOTH: &str = "hystart";
const OFF: &str = "plain";

pub(super) const CLAIM: Claim = Claim {
    id: "hystart-parts",
    source: "Peters et al. 2021",
    statement: "The train detector alone performs like none, the delay detector alone like both: delay is why HyStart leaves \
                early, after some 15 to 22 ACKs. Without HyStart the steady state comes about 20 s earlier.",
    trials: || vec![trial()],
    evaluate,
};

/// A minute, so that the steady state is reached; the first 80 MB of it are timed.
fn trial() -> Trial {
    Trial {
        amount: Amount::Seconds(SECONDS),
        objects: vec![DEFAULT_BYTES],
        repetitions: 5,
        quick: 2,
        adapt,
        ..Trial::new(TRIAL, "geo", &[TRAIN, DELAY, BOTH, OFF])
    }
}

/// Peters et al. 2021's link and its buffers of 60 MB. These bound what is in flight when slow start overshoots to 38 MB; with the
/// profile's it is 57 MB, and recovering takes so long that the train detector, which leaves before, is better than
/// none.
fn adapt(profile: &mut Profile) {
    link_of_001(profile);
    profile.host.tcp_rmem = [60_000_000; 3];
    profile.host.tcp_wmem = [60_000_000; 3];
}

fn evaluate(evidence: &Evidence) -> Result<Evaluation, NoEvidence> {
    let arm = |name| evidence.arm(TRIAL, name);
    let (train, delay, both, off) = (arm(TRAIN)?, arm(DELAY)?, arm(BOTH)?, arm(OFF)?);
    let time = |name| arm(name)?.object(DEFAULT_BYTES);
    let (train_time, delay_time, both_time, off_time) = (time(TRAIN)?, time(DELAY)?, time(BOTH)?, time(OFF)?);
    // Not reached within the minute counts as a minute.
    let ramp = |run: &Run| run.measures.ramp_seconds.unwrap_or_else(|| SECONDS.into());
    let earlier = both.median(ramp) - off.median(ramp);
    let acks = median(both.exits(|exit| exit.acks.map_or(f64::NAN, |acks| acks as f64)));
    let names = ["train only", "delay only", "both", "off"].map(str::to_owned);
    let ramps: Vec<_> =
        names.clone().into_iter().zip([train, delay, both, off].map(|arm| arm.each(ramp))).collect();
    let windows = [train, delay, both, off].map(|arm| arm.exits(|exit| exit.window_bytes as f64 / 1e6));
    let windows: Vec<_> = names.into_iter().zip(windows).collect();
    Ok(Evaluation {
        comparands: vec![
            Comparand::new("train only, 80 MB, s", "like off", train_time, 2),
            Comparand::new("delay only, 80 MB, s", "like both", delay_time, 2),
            Comparand::new("both, 80 MB, s", "longer", both_time, 2),
            Comparand::new("off, 80 MB, s", "shorter", off_time, 2),
            Comparand::new("both, ACKs until the exit", "15 to 22", acks, 0),
            Comparand::new("steady state without HyStart, earlier by, s", "about 20", earlier, 1),
        ],
        checks: vec![
            Check::between("train only over off, time of 80 MB", train_time / off_time, 0.8, 1.25),
            Check::between("delay only over both, time of 80 MB", delay_time / both_time, 0.7, 1.4),
            Check::at_least("both over off, time of 80 MB", both_time / off_time, 1.5),
            Check::between("both, ACKs until the exit (15 to 22, within a factor of 2)", acks, 7.5, 44.0),
            Check::at_least("steady state without HyStart, earlier by, s", earlier, 10.0),
        ],
        figure: figure(
            "HyStart's detectors over GEO",
            vec![
                columns("Until 90 % of the rate is reached", "seconds", &ramps),
                columns("Window at the exit", "MB", &windows),
            ],
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{exit, failing};
    use onramp_lab::experiment::{Measures, ObjectTime};
    use onramp_lab::question::testing::{add, run};

    fn measured(object: f64, ramp: f64) -> Run {
        let objects = vec![ObjectTime { bytes: DEFAULT_BYTES, seconds: Some(object), utilization: None }];
        let measures = Measures { objects, ramp_seconds: Some(ramp), ..Measures::default() };
        Run { measures, exit: exit(1.2, 50_000), ..run(60.0, 0) }
    }

    #[test]
    fn delay_as_the_culprit_holds_and_train_as_the_culprit_does_not() {
        let evaluate = |train: (f64, f64), delay: (f64, f64)| {
            let mut evidence = Evidence::default();
            let of = |(object, ramp)| measured(object, ramp);
            let arms = vec![
                (TRAIN, of(train)),
                (DELAY, of(delay)),
                (BOTH, of((25.0, 28.0))),
                (OFF, of((10.0, 8.0))),
            ];
            add(&mut evidence, TRIAL, arms);
            failing(&CLAIM, &evidence)
        };
        assert_eq!(evaluate((10.5, 8.0), (25.0, 28.0)), [""; 0]);
        assert_eq!(evaluate((25.0, 28.0), (10.0, 8.0)).len(), 2);
    }
}
