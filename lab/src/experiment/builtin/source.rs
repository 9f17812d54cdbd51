// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Where the data come from.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpCongestion;

use super::super::plan::Amount;
use super::super::transfer::Request;
use super::BuiltinError;
use super::sockets::Sockets;

/// What one write offers, bytes. The buffer is filled whenever there is room in a third of it, so that TCP always has
/// something to send. A kernel that does not preempt itself holds up the emulator for as long as a write takes.
pub(crate) const BLOCK: usize = 64 * 1024;
/// Writes before a look at the other connection.
const WRITES: usize = 64;
/// How long the connections stay after the last byte, so that looks every 10 ms see the transfer complete.
const LINGER: Duration = Duration::from_millis(30);

/// Serves one transfer.
pub(super) fn run(listener: &TcpListener, request: &Request, sockets: &Sockets) {
    let mut action = "listen";
    if let Err(source) = serve(listener, request, sockets, &mut action) {
        sockets.fail(BuiltinError::Socket { side: "source", port: request.port, action, source });
    }
}

fn serve(
    listener: &TcpListener,
    request: &Request,
    sockets: &Sockets,
    action: &mut &'static str,
) -> io::Result<()> {
    sockets.add(listener)?;
    *action = "accept a connection";
    let mut control = listener.accept()?.0;
    sockets.add(&control)?;
    if let Some(other) = request.other_control {
        *action = "use the control connection's congestion control";
        setsockopt(&control, TcpCongestion, &OsString::from(other))?;
        *action = "accept a connection";
    }
    let data = listener.accept()?.0;
    sockets.add(&data)?;
    *action = "use the congestion control";
    setsockopt(&data, TcpCongestion, &OsString::from(&request.congestion_control))?;
    *action = "send";
    data.set_nonblocking(true)?;
    control.write_all(&[0])?;
    send(&data, &control, request.amount)?;
    *action = "wait for the sink";
    // Its word, or its end.
    let _ = control.read(&mut [0])?;
    std::thread::sleep(LINGER);
    *action = "end the transfer";
    control.shutdown(Shutdown::Both)
}

/// Sends until all is written and the sink has something to say.
fn send(mut data: &TcpStream, control: &TcpStream, amount: Amount) -> io::Result<()> {
    let block = vec![0; BLOCK];
    let mut left = match amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Seconds(_) => u64::MAX,
    };
    loop {
        for _ in 0..WRITES {
            match data.write(&block[..left.min(BLOCK as u64) as usize]) {
                // All is written.
                Ok(0) => break,
                Ok(written) => left -= written as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let room = if left > 0 { PollFlags::POLLOUT } else { PollFlags::empty() };
        let mut descriptors =
            [PollFd::new(control.as_fd(), PollFlags::POLLIN), PollFd::new(data.as_fd(), room)];
        match poll(&mut descriptors, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if descriptors[0].any().unwrap_or(true) {
            return Ok(());
        }
    }
}
