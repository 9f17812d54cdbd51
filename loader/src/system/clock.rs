//! Clocks as the kernel's programs read them, and times of theirs by the wall clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_getres, clock_gettime};

/// Wall clock in microseconds; names an attachment, since two cannot begin in the same microsecond under the lock.
pub(crate) fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}

/// A jiffy: the resolution of the kernel's coarse clocks.
pub(crate) fn tick() -> Duration {
    clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map_or(Duration::from_millis(4), Duration::from)
}

/// Monotonic time, as `bpf_ktime_get_ns`.
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or_else(|_| TimeSpec::new(0, 0));
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// Time since boot, suspended time included, as `bpf_ktime_get_boot_ns`: no step of the wall clock changes it.
pub(crate) fn boot_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap_or_else(|_| TimeSpec::new(0, 0));
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// The deadline of what is attached now for a time.
pub(crate) fn deadline_ns(time: Duration) -> u64 {
    boot_ns() + time.as_nanos() as u64
}

/// How long ago a time since boot was.
pub(crate) fn since(then_ns: u64) -> Duration {
    Duration::from_nanos(boot_ns().saturating_sub(then_ns))
}

/// A time since boot by the wall clock as it is set now, microseconds since 1970; `None`: there is none.
pub(crate) fn wall_clock_us(deadline_ns: u64) -> Option<u64> {
    let now = now_us();
    let left_us = (deadline_ns as i64 - boot_ns() as i64) / 1_000;
    (deadline_ns != 0).then(|| now.saturating_add_signed(left_us))
}

/// What is left until a deadline; `None`: there is none.
pub(crate) fn left(deadline_ns: u64) -> Option<Duration> {
    (deadline_ns != 0).then(|| Duration::from_nanos(deadline_ns.saturating_sub(boot_ns())))
}

/// How long a deadline has been over; 0: it is not, or there is none.
pub(crate) fn overdue(deadline_ns: u64) -> Duration {
    if deadline_ns == 0 { Duration::ZERO } else { since(deadline_ns) }
}
