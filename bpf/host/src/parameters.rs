//! Values of an algorithm's parameters, validated against the header's declaration.

use crate::algorithm::Algorithm;
use crate::contract::ParameterRow;
use crate::ffi;
use crate::similar::similar;

/// The declaration of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name, in `snake_case`, with the unit where it has one.
    pub name: &'static str,
    /// Unit; empty for a choice or a bare number.
    pub unit: &'static str,
    /// Value unless set.
    pub default: u64,
    /// Smallest value allowed.
    pub minimum: u64,
    /// Largest value allowed.
    pub maximum: u64,
    /// Names of the values from 0 on; empty for a number.
    pub choices: Vec<&'static str>,
    /// What it does.
    pub help: &'static str,
}

impl From<&ParameterRow> for Parameter {
    fn from(row: &ParameterRow) -> Self {
        Self {
            name: ffi::text(row.name),
            unit: ffi::text(row.unit),
            default: row.def,
            minimum: row.min,
            maximum: row.max,
            choices: ffi::text(row.choices).split('|').filter(|choice| !choice.is_empty()).collect(),
            help: ffi::text(row.help),
        }
    }
}

impl Parameter {
    /// A value as it is typed and shown: the name of a choice, else the number.
    pub fn show(&self, value: u64) -> String {
        match self.choices.get(value as usize) {
            Some(choice) => (*choice).to_owned(),
            None => value.to_string(),
        }
    }

    /// What may be typed: `a|b|c`, or `1..100 percent`.
    pub fn allowed(&self) -> String {
        if !self.choices.is_empty() {
            return self.choices.join("|");
        }
        let unit = if self.unit.is_empty() { "" } else { " " };
        format!("{}..{}{unit}{}", self.minimum, self.maximum, self.unit)
    }

    fn parse(&self, algorithm: &'static str, text: &str) -> Result<u64, ParameterError> {
        let bad = || ParameterError::Value {
            algorithm,
            parameter: self.name,
            value: text.to_owned(),
            allowed: self.allowed(),
        };
        if !self.choices.is_empty() {
            let choice = self.choices.iter().position(|choice| *choice == text).ok_or_else(bad)?;
            return Ok(choice as u64);
        }
        let value = text.parse().map_err(|_| bad())?;
        if !(self.minimum..=self.maximum).contains(&value) {
            return Err(bad());
        }
        Ok(value)
    }
}

/// Why a parameter was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterError {
    /// The algorithm has no parameter of this name.
    Unknown {
        /// The algorithm's name.
        algorithm: &'static str,
        /// What was asked for.
        parameter: String,
        /// The names that exist, separated by commas; empty: it has none.
        known: String,
        /// The one that may have been meant.
        meant: Option<&'static str>,
    },
    /// Not a value of this parameter: wrong type, unknown choice or out of range.
    Value {
        /// The algorithm's name.
        algorithm: &'static str,
        /// The parameter's name.
        parameter: &'static str,
        /// What was given.
        value: String,
        /// What may be given.
        allowed: String,
    },
    /// Set a second time.
    Twice {
        /// The algorithm's name.
        algorithm: &'static str,
        /// The parameter's name.
        parameter: String,
    },
    /// Not of the form `name=value`.
    Assignment {
        /// What was given.
        text: String,
    },
}

impl std::fmt::Display for ParameterError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown { algorithm, parameter, known, .. } if known.is_empty() => {
                write!(formatter, "{algorithm} has no parameter {parameter:?}: it has none at all")
            }
            Self::Unknown { algorithm, parameter, known, meant } => {
                let hint = meant.map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"));
                write!(formatter, "{algorithm} has no parameter {parameter:?}{hint}; it has {known}")
            }
            Self::Value { algorithm, parameter, value, allowed } => {
                write!(formatter, "{algorithm} {parameter}={value} is not allowed: give {allowed}")
            }
            Self::Twice { algorithm, parameter } => {
                write!(formatter, "{algorithm} {parameter} is given twice: leave one of them out")
            }
            Self::Assignment { text } => {
                write!(
                    formatter,
                    "{text:?} is not a parameter setting: write name=value, for instance threshold_pct=30"
                )
            }
        }
    }
}

