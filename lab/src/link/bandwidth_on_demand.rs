// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Bandwidth on demand with a rate-based policy, as Gotta et al. 2006 measured it (sections II and IV).
//!
//! Every `request_every` (Tr) the terminal asks for `factor` (k) times the rate at which packets came in since its
//! last request. Every `grant_every` (Ta) it is granted what it asked for, `propagation` (τ) later at the earliest.
//! Grants are whole slots of a frame, rounded up: at least one, at most all, which are the carrier.
//!
//! ```text
//!   packets come in ─ Tr/2 on average ─► request ─ τ ─► controller … ─ Ta/2 on average ─► grant
//! ```
//!
//! Several requests may wait for one grant, which then is their mean: nothing that came in is forgotten, and the
//! mean delay from incoming to granted is the source's allocation delay, Da = τ + Tr/2 + Ta/2 (equation 1). Without a
//! new request the last grant goes on.
//!
//! "Data at the terminal are not sent continuously, but in TDMA bursts" (section IV): each frame begins with the
//! granted slots, at the carrier's rate, and its rest belongs to others. With a frame of no length sending is smooth at
//! the granted rate, which is what the closed forms describe.

use std::collections::VecDeque;

use super::Nanos;
use super::access::Access;
use super::random::Random;
use super::rate::Stretch;

/// The schedule described by [`super::ScheduleSpec::BandwidthOnDemand`].
pub(super) struct BandwidthOnDemand {
    request_every: Nanos,
    grant_every: Nanos,
    propagation: Nanos,
    factor: f64,
    frame_slots: u64,
    /// Length of a frame; 0: smooth.
    frame: Nanos,
    /// When the first frame had begun before the start of the link.
    offset: Nanos,

    /// Bytes since the last request.
    incoming: u64,
    next_request: Nanos,
    /// Requests that no grant has answered: when they can be at the earliest, and for how much, bit/s.
    requests: VecDeque<(Nanos, f64)>,
    next_grant: Nanos,
    granted_bps: f64,
    /// Rate of the medium as seen last; 0: not yet, and nothing is granted but the guaranteed slot.
    medium_bps: u64,
    /// Slots that were assigned until `counted`, times the time that each was.
    slot_time: u64,
    counted: Nanos,
}

impl BandwidthOnDemand {
    /// Requests, grants and frames begin at random points of their periods.
    pub fn new(
        request_every: Nanos,
        grant_every: Nanos,
        propagation: Nanos,
        factor: f64,
        frame_slots: u64,
        frame: Nanos,
        mut random: Random,
    ) -> Self {
        let mut schedule = Self {
            request_every,
            grant_every,
            propagation,
            factor,
            frame_slots,
            frame,
            offset: 0,
            incoming: 0,
            next_request: random.up_to(request_every - 1),
            requests: VecDeque::new(),
            next_grant: random.up_to(grant_every - 1),
            granted_bps: 0.0,
            medium_bps: 0,
            slot_time: 0,
            counted: 0,
        };
        schedule.offset = random.up_to(frame.saturating_sub(1));
        schedule
    }

    /// Requests and grants until `now`.
    fn advance(&mut self, now: Nanos) {
        while self.next_request.min(self.next_grant) <= now {
            if self.next_request <= self.next_grant {
                self.request();
            } else {
                self.grant();
            }
        }
    }

    fn request(&mut self) {
        let incoming_bps = self.incoming as f64 * 8e9 / self.request_every as f64;
        self.requests.push_back((self.next_request + self.propagation, self.factor * incoming_bps));
        self.incoming = 0;
        self.next_request += self.request_every;
    }

    /// Slots of a frame that are assigned: what is granted, rounded up.
    fn slots(&self) -> u64 {
        let slots =
            (self.granted_bps * self.frame_slots as f64 / self.medium_bps.max(1) as f64).ceil() as u64;
        slots.clamp(1, self.frame_slots)
    }

    fn count(&mut self, now: Nanos) {
        self.slot_time += self.slots() * now.saturating_sub(self.counted);
        self.counted = self.counted.max(now);
    }

    fn grant(&mut self) {
        self.count(self.next_grant);
        let arrived = self.requests.partition_point(|(at, _)| *at <= self.next_grant);
        if arrived > 0 {
            self.granted_bps =
                self.requests.drain(..arrived).map(|(_, bps)| bps).sum::<f64>() / arrived as f64;
        }
        self.next_grant += self.grant_every;
    }
}

impl Access for BandwidthOnDemand {
    fn arrived(&mut self, now: Nanos, bytes: u32) {
        self.advance(now);
        self.incoming += u64::from(bytes);
    }

    fn assigned(&mut self, now: Nanos) -> Option<Nanos> {
        self.advance(now);
        self.count(now);
        Some(self.slot_time / self.frame_slots)
    }

    fn allows(&mut self, now: Nanos, bps: u64) -> Stretch {
        self.advance(now);
        self.medium_bps = bps;
        let slots = self.slots();
        if self.frame == 0 || slots == self.frame_slots {
            return Stretch { bps: bps * slots / self.frame_slots, until: self.next_grant };
        }
        let at = (now + self.offset) % self.frame;
        let burst = self.frame * slots / self.frame_slots;
        let (bps, left) = if at < burst { (bps, burst - at) } else { (0, self.frame - at) };
        Stretch { bps, until: self.next_grant.min(now + left) }
    }
}
