//! Kinds of connections over a wire, and who reads at its far end.

use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{
    Backlog, SockaddrStorage, bind, connect, listen, setsockopt, sockopt::RcvBuf,
    sockopt::TcpFastOpenConnect, sockopt::TcpMaxSeg,
};

use onramp_net::Namespace;

use crate::wire::{FAR, FAR_IPV6, Wire};

/// A connection from the near end of a wire to the far end; by default TCP over IPv4 as the kernel makes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Connection {
    /// Over IPv6.
    pub ipv6: bool,
    /// By a socket of IPv6 all the same, where it goes over IPv4.
    pub mapped: bool,
    /// Of MPTCP (RFC 8684).
    pub mptcp: bool,
    /// Largest segment, as announced to the near end.
    pub segment: Option<u32>,
    /// Buffer of the far end, bytes; the kernel takes twice this, and of that half for the window.
    pub receive_buffer: Option<usize>,
    /// The first data go in the SYN (RFC 7413), as the sysctls allow.
    pub fast_open: bool,
}

impl Connection {
    /// Makes it over a wire.
    ///
    /// # Panics
    /// If that fails.
    pub fn over(&self, wire: &Wire) -> (TcpStream, Reader) {
        let far = if self.ipv6 { FAR_IPV6.into() } else { FAR.into() };
        self.between(&wire.near, &wire.far, far)
    }

    /// Makes it between two namespaces, of which the far one has this address.
    ///
    /// # Panics
    /// If that fails.
    pub fn between(&self, near: &Namespace, far: &Namespace, address: IpAddr) -> (TcpStream, Reader) {
        let listener = far.run(|| self.listen((address, 0).into())).expect("namespace");
        let mut to = listener.local_addr().expect("address");
        let reader = Reader::new(listener);
        if let (true, IpAddr::V4(inner)) = (self.mapped, to.ip()) {
            to.set_ip(inner.to_ipv6_mapped().into());
        }
        let stream = near.run(|| self.connect(to)).expect("namespace");
        (stream, reader)
    }

    /// What listens for it, in the current network namespace.
    ///
    /// # Panics
    /// If that fails.
    pub fn listen(&self, address: SocketAddr) -> TcpListener {
        self.listen_for(8, address)
    }

    /// The same, for as many connections that wait to be accepted, and one.
    ///
    /// # Panics
    /// If that fails.
    pub fn listen_for(&self, waiting: i32, address: SocketAddr) -> TcpListener {
        let socket = self.socket(address);
        if let Some(bytes) = self.receive_buffer {
            setsockopt(&socket, RcvBuf, &bytes).expect("receive buffer");
        }
        bind(socket.as_raw_fd(), &SockaddrStorage::from(address)).expect("bind");
        listen(&socket, Backlog::new(waiting).expect("backlog")).expect("listen");
        socket.into()
    }

    fn connect(&self, address: SocketAddr) -> TcpStream {
        let socket = self.socket(address);
        if let Some(bytes) = self.segment {
            setsockopt(&socket, TcpMaxSeg, &bytes).expect("largest segment");
        }
        if self.fast_open {
            setsockopt(&socket, TcpFastOpenConnect, &true).expect("TCP_FASTOPEN_CONNECT");
        }
        connect(socket.as_raw_fd(), &SockaddrStorage::from(address)).expect("connect");
        socket.into()
    }

    fn socket(&self, address: SocketAddr) -> OwnedFd {
        let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let protocol = if self.mptcp { libc::IPPROTO_MPTCP } else { libc::IPPROTO_TCP };
        // SAFETY: socket takes numbers.
        let socket = unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, protocol) };
        assert!(socket >= 0, "a socket as {self:?}: {}", std::io::Error::last_os_error());
        // SAFETY: the descriptor was opened above, and is owned here alone.
        unsafe { OwnedFd::from_raw_fd(socket) }
    }
}

/// Reads what comes to the far end, and looks at each byte.
pub struct Reader(Arc<State>);

#[derive(Default)]
struct State {
    read: AtomicU64,
    wrong: AtomicBool,
    rests: AtomicBool,
}

impl Reader {
    fn new(listener: TcpListener) -> Self {
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            // A test that is over at once takes the wire away before this.
            let Ok((stream, _)) = listener.accept() else { return };
            shared.follow(stream);
        });
        Self(state)
    }

    /// Bytes so far.
    ///
    /// # Panics
    /// If there was another than was sent.
    pub fn read(&self) -> u64 {
        assert!(!self.0.wrong.load(Ordering::Relaxed), "another byte than was sent");
        self.0.read.load(Ordering::Relaxed)
    }

    /// Has it read no more for a while, or go on.
    pub fn rest(&self, rests: bool) {
        self.0.rests.store(rests, Ordering::Relaxed);
    }
}

impl State {
    fn follow(&self, mut stream: TcpStream) {
        let mut buffer = vec![0; 1 << 16];
        loop {
            while self.rests.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            let Ok(bytes @ 1..) = stream.read(&mut buffer) else { return };
            let before = self.read.load(Ordering::Relaxed);
            if buffer[..bytes] != bytes_from(before, bytes) {
                self.wrong.store(true, Ordering::Relaxed);
            }
            self.read.store(before + bytes as u64, Ordering::Relaxed);
        }
    }
}

/// After so many bytes they begin again: prime, so that no segment is like its neighbour.
const PERIOD: u64 = 251;

/// What is sent from one place of a connection on.
pub fn bytes_from(place: u64, bytes: usize) -> Vec<u8> {
    let period: Vec<u8> = (0..PERIOD).map(|at| ((place + at) % PERIOD) as u8).collect();
    let mut all = period.repeat(bytes / period.len() + 1);
    all.truncate(bytes);
    all
}
