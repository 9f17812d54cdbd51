// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Times of a log or a capture, whose clock may have been set while it was written.

/// Going back further is no packet or event that was written late, microseconds.
const LATE_US: u64 = 1_000_000;
/// Times from here on are none: the year 4000, in microseconds.
pub(crate) const END_US: u64 = 64_060_588_800_000_000;

/// Times of one connection, which never go back. What was written late has the time of what stands before it; where the
/// clock was set back, time goes on from there.
#[derive(Debug, Default)]
pub(crate) struct Monotone {
    last_us: u64,
    ahead_us: u64,
    /// How often the clock was set back.
    pub set_back: u64,
}

impl Monotone {
    /// The time of what is next, which has this one; microseconds.
    pub fn at(&mut self, us: u64) -> u64 {
        let us = us.saturating_add(self.ahead_us);
        let back_us = self.last_us.saturating_sub(us);
        if back_us > LATE_US {
            self.ahead_us = self.ahead_us.saturating_add(back_us);
            self.set_back += 1;
        }
        self.last_us = us.max(self.last_us);
        self.last_us
    }
}

/// What is said of clocks that were set back, after how often.
pub(crate) const SET_BACK: [&str; 2] = [
    "time the clock of a connection was set back: times go on from there, and how long that took is not known",
    "times the clock of a connection was set back: times go on from there, and how long that took is not known",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_on_where_the_clock_was_set_back_and_stand_still_where_one_is_late() {
        let mut clock = Monotone::default();
        let times = [5_000_000, 5_500_000, 4_500_000, 5_600_000, 1_000_000, 1_200_000].map(|us| clock.at(us));
        assert_eq!(times, [5_000_000, 5_500_000, 5_500_000, 5_600_000, 5_600_000, 5_800_000]);
        assert_eq!(clock.set_back, 1);
    }
}
