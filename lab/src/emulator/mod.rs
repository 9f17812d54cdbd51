// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The emulator: two TUN devices, one in each of two network namespaces, and a thread that carries packets from one
//! to the other as the link models say, in real time.
//!
//! The kernel's own TCP runs at both ends and notices nothing. The thread reads packets as soon as they come, gives
//! them to the model with the time of reading, sleeps until the model says that one is due, and writes it to the
//! other device. Both directions drain in small batches in turn, so that neither starves the other.

mod carrier;
mod health;
mod priority;
mod tun;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use serde::Serialize;
use thiserror::Error;

pub use health::{Health, LATE_NS, LATE_SHARE};
pub use tun::{MTU, Tun, TunError};

use crate::link::{Counters, Direction, LinkSample, LinkSpec, Nanos, RangeError};
use carrier::{Carrier, Path};

/// What can go wrong with an emulator.
#[derive(Debug, Error)]
pub enum EmulatorError {
    /// The link's description is out of range.
    #[error(transparent)]
    Link(#[from] RangeError),
    /// The stop signal could not be made.
    #[error("cannot create the emulator's event descriptor: {0}")]
    Event(#[source] Errno),
    /// The thread could not be started.
    #[error("cannot start the emulator's thread: {0}")]
    Thread(#[source] io::Error),
    /// Waiting for packets failed.
    #[error("the emulator cannot wait for packets: {0}")]
    Poll(#[source] Errno),
    /// Reading packets failed.
    #[error(
        "the emulator cannot read from the {side} side's TUN device: {source}; was the device taken down?"
    )]
    Read {
        /// `sender` or `receiver`.
        side: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The thread panicked.
    #[error("the emulator's thread ended unexpectedly; this is a bug in onramp")]
    Panicked,
}

/// What one direction did.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionReport {
    /// Totals, drops by cause.
    pub counters: Counters,
    /// Queue, drops and delay over time.
    pub samples: Vec<LinkSample>,
    /// When the first packet of full size was handed over (CLOCK_MONOTONIC): the first data of a transfer.
    pub first_full_ns: Option<Nanos>,
    /// When the last packet of full size was handed over: the last data of a transfer, but for a shorter last segment.
    pub last_full_ns: Option<Nanos>,
}

/// What an emulator did, from start to stop.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// From the sender to the receiver of data.
    pub forward: DirectionReport,
    /// From the receiver to the sender.
    #[serde(rename = "return")]
    pub back: DirectionReport,
    /// Whether it kept up.
    pub health: Health,
}

/// A running emulator. Dropping it stops it; the devices go with it.
pub struct Emulator {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<Result<Report, EmulatorError>>>,
}

impl Emulator {
    /// Starts carrying packets between the `sender`'s and the `receiver`'s device. Randomness comes from `seed`, the
    /// log has a line every `sample_period_us` microseconds (0: no log).
    ///
    /// # Errors
    /// [`EmulatorError::Link`] for a description out of range; trouble starting the thread.
    pub fn start(
        sender: Tun,
        receiver: Tun,
        link: &LinkSpec,
        seed: u64,
        sample_period_us: u64,
    ) -> Result<Self, EmulatorError> {
        // Each direction has its own seed: equal parts of both must not vary in step.
        let forward = Direction::new(&link.forward, "link.forward", seed.wrapping_mul(2), sample_period_us)?;
        let back = Direction::new(
            &link.back,
            "link.return",
            seed.wrapping_mul(2).wrapping_add(1),
            sample_period_us,
        )?;
        let stop = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC).map_err(EmulatorError::Event)?);
        let signal = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("emulator".into())
            .spawn(move || Carrier::new(sender, receiver, Path::new(forward), Path::new(back)).run(&signal))
            .map_err(EmulatorError::Thread)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Whether the thread has ended by itself, which only an error makes it do; [`Emulator::stop`] tells which.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops carrying packets; those still on the way are gone.
    ///
    /// # Errors
    /// What made the thread end early.
    pub fn stop(mut self) -> Result<Report, EmulatorError> {
        self.join().unwrap_or(Err(EmulatorError::Panicked))
    }

    fn join(&mut self) -> Option<Result<Report, EmulatorError>> {
        let thread = self.thread.take()?;
        // Writing to an eventfd fails only when its counter is at its limit of 2^64 - 2.
        let _ = self.stop.write(1);
        Some(thread.join().unwrap_or(Err(EmulatorError::Panicked)))
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.join() {
            tracing::warn!("{error}");
        }
    }
}
