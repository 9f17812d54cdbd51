//! Sets of named options: those of the base after slow start (`bpf/shell/after.h`), and what is done at the start (`bpf/start`).

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::Algorithm;
use crate::records::{AfterExit, StartPolicy};
use crate::similar::did_you_mean;

/// An option of which there can be a set.
pub trait Named: Copy + PartialEq + Serialize + 'static {
    /// All there are, in the order of their numbers.
    const EVERY: &'static [Self];
    /// The name of the empty set.
    const NONE: &'static str;
    /// What is written between two of them.
    const BETWEEN: char;

    /// Its name.
    fn name(self) -> &'static str;
    /// The number of its bit.
    fn number(self) -> u32;
    /// The names of the bases that have it.
    fn bases(self) -> &'static [&'static str];
    /// Whether it is done in place of another.
    fn excludes(self, other: Self) -> bool;
    /// What an algorithm of this name has where nothing is asked for, over bases that have it.
    fn usual(algorithm: &str) -> &'static [Self];
}

macro_rules! named {
    ($type:ty, $none:literal, $between:literal) => {
        impl Named for $type {
            const EVERY: &'static [Self] = &Self::ALL;
            const NONE: &'static str = $none;
            const BETWEEN: char = $between;

            fn name(self) -> &'static str {
                self.name()
            }

            fn number(self) -> u32 {
                self as u32
            }

            fn bases(self) -> &'static [&'static str] {
                self.bases()
            }

            fn excludes(self, other: Self) -> bool {
                self.excludes(other)
            }

            fn usual(algorithm: &str) -> &'static [Self] {
                Self::usual(algorithm)
            }
        }
    };
}
named!(AfterExit, "none", ',');
named!(StartPolicy, "double", '+');

impl AfterExit {
    /// The names of the bases that have it.
    pub fn bases(self) -> &'static [&'static str] {
        match self {
            Self::Plateau => &["cubic"],
            Self::Floor | Self::Probe => &["cubic", "reno"],
        }
    }

    /// None is done in place of another.
    pub fn excludes(self, _: Self) -> bool {
        false
    }

    /// `ramp` has the floor, by the evidence in `docs/after-exit.md`.
    pub fn usual(algorithm: &str) -> &'static [Self] {
        if algorithm == "ramp" { &[Self::Floor] } else { &[] }
    }
}

impl StartPolicies {
    /// What is done where a path is known by a rule, and nothing else is asked for: all that uses what is remembered.
    pub fn of_memory() -> Self {
        [StartPolicy::Resume, StartPolicy::Window].into_iter().collect()
    }

    /// Whether any of it uses what is remembered of paths.
    pub fn remembers(self) -> bool {
        self.bits() & Self::of_memory().bits() != 0
    }
}

impl StartPolicy {
    /// The names of the bases that have it.
    pub fn bases(self) -> &'static [&'static str] {
        &["cubic", "reno"]
    }

    /// Whether it is done in place of another: a path that is not remembered is met by one of them.
    pub fn excludes(self, other: Self) -> bool {
        let first_visits = [Self::Fast, Self::Suss];
        self != other && first_visits.contains(&self) && first_visits.contains(&other)
    }

    /// `ramp` has SUSS, by the evidence in `docs/start.md`.
    pub fn usual(algorithm: &str) -> &'static [Self] {
        if algorithm == "ramp" { &[Self::Suss] } else { &[] }
    }
}

/// Options of the base, as `--after-exit` has them: `plateau,floor`, or `none`.
pub type AfterExitOptions = Options<AfterExit>;

/// What is done at the start, as `--start` has it: `resume+window`, or `double`.
pub type StartPolicies = Options<StartPolicy>;

/// A set of options: names separated by commas or `+`, or the name of none. Where a comma means something else, as in a list of
/// arms, `+` separates them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options<T>(u32, PhantomData<T>);

impl<T> Default for Options<T> {
    fn default() -> Self {
        Self(0, PhantomData)
    }
}

impl<T: Named> Options<T> {
    /// What an algorithm has over a base of this name where nothing is asked for.
    pub fn usual(algorithm: Algorithm, base: &str) -> Self {
        T::usual(algorithm.name()).iter().copied().filter(|one| one.bases().contains(&base)).collect()
    }

    /// All that a base of this name has; of what is done in place of each other the first.
    pub fn of_base(base: &str) -> Self {
        let of_base = T::EVERY.iter().filter(|one| one.bases().contains(&base));
        of_base.fold(Self::default(), |options, &one| {
            let replaced = options.iter().any(|other| one.excludes(other));
            if replaced { options } else { options.iter().chain([one]).collect() }
        })
    }

