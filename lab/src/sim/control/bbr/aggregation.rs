// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Acknowledgments that come together: how many segments more than the rate explains, the most within the last five to ten
//! rounds (`bbr_update_ack_aggregation`). The window is larger by so many, so that sending goes on while none come.

use super::rate::{self, Rate};

/// Rounds of each of the two windows.
const ROUNDS: u32 = 5;
/// An epoch ends with so many segments.
const EPOCH_SEGMENTS: u32 = 1 << 20;
/// No more than the rate delivers in so long, microseconds.
const MOST_US: u64 = 100_000;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aggregation {
    /// When the epoch began, microseconds, and the segments acknowledged in it.
    since_us: u64,
    acked: u32,
    /// The most of either window, which of them is filled, and its rounds.
    most: [u32; 2],
    current: usize,
    rounds: u32,
}

impl Aggregation {
    /// A new epoch.
    pub fn begin(&mut self, now_us: u64) {
        (self.since_us, self.acked) = (now_us, 0);
    }

    /// Segments are acknowledged, at this rate and under this window; `round`: a round begins with them.
    pub fn add(&mut self, acked: u32, now_us: u64, rate: Rate, cwnd: u32, round: bool) {
        if round {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.current ^= 1;
                self.most[self.current] = 0;
            }
        }
        let mut expected = rate::segments_within(rate, now_us - self.since_us);
        if u64::from(self.acked) <= expected || self.acked + acked >= EPOCH_SEGMENTS {
            self.begin(now_us);
            expected = 0;
        }
        self.acked += acked;
        let extra = (u64::from(self.acked) - expected).min(cwnd.into()) as u32;
        self.most[self.current] = self.most[self.current].max(extra);
    }

    /// Segments by which the window is larger (`bbr_ack_aggregation_cwnd`).
    pub fn extra(&self, rate: Rate) -> u32 {
        let most = rate::segments_within(rate, MOST_US);
        u64::from(self.most[0].max(self.most[1])).min(most) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment in so many microseconds, in bunches of so many, for so many rounds of ten bunches; the rate is one each
    /// millisecond.
    fn bunches(aggregation: &mut Aggregation, of: u32, each_us: u64, rounds: u64, from_us: u64) -> u64 {
        let rate = rate::of(1, 1_000);
        let mut now_us = from_us;
        for bunch in 0..10 * rounds {
            now_us += u64::from(of) * each_us;
            aggregation.add(of, now_us, rate, 1_000, bunch % 10 == 0);
        }
        now_us
    }

    #[test]
    fn what_comes_together_is_extra_and_forgotten_after_ten_rounds() {
        let (rate, mut aggregation) = (rate::of(1, 1_000), Aggregation::default());
        let mut now_us = bunches(&mut aggregation, 20, 1_010, 12, 0);
        assert_eq!(aggregation.extra(rate), 20);
        // Slower, which uses up what is extra.
        now_us = bunches(&mut aggregation, 1, 2_000, 4, now_us);
        assert_eq!(aggregation.extra(rate), 20);
        bunches(&mut aggregation, 1, 2_000, 7, now_us);
        assert!(aggregation.extra(rate) <= 2, "{aggregation:?}");
    }

    #[test]
    fn no_more_is_extra_than_a_window_or_than_a_tenth_of_a_second_delivers() {
        let (rate, mut aggregation) = (rate::of(1, 1_000), Aggregation::default());
        aggregation.add(700, 1, rate, 500, true);
        assert_eq!(aggregation.most, [500, 0]);
        assert_eq!(aggregation.extra(rate), 99);
    }
}
