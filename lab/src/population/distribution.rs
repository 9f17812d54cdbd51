// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Distributions of one property.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::link::spec::within;
use crate::link::{Random, RangeError};

/// A distribution: a number, or `{ from, to }` with `scale` and `chance` where they are not the usual ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distribution {
    /// Smallest value.
    pub from: f64,
    /// Largest value.
    pub to: f64,
    /// On which scale values are equally likely.
    pub scale: Scale,
    /// Share of paths that have the property, 0 to 1; the others have 0.
    pub chance: f64,
}

/// See [`Distribution::scale`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal differences are equally likely.
    #[default]
    Linear,
    /// Equal ratios are equally likely.
    Logarithmic,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    from: f64,
    to: f64,
    #[serde(default)]
    scale: Scale,
    #[serde(default = "one")]
    chance: f64,
}

pub(super) fn one() -> f64 {
    1.0
}

impl Distribution {
    /// Always the same value.
    pub const fn constant(value: f64) -> Self {
        Self { from: value, to: value, scale: Scale::Linear, chance: 1.0 }
    }

    /// A value from two numbers in [0, 1).
    pub(super) fn draw(&self, random: &mut Random) -> f64 {
        // Both are always taken, so that changing one part leaves the other as it was.
        let (has, at) = (random.unit(), random.unit());
        if has >= self.chance {
            return 0.0;
        }
        match self.scale {
            Scale::Linear => self.from + (self.to - self.from) * at,
            Scale::Logarithmic => self.from * (self.to / self.from).powf(at),
        }
    }

    /// Checks that all values lie in `range`.
    pub(super) fn validate(&self, key: &str, range: RangeInclusive<f64>) -> Result<(), RangeError> {
        if self.from == self.to {
            within(key.to_owned(), self.from, range.clone())?;
        }
        within(format!("{key}.from"), self.from, range.clone())?;
        within(format!("{key}.to"), self.to, range.clone())?;
        within(format!("{key}.from"), self.from, *range.start()..=self.to)
            .map_err(|error| RangeError { range: format!("{}, the value of to", error.range), ..error })?;
        within(format!("{key}.chance"), self.chance, 0.0..=1.0)?;
        if self.scale == Scale::Logarithmic && self.from <= 0.0 {
            let range = "expected more than 0 on a logarithmic scale";
            return Err(RangeError::new(format!("{key}.from"), self.from, range));
        }
        if self.chance < 1.0 && *range.start() > 0.0 {
            let range = "expected 1: 0 is no value here";
            return Err(RangeError::new(format!("{key}.chance"), self.chance, range));
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Distribution;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number, or { from, to } with scale and chance")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Distribution, E> {
        Ok(Distribution::constant(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Distribution, E> {
        Ok(Distribution::constant(value))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Distribution, A::Error> {
        let Table { from, to, scale, chance } = Table::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Distribution { from, to, scale, chance })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(distribution: Distribution) -> Vec<f64> {
        let mut random = Random::new(1, 1);
        let mut values: Vec<_> = (0..20_000).map(|_| distribution.draw(&mut random)).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    #[test]
    fn values_are_spread_as_the_scale_says() {
        let linear = Distribution { from: 10.0, to: 1_000.0, scale: Scale::Linear, chance: 1.0 };
        let median = values(linear)[10_000];
        // Five standard deviations of the median of 20 000 uniform values: 5 × 990 / (2 √20 000).
        assert!((median - 505.0).abs() < 17.5, "{median}");
        let values = values(Distribution { scale: Scale::Logarithmic, ..linear });
        assert!((values[10_000].log10() - 2.0).abs() < 0.036, "{}", values[10_000]);
        assert!(values[0] >= 10.0 && values[19_999] <= 1_000.0);
    }

    #[test]
    fn a_share_of_paths_has_it() {
        let values = values(Distribution { from: 1.0, to: 2.0, scale: Scale::Linear, chance: 0.3 });
        let share = values.iter().filter(|value| **value > 0.0).count() as f64 / 20_000.0;
        assert!((share - 0.3).abs() < 0.0163, "{share}");
        assert_eq!(Distribution::constant(7.0).draw(&mut Random::new(1, 1)), 7.0);
    }
}
