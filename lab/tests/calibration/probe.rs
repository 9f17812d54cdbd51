// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! UDP probes between the two hosts of a calibration.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use onramp_lab::emulator::MTU;
use onramp_lab::host::{Hosts, RECEIVER, SENDER};
use onramp_profiles::link::LinkSpec;

/// IPv4 and UDP headers.
const HEADERS: usize = 28;
/// An echo, IP packet with headers.
const ECHO_BYTES: usize = 100;
const STREAM_PORT: u16 = 7_001;
const ECHO_PORT: u16 = 7_002;
/// Room for a second of packets at 1 Gb/s in the receiver's socket.
const BUFFER_BYTES: usize = 256 << 20;
/// The end of a wait is waited for busily: no sleep is as exact as the spacing at 1 Gb/s, 11 us.
const SPINNING: Duration = Duration::from_micros(100);
/// How long a receiver waits for one more packet before it looks whether the sender is done.
const TIMEOUT: Duration = Duration::from_millis(100);

/// A packet of the stream as the receiver saw it. Times are seconds on the wall clock.
pub(super) struct Seen {
    pub number: u64,
    pub sent: f64,
    pub arrived: f64,
}

/// Sockets on both sides.
pub(super) struct Probe {
    sender: UdpSocket,
    stream: UdpSocket,
    echo: UdpSocket,
}

impl Probe {
    pub fn open(hosts: &Hosts) -> anyhow::Result<Self> {
        let open = |address: SocketAddr| -> io::Result<UdpSocket> {
            let socket = UdpSocket::bind(address)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES)?;
            setsockopt(&socket, sockopt::SndBufForce, &BUFFER_BYTES)?;
            setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
            Ok(socket)
        };
        let sender = hosts.sender().run(|| open((SENDER, 0).into()))?.context("cannot open a probe")?;
        let stream =
            hosts.receiver().run(|| open((RECEIVER, STREAM_PORT).into()))?.context("cannot open a probe")?;
        let echo =
            hosts.receiver().run(|| open((RECEIVER, ECHO_PORT).into()))?.context("cannot open a probe")?;
        Ok(Self { sender, stream, echo })
    }

    /// Round-trip time of the fastest of some echoes, without the time their transmission takes, seconds.
    pub fn fastest_echo(&self, count: u32, link: &LinkSpec) -> anyhow::Result<f64> {
        let done = AtomicBool::new(false);
        let payload = vec![0; ECHO_BYTES - HEADERS];
        let fastest = std::thread::scope(|scope| {
            scope.spawn(|| self.reflect(&done));
            let result = (0..count)
                .map(|_| self.echo_once(&payload, link))
                .collect::<Result<Vec<_>, _>>()
                .map(|times| times.into_iter().flatten().reduce(f64::min));
            done.store(true, Ordering::Relaxed);
            result
        })?;
        let fastest = fastest.context("no echo arrived")?;
        let transmission = |rate_bps: u64| ECHO_BYTES as f64 * 8.0 / rate_bps as f64;
        Ok(fastest - transmission(link.forward.rate_bps) - transmission(link.back.rate_bps))
    }

    fn echo_once(&self, payload: &[u8], link: &LinkSpec) -> anyhow::Result<Option<f64>> {
        let sent = now();
        self.sender.send_to(payload, (RECEIVER, ECHO_PORT)).context("cannot send a probe")?;
        // Twice what it should take, and a second.
        let limit = 1.0 + link.base_rtt_us() as f64 * 2e-6;
        while now() - sent < limit {
            if let Some((_, arrived)) =
                receive(&self.sender, &mut [0; MTU]).context("cannot receive a probe")?
            {
                return Ok(Some(arrived - sent));
            }
        }
        Ok(None)
    }

    fn reflect(&self, done: &AtomicBool) {
        let mut buffer = [0; MTU];
        while !done.load(Ordering::Relaxed) {
            if let Ok((bytes, from)) = self.echo.recv_from(&mut buffer) {
                // A lost echo shows as silence at the other side.
                let _ = self.echo.send_to(&buffer[..bytes], from);
            }
        }
    }

    /// Sends `burst` full packets at once and `count` more at an even spacing, and returns what arrived, in order.
    pub fn stream(
        &self,
        count: u64,
        spacing_seconds: f64,
        burst: u64,
        link: &LinkSpec,
    ) -> anyhow::Result<Vec<Seen>> {
        let done = AtomicBool::new(false);
        // The longest a packet can be in progress: propagation, and a queue of the burst's size.
        let drain = (burst * MTU as u64 * 8) as f64 / link.forward.rate_bps as f64;
        let quiet_after = 0.3 + link.forward.delay_us as f64 / 1e6 + drain;
        std::thread::scope(|scope| {
            let receiver = scope.spawn(|| self.collect(&done, quiet_after));
            let sent = self.send(burst, 0.0, 0).and_then(|()| self.send(count, spacing_seconds, burst));
            done.store(true, Ordering::Relaxed);
            let seen = receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            sent.context("cannot send a probe")?;
            seen.context("cannot receive a probe")
        })
    }

    fn send(&self, count: u64, spacing_seconds: f64, first_number: u64) -> io::Result<()> {
        let mut payload = vec![0; MTU - HEADERS];
        let begin = now();
        for at in 0..count {
            let due = begin + at as f64 * spacing_seconds;
            let rest = due - now() - SPINNING.as_secs_f64();
            if rest > 0.0 {
                std::thread::sleep(Duration::from_secs_f64(rest));
            }
            while now() < due {
                std::hint::spin_loop();
            }
            payload[..8].copy_from_slice(&(first_number + at).to_ne_bytes());
            payload[8..16].copy_from_slice(&now().to_ne_bytes());
            self.sender.send_to(&payload, (RECEIVER, STREAM_PORT))?;
        }
        Ok(())
    }

    /// Receives until the sender is done and nothing has come for a while.
    fn collect(&self, done: &AtomicBool, quiet_after: f64) -> io::Result<Vec<Seen>> {
        let mut buffer = [0; MTU];
        let mut seen = Vec::new();
        let mut last = now();
        loop {
            match receive(&self.stream, &mut buffer)? {
                Some((payload, arrived)) => {
                    last = now();
                    let word = |at| payload.get(at..)?.first_chunk::<8>().copied();
                    if let (Some(number), Some(sent)) = (word(0), word(8)) {
                        let (number, sent) = (u64::from_ne_bytes(number), f64::from_ne_bytes(sent));
                        seen.push(Seen { number, sent, arrived });
                    }
                }
                None if !done.load(Ordering::Relaxed) => last = now(),
                None if now() - last > quiet_after => return Ok(seen),
                None => {}
            }
        }
    }
}

/// Wall clock, which the kernel's receive timestamps use, seconds. An f64 holds today's with 0.24 us.
fn now() -> f64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0.0, |time| time.num_nanoseconds() as f64 / 1e9)
}

/// One datagram and the time the kernel received it; `None` when none came in time.
fn receive<'a>(socket: &UdpSocket, buffer: &'a mut [u8]) -> io::Result<Option<(&'a [u8], f64)>> {
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let mut parts = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty());
    let (bytes, stamp) = match message {
        Ok(message) => {
            let stamp = message.cmsgs()?.find_map(|control| match control {
                ControlMessageOwned::ScmTimestampns(time) => Some(time.num_nanoseconds() as f64 / 1e9),
                _ => None,
            });
            (message.bytes, stamp)
        }
        Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    Ok(Some((&buffer[..bytes], stamp.unwrap_or_else(now))))
}
