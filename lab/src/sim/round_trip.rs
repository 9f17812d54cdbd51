// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Round-trip times and the retransmission timeout (RFC 6298), with the variance as Linux keeps it: it rises at once
//! and falls once a round, and is never less than the smallest timeout.

/// What the timeout is above the smoothed round-trip time, at least, microseconds.
pub const LEAST_VARIANCE_US: u32 = 200_000;
/// Most a timeout can be, microseconds.
const MOST_TIMEOUT_US: u64 = 120_000_000;

/// Times in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip {
    /// Smoothed, eight times; 0: none yet.
    pub smoothed_eighths_us: u32,
    /// Mean deviation, four times.
    deviation_quarters_us: u32,
    /// Largest of this round.
    most_deviation_us: u32,
    /// What the timeout adds.
    variance_us: u32,
    /// The round ends when this segment is acknowledged.
    round_ends: u32,
    least_us: Option<u32>,
}

impl RoundTrip {
    /// A sample; `acknowledged` and `next` are the first segment that is not acknowledged and not sent.
    pub fn sample(&mut self, rtt_us: u32, acknowledged: u32, next: u32) {
        if self.smoothed_eighths_us == 0 {
            self.smoothed_eighths_us = rtt_us.max(1) << 3;
            self.deviation_quarters_us = rtt_us << 1;
            self.variance_us = self.deviation_quarters_us.max(LEAST_VARIANCE_US);
            self.most_deviation_us = self.variance_us;
            self.round_ends = next;
            return;
        }
        let error = i64::from(rtt_us) - i64::from(self.smoothed_eighths_us >> 3);
        self.smoothed_eighths_us = (i64::from(self.smoothed_eighths_us) + error).max(1) as u32;
        let mut deviation = error.abs() - i64::from(self.deviation_quarters_us >> 2);
        if error < 0 && deviation > 0 {
            // A fall of the round-trip time should not raise the timeout much.
            deviation >>= 3;
        }
        self.deviation_quarters_us = (i64::from(self.deviation_quarters_us) + deviation).max(0) as u32;
        if self.deviation_quarters_us > self.most_deviation_us {
            self.most_deviation_us = self.deviation_quarters_us;
            self.variance_us = self.variance_us.max(self.most_deviation_us);
        }
        if acknowledged > self.round_ends {
            if self.most_deviation_us < self.variance_us {
                self.variance_us -= (self.variance_us - self.most_deviation_us) >> 2;
            }
            self.round_ends = next;
            self.most_deviation_us = LEAST_VARIANCE_US;
        }
    }

    /// A sample for the minimum.
    pub fn sample_least(&mut self, rtt_us: u32) {
        self.least_us = Some(self.least_us.map_or(rtt_us, |least| least.min(rtt_us)));
    }

    /// Smoothed; 0: none yet.
    pub fn smoothed_us(&self) -> u32 {
        self.smoothed_eighths_us >> 3
    }

    /// Smallest so far. The kernel forgets it after five minutes.
    pub fn least_us(&self) -> Option<u32> {
        self.least_us
    }

    /// Retransmission timeout without backing off.
    pub fn timeout_us(&self) -> u64 {
        if self.smoothed_eighths_us == 0 {
            return 1_000_000;
        }
        (u64::from(self.smoothed_us()) + u64::from(self.variance_us)).min(MOST_TIMEOUT_US)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_is_never_nearer_than_its_least_variance() {
        let mut trip = RoundTrip::default();
        assert_eq!(trip.timeout_us(), 1_000_000);
        // RFC 6298 (2.2): the first sample R gives R + 4 × R/2.
        trip.sample(600_000, 0, 10);
        assert_eq!(trip.timeout_us(), 600_000 + 1_200_000);
        for round in 1..200 {
            trip.sample(600_000, round * 10 + 1, round * 10 + 11);
        }
        assert_eq!(trip.smoothed_us(), 600_000);
        assert!((800_000..805_000).contains(&trip.timeout_us()), "{}", trip.timeout_us());
    }

    #[test]
    fn a_rise_counts_at_once() {
        let mut trip = RoundTrip::default();
        trip.sample(100_000, 0, 10);
        for round in 1..100 {
            trip.sample(100_000, round * 10 + 1, round * 10 + 11);
        }
        let before = trip.timeout_us();
        trip.sample(900_000, 1_001, 1_011);
        assert!(trip.timeout_us() > before + 100_000);
    }
}