impl std::error::Error for ParameterError {}

/// One full set of parameter values of one algorithm; every value in it is valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    algorithm: Algorithm,
    values: Vec<u64>,
}

impl Parameters {
    pub(crate) fn defaults(algorithm: Algorithm) -> Self {
        Self { algorithm, values: algorithm.declarations().map(|parameter| parameter.default).collect() }
    }

    /// The algorithm these are for.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Sets one parameter from its text.
    ///
    /// # Errors
    /// [`ParameterError::Unknown`] or [`ParameterError::Value`]; nothing is changed then.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), ParameterError> {
        let index = self.index(name)?;
        let declaration = self.algorithm.declarations().nth(index);
        if let (Some(declaration), Some(value)) = (declaration, self.values.get_mut(index)) {
            *value = declaration.parse(self.algorithm.name(), text)?;
        }
        Ok(())
    }

    /// Applies `name=value` settings, all or none, each parameter at most once.
    ///
    /// # Errors
    /// The first setting that is not valid; nothing is changed then.
    pub fn assign<S: AsRef<str>>(
        &mut self,
        settings: impl IntoIterator<Item = S>,
    ) -> Result<(), ParameterError> {
        let (mut changed, mut given) = (self.clone(), Vec::new());
        for setting in settings {
            let text = setting.as_ref();
            let (name, value) =
                text.split_once('=').ok_or_else(|| ParameterError::Assignment { text: text.to_owned() })?;
            let index = self.index(name.trim())?;
            if given.contains(&index) {
                let (algorithm, parameter) = (self.algorithm.name(), name.trim().to_owned());
                return Err(ParameterError::Twice { algorithm, parameter });
            }
            given.push(index);
            changed.set(name.trim(), value.trim())?;
        }
        *self = changed;
        Ok(())
    }

    /// The value of one parameter.
    ///
    /// # Errors
    /// [`ParameterError::Unknown`].
    pub fn get(&self, name: &str) -> Result<u64, ParameterError> {
        Ok(self.values[self.index(name)?])
    }

    /// Declarations with their values.
    pub fn iter(&self) -> impl Iterator<Item = (Parameter, u64)> {
        self.algorithm.declarations().zip(self.values.iter().copied())
    }

    /// Parameters that have another value than in `from`, which are of the same algorithm.
    pub fn changed_from(&self, from: &Self) -> impl Iterator<Item = (Parameter, u64)> {
        let both = self.iter().zip(&from.values);
        both.filter(|((_, value), before)| value != *before).map(|(changed, _)| changed)
    }

    /// Names, with values as they are typed and shown.
    pub fn shown(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.iter().map(|(parameter, value)| (parameter.name, parameter.show(value)))
    }

    /// The values as the algorithm reads them: one `u64` each, in order; a single 0 if it has none.
    pub fn to_words(&self) -> Vec<u64> {
        if self.values.is_empty() { vec![0] } else { self.values.clone() }
    }

    /// Values read back from [`Parameters::to_words`]' form; `None` if there are too few.
    pub fn from_words(algorithm: Algorithm, words: &[u64]) -> Option<Self> {
        let count = algorithm.declarations().len();
        Some(Self { algorithm, values: words.get(..count)?.to_vec() })
    }

    /// The parameter whose name is like this one, or whose help has it as a word, as sources' names are given.
    fn meant(&self, name: &str) -> Option<&'static str> {
        let names = || self.algorithm.declarations().map(|parameter| parameter.name);
        let helps = |parameter: &Parameter| {
            parameter.help.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == name)
        };
        let by_help = || self.algorithm.declarations().find(helps).map(|parameter| parameter.name);
        similar(name, names()).or_else(by_help)
    }

    fn index(&self, name: &str) -> Result<usize, ParameterError> {
        self.algorithm.declarations().position(|parameter| parameter.name == name).ok_or_else(|| {
            ParameterError::Unknown {
                algorithm: self.algorithm.name(),
                parameter: name.to_owned(),
                known: self
                    .algorithm
                    .declarations()
                    .map(|parameter| parameter.name)
                    .collect::<Vec<_>>()
                    .join(", "),
                meant: self.meant(name),
            }
        })
    }
}

