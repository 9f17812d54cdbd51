// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Algorithms and their parameters, as command lines have them.

use std::ffi::OsStr;
use std::fmt;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};
use onramp_algorithm::{self as algorithm, Parameter, Parameters};
use serde::Serialize;

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
