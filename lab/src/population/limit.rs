// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What no sender that doubles its window can beat.

use std::time::Duration;

/// Time from the first byte's arrival until `segments` have arrived, if the window begins with `initial_window` segments
/// and doubles in every round trip of `rtt` until it is a bandwidth-delay product, and the line, which needs
/// `per_segment` for each, headers included, is never idle from then on.
///
/// In round i the window is w = IW × 2^i. The rounds before the first with w × s ≥ RTT, or with which all are sent, take a
/// round trip each; what is left then leaves at the rate of the line: T = i × RTT + left × s.
pub fn doubling_limit(segments: u64, initial_window: u64, rtt: Duration, per_segment: Duration) -> Duration {
    let (mut left, mut window, mut rounds) = (segments, initial_window.max(1), 0);
    while left > window && per_segment.as_secs_f64() * (window as f64) < rtt.as_secs_f64() {
        left -= window;
        window *= 2;
        rounds += 1;
    }
    rtt * rounds + per_segment.mul_f64(left as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);
    const SEGMENT: Duration = Duration::from_micros(120);

    #[test]
    fn what_fits_into_the_first_window_takes_its_time_on_the_line() {
        assert_eq!(doubling_limit(10, 10, RTT, SEGMENT), SEGMENT * 10);
    }

    #[test]
    fn rounds_are_counted_until_the_line_is_full() {
        // 100 ms at 120 us are 833 segments: windows of 10 to 640 in seven rounds, 1270 segments, and 1280 is above.
        assert_eq!(doubling_limit(11, 10, RTT, SEGMENT), RTT + SEGMENT);
        assert_eq!(doubling_limit(100_000, 10, RTT, SEGMENT), RTT * 7 + SEGMENT * (100_000 - 1_270));
    }

    #[test]
    fn a_path_that_holds_less_than_the_first_window_is_the_line_alone() {
        assert_eq!(doubling_limit(1_000, 10, SEGMENT * 5, SEGMENT), SEGMENT * 1_000);
    }
}
