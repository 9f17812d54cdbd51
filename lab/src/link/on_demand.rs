// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The return channel of a satellite terminal, as far as TCP's slow start meets it.
//!
//! A terminal shares its return channel with others and transmits when the hub lets it. One that sends little has
//! a small guaranteed share; when packets pile up it asks for capacity, and has it one control loop later (BoD,
//! source 004 section II; the loop passes the satellite, so it takes no less than a round trip). Over a commercial
//! GEO link the acknowledgments of rounds 1 to 3 of a download came slowly and irregularly for this reason, those
//! of rounds 4 and 5 regularly (source 000, figure 11).
//!
//! ```text
//!            packets pile up                grant_after
//!   guaranteed ───────────► requested ─────────────────► regular
//!        ▲   wait for an opportunity when idle; slow        │ full rate at once
//!        └──────────────── idle for release_after ──────────┘
//! ```

use super::random::Random;
use super::service::{Head, Pace, Service};
use super::{Nanos, ScheduleSpec, micros};

/// The transmitter described by [`ScheduleSpec::OnDemand`].
pub struct OnDemand {
    rate_bps: u64,
    guaranteed_bps: u64,
    opportunity: Nanos,
    request_packets: u64,
    grant_after: Nanos,
    release_after: Nanos,
    requested_at: Option<Nanos>,
    last_finish: Option<Nanos>,
    pace: Pace,
    random: Random,
}

impl OnDemand {
    /// A transmitter of `rate_bps` bit/s once capacity is granted.
    pub fn new(rate_bps: u64, spec: &ScheduleSpec, random: Random) -> Self {
        let ScheduleSpec::OnDemand {
            opportunity_us,
            guaranteed_bps,
            request_packets,
            grant_after_us,
            release_after_us,
        } = *spec;
        Self {
            rate_bps,
            guaranteed_bps,
            opportunity: micros(opportunity_us),
            request_packets,
            grant_after: micros(grant_after_us),
            release_after: micros(release_after_us),
            requested_at: None,
            last_finish: None,
            pace: Pace::default(),
            random,
        }
    }
}

impl Service for OnDemand {
    fn transmit(&mut self, start: Nanos, head: Head) -> Nanos {
        let idle = self.last_finish.is_none_or(|finish| start > finish);
        if idle {
            self.pace.reset();
            if self.last_finish.is_some_and(|finish| start - finish > self.release_after) {
                self.requested_at = None;
            }
        }
        if self.requested_at.is_none() && head.waiting as u64 >= self.request_packets {
            self.requested_at = Some(start);
        }
        let regular = self.requested_at.is_some_and(|at| start >= at + self.grant_after);
        let wait = if idle && !regular { self.random.up_to(self.opportunity) } else { 0 };
        let rate = if regular { self.rate_bps } else { self.guaranteed_bps.min(self.rate_bps) };
        let finish = start + wait + self.pace.take(head.bytes, rate);
        self.last_finish = Some(finish);
        finish
    }
}
