// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The kernel's connection, and the device at whose other end the peer is.

use std::io::{ErrorKind, Read};
use std::mem::zeroed;
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, connect, getsockopt, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;

use super::segment::{self, ACK, End, Heard, PUSH, SYN, Said};
use super::{MTU, ReceiverError};
use crate::Namespace;
use crate::tun::Tun;

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
        let syn = self.answer("asked for a connection", |heard| heard.flags & (SYN | ACK) == SYN)?;
        self.port = syn.port;
        self.sequence = syn.sequence.wrapping_add(1);
        self.clock = syn.clock;
        sleep(rtt);
        let mss = ((MTU - 40) as u16).to_be_bytes();
        let mut options = vec![2, 4, mss[0], mss[1]];
        if syn.scale.is_some() {
            options.extend([1, 3, 3, 14]);
        }
        options.extend(self.timestamps(self.clock));
        let said = self.said(SYN | ACK, FIRST, &options, 0);
        self.write(&said)?;
        let end = self.answer("taken the connection", |heard| heard.flags & (SYN | ACK) == ACK)?;
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
        let flags = if last { ACK | PUSH } else { ACK };
        self.write(&self.said(flags, FIRST.wrapping_add(1).wrapping_add(place as u32), &options, bytes))
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
    fn timestamps(&self, clock: Option<u32>) -> Vec<u8> {
        let Some(clock) = clock else { return Vec::new() };
        let mut option = vec![1, 1, 8, 10, 0, 0, 0, 1];
        option.extend(clock.to_be_bytes());
        option
    }

    fn said(&self, flags: u8, sequence: u32, options: &[u8], bytes: u64) -> Vec<u8> {
        let (from, to) = (PEER, (KERNEL, self.port));
        Said { from, to, flags, sequence, acknowledged: self.sequence, options, bytes: bytes as usize }
            .packet()
    }

    fn write(&self, packet: &[u8]) -> Result<(), ReceiverError> {
        self.tun.write(packet).map_err(|source| ReceiverError::Connection { action: "be sent to", source })
    }
}

/// Gives the device its address, and has it up.
fn configure() -> Result<(), Errno> {
    let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let address = |request: &mut libc::ifreq, address: Ipv4Addr| {
        let address = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_addr: libc::in_addr { s_addr: u32::from(address).to_be() },
            // SAFETY: all zero is a sockaddr_in.
            ..unsafe { zeroed() }
        };
        // SAFETY: a sockaddr_in is one of the kinds of addresses that a sockaddr stands for, of the same size.
        request.ifr_ifru.ifru_addr =
            unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(address) };
    };
    set(&any, libc::SIOCSIFADDR, |request| address(request, KERNEL))?;
    set(&any, libc::SIOCSIFNETMASK, |request| address(request, MASK))?;
    set(&any, libc::SIOCSIFFLAGS, |request| {
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    })
}

/// Sets something about the device.
fn set(any: &OwnedFd, what: libc::c_ulong, value: impl FnOnce(&mut libc::ifreq)) -> Result<(), Errno> {
    // SAFETY: all zero is an ifreq.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(DEVICE.bytes()) {
        *to = from as libc::c_char;
    }
    value(&mut request);
    // SAFETY: these read one ifreq, which `request` is, with a name that ends in NUL.
    let result = unsafe { libc::ioctl(any.as_raw_fd(), what, &raw const request) };
    Errno::result(result).map(drop)
}
