// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Where the data go to.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::sockopt::RcvBuf;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn, connect, getsockopt, recv, socket,
};
use nix::sys::time::TimeSpec;
use onramp_net::Namespace;

use super::super::plan::Amount;
use super::super::transfer::{Download, Request};
use super::BuiltinError;
use super::sockets::Sockets;
use crate::host::SENDER;

/// What one read takes at most, bytes.
const BLOCK: usize = 1024 * 1024;
/// Most that may wait to be read, bytes: some 45 packets for one wake-up.
const MOST_WAITING: u64 = 64 * 1024;
/// Part of all that was received so far that may wait. The kernel sizes the receive buffer by what is read in a
/// round-trip time, which in slow start is half of all so far; newer kernels subtract what waits from that (tested on 7.2,
/// where a part of 1/64 limited slow start by the receive window). So they find 0.4 % less at most.
const WAITING_OF_RECEIVED: u64 = 1024;
/// Part of the receive buffer that may wait: what waits takes from the window.
const WAITING_OF_BUFFER: u64 = 16;

/// Downloads; nothing if it cannot, which the sockets then know.
pub(super) fn run(receiver: &Namespace, request: &Request, sockets: &Sockets) -> Option<Download> {
    let mut action = "connect";
    let downloaded = download(receiver, request, sockets, &mut action);
    let failed = |source| BuiltinError::Socket { side: "sink", port: request.port, action, source };
    downloaded.map_err(|error| sockets.fail(failed(error))).ok()
}

fn download(
    receiver: &Namespace,
    request: &Request,
    sockets: &Sockets,
    action: &mut &'static str,
) -> io::Result<Download> {
    let mut control = connected(receiver, request.port, sockets)?;
    let data = connected(receiver, request.port, sockets)?;
    *action = "receive";
    control.read_exact(&mut [0])?;
    let began = Instant::now();
    let bytes = receive(&data, request.amount, began)?;
    let seconds = began.elapsed().as_secs_f64();
    *action = "end the transfer";
    control.write_all(&[0])?;
    // The source closes when all has been seen.
    let _ = control.read(&mut [0])?;
    Ok(Download { seconds, bytes, iperf3: None })
}

fn connected(receiver: &Namespace, port: u16, sockets: &Sockets) -> io::Result<TcpStream> {
    let make = || socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None);
    let socket = receiver.run(make).map_err(io::Error::other)??;
    sockets.add(&socket)?;
    connect(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(SENDER, port)))?;
    Ok(TcpStream::from(socket))
}

/// Reads until there is enough, or the time is up, without a look at the data; returns the bytes.
fn receive(data: &TcpStream, amount: Amount, began: Instant) -> io::Result<u64> {
    let (all, time) = match amount {
        Amount::Bytes(bytes) => (bytes, None),
        Amount::Seconds(seconds) => (u64::MAX, Some(Duration::from_secs(seconds.into()))),
    };
    let mut buffer = vec![0; BLOCK];
    let (mut received, mut waiting) = (0, 1);
    while received < all {
        let left = all - received;
        let wanted = may_wait(received, getsockopt(&data, RcvBuf)? as u64).min(left);
        if wanted != waiting {
            set_waiting(data, wanted)?;
            waiting = wanted;
        }
        // A blocking read would take what is there and then wait for as much again, which may never come.
        let rest = time.map(|time| time.saturating_sub(began.elapsed()));
        let mut descriptor = [PollFd::new(data.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut descriptor, rest.map(TimeSpec::from_duration), None) {
            // The time is up.
            Ok(0) => break,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let most = left.min(BLOCK as u64) as usize;
        // TCP throws away what is read so, and copies nothing.
        let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
        match recv(data.as_raw_fd(), &mut buffer[..most], flags) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => received += bytes as u64,
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(received)
}

/// Bytes that may wait before the sink is woken.
pub(crate) fn may_wait(received: u64, buffer: u64) -> u64 {
    (received / WAITING_OF_RECEIVED).min(buffer / WAITING_OF_BUFFER).clamp(1, MOST_WAITING)
}

/// `SO_RCVLOWAT`: the reader sleeps until so many bytes are there. Until then the kernel acknowledges every second
/// segment, as it does where a reader is quick.
fn set_waiting(socket: &impl AsFd, bytes: u64) -> io::Result<()> {
    let bytes = bytes as libc::c_int;
    // SAFETY: the option takes an int, which the pointer points to for the time of the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    Errno::result(result).map(drop).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_waits_at_first_and_in_small_buffers() {
        assert_eq!(may_wait(0, 131_072), 1);
        assert_eq!(may_wait(1_024_000, 131_072), 1_000);
        assert_eq!(may_wait(1 << 40, 131_072), 8_192);
        assert_eq!(may_wait(1 << 40, 16_384), 1_024);
        assert_eq!(may_wait(1 << 40, 1 << 30), 65_536);
    }
}