    /// From a bit for each option, by its number; bits of no option do not count.
    pub fn from_bits(bits: u32) -> Self {
        T::EVERY.iter().copied().filter(|one| bits >> one.number() & 1 == 1).collect()
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
    pub fn iter(self) -> impl Iterator<Item = T> {
        T::EVERY.iter().copied().filter(move |one| self.has(*one))
    }

    /// Whether an option is among them.
    pub fn has(self, option: T) -> bool {
        self.0 >> option.number() & 1 == 1
    }

    /// The first option that a base of this name does not have.
    pub fn missing_from(self, base: &str) -> Option<T> {
        self.iter().find(|one| !one.bases().contains(&base))
    }

    /// As an arm has it, which a comma would end.
    pub fn in_an_arm(self) -> String {
        self.to_string().replace(',', "+")
    }
}

impl<T: Named> FromIterator<T> for Options<T> {
    fn from_iter<I: IntoIterator<Item = T>>(options: I) -> Self {
        Self(options.into_iter().fold(0, |bits, one| bits | 1 << one.number()), PhantomData)
    }
}

impl<T: Named> fmt::Display for Options<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(T::name).collect();
        let written = if names.is_empty() { T::NONE.into() } else { names.join(&T::BETWEEN.to_string()) };
        formatter.write_str(&written)
    }
}

impl<T: Named> FromStr for Options<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        if text == T::NONE {
            return Ok(options);
        }
        for name in text.split([',', '+']) {
            let names = || T::EVERY.iter().map(|one| one.name());
            let option = T::EVERY.iter().copied().find(|one| one.name() == name).ok_or_else(|| {
                let all: Vec<_> = names().collect();
                let none = T::NONE;
                let all = all.join(&T::BETWEEN.to_string());
                let what = if name == none {
                    format!("{none:?} stands alone")
                } else {
                    format!("there is no option {name:?}{}", did_you_mean(name, names().chain([none])))
                };
                format!("{what}: give {none}, or any of {all}")
            })?;
            if options.has(option) {
                return Err(format!("option {name:?} is given twice"));
            }
            if let Some(other) = options.iter().find(|other| option.excludes(*other)) {
                return Err(format!(
                    "option {name:?} is done in place of {:?}: give one of them",
                    other.name()
                ));
            }
            options.0 |= 1 << option.number();
        }
        Ok(options)
    }
}

impl<T: Named> Serialize for Options<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as_written<T: Named + fmt::Debug>() {
        for bits in 0..1 << T::EVERY.len() {
            let options = Options::<T>::from_bits(bits);
            if options.iter().any(|one| options.iter().any(|other| one.excludes(other))) {
                assert!(options.to_string().parse::<Options<T>>().unwrap_err().contains("in place of"));
                continue;
            }
            assert_eq!(options.bits(), bits);
            assert_eq!(options.to_string().parse(), Ok(options));
            assert_eq!(options.in_an_arm().parse(), Ok(options));
        }
        assert_eq!(Options::<T>::from_bits(u32::MAX).iter().count(), T::EVERY.len());
    }

    #[test]
    fn every_set_of_options_is_read_as_it_is_written() {
        read_as_written::<AfterExit>();
        read_as_written::<StartPolicy>();
        assert_eq!(AfterExitOptions::default().to_string(), "none");
        assert_eq!(StartPolicies::default().to_string(), "double");
        assert_eq!(StartPolicies::from_bits(3).to_string(), "resume+window");
    }

    #[test]
    fn ramp_alone_has_options_unasked_over_bases_that_have_them() {
        for algorithm in crate::all() {
            for base in ["cubic", "reno", "bbr", "tahoe"] {
                let has = algorithm.name() == "ramp" && ["cubic", "reno"].contains(&base);
                let (after_exit, start) = if has { ("floor", "suss") } else { ("none", "double") };
                assert_eq!(AfterExitOptions::usual(algorithm, base).to_string(), after_exit, "{base}");
                assert_eq!(StartPolicies::usual(algorithm, base).to_string(), start, "{base}");
            }
        }
    }

    fn refused<T: Named + fmt::Debug>(text: &str) {
        let error = text.parse::<Options<T>>().unwrap_err();
        let twice = error.contains("twice");
        assert!(twice || T::EVERY.iter().all(|one| error.contains(one.name())), "{text:?}: {error}");
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_that_there_are() {
        for text in ["", "ceiling", "plateau,", "none,floor", "plateau floor", "floor,floor"] {
            refused::<AfterExit>(text);
        }
        for text in ["", "quick", "resume+", "double+window", "resume window", "window+window"] {
            refused::<StartPolicy>(text);
        }
        assert!("none,floor".parse::<AfterExitOptions>().unwrap_err().contains("stands alone"));
        assert!("platau".parse::<AfterExitOptions>().unwrap_err().contains("plateau"));
        assert!("double2".parse::<StartPolicies>().unwrap_err().contains("\"double\""));
    }
}
