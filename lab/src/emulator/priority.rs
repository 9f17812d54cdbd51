// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Scheduling of the emulator's thread: it sleeps most of the time, and when a packet is due it must run at once.

use nix::errno::Errno;
use nix::libc;

/// Puts the calling thread at the lowest real-time priority, before all ordinary threads, with timers as exact as the
/// kernel has them, and spares its process huge pages. Without the privilege the thread stays ordinary, which the health report shows if it matters.
pub(super) fn real_time() -> Result<(), Errno> {
    // 1 ns of timer slack instead of 50 us; it cannot fail.
    let _ = nix::sys::prctl::set_timerslack(1);
    // Who makes huge pages of this process's memory copies two megabytes while no page can be given to it: 2 ms.
    let _ = nix::sys::prctl::set_thp_disable(true);
    // SAFETY: all-zero is a valid sched_param, and the pointer to it is valid for the call; 0 is the calling thread.
    let result = unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = 1;
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    };
    Errno::result(result).map(drop)
}
