// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Times in which nothing is sent: rates that are 0 for a while and without limit otherwise.

use super::random::Random;
use super::rate::{Rate, Stretch};
use super::spec::OutageSpec;
use super::{Nanos, micros};

/// The model of one entry.
pub(super) fn build(spec: &OutageSpec, mut random: Random) -> Box<dyn Rate> {
    match *spec {
        OutageSpec::Scheduled { first_us, period_us, duration_us } => Box::new(Scheduled {
            first: micros(first_us),
            period: micros(period_us),
            duration: micros(duration_us),
        }),
        OutageSpec::Random { mean_pause_us, min_duration_us, max_duration_us } => {
            let mean_pause = micros(mean_pause_us);
            let begin = random.exponential(mean_pause);
            let (shortest, spread) = (micros(min_duration_us), micros(max_duration_us - min_duration_us));
            let end = begin + shortest + random.up_to(spread);
            Box::new(Unforeseen { mean_pause, shortest, spread, begin, end, random })
        }
    }
}

/// Silence in the first `duration` of each `period` after `first`.
pub(super) struct Scheduled {
    pub first: Nanos,
    pub period: Nanos,
    pub duration: Nanos,
}

impl Rate for Scheduled {
    fn at(&mut self, now: Nanos) -> Stretch {
        let Some(after) = now.checked_sub(self.first) else {
            return Stretch { bps: u64::MAX, until: self.first };
        };
        let into = after % self.period;
        if into < self.duration {
            Stretch { bps: 0, until: now - into + self.duration }
        } else {
            Stretch { bps: u64::MAX, until: now - into + self.period }
        }
    }
}

struct Unforeseen {
    mean_pause: Nanos,
    shortest: Nanos,
    spread: Nanos,
    /// Of the current or next outage.
    begin: Nanos,
    end: Nanos,
    random: Random,
}

impl Rate for Unforeseen {
    fn at(&mut self, now: Nanos) -> Stretch {
        while self.end <= now {
            self.begin = self.end + self.random.exponential(self.mean_pause);
            self.end = self.begin + self.shortest + self.random.up_to(self.spread);
        }
        if now < self.begin {
            Stretch { bps: u64::MAX, until: self.begin }
        } else {
            Stretch { bps: 0, until: self.end }
        }
    }
}
