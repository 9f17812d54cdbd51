// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What this host's TCP as a receiver allows any sender of data to do, measured: a connection of the kernel's, in a network
//! namespace of its own, to a peer that is played here. The peer has a line of a rate and a round-trip time, obeys the window
//! that it is offered, and is held back by nothing else: it sends whatever the window allows, as fast as the line takes it.
//!
//! ```text
//!   kernel: connect, read ──── TUN device ──── segments of zeros: the peer
//!                  192.0.2.2              192.0.2.1
//! ```
//!
//! The whole round-trip time lies between an acknowledgment and what it releases. All of it is one thread: a segment arrives,
//! the application reads, the acknowledgment is taken, so that the receiver's application never lags.
//!
//! The namespace has no name and the device is a descriptor: both end with the process, also when it is killed.

mod segment;
mod wire;

use std::collections::VecDeque;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use thiserror::Error;

use crate::tun::TunError;
use crate::{Namespace, NamespaceError};
use wire::Wire;

/// What the kernel offers by, of a network namespace; the namespace that is made gets the values of the one that asks.
const SETTINGS: [&str; 6] = [
    RMEM,
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_shrink_window",
];
const RMEM: &str = "net.ipv4.tcp_rmem";
/// Bytes of a packet and of its header of IP, as MTU and MSS count them.
const MTU: u64 = 1_500;

/// What can go wrong.
#[derive(Debug, Error)]
pub enum ReceiverError {
    /// A namespace could not be made or entered, or its settings read or written.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The TUN device could not be made.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The connection or its device failed.
    #[error("the connection by which the receiver is measured cannot {action}: {source}")]
    Connection {
        /// What it was about to do.
        action: &'static str,
        /// Reason.
        source: io::Error,
    },
    /// The kernel did not answer in time.
    #[error("the kernel has not {what} within {limit:?}")]
    Silent {
        /// What it should have done.
        what: &'static str,
        /// How long was waited.
        limit: Duration,
    },
}

impl ReceiverError {
    fn connection(action: &'static str) -> impl Fn(Errno) -> Self {
        move |source| Self::Connection { action, source: source.into() }
    }
}

/// How the receiver is asked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Rate of the peer's line, bits per second, above 0; packets count with their headers of IP and TCP.
    pub rate_bps: u64,
    /// Round-trip time, above 0.
    pub rtt: Duration,
    /// Bytes that are sent.
    pub bytes: u64,
    /// It ends after this, whatever has come.
    pub limit: Duration,
    /// `net.ipv4.tcp_rmem` in place of the current namespace's.
    pub tcp_rmem: Option<String>,
}

/// A round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The largest window that was offered in it, bytes.
    pub window_bytes: u64,
    /// Bytes that the application has read in it.
    pub read_bytes: u64,
    /// Memory of the socket's receive buffer at its end, bytes (SO_RCVBUF).
    pub buffer_bytes: u64,
}

/// What a receiver has offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// Window in the SYN, bytes.
    pub syn_window_bytes: u64,
    /// Window in the acknowledgment that ends the handshake, bytes: what a first flight may have.
    pub first_window_bytes: u64,
    /// Round trips from then on.
    pub rounds: Vec<Round>,
    /// When so many bytes had been read, from the end of the handshake as the peer sees it.
    read: Vec<(Duration, u64)>,
}

impl Offered {
    /// How long it takes until so many bytes have been read, from when the peer may send the first; `None`: they were not.
    pub fn time_of(&self, bytes: u64) -> Option<Duration> {
        let at = self.read.partition_point(|(_, read)| *read < bytes);
        self.read.get(at).map(|(time, _)| *time)
    }
}

impl Plan {
    /// How long so many bytes take if the receiver is not the limit: what the line needs.
    pub fn line_time(&self, bytes: u64) -> Duration {
        // With timestamps, as Linux has them by default.
        let packets = bytes.div_ceil(MTU - wire::HEADERS);
        Duration::from_secs_f64((bytes + packets * wire::HEADERS) as f64 * 8.0 / self.rate_bps as f64)
    }

    /// Measures what a receiver with the settings of the calling thread's network namespace offers.
    ///
    /// # Errors
    /// [`ReceiverError`] without CAP_SYS_ADMIN and CAP_NET_ADMIN, or without TUN devices.
    pub fn measure(&self) -> Result<Offered, ReceiverError> {
        let (here, there) = (Namespace::current()?, Namespace::create()?);
        for name in SETTINGS {
            // No kernel has all of them.
            let Ok(value) = here.sysctl_get(name) else { continue };
            let asked = self.tcp_rmem.clone().filter(|_| name == RMEM);
            there.sysctl_set(name, &asked.unwrap_or(value))?;
        }
        there.run(|| {
            let mut wire = Wire::lay(&there)?;
            let (syn, first) = wire.shake_hands(self.rtt)?;
            // Until the peer knows of it.
            sleep(self.rtt);
            Peer::new(self, wire).send(Offered {
                syn_window_bytes: syn,
                first_window_bytes: first,
                ..Offered::default()
            })
        })?
    }
}

