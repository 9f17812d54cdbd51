// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The transmitter: sends one packet after the other, as fast as its medium and its schedule allow at each moment.

use super::access::{Access, Head};
use super::rate::{Constant, Rate, Stretch};
use super::{NANOBITS_PER_BYTE, Nanos};

/// Packets are sent in stretches of constant rate, so that a change in the middle of one counts from its very moment.
/// No time is lost to rounding: what is left over of a nanosecond goes to the next packet.
pub(super) struct Transmitter {
    /// Of the medium; the lowest holds. The first is the one that [`Transmitter::set_rate`] replaces.
    rates: Vec<Box<dyn Rate>>,
    access: Option<Box<dyn Access>>,
    sending: Option<Sending>,
    /// Part of a nanosecond's transmission that the last packet left over, in nanobits.
    left_over: u64,
    free_since: Option<Nanos>,
}

/// A packet in one stretch.
struct Sending {
    /// Bits still to be sent at the begin of the stretch, times 10^9.
    nanobits: u64,
    began: Nanos,
    bps: u64,
    ends: Nanos,
    /// Whether the packet has left then.
    completes: bool,
}

impl Transmitter {
    /// With at least one rate.
    pub fn new(rates: Vec<Box<dyn Rate>>, access: Option<Box<dyn Access>>) -> Self {
        Self { rates, access, sending: None, left_over: 0, free_since: None }
    }

    pub fn is_free(&self) -> bool {
        self.sending.is_none()
    }

    /// When the last packet had left; `None` before the first.
    pub fn free_since(&self) -> Option<Nanos> {
        self.free_since
    }

    /// Packets reach the queue.
    pub fn arrived(&mut self, now: Nanos, bytes: u32) {
        if let Some(access) = &mut self.access {
            access.arrived(now, bytes);
        }
    }

    /// See [`Access::assigned`].
    pub fn assigned(&mut self, now: Nanos) -> Option<Nanos> {
        self.access.as_mut()?.assigned(now)
    }

    /// Begins to send a packet; the transmitter must be free.
    pub fn begin(&mut self, now: Nanos, head: Head) {
        if self.free_since != Some(now) {
            self.left_over = 0;
        }
        if let Some(access) = &mut self.access {
            access.begin(now, head);
        }
        self.stretch(
            now,
            u64::from(head.bytes).saturating_mul(NANOBITS_PER_BYTE).saturating_add(self.left_over),
        );
    }

    /// When [`Transmitter::step`] is due: the packet has left, or something changes. No packet leaves earlier.
    pub fn next(&self) -> Option<Nanos> {
        self.sending.as_ref().map(|sending| sending.ends)
    }

    /// Goes to [`Transmitter::next`]; true if the packet has left.
    pub fn step(&mut self) -> bool {
        let Some(Sending { nanobits, began, bps, ends, completes }) = self.sending.take() else {
            return false;
        };
        let left = nanobits - bps * (ends - began);
        if completes {
            self.left_over = left;
            self.free_since = Some(ends);
        } else {
            self.stretch(ends, left);
        }
        completes
    }

    /// Another rate from now on, for the rest of the current packet as well. `now` is before [`Transmitter::next`].
    pub fn set_rate(&mut self, now: Nanos, bps: u64) {
        self.rates[0] = Box::new(Constant(bps));
        if let Some(Sending { nanobits, began, bps, .. }) = self.sending.take() {
            self.stretch(now, nanobits - bps * (now - began));
        }
    }

    fn stretch(&mut self, began: Nanos, nanobits: u64) {
        let unlimited = Stretch { bps: u64::MAX, until: Nanos::MAX };
        let medium = self.rates.iter_mut().fold(unlimited, |all, rate| all.and(rate.at(began)));
        let Stretch { bps, until } = match &mut self.access {
            Some(access) => medium.and(access.allows(began, medium.bps)),
            None => medium,
        };
        let leaves = nanobits.checked_div(bps).map_or(Nanos::MAX, |takes| began.saturating_add(takes));
        let completes = leaves <= until;
        self.sending = Some(Sending { nanobits, began, bps, ends: leaves.min(until), completes });
    }
}
