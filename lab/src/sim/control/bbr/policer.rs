// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Policers: two intervals that both end with a loss, in which much was lost, at about the same rate, show a policer's rate,
//! which is then the estimate for 48 rounds (`bbr_lt_bw_sampling`).

use super::rate::{self, Rate, UNIT};

/// Rounds of an interval, at least; at most four times so many.
const ROUNDS: u32 = 4;
/// Lost of those delivered, of 256.
const LOSS_PART: u64 = 50;
/// How near two rates are: a part of the first, or so many bytes per second.
const NEAR_PART: u64 = 8;
const NEAR_RATE: u64 = 500;
/// Rounds for which the rate is kept.
const KEPT_ROUNDS: u32 = 48;

/// What a socket had counted at some time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// When something was delivered last, microseconds.
    pub at_us: u64,
    /// Segments delivered.
    pub delivered: u32,
    /// Segments lost.
    pub lost: u32,
}

/// What an acknowledgment or a timeout shows.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// By then.
    pub counted: Counted,
    /// Bytes of a segment.
    pub mss: u32,
    /// A round begins.
    pub round: bool,
    /// Segments were lost.
    pub loses: bool,
    /// The application set the rate.
    pub app_limited: bool,
    /// The gains are cycled.
    pub cycling: bool,
}

/// What comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Same,
    /// A policer was found.
    Found,
    /// Its rate is no longer used.
    Forgotten,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policer {
    /// It is used.
    used: bool,
    /// Of the last interval; 0: there was none.
    rate: Rate,
    sampling: bool,
    since: Counted,
    rounds: u32,
}

impl Policer {
    /// Nothing is known.
    pub fn new(counted: Counted) -> Self {
        Self { since: counted, ..Self::default() }
    }

    /// The policer's rate, if there is one.
    pub fn rate(&self) -> Option<Rate> {
        self.used.then_some(self.rate)
    }

    /// An acknowledgment, or a timeout.
    pub fn sample(&mut self, shown: &Shown) -> Outcome {
        if self.used {
            return self.keep(shown);
        }
        if !self.sampling {
            // A policer's tokens must be used up.
            if !shown.loses {
                return Outcome::Same;
            }
            *self = Self { rate: self.rate, sampling: true, ..Self::new(shown.counted) };
        }
        if shown.app_limited {
            *self = Self::new(shown.counted);
            return Outcome::Same;
        }
        self.rounds += u32::from(shown.round);
        if self.rounds < ROUNDS {
            return Outcome::Same;
        }
        if self.rounds > 4 * ROUNDS {
            *self = Self::new(shown.counted);
            return Outcome::Same;
        }
        if shown.loses { self.end_interval(shown) } else { Outcome::Same }
    }

    fn keep(&mut self, shown: &Shown) -> Outcome {
        if shown.cycling && shown.round {
            self.rounds += 1;
            if self.rounds >= KEPT_ROUNDS {
                *self = Self::new(shown.counted);
                return Outcome::Forgotten;
            }
        }
        Outcome::Same
    }

    fn end_interval(&mut self, shown: &Shown) -> Outcome {
        let lost = shown.counted.lost.wrapping_sub(self.since.lost);
        let delivered = shown.counted.delivered.wrapping_sub(self.since.delivered);
        let length_ms = (shown.counted.at_us / 1_000).saturating_sub(self.since.at_us / 1_000);
        if delivered == 0 || u64::from(lost) * UNIT < LOSS_PART * u64::from(delivered) || length_ms == 0 {
            return Outcome::Same;
        }
        let rate = rate::of(delivered, length_ms * 1_000);
        let apart = rate.abs_diff(self.rate);
        let near =
            apart * NEAR_PART <= self.rate || rate::bytes_per_second(apart, shown.mss, UNIT) <= NEAR_RATE;
        if self.rate > 0 && near {
            (self.rate, self.used, self.rounds) = ((rate + self.rate) / 2, true, 0);
            return Outcome::Found;
        }
        *self = Self { rate, sampling: true, ..Self::new(shown.counted) };
        Outcome::Same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 10 ms in which so many segments are delivered, of which as many are lost as the second says; the outcomes.
    fn rounds(policer: &mut Policer, rounds: &[(u32, u32)]) -> Vec<Outcome> {
        let mut counted = policer.since;
        let shown = |counted, loses| Shown {
            counted,
            mss: 1_448,
            round: true,
            loses,
            app_limited: false,
            cycling: true,
        };
        rounds
            .iter()
            .map(|(delivered, lost)| {
                counted.at_us += 10_000;
                counted.delivered += delivered;
                counted.lost += lost;
                policer.sample(&shown(counted, *lost > 0))
            })
            .collect()
    }

    #[test]
    fn two_intervals_of_one_rate_with_a_fifth_lost_show_a_policer_for_48_rounds() {
        let mut policer = Policer::default();
        let outcomes = rounds(&mut policer, &[(100, 25); 10]);
        let found = outcomes.iter().position(|outcome| *outcome == Outcome::Found).expect("a policer");
        // The first round begins the first interval, whose fourth ends it.
        assert_eq!(found, 7);
        assert_eq!(policer.rate(), Some(rate::of(100, 10_000)));
        let rounds_left = 48 - (10 - found as u32 - 1);
        let outcomes = rounds(&mut policer, &vec![(100, 0); rounds_left as usize]);
        assert_eq!(
            outcomes.iter().position(|outcome| *outcome == Outcome::Forgotten),
            Some(outcomes.len() - 1)
        );
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn few_losses_or_two_rates_show_none() {
        let few = rounds(&mut Policer::default(), &[(100, 19); 40]);
        assert!(few.iter().all(|outcome| *outcome == Outcome::Same));
        let mut falling = vec![(400, 100); 4];
        falling.extend([(300, 80); 4]);
        falling.extend([(200, 50); 4]);
        let two = rounds(&mut Policer::default(), &falling);
        assert!(two.iter().all(|outcome| *outcome == Outcome::Same));
    }

    #[test]
    fn an_application_that_sets_the_rate_begins_anew() {
        let mut policer = Policer::default();
        rounds(&mut policer, &[(100, 25); 5]);
        let counted = policer.since;
        let shown = Shown { counted, mss: 1_448, round: true, loses: true, app_limited: true, cycling: true };
        policer.sample(&shown);
        assert_eq!((policer.rate, policer.sampling), (0, false));
    }
}
