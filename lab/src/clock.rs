// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The lab's time base.

use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

use crate::link::Nanos;

/// Nanoseconds of CLOCK_MONOTONIC, which `bpf_ktime_get_ns` also reads: emulator, samplers and BPF records of one
/// host share this base.
pub fn now() -> Nanos {
    // It cannot fail on Linux: the clock exists and the pointer is valid.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| time.num_nanoseconds().unsigned_abs())
}

/// The date and time, UTC, for people: `2026-11-21T08:30:00Z`.
pub fn utc() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn time_moves_on() {
        let before = super::now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let took = super::now() - before;
        assert!(before > 0 && (2_000_000..2_000_000_000).contains(&took), "{took}");
    }
}
