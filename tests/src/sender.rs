//! A connection over a wire, for tests that stage events on it.

use std::io::Write;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use onramp_loader::Flow;
use onramp_net::sock_diag::{SockDiag, Socket, States, TcpInfo};

use crate::bottleneck::SEGMENT;
use crate::connection::{Connection, Reader, bytes_from};
use crate::traffic::eventually;
use crate::wire::Wire;

nix::ioctl_read_bad!(
    /// `SIOCOUTQ`.
    bytes_in_send_queue,
    libc::TIOCOUTQ,
    libc::c_int
);

/// What an initial window holds, bytes: ten segments of an Ethernet's size.
pub const INITIAL_WINDOW_BYTES: usize = 10 * SEGMENT as usize;

/// A connection from the wire's near end to its far end, where a thread reads.
pub struct Sender {
    /// The wire.
    pub wire: Wire,
    /// The near end's socket.
    pub stream: TcpStream,
    /// Who reads at the far end.
    pub reader: Reader,
    sent: u64,
}

/// What has become of all that a sender was given, under a control of ours or of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// Bytes that were read at the far end, each as it was sent.
    pub read: u64,
    /// Segments that were retransmitted.
    pub retransmitted: u32,
    /// Segments on their way.
    pub unacked: u32,
    /// The kernel's `tcp_ca_state`.
    pub state: u8,
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
        Self::connect_as(wire, &Connection::default())
    }

    /// The same by a connection of some kind.
    ///
    /// # Panics
    /// If that fails.
    pub fn connect_as(wire: Wire, connection: &Connection) -> Self {
        let (stream, reader) = connection.over(&wire);
        stream.set_write_timeout(Some(Duration::from_secs(20))).expect("timeout");
        Self { wire, stream, reader, sent: 0 }
    }

    /// Chooses a congestion control.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn choose(&self, control: &str) {
        setsockopt(&self.stream, TcpCongestion, &control.into()).expect("congestion control");
    }

    /// Has the socket pace, at so many bytes per second at most: `SO_MAX_PACING_RATE`, as an application sets it.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn pace(&self, bytes_per_s: u64) {
        let fd = self.stream.as_raw_fd();
        // SAFETY: the kernel reads eight bytes.
        let result = unsafe {
            libc::setsockopt(
                fd,
                libc::SOL_SOCKET,
                libc::SO_MAX_PACING_RATE,
                (&raw const bytes_per_s).cast(),
                8,
            )
        };
        assert_eq!(result, 0);
    }

    /// Sends so many bytes; returns when the socket has taken them.
    ///
    /// # Panics
    /// If it does not within twenty seconds.
    pub fn send(&mut self, bytes: usize) {
        self.stream.write_all(&bytes_from(self.sent, bytes)).expect("send");
        self.sent += bytes as u64;
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

    /// Sends so many bytes, and says what has become of all bytes once they are read.
    ///
    /// # Panics
    /// If they are not, or another byte is read than was sent.
    #[track_caller]
    pub fn bring(&mut self, bytes: usize) -> Came {
        self.deliver(bytes);
        assert!(
            eventually(|| self.reader.read() == self.sent),
            "{} of {} bytes",
            self.reader.read(),
            self.sent
        );
        let info = self.info();
        Came {
            read: self.reader.read(),
            retransmitted: info.retrans_total,
            unacked: info.unacked,
            state: info.ca_state,
        }
    }

    /// Bytes that the socket has taken and that are not acknowledged yet, sent or not.
    fn unacknowledged(&self) -> usize {
        let mut bytes = 0;
        // SAFETY: the kernel fills one int.
        unsafe { bytes_in_send_queue(self.stream.as_raw_fd(), &raw mut bytes) }.expect("SIOCOUTQ");
        bytes.try_into().expect("not negative")
    }

    /// What the kernel says of the connection, on whatever control.
    ///
    /// # Panics
    /// If it is not listed.
    pub fn info(&self) -> TcpInfo {
        let local = self.stream.local_addr().expect("address");
        let mut found = None;
        let mut keep = |socket: Socket| {
            if socket.local == local {
                found = socket.info;
            }
        };
        let listed = self.wire.near.run(|| SockDiag::open()?.dump(States::CONNECTED, &[], &mut keep));
        listed.expect("namespace").expect("socket diagnostics");
        found.expect("the connection is listed")
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
