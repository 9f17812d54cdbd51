//! Counts of values by size: in buckets with bounds that were chosen, and in exponential ones, which are fine everywhere
//! (Prometheus calls the latter native).

use std::collections::BTreeMap;

/// Each power of two is divided into `1 << SCALE` exponential buckets at first: 9 % from one to the next.
const SCALE: i32 = 3;
/// Exponential buckets at most; beyond that pairs of them become one.
const BUCKETS_MAX: usize = 160;

#[derive(Clone, Debug)]
pub(in crate::verb::serve::web) struct Histogram {
    /// Upper bounds that were chosen, and how many values lie up to each and above the one before.
    pub classic: Vec<(f64, u64)>,
    pub count: u64,
    pub sum: f64,
    pub scale: i32,
    pub zeros: u64,
    /// Number `n` has the values above `2^((n - 1) / 2^scale)` up to `2^(n / 2^scale)`.
    pub native: BTreeMap<i32, u64>,
}

impl Histogram {
    pub fn new(bounds: &[f64]) -> Self {
        Self {
            classic: bounds.iter().map(|bound| (*bound, 0)).collect(),
            count: 0,
            sum: 0.0,
            scale: SCALE,
            zeros: 0,
            native: BTreeMap::new(),
        }
    }

    /// A value that is zero or more.
    pub fn observe(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        if let Some((_, count)) = self.classic.iter_mut().find(|(bound, _)| value <= *bound) {
            *count += 1;
        }
        if value <= 0.0 {
            self.zeros += 1;
            return;
        }
        *self.native.entry(number(value, self.scale)).or_default() += 1;
        while self.native.len() > BUCKETS_MAX {
            self.scale -= 1;
            let mut halved = BTreeMap::new();
            for (number, count) in std::mem::take(&mut self.native) {
                *halved.entry((number + 1) >> 1).or_default() += count;
            }
            self.native = halved;
        }
    }

    /// Upper bounds, and how many values lie up to each.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        self.classic.iter().scan(0, |sum, (bound, count)| {
            *sum += count;
            Some((*bound, *sum))
        })
    }
}

/// The number of the exponential bucket that a value lies in.
fn number(value: f64, scale: i32) -> i32 {
    (value.log2() * f64::from(scale).exp2()).ceil() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_in_both_kinds_of_buckets() {
        let mut histogram = Histogram::new(&[0.0, 1.0, 2.0]);
        for value in [0.0, 0.5, 1.0, 1.5, 2.0, 7.0] {
            histogram.observe(value);
        }
        assert_eq!(histogram.cumulative().collect::<Vec<_>>(), [(0.0, 1), (1.0, 3), (2.0, 5)]);
        assert_eq!((histogram.count, histogram.sum, histogram.zeros), (6, 12.0, 1));
        // Upper bounds belong to their buckets: 0.5, 1 and 2 are eight buckets apart.
        let numbers: Vec<i32> = histogram.native.keys().copied().collect();
        assert_eq!(numbers, [-8, 0, 5, 8, 23]);
    }

    #[test]
    fn a_value_lies_in_its_exponential_bucket() {
        for exponent in -400..400 {
            let value = f64::from(exponent).mul_add(0.03, 0.0).exp2();
            let number = number(value, SCALE);
            let bound = |number: i32| (f64::from(number) / 8.0).exp2();
            assert!(bound(number - 1) < value && value <= bound(number) * (1.0 + 1e-12), "{value} {number}");
        }
    }

    #[test]
    fn there_are_never_more_than_so_many_exponential_buckets() {
        let mut histogram = Histogram::new(&[]);
        for exponent in -1_000..1_000 {
            histogram.observe(f64::from(exponent).exp2());
        }
        assert!(histogram.native.len() <= BUCKETS_MAX);
        assert!(histogram.scale < 0, "{}", histogram.scale);
        assert_eq!(histogram.native.values().sum::<u64>(), 2_000);
        // What was put together lies where it would have been put.
        let one = number(2.0_f64.powi(-777), histogram.scale);
        assert!(histogram.native.contains_key(&one), "{histogram:?}");
    }
}
