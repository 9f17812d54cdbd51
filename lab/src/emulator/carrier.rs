// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The emulator's thread.

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, TryRecvError};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, clock_gettime};

use super::digest::Recorder;
use super::health::{Lateness, ProcessorTime};
use super::segment::{Frame, HEADER, MOST, Read};
use super::{Command, DirectionReport, EmulatorError, ExtraRtts, Report, Way, ecn, extra_rtt, priority};
use super::{MTU, Tun};
use crate::clock;
use crate::link::{Arrival, Nanos, Paths};

/// Packets read or written before the other direction has its turn. Small, because a packet's time of arrival is when
/// it is read; large enough to spare system calls that find nothing.
pub(crate) const BATCH: usize = 32;

/// Packets of this size or more count as full: data, not acknowledgments or iperf3's control messages.
const FULL_BYTES: usize = 1_400;

/// Looks at one device alone, after which both are looked at: what was just delivered is answered at once, and no process
/// starves.
const ANSWERS: u32 = 8;

/// A packet of at most MTU bytes. Boxed, because the models move packets around.
pub(super) type Packet = Box<Buffer>;

pub(super) struct Buffer {
    /// The packet behind the header of offloads.
    frame: Frame,
    /// Of both, bytes.
    length: usize,
    /// Of the packet in its direction, for the digest.
    number: u32,
}

impl Buffer {
    fn ip(&self) -> &[u8] {
        &self.frame[HEADER..self.length]
    }

    fn ip_mut(&mut self) -> &mut [u8] {
        &mut self.frame[HEADER..self.length]
    }
}

/// One direction and what is logged about it.
pub(super) struct Path {
    way: Way,
    /// Packets may wait at the device that it comes from.
    ready: bool,
    model: Paths<Packet>,
    /// Full packets handed over.
    full: u64,
    first_full: Option<Nanos>,
    last_full: Option<Nanos>,
}

impl Path {
    pub fn new(way: Way, model: Paths<Packet>) -> Self {
        Self { way, ready: true, model, full: 0, first_full: None, last_full: None }
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
    extra_rtts: ExtraRtts,
    pool: Pool,
    /// What was read last.
    read: Box<[u8; MOST]>,
    lateness: Lateness,
    write_failures: u64,
    max_read_gap: Nanos,
}

impl Carrier {
    pub fn new(sender: Tun, receiver: Tun, forward: Path, back: Path, extra_rtts: ExtraRtts) -> Self {
        let (pool, read, lateness) = (Pool::default(), Box::new([0; MOST]), Lateness::new());
        Self {
            sender,
            receiver,
            forward,
            back,
            extra_rtts,
            pool,
            read,
            lateness,
            write_failures: 0,
            max_read_gap: 0,
        }
    }

