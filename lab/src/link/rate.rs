// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How fast a transmitter may send, as functions of time that are constant in stretches. Rates that vary, outages and
//! handovers are all of this kind; the slowest decides.

use super::random::Random;
use super::spec::RateSpec;
use super::steps::Steps;
use super::{Nanos, micros};

/// A rate and how long it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// bit/s; 0 for silence, [`u64::MAX`] for no limit.
    pub bps: u64,
    /// The first moment at which it may be another one.
    pub until: Nanos,
}

impl Stretch {
    /// Both limits at once.
    pub fn and(self, other: Self) -> Self {
        Self { bps: self.bps.min(other.bps), until: self.until.min(other.until) }
    }
}

/// A rate over time. Times are from the start of the link.
pub trait Rate: Send {
    /// The stretch that holds at `now`, which never decreases; it ends later.
    fn at(&mut self, now: Nanos) -> Stretch;
}

/// The model of a description; `constant_bps` is for none.
pub(super) fn build(constant_bps: u64, spec: Option<&RateSpec>, random: Random) -> Box<dyn Rate> {
    match spec {
        None => Box::new(Constant(constant_bps)),
        Some(RateSpec::Redraw { every_us, min_bps, max_bps }) => {
            Box::new(Redraw::new(*every_us, *min_bps, *max_bps, None, random))
        }
        Some(RateSpec::Walk { every_us, min_bps, max_bps, max_step_bps }) => {
            Box::new(Redraw::new(*every_us, *min_bps, *max_bps, Some(*max_step_bps), random))
        }
        Some(spec @ (RateSpec::Steps { .. } | RateSpec::Trace { .. } | RateSpec::Mahimahi { .. })) => {
            let (steps, repeat_us) = spec.steps().unwrap_or_default();
            Box::new(Stepped(Steps::new(steps.iter().map(|step| (step.at_us, step.rate_bps)), repeat_us)))
        }
    }
}

/// The same rate for ever.
pub(super) struct Constant(pub u64);

impl Rate for Constant {
    fn at(&mut self, _now: Nanos) -> Stretch {
        Stretch { bps: self.0, until: Nanos::MAX }
    }
}

struct Stepped(Steps);

impl Rate for Stepped {
    fn at(&mut self, now: Nanos) -> Stretch {
        let (bps, until) = self.0.at(now);
        Stretch { bps, until }
    }
}

/// [`RateSpec::Redraw`], and [`RateSpec::Walk`] if there is a largest step.
struct Redraw {
    every: Nanos,
    min_bps: u64,
    range_bps: u64,
    max_step_bps: Option<u64>,
    random: Random,
    /// Above `min_bps`.
    above_bps: u64,
    until: Nanos,
}

impl Redraw {
    fn new(every_us: u64, min_bps: u64, max_bps: u64, max_step_bps: Option<u64>, mut random: Random) -> Self {
        let (every, range_bps) = (micros(every_us), max_bps - min_bps);
        let above_bps = random.up_to(range_bps);
        Self { every, min_bps, range_bps, max_step_bps, random, above_bps, until: every }
    }

    fn draw(&mut self) -> u64 {
        let Some(step) = self.max_step_bps else { return self.random.up_to(self.range_bps) };
        let up = self.above_bps + self.random.up_to(2 * step);
        // Shifted by one step so that it never is below 0; what passes an end comes back by as much.
        let reflected = up.abs_diff(step);
        if reflected > self.range_bps { 2 * self.range_bps - reflected } else { reflected }
    }
}

impl Rate for Redraw {
    fn at(&mut self, now: Nanos) -> Stretch {
        while self.until <= now {
            self.above_bps = self.draw();
            self.until += self.every;
        }
        Stretch { bps: self.min_bps + self.above_bps, until: self.until }
    }
}
