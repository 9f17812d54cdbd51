// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a sender makes of its round trips.

/// Their smoothed time and mean deviation (RFC 6298, section 2), and the least; microseconds, 0 before the first.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrips {
    /// SRTT.
    pub smoothed_us: u32,
    /// RTTVAR.
    pub deviation_us: u32,
    /// The least of them.
    pub min_us: u32,
}

impl RoundTrips {
    /// One more was measured, of `us` microseconds.
    pub fn take(&mut self, us: u32) {
        if self.smoothed_us == 0 {
            *self = Self { smoothed_us: us, deviation_us: us / 2, min_us: us };
            return;
        }
        let off = self.smoothed_us.abs_diff(us);
        self.deviation_us = ((3 * u64::from(self.deviation_us) + u64::from(off)) / 4) as u32;
        self.smoothed_us = ((7 * u64::from(self.smoothed_us) + u64::from(us)) / 8) as u32;
        self.min_us = self.min_us.min(us);
    }

    /// After this long without an answer a sender would send again, but for the least that its system waits (RTO without
    /// clock granularity), microseconds.
    pub fn timeout_us(&self) -> u64 {
        u64::from(self.smoothed_us) + 4 * u64::from(self.deviation_us)
    }
}

#[cfg(test)]
mod tests {
    use super::RoundTrips;

    #[test]
    fn estimates_are_those_of_rfc_6298() {
        let mut round_trips = RoundTrips::default();
        let mut after = |us| {
            round_trips.take(us);
            (round_trips.smoothed_us, round_trips.deviation_us, round_trips.min_us)
        };
        assert_eq!(after(80_000), (80_000, 40_000, 80_000));
        assert_eq!(after(160_000), (90_000, 50_000, 80_000));
        assert_eq!(after(50_000), (85_000, 47_500, 50_000));
        assert_eq!(after(u32::MAX), (536_945_286, 1_073_756_198, 50_000));
        assert_eq!(round_trips.timeout_us(), 536_945_286 + 4 * 1_073_756_198);
    }
}