impl Algorithm {
    /// Its parameters at their defaults.
    pub fn parameters(&self) -> Parameters {
        Parameters::defaults(*self)
    }

    /// The declarations of its parameters, in the order of their values.
    pub fn declarations(&self) -> impl ExactSizeIterator<Item = Parameter> + use<> {
        ffi::slice(self.row.parameters, self.row.parameter_count).iter().map(Parameter::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{all, find};

    #[test]
    fn a_bad_setting_among_good_ones_changes_nothing() {
        let mut parameters = find("search").unwrap().parameters();
        let before = parameters.clone();
        let error = parameters.assign(["threshold_pct=30", "threshold_pct = 31"]).unwrap_err();
        assert!(matches!(&error, ParameterError::Twice { parameter, .. } if parameter == "threshold_pct"));
        let error = parameters.assign(["threshold_pct=30", "look_back=sideways"]).unwrap_err();
        assert_eq!(parameters, before);
        assert_eq!(error.to_string(), "search look_back=sideways is not allowed: give latest|smoothed|min");
    }

    #[test]
    fn ranges_types_and_names_are_checked_with_what_is_allowed() {
        let mut parameters = find("search").unwrap().parameters();
        for bad in ["threshold_pct=101", "threshold_pct=-1", "threshold_pct=many", "threshold_pct="] {
            let error = parameters.assign([bad]).unwrap_err().to_string();
            assert!(error.contains("0..100 percent"), "{error}");
        }
        let error = parameters.assign(["treshold_pct=3"]).unwrap_err().to_string();
        assert!(error.contains("form, threshold_pct"), "{error}");
        assert!(matches!(parameters.assign(["threshold_pct"]), Err(ParameterError::Assignment { .. })));
        let plain = find("plain").unwrap().parameters().assign(["a=1"]).unwrap_err().to_string();
        assert!(plain.contains("none at all"), "{plain}");
    }

    #[test]
    fn the_name_of_every_parameter_ends_with_its_unit() {
        let unit_of = |name: &str| {
            let units = [
                ("_bytes_per_s", "bytes/s"),
                ("_bytes", "bytes"),
                ("_us", "us"),
                ("_pct", "percent"),
                ("_segments", "segments"),
                ("_samples", "samples"),
                ("_rounds", "rounds"),
                ("_bins", "bins"),
                ("_rtts", "initial RTTs"),
            ];
            units.iter().find(|(end, _)| name.ends_with(end)).map_or("", |(_, unit)| *unit)
        };
        for algorithm in all() {
            for parameter in algorithm.declarations().filter(|parameter| parameter.choices.is_empty()) {
                assert_eq!(
                    unit_of(parameter.name),
                    parameter.unit,
                    "{} {}",
                    algorithm.name(),
                    parameter.name
                );
            }
        }
    }

    #[test]
    fn a_name_without_its_unit_or_of_the_source_is_answered_with_the_parameters_own() {
        for (algorithm, given, meant) in [
            ("spacing", "rate", "rate_bytes_per_s"),
            ("search", "alpha", "missed_bins_rtts"),
            ("hystart", "low_window", "low_window_segments"),
            ("spacing", "min_rate", "min_rate_bytes_per_s"),
            ("best", "min_rate", "min_rate_bytes_per_s"),
            ("inflight", "stab", "headroom_segments"),
        ] {
            let error = find(algorithm).unwrap().parameters().set(given, "1").unwrap_err();
            assert!(
                matches!(error, ParameterError::Unknown { meant: Some(name), .. } if name == meant),
                "{error}"
            );
        }
        let error = find("best").unwrap().parameters().set("qqqq", "1").unwrap_err();
        assert!(matches!(error, ParameterError::Unknown { meant: None, .. }), "{error}");
    }

    #[test]
    fn words_keep_the_values() {
        let mut parameters = find("search").unwrap().parameters();
        parameters.assign(["exit_action=drain", "threshold_pct=100"]).unwrap();
        let back = Parameters::from_words(parameters.algorithm(), &parameters.to_words()).unwrap();
        assert_eq!(back, parameters);
        assert_eq!(back.get("exit_action"), Ok(2));
        assert!(Parameters::from_words(parameters.algorithm(), &[1]).is_none());
    }
}
