// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Populations of paths: distributions in a TOML file, from which any number of paths is drawn.
//!
//! A population has classes (cable, GEO satellite …) with weights; a class has a distribution for each property of a
//! path. Path `k` of seed `s` depends on the population, `s` and `k` alone, and what is drawn for one property does not
//! depend on the others. See `lab/populations/default.toml` for a commented one.

mod class;
mod distribution;
mod limit;
mod path;

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};

use serde::Deserialize;
use thiserror::Error;

pub use class::{AqmWeights, Class, SourceWeights};
pub use distribution::{Distribution, Scale};
pub use limit::doubling_limit;
pub use path::{MOST_BPS_OF_A_GUEST, MOST_BYTES_OF_A_GUEST, Path};

use crate::link::RangeError;
use crate::link::spec::{one_line, within};
use crate::profile::toml_error;

/// Version of the format.
pub const VERSION: u64 = 1;

/// Classes of paths with their weights and distributions.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Population {
    /// Version of the format, 1.
    pub version: u64,
    /// Name: lower-case letters, digits and dashes, 1 to 31 bytes.
    pub name: String,
    /// What it stands for, one line.
    pub about: String,
    /// Kinds of paths, by name: lower-case letters, digits and dashes, 1 to 15 bytes.
    pub class: BTreeMap<String, Class>,
}

/// What can be wrong with a population.
#[derive(Debug, Error)]
pub enum PopulationError {
    /// The text is not a population.
    #[error("population {path}: {reason}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        reason: String,
    },
    /// A value is out of range.
    #[error("population {path}: {source}")]
    Range {
        /// The file.
        path: PathBuf,
        /// Which one.
        source: RangeError,
    },
}

impl Population {
    /// Checks the text of a population. `path` is what errors call it.
    ///
    /// # Errors
    /// [`PopulationError::Parse`], also for unknown keys; [`PopulationError::Range`].
    pub fn parse(text: &str, path: impl AsRef<FilePath>) -> Result<Self, PopulationError> {
        let path = path.as_ref();
        let population: Self = toml::from_str(text).map_err(|error| PopulationError::Parse {
            path: path.into(),
            reason: toml_error(text, &error),
        })?;
        population.validate().map_err(|source| PopulationError::Range { path: path.into(), source })?;
        Ok(population)
    }

    fn validate(&self) -> Result<(), RangeError> {
        within("version".into(), self.version, VERSION..=VERSION)?;
        name("name", &self.name, 31)?;
        one_line("about", &self.about)?;
        if self.class.is_empty() {
            return Err(RangeError::new("class", "none", "expected at least one [class.NAME]"));
        }
        for (class_name, class) in &self.class {
            name("class", class_name, 15)?;
            class.validate(&format!("class.{class_name}"))?;
        }
        Ok(())
    }

    /// Path number `number` of `seed`.
    pub fn path(&self, seed: u64, number: u64) -> Path {
        path::draw(self, seed, number)
    }
}

fn name(key: &str, name: &str, most: usize) -> Result<(), RangeError> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !name.is_empty() && name.len() <= most && name.bytes().all(allowed) {
        return Ok(());
    }
    let range = format!("expected 1 to {most} lower-case letters, digits and dashes");
    Err(RangeError::new(key, format!("{name:?}"), range))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "version = 1\nname = 'x'\nabout = 'y'\n[class.a]\nrate_bps = 1_000_000\nrtt_us = 50_000\nqueue_bdp = 1\nobject_bytes = 100_000\n";

    fn error(from: &str, to: &str) -> String {
        let text = LEAST.replace(from, to);
        assert_ne!(text, LEAST, "{from}");
        Population::parse(&text, "x.toml").unwrap_err().to_string()
    }

    #[test]
    fn the_default_population_is_valid() {
        let population =
            Population::parse(include_str!("../../populations/default.toml"), "default.toml").unwrap();
        assert_eq!(population.name, "default");
    }

    #[test]
    fn the_documented_population_has_every_key_and_is_valid() {
        let text = include_str!("../../../docs/population.toml");
        Population::parse(text, "population.toml").unwrap();
        // serde names them all.
        let unknown = error("rtt_us", "rrt_us");
        let keys: Vec<_> = unknown.split_once("known are ").unwrap().1.split(", ").collect();
        assert!(keys.len() >= 16, "{unknown}");
        for key in keys {
            assert!(text.lines().any(|line| line.starts_with(&format!("{key} = "))), "{key}");
        }
    }

    #[test]
    fn what_is_wrong_names_key_value_and_range() {
        Population::parse(LEAST, "x.toml").unwrap();
        assert!(error("rtt_us", "rrt_us").contains("`rrt_us`"), "{}", error("rtt_us", "rrt_us"));
        assert!(error("queue_bdp = 1\n", "").contains("`queue_bdp`"));
        let ranges = [
            ("version = 1", "version = 2", "version = 2 is out of range: expected 1"),
            ("name = 'x'", "name = 'X'", "name = \"X\" is out of range: expected 1 to 31 lower-case"),
            ("[class.a]", "[class.A]", "class = \"A\" is out of range: expected 1 to 15 lower-case"),
            (
                "queue_bdp = 1",
                "queue_bdp = 200",
                "class.a.queue_bdp = 200 is out of range: expected 0.01 to 100",
            ),
            (
                "rate_bps = 1_000_000",
                "rate_bps = { from = 10, to = 1e6 }",
                "class.a.rate_bps.from = 10 is out of range: expected 1000 to 10000000000",
            ),
            (
                "rate_bps = 1_000_000",
                "rate_bps = { from = 2e6, to = 1e6 }",
                "class.a.rate_bps.from = 2000000 is out of range: expected 1000 to 1000000, the value of to",
            ),
            (
                "queue_bdp = 1",
                "queue_bdp = 1\nloss = { from = 0, to = 0.1, scale = 'logarithmic' }",
                "class.a.loss.from = 0 is out of range: expected more than 0 on a logarithmic scale",
            ),
            (
                "queue_bdp = 1",
                "queue_bdp = 1\nloss = { chance = 2, from = 0, to = 0.1 }",
                "class.a.loss.chance = 2 is out of range: expected 0 to 1",
            ),
            (
                "rtt_us = 50_000",
                "rtt_us = { chance = 0.5, from = 5_000, to = 6_000 }",
                "class.a.rtt_us.chance = 0.5 is out of range: expected 1: 0 is no value here",
            ),
            (
                "queue_bdp = 1",
                "queue_bdp = 1\naqm = { tail-drop = 0 }",
                "class.a.aqm = 0 in all is out of range: expected a weight above 0",
            ),
            (
                "queue_bdp = 1",
                "queue_bdp = 1\nsource = { bulk = -1 }",
                "class.a.source.bulk = -1 is out of range: expected 0 to 1000",
            ),
        ];
        for (from, to, said) in ranges {
            let error = error(from, to);
            assert!(error.ends_with(said) || error.contains(said), "{to}: {error}");
        }
        assert!(error("queue_bdp = 1", "queue_bdp = 1\naqm = { red = 1 }").contains("`red`"));
        assert!(error("queue_bdp = 1", "queue_bdp = { from = 1 }").contains("`to`"));
        assert!(error("queue_bdp = 1", "queue_bdp = 'much'").contains("a number, or"));
    }
}
