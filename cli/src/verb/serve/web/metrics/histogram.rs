//! Counts of values by size, in buckets with bounds that were chosen.

#[derive(Clone, Debug)]
pub(super) struct Histogram {
    /// Upper bounds, and how many values lie up to each and above the one before.
    buckets: Vec<(f64, u64)>,
    pub count: u64,
    pub sum: f64,
}

impl Histogram {
    pub fn new(bounds: &[f64]) -> Self {
        Self { buckets: bounds.iter().map(|bound| (*bound, 0)).collect(), count: 0, sum: 0.0 }
    }

    /// A value that is zero or more.
    pub fn observe(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        if let Some((_, count)) = self.buckets.iter_mut().find(|(bound, _)| value <= *bound) {
            *count += 1;
        }
    }

    /// Upper bounds, and how many values lie up to each.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        self.buckets.iter().scan(0, |sum, (bound, count)| {
            *sum += count;
            Some((*bound, *sum))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_up_to_each_bound() {
        let mut histogram = Histogram::new(&[0.0, 1.0, 2.0]);
        for value in [0.0, 0.5, 1.0, 1.5, 2.0, 7.0] {
            histogram.observe(value);
        }
        assert_eq!(histogram.cumulative().collect::<Vec<_>>(), [(0.0, 1), (1.0, 3), (2.0, 5)]);
        assert_eq!((histogram.count, histogram.sum), (6, 12.0));
    }
}
