// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The evaluation that RFC 9743 asks for of a congestion control, as far as the lab can make it: an arm compared with stock CUBIC and
//! BBR on the same paths and seeds.
//!
//! RFC 9743 sets no thresholds. The checks are ours: no slower than stock CUBIC by more than 5 %, no more retransmitted than
//! 1.25 times as much, or 50 segments, and a flow that was there before keeps nine tenths of what it keeps compared with stock
//! CUBIC, or of an equal share where it keeps more. Flows of the arm share as evenly, and use as much, as those of stock
//! CUBIC but for 5 %; of two RTTs, the flow of the longer one gets nine tenths likewise. What the lab cannot make is in
//! [`NOT_EVALUATED`].

mod cases;
mod checks;

use crate::question::{Question, Trial};

pub use cases::CASES;

/// What every arm is compared with.
pub const REFERENCE: &str = "cubic";
/// What it is compared with.
pub const OTHER: &str = "bbr";

/// What RFC 9743 asks for besides, and where it is.
pub const NOT_EVALUATED: &str = "5.1.1 backoff and 5.3 (the base's), 5.2.2 real-time flows, 6.2 tunnels, \
7.2 circuit breakers, 7.4 constrained nodes, 7.6 misbehaving nodes, 7.10 several paths at once, 7.11 data centers";

/// A criterion or a scenario of RFC 9743.
#[derive(Debug)]
pub struct Case {
    /// Its name on the command line.
    pub id: &'static str,
    /// Section of the RFC.
    pub source: &'static str,
    /// What is looked at.
    pub statement: &'static str,
    /// The paths and what is sent over them; without arms.
    paths: fn() -> Vec<Trial>,
    /// What is compared.
    measure: Measure,
}

/// What is compared in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// Time, retransmissions and queueing delay of a download.
    Download,
    /// Time of objects: the first bytes of a download.
    Objects,
    /// How several flows of the arm share the link.
    Together,
    /// The same of two RTTs.
    Rtts,
    /// What a flow that was there before keeps.
    Neighbour,
    /// Time, retransmissions and silence of a download that changes to another path.
    OtherPath,
}

impl Case {
    /// The case for an arm.
    pub fn question<'a>(&'a self, subject: &'a str) -> Question<'a> {
        let arms: Vec<String> = arms(subject);
        let trials = (self.paths)().into_iter().map(|path| Trial { arms: arms.clone(), ..path }).collect();
        let evaluate = move |evidence: &_| checks::evaluate(self, subject, evidence);
        Question {
            id: self.id,
            source: self.source,
            statement: self.statement,
            trials,
            evaluate: Box::new(evaluate),
        }
    }
}

/// The arm first, each once.
fn arms(subject: &str) -> Vec<String> {
    let others = [REFERENCE, OTHER].into_iter().filter(|other| *other != subject);
    std::iter::once(subject).chain(others).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_section_and_paths_with_names_of_their_own() {
        let mut names = Vec::new();
        for (at, case) in CASES.iter().enumerate() {
            assert!(CASES[..at].iter().all(|other| other.id != case.id), "{}", case.id);
            assert!(case.source.starts_with("RFC 9743, section"), "{}", case.id);
            for trial in case.question("ramp").trials {
                assert!(!names.contains(&trial.name), "{}", trial.name);
                assert_eq!(trial.arms, ["ramp", "cubic", "bbr"]);
                assert!(trial.quick > 0 && trial.quick <= trial.repetitions);
                assert_eq!(trial.competitor.is_some(), case.measure == Measure::Neighbour, "{}", trial.name);
                let several = matches!(case.measure, Measure::Together | Measure::Rtts);
                assert_eq!(trial.flows > 1, several, "{}", trial.name);
                assert_eq!(!trial.paths.is_empty(), case.measure == Measure::OtherPath, "{}", trial.name);
                assert_eq!(!trial.objects.is_empty(), case.measure == Measure::Objects, "{}", trial.name);
                names.push(trial.name);
            }
        }
        assert_eq!(arms("cubic"), ["cubic", "bbr"]);
    }
}
