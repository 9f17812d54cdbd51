// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Aggregates: at each opportunity the transmitter sends what waits, back to back, up to a limit, and is silent until
//! the next opportunity. Wi-Fi stations contend for the medium and send A-MPDUs, LTE terminals have transport blocks.
//!
//! ```text
//!   end of aggregate ─ gap ─► opportunity ─► packets that have arrived by now, back to back ─► end of aggregate
//! ```
//!
//! Data leave in bursts; acknowledgments that share a burst arrive closer together than they were sent (ACK
//! compression).

use super::Nanos;
use super::access::{Access, Head};
use super::random::Random;
use super::rate::Stretch;

/// The schedule described by [`super::ScheduleSpec::Aggregate`].
pub(super) struct Aggregate {
    pub min_gap: Nanos,
    /// Of the gaps above the shortest.
    pub spread: Nanos,
    pub max_packets: u64,
    pub max_bytes: u64,
    pub random: Random,
    /// The opportunity of the current aggregate.
    pub opened: Nanos,
    /// What the current aggregate holds.
    pub packets: u64,
    pub bytes: u64,
}

impl Aggregate {
    fn joins(&self, now: Nanos, head: Head) -> bool {
        head.free_since == Some(now)
            && head.arrived <= self.opened
            && self.packets < self.max_packets
            && self.bytes + u64::from(head.bytes) <= self.max_bytes
    }

    /// The next opportunity that is not before `now`. Opportunities come also while they are not used: after a long
    /// pause, the wait is a random part of a gap.
    fn opportunity(&mut self, now: Nanos, free_since: Option<Nanos>) -> Nanos {
        let gap = self.min_gap + self.random.up_to(self.spread);
        match free_since.map(|since| since + gap) {
            Some(next) if next >= now => next,
            _ => now + self.random.up_to(gap),
        }
    }
}

impl Access for Aggregate {
    fn begin(&mut self, now: Nanos, head: Head) {
        if !self.joins(now, head) {
            self.opened = self.opportunity(now, head.free_since);
            (self.packets, self.bytes) = (0, 0);
        }
        self.packets += 1;
        self.bytes += u64::from(head.bytes);
    }

    fn allows(&mut self, now: Nanos, bps: u64) -> Stretch {
        if now < self.opened {
            Stretch { bps: 0, until: self.opened }
        } else {
            Stretch { bps, until: Nanos::MAX }
        }
    }
}
