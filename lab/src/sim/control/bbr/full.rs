// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whether the pipe is full: three rounds did not raise the rate by a quarter (`bbr_check_full_bw_reached`).

use super::rate::Rate;

/// Rounds that must not have raised the rate.
const ROUNDS: u32 = 3;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPipe {
    /// The rate that has to be exceeded by a quarter.
    pub rate: Rate,
    /// Rounds since that did not.
    pub rounds: u32,
    /// It is full.
    pub reached: bool,
}

impl FullPipe {
    /// A round has ended at this rate, which the application did not set.
    pub fn round_ends(&mut self, rate: Rate) {
        if self.reached {
            return;
        }
        if rate >= self.rate.saturating_mul(5) / 4 {
            (self.rate, self.rounds) = (rate, 0);
            return;
        }
        self.rounds += 1;
        self.reached = self.rounds >= ROUNDS;
    }

    /// A reduction was needless: what was seen says nothing (`bbr_undo_cwnd`).
    pub fn begin_anew(&mut self) {
        (self.rate, self.rounds) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached_after(rates: &[Rate]) -> bool {
        let mut full = FullPipe::default();
        rates.iter().for_each(|rate| full.round_ends(*rate));
        full.reached
    }

    #[test]
    fn it_is_full_after_three_rounds_that_did_not_raise_the_rate_by_a_quarter() {
        assert!(!reached_after(&[100, 124, 124]));
        assert!(reached_after(&[100, 124, 124, 124]));
        assert!(!reached_after(&[100, 124, 124, 125]));
        assert!(!reached_after(&[100, 124, 124, 125, 125, 125]));
        assert!(reached_after(&[100, 124, 124, 125, 125, 125, 125]));
        assert!(!reached_after(&[100, 200, 400, 800, 1_600, 3_200]));
    }
}
