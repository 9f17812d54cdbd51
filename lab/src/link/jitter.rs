// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Variation of the propagation delay. The direction keeps packets in order whatever comes out here.

use std::f64::consts::TAU;

use super::random::Random;
use super::steps::Steps;
use super::{JitterSpec, Nanos, micros};

/// Extra delay of packets.
pub trait Jitter: Send {
    /// Extra delay of a packet that leaves the transmitter at `departed`, from the start of the link.
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
        JitterSpec::Steps { ref steps, repeat_us } => {
            stepped(steps.iter().map(|step| (step.at_us, step.extra_us)), repeat_us)
        }
        JitterSpec::Retransmission { probability, delay_us, max_retries } => {
            Box::new(Retransmission { probability, delay: micros(delay_us), max_retries, random })
        }
    }
}

/// Extra delays from given times on, both in microseconds.
pub(super) fn stepped(steps: impl Iterator<Item = (u64, u64)>, repeat_us: Option<u64>) -> Box<dyn Jitter> {
    Box::new(Stepped(Steps::new(steps, repeat_us)))
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
        // The remainder first: long runs exceed the 53 bits of an f64.
        let turns = (departed % self.period) as f64 / self.period as f64 + self.phase;
        (self.peak_to_peak as f64 * (0.5 + 0.5 * (turns * TAU).sin())) as Nanos
    }
}

struct Stepped(Steps);

impl Jitter for Stepped {
    fn extra(&mut self, departed: Nanos) -> Nanos {
        micros(self.0.at(departed).0)
    }
}

struct Retransmission {
    probability: f64,
    delay: Nanos,
    max_retries: u32,
    random: Random,
}

impl Jitter for Retransmission {
    fn extra(&mut self, _departed: Nanos) -> Nanos {
        let retries = (0..self.max_retries).take_while(|_| self.random.unit() < self.probability).count();
        self.delay * retries as u64
    }
}
