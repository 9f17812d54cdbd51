//! A connection over a wire, for tests that stage events on it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use onramp_loader::Flow;

use crate::bottleneck::SEGMENT;
use crate::traffic::eventually;
use crate::wire::{FAR, Wire};

nix::ioctl_read_bad!(
    /// `SIOCOUTQ`.
    bytes_in_send_queue,
    libc::TIOCOUTQ,
    libc::c_int
);

/// What an initial window holds, bytes: ten segments of an Ethernet's size.
pub const FIRST_WINDOW: usize = 10 * SEGMENT as usize;

/// A connection from the wire's near end to its far end, where somebody reads.
pub struct Sender {
    /// The wire.
    pub wire: Wire,
    /// The near end's socket.
    pub stream: TcpStream,
}

impl Sender {
    /// Connects and chooses a congestion control.
    ///
    /// # Panics
    /// If that fails.
    pub fn connect(wire: Wire, control: &str) -> Self {
        let sender = Self::connect_by_default(wire);
        sender.choose(control);
        sender
    }

    /// Connects, under the default congestion control of the near end.
    ///
    /// # Panics
    /// If that fails.
    pub fn connect_by_default(wire: Wire) -> Self {
        let listener = wire.far.run(|| TcpListener::bind((FAR, 0)).expect("bind")).expect("namespace");
        let port = listener.local_addr().expect("address").port();
        thread::spawn(move || {
            // A test that is over at once takes the wire away before this.
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut buffer = vec![0; 1 << 16];
            while stream.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
        });
        let stream = wire.near.run(|| TcpStream::connect((FAR, port)).expect("connect")).expect("namespace");
        stream.set_write_timeout(Some(Duration::from_secs(20))).expect("timeout");
        Self { wire, stream }
    }

    /// Chooses a congestion control.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn choose(&self, control: &str) {
        setsockopt(&self.stream, TcpCongestion, &control.into()).expect("congestion control");
    }

    /// Sends so many bytes; returns when the socket has taken them.
    ///
    /// # Panics
    /// If it does not within twenty seconds.
    pub fn send(&mut self, bytes: usize) {
        self.stream.write_all(&vec![0; bytes]).expect("send");
    }

    /// Sends so many bytes and waits until all are acknowledged.
    ///
    /// # Panics
    /// If they are not.
    #[track_caller]
    pub fn deliver(&mut self, bytes: usize) {
        self.send(bytes);
        assert!(
            eventually(|| self.unacknowledged() == 0),
            "{} bytes are not acknowledged",
            self.unacknowledged()
        );
    }

    /// Bytes that the socket has taken and that are not acknowledged yet, sent or not.
    fn unacknowledged(&self) -> usize {
        let mut bytes = 0;
        // SAFETY: the kernel fills one int.
        unsafe { bytes_in_send_queue(self.stream.as_raw_fd(), &raw mut bytes) }.expect("SIOCOUTQ");
        bytes.try_into().expect("not negative")
    }

    /// The flow as it is.
    ///
    /// # Panics
    /// If it is not listed.
    pub fn flow(&self) -> Flow {
        let local = self.stream.local_addr().expect("address");
        let listed = self.wire.near.run(|| onramp_loader::flows(|socket| socket.local == local));
        let flows = listed.expect("namespace").expect("flows");
        flows.into_iter().next().expect("the flow is listed")
    }

    /// The flow once `done` holds of it, or as it is at last.
    pub fn flow_when(&self, done: impl Fn(&Flow) -> bool) -> Flow {
        let mut flow = self.flow();
        eventually(|| {
            flow = self.flow();
            done(&flow)
        });
        flow
    }
}
