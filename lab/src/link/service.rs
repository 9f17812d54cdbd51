// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Transmitters: how long the packet at the head of the queue takes to leave.

use super::Nanos;

/// The packet about to be sent and what is known at this moment.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Size of the packet, bytes.
    pub bytes: u32,
    /// Packets in the queue, this one included.
    pub waiting: usize,
}

/// A transmitter. It sends one packet after the other; a rate trace or a capacity assignment is another
/// implementation.
pub trait Service: Send {
    /// When the packet has left completely, if the transmitter is free for it from `start` on. `start` never
    /// decreases, and is later than the previous result exactly when the queue was empty in between.
    fn transmit(&mut self, start: Nanos, head: Head) -> Nanos;
}

/// Transmission times at a rate, without drift: what is left over of a nanosecond goes to the next packet.
#[derive(Debug, Default)]
pub struct Pace {
    remainder: u64,
}

impl Pace {
    /// Nanoseconds that `bytes` take at `rate_bps` (above 0).
    pub fn take(&mut self, bytes: u32, rate_bps: u64) -> Nanos {
        let bits = u64::from(bytes) * 8 * 1_000_000_000 + self.remainder;
        self.remainder = bits % rate_bps;
        bits / rate_bps
    }

    /// Forgets the remainder, after a pause or a change of rate.
    pub fn reset(&mut self) {
        self.remainder = 0;
    }
}

/// A constant rate, always available.
pub struct ConstantRate {
    rate_bps: u64,
    pace: Pace,
    last_finish: Nanos,
}

impl ConstantRate {
    /// A transmitter of `rate_bps` bit/s (above 0).
    pub fn new(rate_bps: u64) -> Self {
        Self { rate_bps, pace: Pace::default(), last_finish: 0 }
    }
}

impl Service for ConstantRate {
    fn transmit(&mut self, start: Nanos, head: Head) -> Nanos {
        if start != self.last_finish {
            self.pace.reset();
        }
        self.last_finish = start + self.pace.take(head.bytes, self.rate_bps);
        self.last_finish
    }
}
