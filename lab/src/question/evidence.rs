// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What trials yielded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::experiment::{ArmResult, Comparison, Exit, Run};
use crate::stats::{mean, median};

/// All that claims are evaluated by.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Results by name of the trial.
    pub trials: BTreeMap<String, Comparison>,
    /// Rates of ACK pairs, one entry per round and run.
    pub pairs: Vec<RoundRates>,
    /// What each algorithm keeps per flow.
    pub footprints: Vec<Footprint>,
}

/// Rates of the ACK pairs of one round, as a histogram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRates {
    /// Number of the round, from 1.
    pub round: u32,
    /// Lower edge of each bin that is not empty, bytes per second, and how many pairs are in it; ascending.
    pub bins: Vec<(f64, u32)>,
}

/// Bytes that an algorithm keeps per flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Footprint {
    /// Its name.
    pub algorithm: String,
    /// Its own state.
    pub state_bytes: usize,
    /// What every flow has besides: exit record, counters, telemetry.
    pub header_bytes: usize,
}

/// Something is missing for an evaluation.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum NoEvidence {
    /// An experiment was not run.
    #[error("there are no results of {0:?}")]
    Trial(String),
    /// No run of an arm counts.
    #[error("no valid run of arm {arm:?} in {trial:?}")]
    Arm {
        /// Name of the trial.
        trial: String,
        /// Name of the arm.
        arm: String,
    },
    /// The runs of an arm do not have a figure.
    #[error("no run of arm {arm:?} has {what}")]
    Figure {
        /// Name of the arm.
        arm: String,
        /// Which figure.
        what: &'static str,
    },
    /// Something else was not measured.
    #[error("there are no {0}")]
    Other(&'static str),
}

impl Evidence {
    /// The results of a trial.
    pub fn trial(&self, name: &str) -> Result<&Comparison, NoEvidence> {
        self.trials.get(name).ok_or_else(|| NoEvidence::Trial(name.to_owned()))
    }

    /// The runs of an arm that count, at least one.
    pub fn arm<'a>(&'a self, trial: &'a str, arm: &'a str) -> Result<Valid<'a>, NoEvidence> {
        let result = self.trial(trial)?.arms.iter().find(|result| result.arm == arm);
        let missing = || NoEvidence::Arm { trial: trial.to_owned(), arm: arm.to_owned() };
        result.filter(|result| result.runs.iter().any(Run::counts)).map(Valid).ok_or_else(missing)
    }
}

/// An arm with at least one run that counts; what was given up counts as far as it came.
#[derive(Clone, Copy, Debug)]
pub struct Valid<'a>(&'a ArmResult);

impl<'a> Valid<'a> {
    /// Its runs.
    pub fn runs(self) -> impl Iterator<Item = &'a Run> {
        self.0.runs.iter().filter(|run| run.counts())
    }

    /// A figure of each run.
    pub fn each(self, value: impl Fn(&Run) -> f64) -> Vec<f64> {
        self.runs().map(value).collect()
    }

    /// Its mean.
    pub fn mean(self, value: impl Fn(&Run) -> f64) -> f64 {
        mean(&self.each(value))
    }

    /// Its median.
    pub fn median(self, value: impl Fn(&Run) -> f64) -> f64 {
        median(self.each(value))
    }

    /// The median of a figure over the runs that have it; NaN if none has.
    pub fn median_of(self, value: impl Fn(&Run) -> Option<f64>) -> f64 {
        median(self.runs().filter_map(value))
    }

    /// Mean download time, seconds.
    pub fn seconds(self) -> f64 {
        self.mean(|run| run.seconds)
    }

    /// Mean number of segments retransmitted.
    pub fn retransmitted(self) -> f64 {
        self.mean(|run| run.retransmitted_segments as f64)
    }

    /// A figure of the exits that there were.
    pub fn exits(self, value: impl Fn(&Exit) -> f64) -> Vec<f64> {
        self.runs().filter_map(|run| run.exit.as_ref()).map(value).collect()
    }

    /// The median of such a figure.
    pub fn median_exit(self, value: impl Fn(&Exit) -> f64) -> Result<f64, NoEvidence> {
        let values = self.exits(value);
        if values.is_empty() {
            return Err(NoEvidence::Figure { arm: self.0.arm.clone(), what: "an exit" });
        }
        Ok(median(values))
    }

    /// Mean time of an object over the runs that carried it whole.
    pub fn object(self, bytes: u64) -> Result<f64, NoEvidence> {
        let time = |run: &Run| run.measures.objects.iter().find(|object| object.bytes == bytes)?.seconds;
        let times: Vec<f64> = self.runs().filter_map(time).collect();
        if times.is_empty() {
            return Err(NoEvidence::Figure { arm: self.0.arm.clone(), what: "an object of that size" });
        }
        Ok(mean(&times))
    }
}

impl RoundRates {
    /// Number of pairs.
    pub fn pairs(&self) -> u32 {
        self.bins.iter().map(|(_, count)| count).sum()
    }

    /// Share of pairs below a rate, 0 to 1.
    pub fn share_below(&self, bytes_per_second: f64) -> f64 {
        let below = self.bins.iter().filter(|(rate, _)| *rate < bytes_per_second);
        f64::from(below.map(|(_, count)| count).sum::<u32>()) / f64::from(self.pairs().max(1))
    }

    /// The rate below which half of the pairs are; none without pairs.
    pub fn median(&self) -> Option<f64> {
        let half = self.pairs().div_ceil(2);
        let mut seen = 0;
        self.bins.iter().find_map(|(rate, count)| {
            seen += count;
            (seen >= half).then_some(*rate)
        })
    }

    /// All pairs of a round, over all runs.
    pub fn pooled(all: &[Self], round: u32) -> Self {
        let mut bins = BTreeMap::<u64, u32>::new();
        for (rate, count) in all.iter().filter(|one| one.round == round).flat_map(|one| &one.bins) {
            *bins.entry(*rate as u64).or_default() += count;
        }
        Self { round, bins: bins.into_iter().map(|(rate, count)| (rate as f64, count)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_pooled_and_halved() {
        let one = RoundRates { round: 1, bins: vec![(100.0, 1), (300.0, 2)] };
        let two = RoundRates { round: 1, bins: vec![(100.0, 4)] };
        let other = RoundRates { round: 2, bins: vec![(900.0, 9)] };
        let pooled = RoundRates::pooled(&[one, two, other], 1);
        assert_eq!(pooled.bins, [(100.0, 5), (300.0, 2)]);
        assert_eq!((pooled.pairs(), pooled.median()), (7, Some(100.0)));
        assert!((pooled.share_below(200.0) - 5.0 / 7.0).abs() < 1e-9);
        assert_eq!(RoundRates { round: 1, bins: vec![] }.median(), None);
    }
}
