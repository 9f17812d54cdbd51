// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Variation of the propagation delay. The direction keeps packets in order whatever comes out here.

use std::f64::consts::TAU;

use super::random::Random;
use super::{JitterSpec, Nanos, micros};

/// Extra delay of packets.
pub trait Jitter: Send {
    /// Extra delay of a packet that leaves the transmitter at `departed`.
    fn extra(&mut self, departed: Nanos) -> Nanos;
}

/// The model of one entry.
pub(super) fn build(spec: &JitterSpec, mut random: Random) -> Box<dyn Jitter> {
    match *spec {
        JitterSpec::Uniform { max_us } => Box::new(Uniform { max: micros(max_us), random }),
        JitterSpec::Wave { period_us, peak_to_peak_us } => Box::new(Wave {
            period: micros(period_us),
            peak_to_peak: micros(peak_to_peak_us),
            phase: random.unit(),
        }),
    }
}

struct Uniform {
    max: Nanos,
    random: Random,
}

impl Jitter for Uniform {
    fn extra(&mut self, _departed: Nanos) -> Nanos {
        self.random.up_to(self.max)
    }
}

struct Wave {
    period: Nanos,
    peak_to_peak: Nanos,
    /// In turns.
    phase: f64,
}

impl Jitter for Wave {
    fn extra(&mut self, departed: Nanos) -> Nanos {
        // The remainder first: a monotonic clock's nanoseconds exceed the 53 bits of an f64.
        let turns = (departed % self.period) as f64 / self.period as f64 + self.phase;
        (self.peak_to_peak as f64 * (0.5 + 0.5 * (turns * TAU).sin())) as Nanos
    }
}
