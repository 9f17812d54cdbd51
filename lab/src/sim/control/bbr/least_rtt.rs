// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The minimum RTT of the last ten seconds, and when it is looked for by letting the queue drain: with four segments in flight
//! for 200 ms and a round (PROBE_RTT; `bbr_update_min_rtt`). The clock is the kernel's of 250 ticks a second.

/// Microseconds of a tick.
const TICK_US: u64 = 4_000;
/// What a minimum is good for, ticks.
const WINDOW: u64 = 10_000_000 / TICK_US;
/// How long so little is in flight, ticks.
const PROBE: u64 = 200_000 / TICK_US;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct LeastRtt {
    /// The minimum, microseconds.
    pub us: u32,
    /// When it was seen, ticks.
    seen: u64,
    /// While so little is in flight: until when, ticks.
    until: Option<u64>,
    /// A round has passed meanwhile.
    round_passed: bool,
}

impl LeastRtt {
    /// A first sample.
    pub fn new(now_us: u64, us: u32) -> Self {
        Self { us, seen: now_us / TICK_US, until: None, round_passed: false }
    }

    /// A sample, if there is one; `delayed`: of an acknowledgment that may have been. Whether the minimum had expired before.
    pub fn sample(&mut self, now_us: u64, rtt_us: Option<u32>, delayed: bool) -> bool {
        let now = now_us / TICK_US;
        let expired = now > self.seen + WINDOW;
        if let Some(rtt_us) = rtt_us.filter(|rtt_us| *rtt_us < self.us || expired && !delayed) {
            (self.us, self.seen) = (rtt_us, now);
        }
        expired
    }

    /// The queue is to drain.
    pub fn begin_probe(&mut self) {
        self.until = None;
    }

    /// The same once so little is in flight: whether the time begins only now, with a round.
    pub fn begin_drained(&mut self, now_us: u64, drained: bool) -> bool {
        let begins = self.until.is_none() && drained;
        if begins {
            (self.until, self.round_passed) = (Some(now_us / TICK_US + PROBE), false);
        }
        begins
    }

    /// Whether a round has passed meanwhile, which may have begun just now.
    pub fn has_passed_round(&mut self, round: bool) -> bool {
        self.round_passed |= self.until.is_some() && round;
        self.round_passed && self.until.is_some()
    }

    /// Whether the time is over, in which case the minimum is good for ten seconds again (`bbr_check_probe_rtt_done`).
    pub fn ends_probe(&mut self, now_us: u64) -> bool {
        let now = now_us / TICK_US;
        let over = self.until.is_some_and(|until| now > until);
        if over {
            self.seen = now;
        }
        over
    }
}
