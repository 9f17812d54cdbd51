// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Algorithms and their parameters, as command lines have them.

use std::ffi::OsStr;
use std::fmt;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command};
use onramp_algorithm::{self as algorithm, Parameter, Parameters};
use onramp_terminal::failure::Usage;
use serde::Serialize;

use crate::lookup;

/// An algorithm's name, that of its congestion control, or the path of an object from outside the tree: offered by completion, checked by the verb, which says what
/// there is. The value is the algorithm's name where there is one.
#[derive(Clone)]
pub struct AlgorithmName;

impl TypedValueParser for AlgorithmName {
    type Value = String;

    fn parse_ref(&self, _: &Command, _: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        let given = value.to_string_lossy();
        Ok(algorithm::find(&given).map_or_else(|| given.into_owned(), |known| known.name().to_owned()))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(algorithm::all().map(|one| PossibleValue::new(one.name()).help(one.about()))))
    }
}

/// Algorithms to be replayed, and what is set of their parameters.
#[derive(Args, Clone, Debug, Default)]
pub struct Chosen {
    /// Algorithms; `onramp list` shows them [default: the profile's]
    #[arg(short, long, value_name = "ALG,…", value_parser = AlgorithmName, hide_possible_values = true, value_delimiter = ',', required_unless_present = "profile")]
    pub algorithm: Vec<String>,
    /// Take parameters from this profile: a path, or a name in /etc/onramp/profiles or built in
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Set a parameter: NAME=VALUE for all algorithms, ALG.NAME=VALUE for one
    #[arg(long = "set", value_name = "[ALG.]NAME=VALUE")]
    pub settings: Vec<String>,
    /// Try every value: NAME=VALUE,VALUE,… or NAME=FROM:TO:STEP; several sweeps make all combinations
    #[arg(long, value_name = "[ALG.]NAME=VALUES")]
    pub sweep: Vec<String>,
}

impl Chosen {
    /// Algorithms and settings, those of the profile first.
    ///
    /// # Errors
    /// A parameter is given twice; the profile is not there, is wrong, or is for other algorithms.
    pub fn wanted(&self) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        self.check_once()?;
        let (mut algorithms, mut settings) = (self.algorithm.clone(), Vec::new());
        if let Some(name) = &self.profile {
            let profile = lookup::load(name)?;
            if algorithms.is_empty() {
                algorithms.push(profile.algorithm.clone());
            }
            let of_profile = lookup::parameters(&profile)?;
            let used =
                of_profile.iter().filter(|of| algorithms.iter().any(|name| name == of.algorithm().name()));
            for parameters in used {
                let algorithm = parameters.algorithm().name();
                settings
                    .extend(parameters.shown().map(|(name, value)| format!("{algorithm}.{name}={value}")));
            }
            if settings.is_empty() && !algorithms.contains(&profile.algorithm) {
                return Err(Usage::error(format!(
                    "profile {name} has nothing for {}: it is for {}",
                    algorithms.join(", "),
                    profile.algorithms().join(" and ")
                )));
            }
        }
        settings.extend(self.settings.iter().cloned());
        Ok((algorithms, settings))
    }

    fn check_once(&self) -> anyhow::Result<()> {
        let mut given = Vec::new();
        for setting in self.settings.iter().chain(&self.sweep) {
            let name = setting.split('=').next().unwrap_or(setting).trim();
            if given.contains(&name) {
                return Err(Usage::error(format!("{name} is given twice: leave one --set or --sweep out")));
            }
            given.push(name);
        }
        Ok(())
    }
}

/// A parameter's value: the name of a choice, or a number.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// By its name.
    Choice(&'static str),
    /// As it is.
    Number(u64),
}

impl Value {
    /// This value of this parameter.
    pub fn new(parameter: &Parameter, value: u64) -> Self {
        parameter.choices.get(value as usize).map_or(Self::Number(value), |choice| Self::Choice(choice))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Choice(choice) => formatter.write_str(choice),
            Self::Number(number) => number.fmt(formatter),
        }
    }
}

/// The settings that make `to` of `from`, both of one algorithm.
pub fn changes(from: &Parameters, to: &Parameters) -> Vec<String> {
    let changed = to.changed_from(from);
    changed.map(|(parameter, value)| format!("{}={}", parameter.name, parameter.show(value))).collect()
}
