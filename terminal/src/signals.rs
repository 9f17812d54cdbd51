// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Signals that end a verb, waited for instead of taken.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Context;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// SIGINT, SIGTERM and SIGHUP, waiting to be asked about.
pub struct Signals {
    waiting: SignalFd,
    came: AtomicBool,
}

impl Signals {
    /// From here on they do not end the process, nor threads that are started later.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn take() -> anyhow::Result<Self> {
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            set.add(signal);
        }
        set.thread_block().context("cannot hold back signals")?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let waiting = SignalFd::with_flags(&set, flags).context("cannot wait for signals")?;
        Ok(Self { waiting, came: AtomicBool::new(false) })
    }

    /// Whether one has come since they were taken.
    pub fn came(&self) -> bool {
        if matches!(self.waiting.read_signal(), Ok(Some(_))) {
            self.came.store(true, Relaxed);
        }
        self.came.load(Relaxed)
    }
}
