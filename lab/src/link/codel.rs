// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Controlled Delay, RFC 8289.
//!
//! The signal is the time that packets have waited when it is their turn. Once it has stayed at or above the target
//! for an interval, one packet is dropped, and further ones after interval/√1, interval/√2, interval/√3 … until a
//! packet has waited for less. A state that begins again soon goes on near the frequency at which it ended.
//!
//! ```text
//!              above target for an interval: drop
//!   accepting ──────────────────────────────────────► dropping ─┐ drop when drop_next has come,
//!       ▲                                                │  ▲   │ then interval/√count later
//!       └────────── below target, or almost empty ───────┘  └───┘
//! ```
//!
//! The RFC (section 5) drops in a loop inside its dequeue function; here each packet is asked about in turn, with the
//! same result, which is why the state of the loop is kept in `loops`. A packet that is marked counts as one dropped.

use super::Nanos;
use super::aqm::{Aqm, Turn};

/// Intervals after the end of a dropping state in which the next one remembers its frequency (section 5.5).
const MEMORY_INTERVALS: u64 = 16;

/// The packet before was dropped at this very moment:
enum Loop {
    /// to begin the dropping state; the next one is sent.
    Begins,
    /// in the dropping state; it may be the next one's turn to be dropped.
    GoesOn,
}

pub(super) struct CoDel {
    target: Nanos,
    interval: Nanos,
    ecn: bool,
    /// Largest packet so far, bytes: the RFC's `maxpacket`.
    max_packet: u32,
    /// When the wait will have been above the target for an interval.
    first_above: Option<Nanos>,
    dropping: bool,
    drop_next: Nanos,
    /// Drops of the current or last dropping state.
    count: u64,
    last_count: u64,
    loops: Option<Loop>,
}

impl CoDel {
    pub fn new(target: Nanos, interval: Nanos, ecn: bool) -> Self {
        Self {
            target,
            interval,
            ecn,
            max_packet: 0,
            first_above: None,
            dropping: false,
            drop_next: 0,
            count: 0,
            last_count: 0,
            loops: None,
        }
    }

    fn control_law(&self, from: Nanos) -> Nanos {
        from + (self.interval as f64 / (self.count as f64).sqrt()) as Nanos
    }

    fn may_drop(&mut self, now: Nanos, turn: Turn) -> bool {
        self.max_packet = self.max_packet.max(turn.bytes);
        if turn.sojourn < self.target || turn.behind_bytes <= u64::from(self.max_packet) {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now + self.interval)
    }

    fn begin_dropping(&mut self, now: Nanos) {
        let delta = self.count - self.last_count;
        let recent = now.saturating_sub(self.drop_next) < MEMORY_INTERVALS * self.interval;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
        self.dropping = true;
        self.loops = Some(Loop::Begins);
    }
}

impl Aqm for CoDel {
    fn marks(&self) -> bool {
        self.ecn
    }

    fn drops_head(&mut self, now: Nanos, turn: Turn) -> bool {
        let may_drop = self.may_drop(now, turn);
        let loops = self.loops.take();
        if matches!(loops, Some(Loop::Begins)) {
            return false;
        }
        if !self.dropping {
            if may_drop {
                self.begin_dropping(now);
            }
            return may_drop;
        }
        if !may_drop {
            self.dropping = false;
            return false;
        }
        if matches!(loops, Some(Loop::GoesOn)) {
            self.drop_next = self.control_law(self.drop_next);
        }
        if now < self.drop_next {
            return false;
        }
        self.count += 1;
        self.loops = Some(Loop::GoesOn);
        true
    }
}
