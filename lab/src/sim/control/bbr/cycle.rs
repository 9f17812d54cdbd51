// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The cycle of gains around the rate that was found: a round trip above it, one below it, and six at it (PROBE_BW). Which of
//! them comes first is drawn, so that flows do not probe together; not the one below.

use super::rate::{Gain, UNIT};
use crate::link::Random;

/// The gains, in order.
const GAINS: [Gain; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// A stream of its own, apart from those of the link (`link::random`).
const STREAM: u64 = 1 << 48;

/// See the module.
#[derive(Clone, Debug)]
pub struct Cycle {
    random: Random,
    at: usize,
    /// When this gain began, microseconds.
    since_us: u64,
}

impl Cycle {
    /// Of flow `number` in a run of this seed.
    pub fn new(seed: u64, number: u64) -> Self {
        Self { random: Random::new(seed, STREAM + number), at: 0, since_us: 0 }
    }

    /// It begins with one of its gains (`bbr_reset_probe_bw_mode`).
    pub fn begin(&mut self, now_us: u64) {
        self.at = GAINS.len() - 1 - self.random.up_to(GAINS.len() as u64 - 2) as usize;
        self.advance(now_us);
    }

    /// The next gain.
    pub fn advance(&mut self, now_us: u64) {
        self.at = (self.at + 1) % GAINS.len();
        self.since_us = now_us;
    }

    /// The gain.
    pub fn gain(&self) -> Gain {
        GAINS[self.at]
    }

    /// Whether it is the one above the rate.
    pub fn is_probing(&self) -> bool {
        self.at == 0
    }

    /// Whether it has lasted for longer than this.
    pub fn has_lasted(&self, now_us: u64, rtt_us: u32) -> bool {
        now_us - self.since_us > rtt_us.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_with_any_gain_but_the_one_below_the_rate_and_goes_round() {
        let mut first = [0; GAINS.len()];
        for seed in 0..700 {
            let mut cycle = Cycle::new(seed, 0);
            cycle.begin(1);
            first[cycle.at] += 1;
            let begun = cycle.at;
            let gains: Vec<Gain> = (0..8)
                .map(|_| {
                    cycle.advance(2);
                    cycle.gain()
                })
                .collect();
            assert_eq!(gains.iter().sum::<Gain>(), 8 * UNIT);
            assert_eq!(cycle.at, begun);
        }
        assert_eq!(first[1], 0);
        assert!(
            first.iter().enumerate().all(|(at, count)| at == 1 || (60..150).contains(count)),
            "{first:?}"
        );
    }

    #[test]
    fn the_same_seed_is_the_same_phase_and_flows_of_a_run_have_their_own() {
        let phases = |seed| {
            (0..16).map(move |number| {
                let mut cycle = Cycle::new(seed, number);
                cycle.begin(0);
                cycle.at
            })
        };
        assert!(phases(7).eq(phases(7)));
        assert!(!phases(7).eq(phases(8)));
        assert!(phases(7).any(|phase| Some(phase) != phases(7).next()));
    }
}
