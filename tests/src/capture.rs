//! What leaves or arrives in a network namespace, with the kernel's times.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, setsockopt, socket, sockopt,
};
use onramp_net::Namespace;

/// Room for what has not been read yet, bytes.
const BUFFER_BYTES: usize = 256 << 20;

nix::ioctl_read_bad!(
    /// Time of the packet read last; asking for it the first time is what has the kernel take times at all.
    time_of_last_packet,
    0x8907,
    libc::timespec
);

/// A data packet of a TCP connection.
#[derive(Clone, Copy, Debug)]
pub struct Captured {
    /// When the kernel saw it, since an arbitrary moment.
    pub at: Duration,
    /// Payload, bytes.
    pub bytes: usize,
}

/// Keeps every IPv4 packet of a namespace from the start on. At the sender's end the times are those at which the
/// kernel let a packet out: no wire's lateness is in them.
pub struct Capture {
    socket: OwnedFd,
}

impl Capture {
    /// Starts.
    ///
    /// # Panics
    /// Without root.
    pub fn start(namespace: &Namespace) -> Self {
        let open = || {
            socket(AddressFamily::Packet, SockType::Datagram, SockFlag::SOCK_NONBLOCK, SockProtocol::EthAll)
        };
        let socket = namespace.run(open).expect("namespace").expect("packet socket");
        setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES).expect("buffer of the capture");
        time(&socket);
        Self { socket }
    }

    /// The TCP packets with data since the start or the last call.
    ///
    /// # Panics
    /// If they cannot be read.
    pub fn data(&self) -> Vec<Captured> {
        let mut buffer = [0; 1 << 16];
        let mut seen = Vec::new();
        loop {
            let bytes = match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(bytes) => bytes,
                Err(Errno::EAGAIN) => return seen,
                Err(error) => panic!("capture: {error}"),
            };
            let Some(bytes) = payload(&buffer[..bytes]).filter(|bytes| *bytes > 0) else { continue };
            seen.push(Captured { at: time(&self.socket).expect("time of a packet"), bytes });
        }
    }
}

fn time(socket: &OwnedFd) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills one timespec.
    unsafe { time_of_last_packet(socket.as_raw_fd(), &raw mut time) }.ok()?;
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

/// Bytes of payload of an IPv4 TCP packet.
fn payload(packet: &[u8]) -> Option<usize> {
    if packet.first()? >> 4 != 4 || *packet.get(9)? != 6 {
        return None;
    }
    let ip = usize::from(packet[0] & 15) * 4;
    let tcp = usize::from(packet.get(ip + 12)? >> 4) * 4;
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    total.checked_sub(ip + tcp)
}

/// The highest rate at which `run` packets in a row left, bytes per second. A machine that is late makes packets leave
/// later than they should, never earlier: the highest rate is the one it did not disturb.
///
/// # Panics
/// If there are not more than `run` packets.
pub fn fastest(packets: &[Captured], run: usize) -> f64 {
    let rate = |window: &[Captured]| {
        let bytes: usize = window[..run].iter().map(|packet| packet.bytes).sum();
        bytes as f64 / window[run].at.saturating_sub(window[0].at).as_secs_f64().max(1e-9)
    };
    packets.windows(run + 1).map(rate).max_by(f64::total_cmp).expect("more packets than a run")
}
