//! The account over time, in at most so many slices.

use super::limit::{Limit, Parts};

/// Width at the begin, microseconds; it doubles when there are too many slices.
const WIDTH_US: u64 = 50_000;
const SLICES: usize = 64;

/// Slices of one width, from the begin of the observation on.
#[derive(Clone, Debug)]
pub(crate) struct Slices {
    width_us: u64,
    slices: Vec<Parts>,
}

impl Default for Slices {
    fn default() -> Self {
        Self { width_us: WIDTH_US, slices: Vec::new() }
    }
}

impl Slices {
    /// Adds the parts of an interval that began so long after the observation.
    pub fn add(&mut self, since_us: u64, parts: &Parts) {
        while since_us / self.width_us >= SLICES as u64 {
            self.widen();
        }
        let at = (since_us / self.width_us) as usize;
        if self.slices.len() <= at {
            self.slices.resize(at + 1, Parts::default());
        }
        self.slices[at].add_all(parts);
    }

    fn widen(&mut self) {
        let pair = |pair: &[Parts]| {
            let mut sum = Parts::default();
            pair.iter().for_each(|parts| sum.add_all(parts));
            sum
        };
        self.slices = self.slices.chunks(2).map(pair).collect();
        self.width_us *= 2;
    }

    pub fn width_us(&self) -> u64 {
        self.width_us
    }

    #[cfg(test)]
    pub fn parts(&self) -> &[Parts] {
        &self.slices
    }

    /// The largest of each slice; `None`: no interval began in it.
    pub fn limits(&self) -> impl Iterator<Item = Option<Limit>> {
        self.slices.iter().map(Parts::largest)
    }
}
