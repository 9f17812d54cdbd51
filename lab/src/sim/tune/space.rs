// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The parameters that are varied, and the candidates that are drawn of them.

use std::collections::BTreeSet;

use onramp_algorithm::{Algorithm, Parameter, Parameters};

use super::Candidate;
use crate::link::Random;

/// The streams of random numbers of candidates begin here; links and populations have those below.
const STREAMS: u64 = 1 << 60;
/// From this ratio of largest to smallest value on, ratios are equally likely instead of differences.
const WIDE: u64 = 1_000;
/// Candidates near the start differ from it in so many parameters at most.
const CHANGED: u64 = 3;

/// A parameter that is varied, with the values that it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Varied {
    /// Its declaration.
    pub parameter: Parameter,
    /// Smallest value.
    pub from: u64,
    /// Largest value.
    pub to: u64,
}

impl Varied {
    /// Over all values that are allowed.
    pub fn whole(parameter: Parameter) -> Self {
        Self { from: parameter.minimum, to: parameter.maximum, parameter }
    }

    /// All parameters of an algorithm, each over all its values.
    pub fn all(algorithm: Algorithm) -> Vec<Self> {
        algorithm.parameters().iter().map(|(parameter, _)| Self::whole(parameter)).collect()
    }

    /// The value at a share of the range, 0 to below 1.
    fn at(&self, share: f64) -> u64 {
        let values = (self.to - self.from) as f64 + 1.0;
        let value = if self.wide() {
            let (from, to) = ((self.from as f64 + 1.0).ln(), (self.to as f64 + 2.0).ln());
            (from + share * (to - from)).exp() - 1.0
        } else {
            self.from as f64 + share * values
        };
        (value as u64).clamp(self.from, self.to)
    }

    fn wide(&self) -> bool {
        self.parameter.choices.is_empty() && self.to / self.from.max(1) >= WIDE
    }

    /// Values next to this one, within the range: half and double, or every other choice.
    pub(super) fn neighbours(&self, value: u64) -> Vec<u64> {
        let near = if self.parameter.choices.is_empty() && self.parameter.maximum > 1 {
            vec![value / 2, value.saturating_mul(2)]
        } else {
            (self.from..=self.to).collect()
        };
        let mut near: Vec<_> = near.into_iter().map(|near| near.clamp(self.from, self.to)).collect();
        near.dedup();
        near.retain(|near| *near != value);
        near
    }
}

/// The start and what is drawn, `count` in all or fewer where the space does not hold as many: half of them anywhere, as a Latin
/// hypercube (McKay, Beckman and Conover 1979: each parameter takes a value of each of as many equal parts of its range), the
/// other half with one to three parameters of the start changed.
pub(super) fn candidates(start: &Candidate, varied: &[Varied], count: usize, seed: u64) -> Vec<Candidate> {
    let anywhere = count.saturating_sub(1) / 2;
    let mut random = Random::new(seed, STREAMS);
    let parts: Vec<_> = varied.iter().map(|_| shuffled(anywhere, &mut random)).collect();
    let mut all = vec![start.clone()];
    for number in 0..anywhere {
        let values = varied.iter().zip(&parts).map(|(varied, parts)| {
            (varied, varied.at((parts[number] as f64 + random.unit()) / anywhere as f64))
        });
        all.push(start.with(values));
    }
    while all.len() < count && !varied.is_empty() {
        let changed = 1 + random.up_to(CHANGED.min(varied.len() as u64) - 1);
        let which = shuffled(varied.len(), &mut random);
        let values = which.iter().take(changed as usize).map(|which| &varied[*which]);
        all.push(start.with(values.map(|varied| (varied, varied.at(random.unit()))).collect::<Vec<_>>()));
    }
    let mut seen = BTreeSet::new();
    all.retain(|candidate| seen.insert(candidate.0.to_words()));
    all
}

/// The numbers below `count` in a random order (Fisher and Yates).
fn shuffled(count: usize, random: &mut Random) -> Vec<usize> {
    let mut numbers: Vec<_> = (0..count).collect();
    for last in (1..count).rev() {
        numbers.swap(last, random.up_to(last as u64) as usize);
    }
    numbers
}

impl Candidate {
    /// This one with other values.
    pub(super) fn with<'a>(&self, values: impl IntoIterator<Item = (&'a Varied, u64)>) -> Self {
        let mut words = self.0.to_words();
        for (varied, value) in values {
            let at = self.0.iter().position(|(parameter, _)| parameter.name == varied.parameter.name);
            if let Some(word) = at.and_then(|at| words.get_mut(at)) {
                *word = value;
            }
        }
        Self(Parameters::from_words(self.0.algorithm(), &words).unwrap_or_else(|| self.0.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Candidate {
        Candidate(onramp_algorithm::find("search").unwrap().parameters())
    }

    fn varied(names: &[&str]) -> Vec<Varied> {
        let all = Varied::all(start().0.algorithm());
        all.into_iter().filter(|varied| names.contains(&varied.parameter.name)).collect()
    }

    #[test]
    fn every_part_of_a_range_is_drawn_and_nothing_beyond_it() {
        for varied in Varied::all(start().0.algorithm()) {
            assert_eq!(varied.at(0.0), varied.from, "{varied:?}");
            assert_eq!(varied.at(1.0 - f64::EPSILON / 2.0), varied.to, "{varied:?}");
        }
        let all = candidates(&start(), &varied(&["threshold_pct"]), 41, 1);
        let values: BTreeSet<_> =
            all[1..].iter().map(|candidate| candidate.0.get("threshold_pct").unwrap() / 10).collect();
        assert!(values.len() >= 9, "{values:?}");
    }

    #[test]
    fn candidates_begin_with_the_start_are_all_different_and_change_what_is_varied_alone() {
        let names = ["threshold_pct", "look_back"];
        let all = candidates(&start(), &varied(&names), 60, 7);
        assert_eq!(all[0], start());
        assert_eq!(all, candidates(&start(), &varied(&names), 60, 7));
        assert_ne!(all, candidates(&start(), &varied(&names), 60, 8));
        for (number, candidate) in all.iter().enumerate() {
            assert!(!all[..number].contains(candidate));
            for ((parameter, value), (_, before)) in candidate.0.iter().zip(start().0.iter()) {
                assert!(value == before || names.contains(&parameter.name), "{}", parameter.name);
            }
        }
        // A choice of three has two others.
        assert_eq!(candidates(&start(), &varied(&["look_back"]), 60, 7).len(), 3);
    }

    #[test]
    fn next_to_a_value_are_its_half_and_its_double_within_the_range_or_the_other_choices() {
        let threshold = Varied { from: 10, to: 60, ..varied(&["threshold_pct"]).remove(0) };
        assert_eq!(threshold.neighbours(25), [12, 50]);
        assert_eq!(threshold.neighbours(40), [20, 60]);
        assert_eq!(threshold.neighbours(10), [20]);
        assert_eq!(varied(&["look_back"])[0].neighbours(1), [0, 2]);
    }
}
