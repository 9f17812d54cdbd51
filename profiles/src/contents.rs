// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Profiles: a link, the hosts' buffers, and the algorithm that suits them, in one TOML file.
//!
//! The bandwidth-delay product is derived, never written. Parameters of algorithms are kept as written: what they mean is
//! the algorithms' business, which the lab does not know.
//!
//! A profile may say only in what it differs from another one: `like = "geo"` takes over all that it does not say itself,
//! but for the keys that `without = ["link.forward.aqm"]` lists.

mod like;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use onramp_files::bounded;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::host::HostSpec;
use crate::link::{LinkSpec, RangeError, TraceError, one_line, within};
use crate::toml_words::{toml_error, toml_reason};

/// Version of the format.
pub const VERSION: u64 = 1;
/// Names of the levels of telemetry, from the lowest.
pub const TELEMETRY_LEVELS: [&str; 4] = ["off", "exit", "round", "ack"];

/// A profile. See `profiles/geo.toml` for a commented one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of the format, 1.
    pub version: u64,
    /// Name: lower-case letters, digits and dashes, 1 to 31 bytes; that of the file.
    pub name: String,
    /// What it stands for, one line.
    pub about: String,
    /// The algorithm that suits the link, by its short name.
    pub algorithm: String,
    /// Maximum telemetry level for flows with these parameters, by its name, one of
    /// [`TELEMETRY_LEVELS`]; none: all that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<String>,
    /// Parameters of the algorithm by name, and tables of parameters by the name of any algorithm.
    #[serde(default)]
    pub params: BTreeMap<String, Params>,
    /// The link.
    pub link: LinkSpec,
    /// The hosts.
    pub host: HostSpec,
}

/// What stands under a key of `[params]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number, a choice by name, true, false, or an algorithm's table of these"
)]
pub enum Params {
    /// A parameter of the profile's algorithm.
    Own(Value),
    /// Parameters of the algorithm that the key names.
    Of(BTreeMap<String, Value>),
}

/// Value of an algorithm's parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a whole number, a choice by name, true or false")]
pub enum Value {
    /// A switch.
    Bool(bool),
    /// A number.
    Integer(i64),
    /// A choice by name.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

/// What can be wrong with a profile.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// The file cannot be read.
    #[error("cannot read profile {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// The text is not a profile.
    #[error("profile {path}: {reason}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        reason: String,
    },
    /// What it says of the profile that it is like is wrong.
    #[error("profile {path}: {message}")]
    Like {
        /// The file.
        path: PathBuf,
        /// Which key, and why.
        message: String,
    },
    /// A value is out of range.
    #[error("profile {path}: {source}")]
    Range {
        /// The file.
        path: PathBuf,
        /// Which one.
        source: RangeError,
    },
    /// A trace file next to the profile is missing or wrong.
    #[error("profile {path}: {source}")]
    Trace {
        /// The profile.
        path: PathBuf,
        /// Which file and line.
        source: TraceError,
    },
}

impl Profile {
    /// What fills the link for a while, bytes: four seconds at its rate and at least seven products of bandwidth and delay, in
    /// full megabytes. Over GEO these are 79 MB, where Ataei Kachooei et al. 2022 have 80.
    pub fn download_bytes(&self) -> u64 {
        (self.link.forward.rate_bps / 2).max(self.link.bdp_bytes() * 7).div_ceil(1_000_000) * 1_000_000
    }

