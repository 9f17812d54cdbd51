//! Times of connections.

use std::time::Duration;

use serde::Serialize;

/// Times in microseconds, in no order.
#[derive(Default)]
pub(super) struct Latency(Vec<u32>);

/// Of some times, microseconds: those that half of them, 99 % of them, and all of them do not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Quantiles {
    pub p50_us: u32,
    pub p99_us: u32,
    pub max_us: u32,
}

impl Latency {
    /// A time, 71 minutes at most.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time.as_micros().try_into().unwrap_or(u32::MAX));
    }

    pub fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// By nearest rank; all 0 of no times.
    pub fn quantiles(mut self) -> Quantiles {
        self.0.sort_unstable();
        let at = |percent: usize| {
            let rank = (self.0.len() * percent).div_ceil(100);
            rank.checked_sub(1).map_or(0, |index| self.0[index])
        };
        Quantiles { p50_us: at(50), p99_us: at(99), max_us: at(100) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_time_that_its_share_does_not_exceed() {
        let mut latency = Latency::default();
        assert_eq!(latency.count(), 0);
        for us in (1..=200).rev() {
            latency.push(Duration::from_micros(us));
        }
        let mut more = Latency::default();
        more.push(Duration::from_secs(10_000));
        let one = Latency(vec![7]);
        assert_eq!(one.quantiles(), Quantiles { p50_us: 7, p99_us: 7, max_us: 7 });
        assert_eq!(Latency::default().quantiles(), Quantiles { p50_us: 0, p99_us: 0, max_us: 0 });
        latency.add(more);
        assert_eq!(latency.quantiles(), Quantiles { p50_us: 101, p99_us: 199, max_us: u32::MAX });
    }
}
