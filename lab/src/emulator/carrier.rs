// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The emulator's thread.

use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, TryRecvError};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, clock_gettime};

use super::digest::Recorder;
use super::health::{Lateness, stolen_seconds};
use super::tun::{MTU, Tun};
use super::{Command, DirectionReport, EmulatorError, Report, Way, priority};
use crate::clock;
use crate::link::{Direction, Nanos};

/// Packets read or written before the other direction has its turn. Small, because a packet's time of arrival is when
/// it is read; large enough to spare system calls that find nothing.
const BATCH: usize = 32;

/// Packets of this size or more count as full: data, not acknowledgments or iperf3's control messages.
const FULL_BYTES: usize = 1_400;

/// A packet of at most MTU bytes. Boxed, because the models move packets around.
pub(super) type Packet = Box<Buffer>;

pub(super) struct Buffer {
    bytes: [u8; MTU],
    length: usize,
    /// Of the packet in its direction, for the digest.
    number: u32,
}

/// One direction and what is logged about it.
pub(super) struct Path {
    way: Way,
    model: Direction<Packet>,
    first_full: Option<Nanos>,
    last_full: Option<Nanos>,
}

impl Path {
    pub fn new(way: Way, model: Direction<Packet>) -> Self {
        Self { way, model, first_full: None, last_full: None }
    }

    fn report(mut self, now: Nanos) -> DirectionReport {
        self.model.advance(now);
        DirectionReport {
            counters: self.model.counters(),
            samples: self.model.take_samples(),
            first_full_ns: self.first_full,
            last_full_ns: self.last_full,
        }
    }
}

pub(super) struct Carrier {
    sender: Tun,
    receiver: Tun,
    forward: Path,
    back: Path,
    pool: Pool,
    lateness: Lateness,
    write_failures: u64,
    max_read_gap: Nanos,
}

impl Carrier {
    pub fn new(sender: Tun, receiver: Tun, forward: Path, back: Path) -> Self {
        let (pool, lateness) = (Pool::default(), Lateness::new());
        Self { sender, receiver, forward, back, pool, lateness, write_failures: 0, max_read_gap: 0 }
    }

    /// Carries packets until a command stops it; `wake` is signalled after each command.
    pub fn run(mut self, commands: &Receiver<Command>, wake: &EventFd) -> Result<Report, EmulatorError> {
        let real_time = priority::real_time().is_ok();
        let (began, stolen) = (clock::now(), stolen_seconds());
        self.forward.model.start(began);
        self.back.model.start(began);
        let mut recorder = Recorder::start(began).map_err(EmulatorError::Thread)?;
        let mut last_read = began;
        while !self.obey(commands)? {
            self.max_read_gap = self.max_read_gap.max(clock::now().saturating_sub(last_read));
            let more = read(&self.sender, &mut self.forward, &mut self.pool, &mut recorder)
                .map_err(|source| EmulatorError::Read { side: "sender", source })?
                | read(&self.receiver, &mut self.back, &mut self.pool, &mut recorder)
                    .map_err(|source| EmulatorError::Read { side: "receiver", source })?;
            last_read = clock::now();
            self.write(&mut recorder);
            if more {
                continue;
            }
            let now = clock::now();
            let next = [&self.forward, &self.back].into_iter().filter_map(|path| path.model.next_due()).min();
            let wait = next.map(|due| due.saturating_sub(now));
            if wait == Some(0) {
                continue;
            }
            self.wait(wake, wait)?;
            last_read = clock::now();
        }
        let now = clock::now();
        let mut health = self.lateness.health();
        health.write_failures = self.write_failures;
        health.max_read_gap_us = self.max_read_gap as f64 / 1e3;
        health.real_time = real_time;
        health.stolen_seconds = stolen_seconds() - stolen;
        health.wall_seconds = (now - began) as f64 / 1e9;
        health.cpu_seconds = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
            .map_or(0.0, |time| time.num_nanoseconds() as f64 / 1e9);
        let (forward, back) = (self.forward.report(now), self.back.report(now));
        let digest = recorder.finish([forward.counters, back.counters]).ok_or(EmulatorError::Panicked)?;
        Ok(Report { forward, back, health, digest })
    }

    /// Follows the commands that have come; true if one of them is to stop.
    fn obey(&mut self, commands: &Receiver<Command>) -> Result<bool, EmulatorError> {
        loop {
            match commands.try_recv() {
                Ok(Command::Change(Way::Forward, change)) => {
                    self.forward.model.change(clock::now(), change)?
                }
                Ok(Command::Change(Way::Return, change)) => self.back.model.change(clock::now(), change)?,
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return Ok(true),
                Err(TryRecvError::Empty) => return Ok(false),
            }
        }
    }

    /// Sleeps until a packet comes, one is due, or there is a command.
    fn wait(&self, wake: &EventFd, wait: Option<Nanos>) -> Result<(), EmulatorError> {
        let mut descriptors = [
            PollFd::new(self.sender.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.receiver.as_fd(), PollFlags::POLLIN),
            PollFd::new(wake.as_fd(), PollFlags::POLLIN),
        ];
        let timeout = wait.map(|wait| TimeSpec::nanoseconds(wait.min(i64::MAX as u64) as i64));
        match ppoll(&mut descriptors, timeout, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(EmulatorError::Poll(errno)),
        }
        if descriptors[2].any().unwrap_or(false) {
            // The signal has done its work; only an earlier read could have taken it, and there is none.
            let _ = wake.read();
        }
        Ok(())
    }

    /// Hands over what is due.
    fn write(&mut self, recorder: &mut Recorder) {
        for (path, tun) in [(&mut self.forward, &self.receiver), (&mut self.back, &self.sender)] {
            for _ in 0..BATCH {
                let now = clock::now();
                let Some(delivery) = path.model.deliver(now) else { break };
                self.lateness.add(now - delivery.due);
                let packet = delivery.packet;
                recorder.handed_over(path.way, now, packet.number, delivery.due);
                if tun.write(&packet.bytes[..packet.length]).is_err() {
                    self.write_failures += 1;
                }
                if packet.length >= FULL_BYTES {
                    path.last_full = Some(now);
                    path.first_full.get_or_insert(now);
                }
                self.pool.put(packet);
            }
        }
    }
}

/// Reads a batch of packets into the model; true if there may be more.
fn read(tun: &Tun, path: &mut Path, pool: &mut Pool, recorder: &mut Recorder) -> std::io::Result<bool> {
    for _ in 0..BATCH {
        let mut packet = pool.take();
        match tun.read(&mut packet.bytes)? {
            Some(length) => packet.length = length,
            None => {
                pool.put(packet);
                return Ok(false);
            }
        }
        let (now, length) = (clock::now(), packet.length as u32);
        packet.number = recorder.arrived(path.way, now, &packet.bytes[..packet.length]);
        if let Err((dropped, cause)) = path.model.arrive(now, packet, length) {
            recorder.refused(path.way, now, cause);
            pool.put(dropped);
        }
    }
    Ok(true)
}

/// Buffers for reuse: a long queue needs thousands, all the time.
#[derive(Default)]
struct Pool(Vec<Packet>);

impl Pool {
    fn take(&mut self) -> Packet {
        self.0.pop().unwrap_or_else(|| Box::new(Buffer { bytes: [0; MTU], length: 0, number: 0 }))
    }

    fn put(&mut self, packet: Packet) {
        self.0.push(packet);
    }
}
