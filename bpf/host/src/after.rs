//! Options of the base for what comes after slow start (`bpf/shell/after.h`).

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::records::AfterExit;
use crate::similar::did_you_mean;

/// The name of no option.
const NONE: &str = "none";

impl AfterExit {
    /// The names of the bases that have it.
    pub fn bases(self) -> &'static [&'static str] {
        match self {
            Self::Plateau => &["cubic"],
            Self::Floor | Self::Probe => &["cubic", "reno"],
        }
    }
}

/// A set of options of the base, as `--after-exit` has it: names separated by commas, `plateau,floor`, or `none`. Where a
/// comma means something else, as in a list of arms, `+` separates them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AfterExitOptions(u32);

impl AfterExitOptions {
    /// All that a base of this name has.
    pub fn of_base(base: &str) -> Self {
        AfterExit::ALL.into_iter().filter(|one| one.bases().contains(&base)).collect()
    }

    /// From a bit for each option, by its number; bits of no option do not count.
    pub fn from_bits(bits: u32) -> Self {
        AfterExit::ALL.into_iter().filter(|one| bits >> *one as u32 & 1 == 1).collect()
    }

    /// A bit for each option, by its number.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The options, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = AfterExit> {
        AfterExit::ALL.into_iter().filter(move |one| self.has(*one))
    }

    /// Whether an option is among them.
    pub fn has(self, option: AfterExit) -> bool {
        self.0 >> option as u32 & 1 == 1
    }

    /// The first option that a base of this name does not have.
    pub fn missing_from(self, base: &str) -> Option<AfterExit> {
        self.iter().find(|one| !one.bases().contains(&base))
    }

    /// As an arm has it, which a comma would end.
    pub fn in_an_arm(self) -> String {
        self.to_string().replace(',', "+")
    }
}

impl FromIterator<AfterExit> for AfterExitOptions {
    fn from_iter<I: IntoIterator<Item = AfterExit>>(options: I) -> Self {
        Self(options.into_iter().fold(0, |bits, one| bits | 1 << one as u32))
    }
}

impl fmt::Display for AfterExitOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(AfterExit::name).collect();
        formatter.write_str(&if names.is_empty() { NONE.to_owned() } else { names.join(",") })
    }
}

impl FromStr for AfterExitOptions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        if text == NONE {
            return Ok(options);
        }
        let names = AfterExit::ALL.map(AfterExit::name);
        for name in text.split([',', '+']) {
            let option = AfterExit::from_name(name).ok_or_else(|| {
                format!(
                    "there is no option {name:?}{}: give {NONE}, or any of {}",
                    did_you_mean(name, names.into_iter()),
                    names.join(",")
                )
            })?;
            if options.has(option) {
                return Err(format!("option {name:?} is given twice"));
            }
            options.0 |= 1 << option as u32;
        }
        Ok(options)
    }
}

impl Serialize for AfterExitOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_of_options_is_read_as_it_is_written() {
        for bits in 0..1 << AfterExit::ALL.len() {
            let options = AfterExitOptions::from_bits(bits);
            assert_eq!(options.bits(), bits);
            assert_eq!(options.to_string().parse(), Ok(options));
            assert_eq!(options.in_an_arm().parse(), Ok(options));
        }
        assert_eq!(AfterExitOptions::from_bits(u32::MAX).iter().count(), AfterExit::ALL.len());
        assert_eq!(AfterExitOptions::default().to_string(), "none");
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_that_there_are() {
        for text in ["", "ceiling", "plateau,", "none,floor", "plateau floor", "floor,floor"] {
            let error = text.parse::<AfterExitOptions>().unwrap_err();
            let named = AfterExit::ALL.into_iter().all(|one| error.contains(one.name()));
            assert!(named || text == "floor,floor", "{text:?}: {error}");
        }
        assert!("platau".parse::<AfterExitOptions>().unwrap_err().contains("plateau"));
    }
}
