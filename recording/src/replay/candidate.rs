// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is replayed: algorithms with settings, and every combination of swept values.

use std::path::Path;

use onramp_algorithm::{Algorithm, ParameterError, did_you_mean, find, outside};
use thiserror::Error;

use super::with_settings;

/// Combinations of one call at most.
const CANDIDATES: usize = 1_000;

/// An algorithm and what is set of its parameters; the rest is as recorded where the flow ran it, else by default.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// `name=value`.
    pub settings: Vec<String>,
}

/// What was asked for is not to be had.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CandidateError {
    /// There is no such algorithm.
    #[error("there is no algorithm {name:?}{}; there are {known}", did_you_mean(name, known.split(", ")))]
    Algorithm {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The object of an algorithm from outside the tree was refused.
    #[error("{0}")]
    Outside(String),
    /// A parameter was refused.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// `ALG.name=value` of an algorithm that is not replayed.
    #[error(
        "{setting} names no algorithm of this replay: write NAME=VALUE, or ALG.NAME=VALUE with one of {given}"
    )]
    Whose {
        /// What was given.
        setting: String,
        /// The algorithms of this replay.
        given: String,
    },
    /// Not a sweep.
    #[error("{sweep:?} is no sweep: write NAME=VALUE,VALUE,… or NAME=FROM:TO:STEP with a step above 0")]
    Sweep {
        /// What was given.
        sweep: String,
    },
    /// Too many combinations.
    #[error("the sweeps make {count} combinations; at most {CANDIDATES} are replayed at once")]
    TooMany {
        /// How many.
        count: usize,
    },
}

/// Every algorithm with the settings and every combination of the sweeps. A setting or sweep is `NAME=…` for all
/// algorithms, or `ALG.NAME=…` for one.
///
/// # Errors
/// [`CandidateError`]: everything is checked here, before anything is read.
pub fn candidates(
    algorithms: &[String],
    settings: &[String],
    sweeps: &[String],
) -> Result<Vec<Candidate>, CandidateError> {
    for setting in settings.iter().chain(sweeps) {
        check_owner(setting, algorithms)?;
    }
    let mut candidates = Vec::new();
    for name in algorithms {
        let algorithm = if outside::is_path(name) {
            outside::open(Path::new(name))
                .map(Algorithm::from)
                .map_err(|error| CandidateError::Outside(error.to_string()))?
        } else {
            find(name).ok_or_else(|| CandidateError::Algorithm {
                name: name.clone(),
                known: onramp_algorithm::all().map(|one| one.name()).collect::<Vec<_>>().join(", "),
            })?
        };
        let own: Vec<String> =
            settings.iter().filter_map(|setting| for_algorithm(algorithm, setting)).collect();
        let mut combinations = vec![own];
        for sweep in sweeps.iter().filter_map(|sweep| for_algorithm(algorithm, sweep)) {
            let (name, values) = values(&sweep)?;
            let count = combinations.len() * values.len() + candidates.len();
            if count > CANDIDATES {
                return Err(CandidateError::TooMany { count });
            }
            let with = |one: &Vec<String>| {
                let set = values.iter().map(|value| format!("{name}={value}"));
                set.map(|setting| [one.as_slice(), &[setting]].concat()).collect::<Vec<_>>()
            };
            combinations = combinations.iter().flat_map(with).collect();
        }
        for settings in combinations {
            with_settings(algorithm.parameters(), &settings)?;
            candidates.push(Candidate { algorithm, settings });
        }
    }
    Ok(candidates)
}

/// The setting without its prefix, if it is for this algorithm.
fn for_algorithm(algorithm: Algorithm, setting: &str) -> Option<String> {
    match owner(setting) {
        Some(owner) if find(owner) != Some(algorithm) => None,
        Some(owner) => Some(setting[owner.len() + 1..].to_owned()),
        None => Some(setting.to_owned()),
    }
}

