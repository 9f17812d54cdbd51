// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whether a result that is made again is the same, and what has moved if it is not.

use std::fmt;

use serde::Serialize;

use crate::experiment::{Comparison, Run};

/// Share of a time by which it may move with another program.
const SECONDS: f64 = 0.005;
/// The same of the window at the exit.
const WINDOW: f64 = 0.01;
/// The same of the number of segments, and so many at least.
const SEGMENTS: (f64, f64) = (0.02, 3.0);

/// What became of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// Name of the profile.
    pub profile: String,
    /// Name of the arm.
    pub arm: String,
    /// Seed of the link.
    pub seed: u64,
    /// Whether it is the same.
    pub verdict: Verdict,
    /// Made by the same program, on the same kernel and QEMU: nothing may differ.
    pub same_program: bool,
    /// Figures that are not what they were.
    pub moved: Vec<Moved>,
}

/// Whether a run is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The digests are equal: every packet, at its time.
    Same,
    /// Made by another program, or on another kernel or QEMU; no figure has moved further than it may.
    Agrees,
    /// It is not.
    Differs,
}

impl Verdict {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Agrees => "agrees",
            Self::Differs => "DIFFERS",
        }
    }
}

/// A figure that is not what it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Its name in the results.
    pub figure: &'static str,
    /// What it was; none: there was none.
    pub before: Option<f64>,
    /// What it is.
    pub now: Option<f64>,
}

impl fmt::Display for Moved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| format!("{value}"));
        write!(formatter, "{} {} -> {}", self.figure, show(self.before), show(self.now))?;
        match (self.before, self.now) {
            (Some(before), Some(now)) if before != 0.0 => {
                write!(formatter, " ({:+.2} %)", (now / before - 1.0) * 100.0)
            }
            _ => Ok(()),
        }
    }
}

/// Every run of `before` compared with the same one of `now`.
pub fn compare(before: &Comparison, now: &Comparison) -> Vec<Checked> {
    // With all of these equal nothing may differ.
    let same_origin = before.origin == now.origin;
    let runs = before.arms.iter().flat_map(|arm| arm.runs.iter().map(move |run| (&arm.arm, run)));
    runs.map(|(arm, run)| {
        let again = now.arms.iter().filter(|one| one.arm == *arm).flat_map(|one| &one.runs);
        let again = again.into_iter().find(|one| one.seed == run.seed);
        let (verdict, moved) =
            again.map_or((Verdict::Differs, Vec::new()), |again| one(run, again, same_origin));
        Checked {
            profile: before.profile.clone(),
            arm: arm.clone(),
            seed: run.seed,
            verdict,
            same_program: same_origin,
            moved,
        }
    })
    .collect()
}

fn one(before: &Run, now: &Run, same_origin: bool) -> (Verdict, Vec<Moved>) {
    if before.digest.is_some() && before.digest == now.digest {
        return (Verdict::Same, Vec::new());
    }
    let exit = |run: &Run, of: fn(&crate::experiment::Exit) -> f64| run.exit.as_ref().map(of);
    let window = |exit: &crate::experiment::Exit| exit.window_bytes as f64;
    let retransmitted = |run: &Run| run.retransmitted_segments as f64;
    let valid = |run: &Run| f64::from(u8::from(run.valid));
    let cut_off = |run: &Run| f64::from(u8::from(run.cut_off));
    let figures = [
        ("cut_off", Some(cut_off(before)), Some(cut_off(now)), 0.0, 0.0),
        ("valid", Some(valid(before)), Some(valid(now)), 0.0, 0.0),
        ("seconds", Some(before.seconds), Some(now.seconds), SECONDS, 0.0),
        (
            "retransmitted_segments",
            Some(retransmitted(before)),
            Some(retransmitted(now)),
            SEGMENTS.0,
            SEGMENTS.1,
        ),
        ("exit.seconds", exit(before, |exit| exit.seconds), exit(now, |exit| exit.seconds), SECONDS, 0.001),
        ("exit.window_bytes", exit(before, window), exit(now, window), WINDOW, 0.0),
    ];
    let mut far = false;
    let mut moved = Vec::new();
    for (figure, before, now, share, least) in figures {
        if before != now {
            far |= before
                .zip(now)
                .is_none_or(|(before, now)| (now - before).abs() > least.max(share * before.abs()));
            moved.push(Moved { figure, before, now });
        }
    }
    (if far || same_origin { Verdict::Differs } else { Verdict::Agrees }, moved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{ArmResult, Origin};
    use crate::question::testing::comparison;

    fn of(image: &str, digest: &str, seconds: f64, retransmitted: u64) -> Comparison {
        let run = Run {
            valid: true,
            invalid_reason: None,
            seconds,
            retransmitted_segments: retransmitted,
            digest: Some(digest.into()),
            ..Run::failed(3, String::new())
        };
        let origin = Origin { image: Some(image.into()), ..Origin::default() };
        Comparison { origin, ..comparison(vec![ArmResult::new("plain", "onramp_plain", vec![run])]) }
    }

    fn verdict(before: &Comparison, now: &Comparison) -> (Verdict, Vec<String>) {
        let checked = compare(before, now);
        assert_eq!((checked.len(), checked[0].arm.as_str(), checked[0].seed), (1, "plain", 3));
        (checked[0].verdict, checked[0].moved.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn equal_digests_are_the_same_for_every_maker() {
        let before = of("a", "x", 10.0, 5);
        assert_eq!(verdict(&before, &before), (Verdict::Same, vec![]));
        assert_eq!(verdict(&before, &of("b", "x", 10.0, 5)).0, Verdict::Same);
    }

    #[test]
    fn another_program_may_move_figures_a_little() {
        let before = of("a", "x", 10.0, 100);
        let (verdict_of_little, moved) = verdict(&before, &of("b", "y", 10.04, 103));
        assert_eq!(verdict_of_little, Verdict::Agrees);
        assert_eq!(moved, ["seconds 10 -> 10.04 (+0.40 %)", "retransmitted_segments 100 -> 103 (+3.00 %)"]);
        assert_eq!(verdict(&before, &of("b", "y", 10.06, 100)).0, Verdict::Differs);
        assert_eq!(verdict(&before, &of("b", "y", 10.0, 104)).0, Verdict::Differs);
    }

    #[test]
    fn the_same_program_may_move_nothing() {
        let before = of("a", "x", 10.0, 5);
        assert_eq!(verdict(&before, &of("a", "y", 10.0, 5)), (Verdict::Differs, vec![]));
    }

    #[test]
    fn a_run_that_is_missing_differs() {
        let before = of("a", "x", 10.0, 5);
        assert_eq!(verdict(&before, &comparison(Vec::new())).0, Verdict::Differs);
    }
}