    /// Reads and checks a file, and the trace files it names, whose paths are relative to its directory. There, too, is
    /// the profile that it may be like.
    ///
    /// # Errors
    /// [`ProfileError`] naming the file and the key.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ProfileError> {
        let path = path.as_ref();
        let text =
            bounded::read_text(path).map_err(|source| ProfileError::Read { path: path.into(), source })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let sibling = |name: &str| {
            let other = directory.join(format!("{name}.toml"));
            bounded::read_text(&other).map_err(|error| format!("cannot read {}: {error}", other.display()))
        };
        let mut profile = Self::from_text(&text, path, &sibling)?;
        profile
            .link
            .load_traces(directory)
            .map_err(|source| ProfileError::Trace { path: path.into(), source })?;
        profile.validated(path)
    }

    /// Checks the text of a profile that needs no trace file and is like no other. `path` is what errors call it.
    ///
    /// # Errors
    /// [`ProfileError::Parse`] also for unknown keys, [`ProfileError::Like`], [`ProfileError::Range`].
    pub fn parse(text: &str, path: impl AsRef<Path>) -> Result<Self, ProfileError> {
        Self::parse_among(text, path, |_| None)
    }

    /// The same of a profile that may be like one of these, whose text `find` gives by name.
    ///
    /// # Errors
    /// Those of [`Profile::parse`].
    pub fn parse_among<'a>(
        text: &str,
        path: impl AsRef<Path>,
        find: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, ProfileError> {
        let path = path.as_ref();
        let find =
            |name: &str| find(name).map(str::to_owned).ok_or_else(|| "there is no such profile".to_owned());
        Self::from_text(text, path, &find)?.validated(path)
    }

    fn from_text(text: &str, path: &Path, find: like::Find) -> Result<Self, ProfileError> {
        let failed = |error| ProfileError::Parse { path: path.into(), reason: toml_error(text, &error) };
        let table: toml::Table = toml::from_str(text).map_err(failed)?;
        if !like::is_like(&table) {
            // From the text, because its errors show the line.
            return toml::from_str(text).map_err(failed);
        }
        let table = like::resolve(table, find)
            .map_err(|message| ProfileError::Like { path: path.into(), message })?;
        // Its places are those of neither text.
        table
            .try_into()
            .map_err(|error| ProfileError::Parse { path: path.into(), reason: toml_reason(&error) })
    }

    fn validated(self, path: &Path) -> Result<Self, ProfileError> {
        self.validate().map_err(|source| ProfileError::Range { path: path.into(), source })?;
        Ok(self)
    }

    /// The algorithms that it has parameters for: its own, and those with a table in order of their names.
    pub fn algorithms(&self) -> Vec<&str> {
        let tables = self.params.iter().filter(|(_, params)| matches!(params, Params::Of(_)));
        let others = tables.map(|(name, _)| name.as_str()).filter(|name| *name != self.algorithm);
        std::iter::once(self.algorithm.as_str()).chain(others).collect()
    }

    /// What it says of the parameters of an algorithm: with its own those that stand alone, then those of its table.
    pub fn parameters_of<'a>(&'a self, algorithm: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let own = self.params.iter().filter(move |_| algorithm == self.algorithm);
        let alone = own.filter_map(|(name, params)| match params {
            Params::Own(value) => Some((name.as_str(), value)),
            Params::Of(_) => None,
        });
        let table = match self.params.get(algorithm) {
            Some(Params::Of(table)) => Some(table),
            _ => None,
        };
        alone.chain(table.into_iter().flatten().map(|(name, value)| (name.as_str(), value)))
    }

    /// Checks every value against its range.
    ///
    /// # Errors
    /// [`RangeError`] with the first value that is out of range.
    pub fn validate(&self) -> Result<(), RangeError> {
        within("version".into(), self.version, VERSION..=VERSION)?;
        for (key, name) in [("name", &self.name), ("algorithm", &self.algorithm)] {
            let allowed =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
            if name.is_empty() || name.len() > 31 || !name.bytes().all(allowed) {
                let range = "expected 1 to 31 lower-case letters, digits and dashes";
                return Err(RangeError::new(key, format!("{name:?}"), range));
            }
        }
        one_line("about", &self.about)?;
        if let Some(level) = self.telemetry.as_deref().filter(|level| !TELEMETRY_LEVELS.contains(level)) {
            let range = format!("expected one of {}", TELEMETRY_LEVELS.join(", "));
            return Err(RangeError::new("telemetry", format!("{level:?}"), range));
        }
        self.link.validate("link")?;
        self.host.validate("host")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn directory() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
    }

    /// The files of all shipped profiles.
    fn shipped() -> impl Iterator<Item = PathBuf> {
        let paths = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
        paths.filter(|path| {
            path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with("Cargo.toml")
        })
    }

    fn geo() -> String {
        fs::read_to_string(directory().join("geo.toml")).unwrap()
    }

    #[test]
    fn every_shipped_profile_is_valid_and_named_like_its_file() {
        let mut profiles = 0;
        for path in shipped() {
            let profile = Profile::load(&path).unwrap();
            assert_eq!(Some(profile.name.as_str()), path.file_stem().unwrap().to_str());
            profiles += 1;
        }
        assert!(profiles > 0);
    }

    #[test]
    fn a_level_of_telemetry_is_one_of_four() {
        let with = |level: &str| format!("telemetry = \"{level}\"\n{}", geo());
        for level in TELEMETRY_LEVELS {
            assert_eq!(Profile::parse(&with(level), "x").unwrap().telemetry.as_deref(), Some(level));
        }
        let Err(ProfileError::Range { source, .. }) = Profile::parse(&with("all"), "x") else { panic!() };
        assert_eq!((source.key.as_str(), source.value.as_str()), ("telemetry", "\"all\""));
    }

    #[test]
    fn what_it_stands_for_is_one_line() {
        let about = geo().lines().find(|line| line.starts_with("about = ")).unwrap().to_owned();
        let text = geo().replace(&about, "about = \"a\\u001b[2J\\nb\"");
        let error = Profile::parse(&text, "x.toml").unwrap_err().to_string();
        let said = r#"about = "a\u{1b}[2J\nb" is out of range: expected one line without control characters"#;
        assert!(error.contains(said), "{error}");
    }

    #[test]
    fn geo_is_the_link_of_the_sources() {
        let profile = Profile::parse(&geo(), "geo.toml").unwrap();
        assert_eq!(profile.link.base_rtt_us(), 600_000);
        assert_eq!(profile.link.bdp_bytes(), 11_250_000);
        assert_eq!(profile.link.forward.queue_bytes, Some(36_000_000));
    }

    /// Three packets of 1,500 bytes in the first 10 ms, in two of its milliseconds, and one at the end of the 20 ms.
    #[test]
    fn a_trace_of_mahimahi_is_a_rate_millisecond_by_millisecond() {
        let scratch = tempfile::tempdir().unwrap();
        let rate = "[link.forward.rate]\nkind = \"mahimahi\"\nfile = \"cell.down\"\n\n[link.return]";
        let text = geo().replacen("[link.return]", rate, 1);
        let text = text.replacen("rate_bps = 150_000_000", "rate_bps = 2_400_000", 1);
        let path = scratch.path().join("mine.toml");
        fs::write(&path, &text).unwrap();
        let load = |lines: &str| {
            fs::write(scratch.path().join("cell.down"), lines).unwrap();
            Profile::load(&path)
        };
        let profile = load("3\n3\n7\n20\n").unwrap();
        let rate = profile.link.forward.rate.as_ref().unwrap();
        let (steps, repeat_us) = rate.steps().unwrap();
        let steps: Vec<_> = steps.iter().map(|step| (step.at_us, step.rate_bps)).collect();
        let expected = [(0, 0), (3_000, 24_000_000), (4_000, 0), (7_000, 12_000_000), (8_000, 0)];
        assert_eq!(steps, [&expected[..], &[(19_000, 12_000_000)]].concat());
        assert_eq!((repeat_us, rate.mean_bps()), (Some(20_000), Some(2_400_000)));
        assert_eq!(Profile::parse(&toml::to_string(&profile).unwrap(), "again").unwrap(), profile);
        for (lines, said) in [
            ("3\n", "link.forward.rate_bps = 2400000 is out of range: expected 3960000 to 4040000, the mean"),
            ("0 1\n1 2\n", "cell.down is no trace of mahimahi: it is one of Pensieve"),
            ("4\n3\n", "cell.down is no trace of mahimahi: line 2: 3 ms is before the line above"),
            ("0,1000\n", "cell.down is no trace of mahimahi: line 1: \"0,1000\" is neither a time in ms"),
        ] {
            let error = load(lines).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn traces_are_found_next_to_the_profile_and_bad_rows_are_named() {
        let scratch = tempfile::tempdir().unwrap();
        let trace = "[link.forward.rate]\nkind = \"trace\"\nfile = \"rates.csv\"\nrepeat_us = 2_000_000\n\n";
        let text = geo().replacen("[link.return]", &format!("{trace}[link.return]"), 1);
        let path = scratch.path().join("mine.toml");
        fs::write(&path, &text).unwrap();
        let load = |rows: &str| {
            fs::write(scratch.path().join("rates.csv"), rows).unwrap();
            Profile::load(&path)
        };
        let error = Profile::load(&path).unwrap_err().to_string();
        assert!(error.contains("mine.toml") && error.contains("rates.csv"), "{error}");
        let profile =
            load("time_us,rate_bps,delay_us\n0,100000000,300000\n1000000,200000000,310000\n").unwrap();
        let rate = profile.link.forward.rate.as_ref().unwrap();
        assert_eq!(rate.mean_bps(), Some(150_000_000));
        assert_eq!(profile.link.bdp_bytes(), 11_250_000);
        let error = load("0,100000000\n1000000,fast\n").unwrap_err().to_string();
        assert!(
            error.ends_with("rates.csv, line 2: rate_bps = \"fast\" is not a whole number of at least 0")
        );
        let error = load("0,100000000\n").unwrap_err().to_string();
        assert!(
            error.contains(
                "link.forward.rate_bps = 150000000 is out of range: expected 99000000 to 101000000, the mean"
            ),
            "{error}"
        );
        let error = load("0,150000000,299999\n").unwrap_err().to_string();
        assert!(error.contains("line 1, delay_us = 299999"), "{error}");
        // Text alone has no directory.
        let error = Profile::parse(&text, "built in").unwrap_err().to_string();
        assert!(error.contains("link.forward.rate.file = \"rates.csv\""), "{error}");
    }

    #[test]
    fn queues_of_the_tail_drop_profiles_are_shares_of_the_bdp() {
        for (share, name) in [(100, "geo-tail-drop-100"), (50, "geo-tail-drop-50"), (25, "geo-tail-drop-25")]
        {
            let link = Profile::load(directory().join(format!("{name}.toml"))).unwrap().link;
            assert_eq!(link.forward.queue_bytes, Some(link.bdp_bytes() * share / 100));
            assert_eq!(link.forward.aqm, None);
        }
    }

    #[test]
    fn shipped_profiles_read_in_the_same_words_as_they_are_written() {
        for path in shipped() {
            let profile = Profile::load(&path).unwrap();
            let text = toml::to_string(&profile).unwrap();
            assert_eq!(Profile::parse(&text, &path).unwrap(), profile);
        }
    }

    #[test]
    fn parameters_are_those_of_the_profiles_algorithm_and_of_any_by_its_table() {
        let head = geo().split("algorithm = ").next().unwrap().to_owned();
        let tail = &geo()[geo().find("[link.forward]").unwrap()..];
        let of = |params: &str, algorithm: &str| {
            let profile = Profile::parse(&format!("{head}{params}{tail}"), "x").unwrap();
            let all = profile.parameters_of(algorithm).map(|(name, value)| format!("{name}={value}"));
            (profile.algorithms().join(" "), all.collect::<Vec<_>>().join(" "))
        };
        let several = "algorithm = 'a'\n[params]\nx = 1\n[params.b]\nx = 2\ny = 'z'\n[params.c]\n";
        assert_eq!(of(several, "a"), ("a b c".into(), "x=1".into()));
        assert_eq!(of(several, "b").1, "x=2 y=z");
        assert_eq!((of(several, "c").1, of(several, "d").1), (String::new(), String::new()));
        let both = "algorithm = 'a'\n[params]\nx = 1\n[params.a]\ny = true\n";
        assert_eq!(of(both, "a"), ("a".into(), "x=1 y=true".into()));
        let error =
            Profile::parse(&format!("{head}algorithm = 'a'\nparams.x = 1.5\n{tail}"), "x").unwrap_err();
        assert!(error.to_string().contains("expected a number, a choice by name"), "{error}");
    }

    #[test]
    fn unknown_keys_and_values_out_of_range_are_refused() {
        let error = |from: &str, to: &str| {
            let text = geo();
            assert!(text.contains(from), "{from}");
            Profile::parse(&text.replacen(from, to, 1), "geo.toml").unwrap_err().to_string()
        };
        assert!(error("rate_bps", "rate_mbps").contains("`rate_mbps`"));
        assert!(error("drop_probability", "probability").contains("`probability`"));
        assert!(error("[host]", "[hosts]").contains("`hosts`"));
        let error = error("drop_probability = 0.25", "drop_probability = 25.0");
        assert_eq!(
            error,
            "profile geo.toml: link.forward.aqm.drop_probability = 25 is out of range: expected 0 to 1"
        );
        let error =
            Profile::parse(&geo().replacen("version = 1", "version = 2", 1), "x").unwrap_err().to_string();
        assert_eq!(error, "profile x: version = 2 is out of range: expected 1");
    }
}
