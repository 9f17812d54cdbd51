// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Means with their confidence; quantiles.

use serde::{Deserialize, Serialize};

/// Mean of a sample and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean (Student's t); none for a single value.
    pub ci95: Option<f64>,
    /// Half of the values are no larger (of an even number, the mean of the two in the middle); none where what is only
    /// bounded may be in the middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// Some values are only bounded, so that mean and interval are bounds, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

/// Which way a value may be off that was not measured to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// It is that, or more.
    AtLeast,
}

impl Bound {
    /// Before the value, in text.
    pub fn sign(self) -> &'static str {
        match self {
            Self::AtLeast => "≥ ",
        }
    }
}

impl Summary {
    /// Of these values; `None` if there are none.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        Self::at_least(values.into_iter().map(|value| (value, false)))
    }

    /// Of values of which those that are marked are lower bounds; `None` if there are none.
    pub fn at_least(values: impl IntoIterator<Item = (f64, bool)>) -> Option<Self> {
        let all: Vec<(f64, bool)> = values.into_iter().collect();
        if all.is_empty() {
            return None;
        }
        let values: Vec<f64> = all.iter().map(|(value, _)| *value).collect();
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let ci95 = (n > 1).then(|| student_t95(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt());
        let bound = all.iter().any(|(_, bounded)| *bounded).then_some(Bound::AtLeast);
        Some(Self { n, mean, ci95, median: median_of_bounded(&all), bound })
    }
}

/// Arithmetic mean; NaN if there are none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The value in the middle, of an even number the mean of the two in the middle; NaN if there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count => f64::midpoint(values[(count - 1) / 2], values[count / 2]),
    }
}

/// What is bounded may be anywhere above its bound: the median is known where it lies below all bounds.
fn median_of_bounded(all: &[(f64, bool)]) -> Option<f64> {
    let mut values: Vec<f64> =
        all.iter().map(|(value, bounded)| if *bounded { f64::INFINITY } else { *value }).collect();
    values.sort_by(f64::total_cmp);
    let middle = [values[(values.len() - 1) / 2], values[values.len() / 2]];
    let known =
        |value: f64| value.is_finite() && !all.iter().any(|(limit, bounded)| *bounded && value > *limit);
    middle.into_iter().all(known).then(|| f64::midpoint(middle[0], middle[1]))
}

/// Median, tails and extreme of a sample: of n values in order, the one at place ⌈q n⌉ (nearest rank), so always one of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Half of the values are no larger.
    pub median: f64,
    /// 95 % are no larger.
    pub p95: f64,
    /// 99 % are no larger.
    pub p99: f64,
    /// The largest.
    pub worst: f64,
}

impl Quantiles {
    /// Of these values; `None` if there are none.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let worst = *values.last()?;
        let at = |share: f64| values[((share * values.len() as f64).ceil() as usize).max(1) - 1];
        Some(Self { median: at(0.5), p95: at(0.95), p99: at(0.99), worst })
    }
}

/// Two-sided 95 % quantile of Student's t. Between the tabled degrees of freedom the next lower one is taken, which
/// makes the interval a little too wide rather than too narrow.
fn student_t95(degrees: usize) -> f64 {
    const TABLE: [(usize, f64); 35] = [
        (1, 12.706),
        (2, 4.303),
        (3, 3.182),
        (4, 2.776),
        (5, 2.571),
        (6, 2.447),
        (7, 2.365),
        (8, 2.306),
        (9, 2.262),
        (10, 2.228),
        (11, 2.201),
        (12, 2.179),
        (13, 2.160),
        (14, 2.145),
        (15, 2.131),
        (16, 2.120),
        (17, 2.110),
        (18, 2.101),
        (19, 2.093),
        (20, 2.086),
        (21, 2.080),
        (22, 2.074),
        (23, 2.069),
        (24, 2.064),
        (25, 2.060),
        (26, 2.056),
        (27, 2.052),
        (28, 2.048),
        (29, 2.045),
        (30, 2.042),
        (40, 2.021),
        (60, 2.000),
        (120, 1.980),
        (1_000, 1.962),
        (100_000, 1.960),
    ];
    TABLE.iter().take_while(|(tabled, _)| *tabled <= degrees).last().map_or(f64::INFINITY, |(_, t)| *t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_a_known_sample() {
        // Mean 3, standard deviation 1.5811, t(4) = 2.776: half width 1.963.
        let summary = Summary::new([1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((summary.n, summary.mean), (5, 3.0));
        assert!((summary.ci95.unwrap() - 1.963).abs() < 0.001);
    }

    #[test]
    fn the_median_is_the_middle_or_between_the_two() {
        assert_eq!(median([3.0, 1.0, 100.0]), 3.0);
        assert_eq!(median([4.0, 1.0, 100.0, 2.0]), 3.0);
        assert!(median([]).is_nan());
    }

    #[test]
    fn quantiles_are_values_of_the_sample() {
        let quantiles = Quantiles::new((1..=200).rev().map(f64::from)).unwrap();
        assert_eq!(quantiles, Quantiles { median: 100.0, p95: 190.0, p99: 198.0, worst: 200.0 });
        let one = Quantiles::new([7.0]).unwrap();
        assert_eq!((one.median, one.p99, one.worst), (7.0, 7.0, 7.0));
        assert_eq!(Quantiles::new([]), None);
    }

    #[test]
    fn a_median_is_known_where_what_is_bounded_lies_beyond() {
        let of_bounded = |values: &[(f64, bool)]| Summary::at_least(values.iter().copied()).unwrap().median;
        assert_eq!(of_bounded(&[(1.0, false), (2.0, false), (4.0, false), (9.0, false)]), Some(3.0));
        assert_eq!(of_bounded(&[(1.0, false), (2.0, false), (9.0, true)]), Some(2.0));
        assert_eq!(of_bounded(&[(1.0, false), (9.0, true)]), None);
        assert_eq!(of_bounded(&[(1.0, false), (5.0, false), (3.0, true)]), None, "it may be 4");
    }

    #[test]
    fn few_values() {
        assert_eq!(Summary::new([]), None);
        let one = Summary { n: 1, mean: 7.0, ci95: None, median: Some(7.0), bound: None };
        assert_eq!(Summary::new([7.0]), Some(one));
        assert_eq!(student_t95(35), 2.042);
        assert_eq!(student_t95(1_000_000), 1.960);
    }
}