fn owner(setting: &str) -> Option<&str> {
    let name = setting.split('=').next().unwrap_or(setting);
    name.split_once('.').map(|(owner, _)| owner)
}

fn check_owner(setting: &str, algorithms: &[String]) -> Result<(), CandidateError> {
    let same =
        |name: &String, owner: &str| name == owner || find(owner).is_some_and(|one| find(name) == Some(one));
    if owner(setting).is_none_or(|owner| algorithms.iter().any(|name| same(name, owner))) {
        return Ok(());
    }
    Err(CandidateError::Whose { setting: setting.to_owned(), given: algorithms.join(", ") })
}

/// The name and the values of a sweep.
fn values(sweep: &str) -> Result<(&str, Vec<String>), CandidateError> {
    let refuse = || CandidateError::Sweep { sweep: sweep.to_owned() };
    let (name, text) = sweep.split_once('=').ok_or_else(refuse)?;
    if !text.contains(':') {
        return Ok((name, text.split(',').map(str::to_owned).collect()));
    }
    let numbers: Result<Vec<u64>, _> = text.split(':').map(str::parse).collect();
    let [from, to, step] = numbers.map_err(|_| refuse())?[..] else { return Err(refuse()) };
    if to < from || step == 0 {
        return Err(refuse());
    }
    let count = ((to - from) / step).saturating_add(1);
    if count > CANDIDATES as u64 {
        return Err(CandidateError::TooMany { count: usize::try_from(count).unwrap_or(usize::MAX) });
    }
    Ok((name, (0..count).map(|index| (from + index * step).to_string()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    fn settings(algorithms: &[&str], set: &[&str], sweeps: &[&str]) -> Result<Vec<String>, CandidateError> {
        let all = candidates(&names(algorithms), &names(set), &names(sweeps))?;
        Ok(all.iter().map(|one| format!("{} {}", one.algorithm.name(), one.settings.join(" "))).collect())
    }

    #[test]
    fn sweeps_make_every_combination() {
        assert_eq!(
            settings(&["plain", "search"], &["search.confirm_bins=1"], &["search.threshold_pct=20:30:5"])
                .unwrap(),
            [
                "plain ",
                "search confirm_bins=1 threshold_pct=20",
                "search confirm_bins=1 threshold_pct=25",
                "search confirm_bins=1 threshold_pct=30"
            ]
        );
        let both = settings(&["search"], &[], &["threshold_pct=1,2", "exit_action=hold,drain"]).unwrap();
        assert_eq!(both.len(), 4);
        assert_eq!(both[3], "search threshold_pct=2 exit_action=drain");
        assert_eq!(settings(&["search"], &[], &["threshold_pct=7:7:1"]).unwrap(), ["search threshold_pct=7"]);
    }

    #[test]
    fn what_cannot_be_replayed_is_refused_before_anything_is_read() {
        for (algorithms, set, sweep, said) in [
            (["serach"], "threshold_pct=3", "threshold_pct=3", "there are plain"),
            (["search"], "threshold=3", "threshold_pct=3", "no parameter \"threshold\""),
            (["search"], "threshold_pct=3", "threshold_pct=3,101", "0..100"),
            (["search"], "threshold_pct=3", "threshold_pct=1:9:0", "no sweep"),
            (["search"], "threshold_pct=3", "threshold_pct=9:1:1", "no sweep"),
            (["search"], "threshold_pct=3", "threshold_pct", "no sweep"),
            (["search"], "threshold_pct=3", "threshold_pct=1:2", "no sweep"),
            (["search"], "plain.threshold_pct=3", "threshold_pct=3", "names no algorithm"),
            (["search"], "threshold_pct=3", "missed_bins_rtts=0:99999999:1", "at most 1000"),
            (["search"], "threshold_pct=3", "missed_bins_rtts=0:18446744073709551615:1", "at most 1000"),
        ] {
            let error = settings(&algorithms, &[set], &[sweep]).unwrap_err().to_string();
            assert!(error.contains(said), "{set} {sweep}: {error}");
        }
    }
}
