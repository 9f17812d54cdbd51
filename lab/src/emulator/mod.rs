// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The emulator: two TUN devices, one in each of two network namespaces, and a thread that carries packets from one
//! to the other as the link models say, in real time.
//!
//! The kernel's own TCP runs at both ends and notices nothing. The thread reads packets as soon as they come, gives
//! them to the model with the time of reading, sleeps until the model says that one is due, and writes it to the
//! other device. Both directions drain in small batches in turn, so that neither starves the other. Rate and delay can
//! be changed meanwhile: [`Emulator::set`].

mod carrier;
mod digest;
mod ecn;
mod extra_rtt;
mod health;
mod priority;
mod segment;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use carrier::BATCH;
pub use extra_rtt::ExtraRtts;
pub(crate) use extra_rtt::one_way;
pub use health::{Health, LATE_NS, LATE_SHARE};
pub use onramp_net::tun::{Tun, TunError};

use crate::link::{Change, Counters, LinkSample, LinkSpec, Nanos, Paths, RangeError};
use carrier::{Carrier, Path};

/// MTU of the lab's devices, bytes.
pub const MTU: usize = onramp_profiles::host::MTU_BYTES as usize;

/// What can go wrong with an emulator.
#[derive(Debug, Error)]
pub enum EmulatorError {
    /// The link's description is out of range.
    #[error(transparent)]
    Link(#[from] RangeError),
    /// The wake-up signal could not be made.
    #[error("cannot create the emulator's event descriptor: {0}")]
    Event(#[source] Errno),
    /// The thread could not be started.
    #[error("cannot start a thread of the emulator: {0}")]
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
        /// Reason.
        source: io::Error,
    },
    /// A change came after the thread had ended.
    #[error("the emulator has ended and cannot be changed; stop it to see why")]
    Ended,
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
    /// Of all packets that crossed the link either way: bytes, order, what became of each, and times since the start, to
    /// the nanosecond. `sha256:` and 64 hexadecimal digits. The same only where time itself is, as in a guest that counts
    /// its instructions.
    pub digest: String,
}

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From the sender to the receiver of data.
    Forward,
    /// From the receiver to the sender.
    Return,
}

impl Way {
    /// The direction's key in a profile.
    fn key(self) -> &'static str {
        match self {
            Self::Forward => "link.forward",
            Self::Return => "link.return",
        }
    }
}

/// What lies between the hosts.
#[derive(Clone, Debug)]
pub struct Wiring<'a> {
    /// The path that packets take at first.
    pub link: &'a LinkSpec,
    /// Those that they take after each [`Emulator::next_path`].
    pub to_come: &'a [LinkSpec],
    /// What flows have of RTT besides.
    pub extra_rtts: ExtraRtts,
}

impl<'a> From<&'a LinkSpec> for Wiring<'a> {
    fn from(link: &'a LinkSpec) -> Self {
        Self { link, to_come: &[], extra_rtts: ExtraRtts::default() }
    }
}

/// What the emulator's thread is asked to do.
enum Command {
    Change(Way, Change),
    NextPath,
    Stop,
}

/// A running emulator. Dropping it stops it; the devices go with it.
pub struct Emulator {
    commands: Sender<Command>,
    /// Wakes the thread, which then looks at its commands.
    wake: Arc<EventFd>,
    thread: Option<JoinHandle<Result<Report, EmulatorError>>>,
}

impl Emulator {
    /// Starts carrying packets between the `sender`'s and the `receiver`'s device. Randomness comes from `seed`, the
    /// log has a line every `sample_period_us` microseconds (0: no log).
    ///
    /// # Errors
    /// [`EmulatorError::Link`] for a description out of range; trouble starting the thread.
    pub fn start<'a>(
        sender: Tun,
        receiver: Tun,
        wiring: impl Into<Wiring<'a>>,
        seed: u64,
        sample_period_us: u64,
    ) -> Result<Self, EmulatorError> {
        let Wiring { link, to_come, extra_rtts } = wiring.into();
        let [forward, back] = Paths::pair(link, to_come, seed, sample_period_us)?;
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wake = Arc::new(EventFd::from_flags(flags).map_err(EmulatorError::Event)?);
        let signal = Arc::clone(&wake);
        let (commands, asked) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("emulator".into())
            .spawn(move || {
                let (forward, back) = (Path::new(Way::Forward, forward), Path::new(Way::Return, back));
                Carrier::new(sender, receiver, forward, back, extra_rtts).run(&asked, &signal)
            })
            .map_err(EmulatorError::Thread)?;
        Ok(Self { commands, wake, thread: Some(thread) })
    }

    /// Changes rate or delay of one direction of the path in use at once, while packets flow. See
    /// [`Direction::change`](crate::link::Direction::change) for what becomes of packets in transmission and on the way.
    ///
    /// # Errors
    /// [`EmulatorError::Link`] for a value out of range, [`EmulatorError::Ended`] after the thread has failed.
    pub fn set(&self, way: Way, change: Change) -> Result<(), EmulatorError> {
        change.validate(way.key())?;
        if self.has_failed() {
            return Err(EmulatorError::Ended);
        }
        self.ask(Command::Change(way, change))
    }

    /// Lets packets take the next path from now on, both ways; those in progress end on the one they took. Nothing happens where
    /// no path is to come.
    ///
    /// # Errors
    /// [`EmulatorError::Ended`] after the thread has failed.
    pub fn next_path(&self) -> Result<(), EmulatorError> {
        if self.has_failed() {
            return Err(EmulatorError::Ended);
        }
        self.ask(Command::NextPath)
    }

    fn ask(&self, command: Command) -> Result<(), EmulatorError> {
        self.commands.send(command).map_err(|_| EmulatorError::Ended)?;
        // It fails only when its counter is at its limit of 2^64 - 2, and then the thread is awake.
        let _ = self.wake.write(1);
        Ok(())
    }

    /// Whether the thread has ended by itself, which only an error makes it do; [`Emulator::stop`] returns it.
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
        // A thread that has ended by itself needs no stop.
        let _ = self.ask(Command::Stop);
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
