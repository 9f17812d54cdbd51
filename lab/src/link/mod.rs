// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Link models: pure, with time and randomness as arguments. No clock, no I/O, no thread. The emulator drives them
//! in real time, a simulator in virtual time, with the same result for the same arrivals.
//!
//! ```text
//!            cross traffic
//!                 ▼
//!  arrive ─► queue (limit, AQM) ─► transmitter (rate, outages, schedule) ─► loss ─► delay, in order ─► due
//!               │ full, AQM                                                  │
//!               ▼                     dropped, counted by cause              ▼
//! ```
//!
//! The parts are traits in small files, built once for each direction from their description in [`spec`]:
//!
//! | part | trait | models |
//! | --- | --- | --- |
//! | queue | [`Aqm`] | random drop, CoDel, policer; FQ-CoDel |
//! | medium | [`Rate`] | constant, steps, trace, redraw, random walk; outages, handovers |
//! | schedule | [`Access`] | capacity on demand, bandwidth on demand, aggregates |
//! | loss | [`Loss`] | random, Gilbert-Elliott |
//! | delay | [`Jitter`] | uniform, wave, steps, retransmission; trace, handovers |
//!
//! The delay keeps packets in order, but for those that [`ReorderingSpec`] sends a longer way, and those of flows that
//! have a delay of their own behind the link ([`Arrival::own_delay`]): such flows share the queue, and overtake each other.
//!
//! [`Paths`] are several links of which one is in use: packets go over another one from a moment on.
//!
//! A further model is a further file and a further variant in [`spec`]. Inside, times count from the start of the
//! link: [`Direction::start`], or the first arrival.

mod access;
mod aggregate;
mod aqm;
mod bandwidth_on_demand;
pub(crate) mod build;
mod codel;
mod cross;
mod direction;
mod flow_queue;
mod handover;
mod jitter;
mod log;
mod loss;
mod on_demand;
mod outage;
mod paths;
mod policer;
mod queue;
mod random;
mod random_drop;
mod rate;
mod reordering;
mod steps;
mod transmitter;
mod waiting;

#[cfg(test)]
mod tests;

pub use access::{Access, Head};
pub use aqm::{Aqm, Depth, Turn};
pub use direction::{Arrival, Change, Delivery, Direction};
pub use jitter::Jitter;
pub use log::{Count, Counters, DropCause, LinkSample};
pub use loss::Loss;
pub(crate) use onramp_profiles::link as spec;
pub use paths::Paths;
pub use random::Random;
pub use rate::{Rate, Stretch};
pub(crate) use spec::{
    AqmSpec, CrossSpec, DirectionSpec, JitterSpec, Limit, LinkSpec, LossSpec, OutageSpec, RangeError,
    RateSpec, ReorderingSpec, ScheduleSpec,
};

/// Nanoseconds on a monotonic clock of the driver's choice.
pub type Nanos = u64;

/// A transmission of this many bits × 10^-9 at x bit/s takes as many / x nanoseconds.
const NANOBITS_PER_BYTE: u64 = 8_000_000_000;

/// Microseconds as [`Nanos`].
pub(crate) fn micros(microseconds: u64) -> Nanos {
    microseconds.saturating_mul(1_000)
}