    /// Carries packets until a command stops it; `wake` is signalled after each command.
    pub fn run(mut self, commands: &Receiver<Command>, wake: &EventFd) -> Result<Report, EmulatorError> {
        let real_time = priority::real_time().is_ok();
        let (began, before) = (clock::now(), ProcessorTime::now());
        self.forward.model.start(began);
        self.back.model.start(began);
        let mut recorder = Recorder::start(began).map_err(EmulatorError::Thread)?;
        let (mut last_look, mut answers) = (began, 0);
        while !self.obey(commands)? {
            if self.forward.ready && self.back.ready {
                let now = clock::now();
                self.max_read_gap = self.max_read_gap.max(now.saturating_sub(last_look));
                (last_look, answers) = (now, 0);
            }
            self.read(Way::Forward, &mut recorder)?;
            self.read(Way::Return, &mut recorder)?;
            self.write(&mut recorder);
            if !self.forward.ready && !self.back.ready {
                let now = clock::now();
                let paths = [&self.forward, &self.back];
                let next = paths.into_iter().filter_map(|path| path.model.next_due()).min();
                let wait = next.map(|due| due.saturating_sub(now));
                if wait != Some(0) {
                    self.max_read_gap = self.max_read_gap.max(now.saturating_sub(last_look));
                    self.wait(wake, wait)?;
                    (last_look, answers) = (clock::now(), 0);
                    continue;
                }
            }
            answers += 1;
            if answers >= ANSWERS {
                (self.forward.ready, self.back.ready) = (true, true);
            }
        }
        let now = clock::now();
        let mut health = self.lateness.health();
        health.write_failures = self.write_failures;
        health.max_read_gap_us = self.max_read_gap as f64 / 1e3;
        health.real_time = real_time;
        health.wall_seconds = (now - began) as f64 / 1e9;
        let after = ProcessorTime::now();
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let idle = after.idle - before.idle;
        health.busy_seconds = (health.wall_seconds * processors - idle).max(0.0);
        health.stolen_seconds = after.stolen - before.stolen;
        health.full_packets = self.forward.full + self.back.full;
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
                Ok(Command::NextPath) => {
                    let now = clock::now();
                    self.forward.model.next_path(now);
                    self.back.model.next_path(now);
                }
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return Ok(true),
                Err(TryRecvError::Empty) => return Ok(false),
            }
        }
    }

    /// Sleeps until a packet comes, one is due, or there is a command.
    fn wait(&mut self, wake: &EventFd, wait: Option<Nanos>) -> Result<(), EmulatorError> {
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
        let [forward, back, asked] = descriptors.map(|descriptor| descriptor.any().unwrap_or(false));
        (self.forward.ready, self.back.ready) = (forward, back);
        if asked {
            // The signal has done its work; only an earlier read could have taken it, and there is none.
            let _ = wake.read();
        }
        Ok(())
    }

    /// Reads packets into the model, if there may be any, up to a batch.
    fn read(&mut self, way: Way, recorder: &mut Recorder) -> Result<(), EmulatorError> {
        let (path, tun, side) = match way {
            Way::Forward => (&mut self.forward, &self.sender, "sender"),
            Way::Return => (&mut self.back, &self.receiver, "receiver"),
        };
        let mut packets = 0;
        while path.ready && packets < BATCH {
            let failed = |source| EmulatorError::Read { side, source };
            let Some(length) = tun.read(&mut *self.read).map_err(failed)? else {
                path.ready = false;
                break;
            };
            let now = clock::now();
            let Some(read) = Read::parse(&self.read[..length]) else {
                return Err(failed(io::ErrorKind::InvalidData.into()));
            };
            for number in 0..read.packets() {
                let mut packet = self.pool.take();
                packet.length = read.write(number, &mut packet.frame);
                packet.number = recorder.arrived(path.way, now, packet.ip());
                let bytes = packet.ip().len() as u32;
                let capable = ecn::is_capable(packet.ip());
                let own_delay = self.extra_rtts.delay(path.way, packet.ip());
                let flow = extra_rtt::port(path.way, packet.ip()).map_or(0, u64::from);
                let arrival = Arrival { packet, bytes, capable, flow, own_delay };
                if let Err((dropped, cause)) = path.model.arrive_of(now, arrival) {
                    recorder.refused(path.way, now, cause);
                    self.pool.put(dropped);
                }
            }
            packets += read.packets();
        }
        Ok(())
    }

    /// Hands over what is due; where that was anything, the other side may have answered.
    fn write(&mut self, recorder: &mut Recorder) {
        for way in [Way::Forward, Way::Return] {
            let (path, answer, tun) = match way {
                Way::Forward => (&mut self.forward, &mut self.back, &self.receiver),
                Way::Return => (&mut self.back, &mut self.forward, &self.sender),
            };
            for _ in 0..BATCH {
                let Some(next) = path.model.next_due() else { break };
                let now = clock::now();
                let Some(delivery) = (next <= now).then(|| path.model.deliver(now)).flatten() else { break };
                self.lateness.add(now - delivery.due);
                let mut packet = delivery.packet;
                if delivery.marked {
                    ecn::mark(packet.ip_mut());
                }
                recorder.handed_over(path.way, now, packet.number, delivery.due);
                if tun.write(&packet.frame[..packet.length]).is_err() {
                    self.write_failures += 1;
                }
                answer.ready = true;
                if packet.ip().len() >= FULL_BYTES {
                    path.full += 1;
                    path.last_full = Some(now);
                    path.first_full.get_or_insert(now);
                }
                self.pool.put(packet);
            }
        }
    }
}

/// Buffers for reuse: a long queue needs thousands, all the time.
#[derive(Default)]
struct Pool(Vec<Packet>);

impl Pool {
    fn take(&mut self) -> Packet {
        self.0.pop().unwrap_or_else(|| Box::new(Buffer { frame: [0; HEADER + MTU], length: 0, number: 0 }))
    }

    fn put(&mut self, packet: Packet) {
        self.0.push(packet);
    }
}
