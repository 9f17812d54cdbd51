// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One-way delays over time as LeoReplayer has them (Lai et al. 2025, LeoCC): besides a mahimahi trace of rates.

use super::measured::shown;
use super::{DELAYS_US, LATEST_US};

/// For how long a line holds, microseconds.
const INTERVAL_US: u64 = 10_000;

/// The propagation of each way over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneWayDelays {
    /// From which time on it is how long, microseconds; in order of time, the first at 0, neighbours different.
    pub steps: Vec<(u64, u64)>,
    /// When it begins anew, microseconds.
    pub repeat_us: u64,
}

impl OneWayDelays {
    /// Reads a trace: on line I the milliseconds that each way takes from (I - 1) times 10 ms on.
    ///
    /// # Errors
    /// The line, and what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let (mut steps, mut at_us) = (Vec::<(u64, u64)>::new(), 0);
        // A round trip that goes out and comes back over delays that links can have.
        let most_ms = DELAYS_US.end() / 2_000;
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            let delay_ms = line.parse::<f64>().ok().filter(|ms| (0.0..=most_ms as f64).contains(ms));
            let Some(delay_ms) = delay_ms else {
                return Err(format!("{} is no delay of 0 to {most_ms} ms", shown(number, line)));
            };
            let delay_us = (delay_ms * 1e3).round() as u64;
            if steps.last().is_none_or(|(_, last)| *last != delay_us) {
                steps.push((at_us, delay_us));
            }
            at_us += INTERVAL_US;
        }
        match at_us {
            0 => Err("it has no line with a delay".into()),
            at_us if at_us > LATEST_US => Err(format!("it lasts {at_us} us: expected {LATEST_US} at most")),
            repeat_us => Ok(Self { steps, repeat_us }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_for_ten_milliseconds() {
        let read = OneWayDelays::read("24\n24\n18\n17.5\n").unwrap();
        assert_eq!(read.steps, [(0, 24_000), (20_000, 18_000), (30_000, 17_500)]);
        assert_eq!(read.repeat_us, 40_000);
    }

    #[test]
    fn what_is_no_delay_is_refused_with_its_line() {
        for (text, what) in [
            ("", "no line"),
            ("24\n\n18\n", "line 2: \"\""),
            ("24\n-1\n", "line 2"),
            ("5001\n", "line 1"),
            ("nan\n", "line 1"),
            ("0 1\n", "line 1"),
        ] {
            let error = OneWayDelays::read(text).unwrap_err();
            assert!(error.contains(what), "{text:?}: {error}");
        }
    }
}