/// An acknowledgment on its way to the peer.
struct OnItsWay {
    due: Duration,
    /// The byte before which the window ends.
    end: u64,
    clock: u32,
}

/// The sender. Times are from the end of the handshake.
struct Peer<'a> {
    plan: &'a Plan,
    wire: Wire,
    begin: Instant,
    on_their_way: VecDeque<OnItsWay>,
    /// The byte before which the window ends, as far as the peer knows, and since when.
    end: u64,
    since: Duration,
    clock: u32,
    sent: u64,
    read: u64,
    /// When the line has taken the last segment.
    free: Duration,
    /// The window has held the peer back since.
    blocked: bool,
}

impl<'a> Peer<'a> {
    fn new(plan: &'a Plan, wire: Wire) -> Self {
        Self {
            plan,
            end: wire.first_end(),
            clock: wire.clock(),
            wire,
            begin: Instant::now(),
            on_their_way: VecDeque::new(),
            since: Duration::ZERO,
            sent: 0,
            read: 0,
            free: Duration::ZERO,
            blocked: false,
        }
    }

    fn send(mut self, mut offered: Offered) -> Result<Offered, ReceiverError> {
        let rtt = self.plan.rtt.max(Duration::from_micros(1));
        while self.read < self.plan.bytes {
            let now = self.begin.elapsed();
            if now >= self.plan.limit {
                break;
            }
            self.arrive(now);
            let due = self.next_segment(now)?;
            self.read_all(now, rtt, &mut offered)?;
            let next = self.on_their_way.front().map(|ack| ack.due).into_iter().chain(due).min();
            let next = next.unwrap_or(self.plan.limit).min(self.plan.limit);
            self.wire.wait(next.saturating_sub(self.begin.elapsed()))?;
        }
        Ok(offered)
    }

    /// Acknowledgments that have come.
    fn arrive(&mut self, now: Duration) {
        while let Some(ack) = self.on_their_way.front().filter(|ack| ack.due <= now) {
            if ack.end > self.end {
                (self.end, self.since) = (ack.end, ack.due);
            }
            self.clock = ack.clock;
            self.on_their_way.pop_front();
        }
    }

    /// Sends a segment if the window allows one and the line has had the time for it; when the next is due.
    fn next_segment(&mut self, now: Duration) -> Result<Option<Duration>, ReceiverError> {
        let bytes = self.wire.segment_bytes().min(self.plan.bytes - self.sent);
        if bytes == 0 || self.sent + bytes > self.end {
            self.blocked = bytes > 0;
            return Ok(None);
        }
        if std::mem::take(&mut self.blocked) {
            self.free = self.free.max(self.since);
        }
        let on_the_line = (bytes + wire::HEADERS) as f64 * 8.0 / self.plan.rate_bps as f64;
        let due = self.free + Duration::from_secs_f64(on_the_line);
        if due > now {
            return Ok(Some(due));
        }
        self.free = due;
        let last = self.sent + bytes == self.plan.bytes;
        self.wire.send(self.sent, bytes, self.clock, last)?;
        self.sent += bytes;
        Ok(Some(now))
    }

    /// The application reads, and what the kernel says goes on its way.
    fn read_all(&mut self, now: Duration, rtt: Duration, offered: &mut Offered) -> Result<(), ReceiverError> {
        let read = self.wire.read_data()?;
        self.read += read;
        let mut window = 0;
        while let Some(ack) = self.wire.hear()? {
            window = window.max(ack.window_bytes);
            let end = ack.acknowledged + ack.window_bytes;
            self.on_their_way.push_back(OnItsWay { due: now + rtt, end, clock: ack.clock });
        }
        if read == 0 && window == 0 {
            return Ok(());
        }
        let number = (now.as_nanos() / rtt.as_nanos()) as usize;
        offered.rounds.resize(offered.rounds.len().max(number + 1), Round::default());
        let round = &mut offered.rounds[number];
        round.window_bytes = round.window_bytes.max(window);
        round.read_bytes += read;
        round.buffer_bytes = self.wire.buffer_bytes()?;
        if read > 0 {
            offered.read.push((now, self.read));
        }
        Ok(())
    }
}
