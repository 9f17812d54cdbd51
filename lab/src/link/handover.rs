// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Changes of satellite, [`HandoverSpec`]: LEO constellations reassign terminals every 15 s.

use super::jitter::Jitter;
use super::outage::Scheduled;
use super::random::{Random, purpose};
use super::rate::Rate;
use super::spec::HandoverSpec;
use super::{Nanos, micros};

/// Delay and outage of a link's handovers. The two directions of a link have the seeds `2 n` and `2 n + 1`; half of
/// the seed is what they share.
pub(super) fn build(spec: &HandoverSpec, seed: u64) -> (Box<dyn Jitter>, Option<Box<dyn Rate>>) {
    let seed = seed >> 1;
    let (period, duration) = (micros(spec.period_us), micros(spec.outage_us));
    let first = Random::new(seed, purpose::HANDOVER).up_to(period - 1);
    let delay =
        Delay { first, period, max_extra: micros(spec.max_extra_us), seed, satellite: None, extra: 0 };
    let outage = (duration > 0).then(|| Box::new(Scheduled { first, period, duration }) as Box<dyn Rate>);
    (Box::new(delay), outage)
}

struct Delay {
    first: Nanos,
    period: Nanos,
    max_extra: Nanos,
    seed: u64,
    /// Number of the satellite whose delay is in `extra`.
    satellite: Option<u64>,
    extra: Nanos,
}

impl Jitter for Delay {
    fn extra(&mut self, departed: Nanos) -> Nanos {
        let satellite = (departed + self.period - self.first) / self.period;
        if self.satellite != Some(satellite) {
            self.satellite = Some(satellite);
            // A stream for each, so that it does not matter which satellites saw a packet.
            self.extra = Random::new(self.seed, purpose::SATELLITES + satellite).up_to(self.max_extra);
        }
        self.extra
    }
}
