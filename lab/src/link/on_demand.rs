// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The return channel of a satellite terminal, as far as TCP's slow start meets it.
//!
//! A terminal shares its return channel with others and transmits when the hub lets it. One that sends little has
//! a small guaranteed share; when packets pile up it asks for capacity, and has it one control loop later (BoD,
//! Gotta et al. 2006 section II; the loop passes the satellite, so it takes no less than a round trip). Over a commercial
//! GEO link the acknowledgments of rounds 1 to 3 of a download came slowly and irregularly for this reason, those
//! of rounds 4 and 5 regularly (Ataei Kachooei et al. 2022, figure 11).
//!
//! ```text
//!            packets pile up                grant_after
//!   guaranteed ───────────► requested ─────────────────► regular
//!        ▲   wait for an opportunity when idle; slow        │ full rate at once
//!        └──────────────── idle for release_after ──────────┘
//! ```

use super::Nanos;
use super::access::{Access, Head};
use super::random::Random;
use super::rate::Stretch;

/// The schedule described by [`super::ScheduleSpec::OnDemand`].
pub(super) struct OnDemand {
    pub opportunity: Nanos,
    pub guaranteed_bps: u64,
    pub request_packets: u64,
    pub grant_after: Nanos,
    pub release_after: Nanos,
    pub random: Random,
    pub requested_at: Option<Nanos>,
    /// Whether the current packet has the full rate.
    pub regular: bool,
    /// When the current packet may be sent.
    pub open_at: Nanos,
}

impl Access for OnDemand {
    fn begin(&mut self, now: Nanos, head: Head) {
        let idle = head.free_since != Some(now);
        if idle && head.free_since.is_some_and(|since| now - since > self.release_after) {
            self.requested_at = None;
        }
        if self.requested_at.is_none() && head.waiting as u64 >= self.request_packets {
            self.requested_at = Some(now);
        }
        self.regular = self.requested_at.is_some_and(|at| now >= at + self.grant_after);
        let wait = if idle && !self.regular { self.random.up_to(self.opportunity) } else { 0 };
        self.open_at = now + wait;
    }

    fn allows(&mut self, now: Nanos, bps: u64) -> Stretch {
        if now < self.open_at {
            return Stretch { bps: 0, until: self.open_at };
        }
        Stretch { bps: if self.regular { bps } else { self.guaranteed_bps.min(bps) }, until: Nanos::MAX }
    }
}
