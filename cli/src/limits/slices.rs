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
    /// Adds the parts of an interval that began so long after the observation, to each slice by the time that it shares.
    pub fn add(&mut self, since_us: u64, parts: &Parts) {
        let time_us = parts.total();
        let last_us = since_us.saturating_add(time_us.saturating_sub(1));
        while last_us / self.width_us >= SLICES as u64 {
            self.widen();
        }
        let [first, last] = [since_us, last_us].map(|us| (us / self.width_us) as usize);
        if self.slices.len() <= last {
            self.slices.resize(last + 1, Parts::default());
        }
        // The first has what the others leave, so that nothing is lost.
        let mut rest = *parts;
        for at in first + 1..=last {
            let begin_us = at as u64 * self.width_us;
            let shared_us = self.width_us.min(last_us - begin_us + 1);
            let share = parts.share(shared_us, time_us);
            self.slices[at].add_all(&share);
            rest.take(&share);
        }
        self.slices[first].add_all(&rest);
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

    /// The largest of each slice; `None`: no interval has time in it.
    pub fn limits(&self) -> impl Iterator<Item = Option<Limit>> {
        self.slices.iter().map(Parts::largest)
    }
}
