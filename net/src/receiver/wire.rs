// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The kernel's connection, and the device at whose other end the peer is.

use std::io::{ErrorKind, Read};
use std::mem::zeroed;
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use etherparse::TcpOptionElement;
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, connect, getsockopt, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;

use super::segment::{self, End, Heard, Said};
use super::{MTU, ReceiverError};
use crate::tun::Tun;
use crate::{Namespace, interface};

/// Headers of IP and TCP with timestamps (RFC 7323), bytes.
pub(super) const HEADERS: u64 = 52;
const DEVICE: &str = "onramp0";
const PEER: End = (Ipv4Addr::new(192, 0, 2, 1), 443);
const KERNEL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);
/// Sequence number of the peer's SYN.
const FIRST: u32 = 0;
/// The kernel answers at once.
const ANSWER: Duration = Duration::from_secs(5);

/// An acknowledgment.
pub(super) struct Acknowledgment {
    /// Bytes of the stream.
    pub acknowledged: u64,
    /// From there on.
    pub window_bytes: u64,
    /// The kernel's clock; 0 without timestamps.
    pub clock: u32,
}

/// See the module.
pub(super) struct Wire {
    stream: TcpStream,
    tun: Tun,
    port: u16,
    /// The kernel's next byte.
    sequence: u32,
    scale: u8,
    clock: Option<u32>,
    first_end: u64,
}

impl Wire {
    /// Lays it in a namespace, in which the calling thread is, and has the kernel ask for a connection.
    pub fn lay(namespace: &Namespace) -> Result<Self, ReceiverError> {
        let tun = Tun::create_plain(namespace, DEVICE)?;
        configure().map_err(ReceiverError::connection("configure its device"))?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let opened = |errno| ReceiverError::connection("be opened")(errno);
        let stream = socket(AddressFamily::Inet, SockType::Stream, flags, None).map_err(opened)?;
        // What is left of it goes with it: else the kernel would keep the namespace until it has sent a FIN in vain.
        let abort = libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&stream, sockopt::Linger, &abort).map_err(opened)?;
        let [a, b, c, d] = PEER.0.octets();
        match connect(stream.as_raw_fd(), &SockaddrIn::new(a, b, c, d, PEER.1)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(errno) => return Err(opened(errno)),
        }
        Ok(Self { stream: stream.into(), tun, port: 0, sequence: 0, scale: 0, clock: None, first_end: 0 })
    }

    /// Makes the connection, for which the peer's answer takes a round trip; the windows in the kernel's SYN and in its
    /// acknowledgment, bytes.
    pub fn shake_hands(&mut self, rtt: Duration) -> Result<(u64, u64), ReceiverError> {
        let syn = self.answer("asked for a connection", |heard| heard.syn && !heard.ack)?;
        self.port = syn.port;
        self.sequence = syn.sequence.wrapping_add(1);
        self.clock = syn.clock;
        sleep(rtt);
        let mut options = vec![TcpOptionElement::MaximumSegmentSize((MTU - 40) as u16)];
        if syn.scale.is_some() {
            options.extend([TcpOptionElement::Noop, TcpOptionElement::WindowScale(14)]);
        }
        options.extend(self.timestamps(self.clock));
        self.say(&Said { syn: true, options: &options, ..self.said(FIRST) })?;
        let end = self.answer("taken the connection", |heard| heard.ack && !heard.syn)?;
        self.scale = syn.scale.unwrap_or(0);
        self.clock = end.clock;
        self.first_end = u64::from(end.window) << self.scale;
        Ok((syn.window.into(), self.first_end))
    }

    /// The byte before which the first window ends.
    pub fn first_end(&self) -> u64 {
        self.first_end
    }

    /// The kernel's clock in the latest segment that was heard; 0 without timestamps.
    pub fn clock(&self) -> u32 {
        self.clock.unwrap_or(0)
    }

    /// Bytes of a full segment.
    pub fn segment_bytes(&self) -> u64 {
        if self.clock.is_some() { MTU - HEADERS } else { MTU - 40 }
    }

    /// Sends bytes of the stream from this place on, with the kernel's clock that released them.
    pub fn send(&self, place: u64, bytes: u64, clock: u32, last: bool) -> Result<(), ReceiverError> {
        let options = self.timestamps(self.clock.map(|_| clock));
        let said = self.said(FIRST.wrapping_add(1).wrapping_add(place as u32));
        self.say(&Said { push: last, options: &options, bytes: bytes as usize, ..said })
    }

    /// What the kernel says next, if it has said something.
    pub fn hear(&mut self) -> Result<Option<Acknowledgment>, ReceiverError> {
        let Some(heard) = self.next()? else { return Ok(None) };
        self.clock = heard.clock;
        Ok(Some(Acknowledgment {
            acknowledged: u64::from(heard.acknowledged.wrapping_sub(FIRST.wrapping_add(1))),
            window_bytes: u64::from(heard.window) << self.scale,
            clock: self.clock(),
        }))
    }

    /// The application reads all that there is; how many bytes.
    pub fn read_data(&self) -> Result<u64, ReceiverError> {
        let (mut buffer, mut read) = ([0; 1 << 16], 0);
        loop {
            match (&self.stream).read(&mut buffer) {
                Ok(0) => return Ok(read),
                Ok(bytes) => read += bytes as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(read),
                Err(source) => return Err(ReceiverError::Connection { action: "read", source }),
            }
        }
    }

    /// Memory of the socket's receive buffer.
    pub fn buffer_bytes(&self) -> Result<u64, ReceiverError> {
        let bytes =
            getsockopt(&self.stream, sockopt::RcvBuf).map_err(ReceiverError::connection("be asked"))?;
        Ok(bytes as u64)
    }

    /// Waits so long, or until the kernel says something.
    pub fn wait(&self, time: Duration) -> Result<(), ReceiverError> {
        let mut heard = [PollFd::new(self.tun.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut heard, Some(TimeSpec::from_duration(time)), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(ReceiverError::connection("wait")(errno)),
        }
    }

    /// The next segment of TCP.
    fn next(&self) -> Result<Option<Heard>, ReceiverError> {
        let mut buffer = [0; 2_048];
        loop {
            let read = self.tun.read(&mut buffer);
            match read.map_err(|source| ReceiverError::Connection { action: "be heard", source })? {
                None => return Ok(None),
                Some(bytes) => {
                    if let Some(heard) = segment::read(&buffer[..bytes]) {
                        return Ok(Some(heard));
                    }
                }
            }
        }
    }

    /// The first segment of a kind.
    fn answer(&self, what: &'static str, is_it: impl Fn(&Heard) -> bool) -> Result<Heard, ReceiverError> {
        let begin = Instant::now();
        while begin.elapsed() < ANSWER {
            match self.next()? {
                Some(heard) if is_it(&heard) => return Ok(heard),
                Some(_) => {}
                None => self.wait(ANSWER.saturating_sub(begin.elapsed()))?,
            }
        }
        Err(ReceiverError::Silent { what, limit: ANSWER })
    }

    /// The option, if the kernel takes part: the peer's own clock counts nothing.
    fn timestamps(&self, clock: Option<u32>) -> Vec<TcpOptionElement> {
        let Some(clock) = clock else { return Vec::new() };
        vec![TcpOptionElement::Noop, TcpOptionElement::Noop, TcpOptionElement::Timestamp(1, clock)]
    }

    /// An acknowledgment of all that the kernel has said.
    fn said(&self, sequence: u32) -> Said<'static> {
        Said {
            from: PEER,
            to: (KERNEL, self.port),
            syn: false,
            push: false,
            sequence,
            acknowledged: self.sequence,
            options: &[],
            bytes: 0,
        }
    }

    fn say(&self, said: &Said<'_>) -> Result<(), ReceiverError> {
        let sent = said.packet().and_then(|packet| self.tun.write(&packet));
        sent.map_err(|source| ReceiverError::Connection { action: "be sent to", source })
    }
}

/// Gives the device its address, and has it up.
fn configure() -> Result<(), Errno> {
    let address = |address: Ipv4Addr| {
        let address = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_addr: libc::in_addr { s_addr: u32::from(address).to_be() },
            // SAFETY: all zero is a sockaddr_in.
            ..unsafe { zeroed() }
        };
        // SAFETY: a sockaddr_in is one of the kinds of addresses that a sockaddr stands for, of the same size.
        let ifru_addr = unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(address) };
        libc::__c_anonymous_ifr_ifru { ifru_addr }
    };
    interface::set(DEVICE, libc::SIOCSIFADDR, address(KERNEL))?;
    interface::set(DEVICE, libc::SIOCSIFNETMASK, address(MASK))?;
    interface::set_up(DEVICE)
}
