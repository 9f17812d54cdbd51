//! Connections to look at, in network namespaces of their own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, setsockopt, sockopt::TcpCongestion};
use onramp_net::Namespace;

/// A network namespace with its loopback device up. Its packets are those of Ethernet, so that what an initial window holds
/// is not half a megabyte.
///
/// # Panics
/// Without root.
pub fn namespace() -> Namespace {
    let namespace = Namespace::create().expect("network namespace");
    let up =
        namespace.command("ip").args(["link", "set", "lo", "mtu", "1500", "up"]).status().expect("ip runs");
    assert!(up.success());
    namespace
}

/// A connection over loopback that sends for as long as it lives, at most `rate` bytes per second.
pub struct Transfer {
    /// The sending end's.
    pub local: SocketAddr,
    /// The receiving end's.
    pub remote: SocketAddr,
    received: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Transfer {
    /// Connects inside the namespace, whose default decides the congestion control, and starts sending.
    ///
    /// # Panics
    /// If it cannot connect.
    pub fn start(namespace: &Namespace, rate: u64) -> Self {
        let listener = namespace.run(|| TcpListener::bind("127.0.0.1:0")).expect("namespace").expect("bind");
        let address = listener.local_addr().expect("address");
        let mut stream = namespace.run(|| TcpStream::connect(address)).expect("namespace").expect("connect");
        let (mut far, _) = listener.accept().expect("accept");
        let local = stream.local_addr().expect("address");
        let received = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (counter, stopped) = (Arc::clone(&received), Arc::clone(&stop));
        let reader = thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(bytes @ 1..) = far.read(&mut buffer) {
                counter.fetch_add(bytes as u64, Ordering::Relaxed);
            }
        });
        let writer = thread::spawn(move || {
            // A hundred writes a second.
            let chunk = vec![0; (rate / 100).max(1) as usize];
            while !stopped.load(Ordering::Relaxed) && stream.write_all(&chunk).is_ok() {
                thread::sleep(Duration::from_millis(10));
            }
        });
        Self { local, remote: address, received, stop, threads: vec![writer, reader] }
    }

    /// Bytes received so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Whether more arrives.
    pub fn goes_on(&self) -> bool {
        let before = self.received();
        eventually(|| self.received() > before + 1000)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The congestion control of a socket.
///
/// # Panics
/// If it has none.
pub fn control(socket: &impl AsFd) -> String {
    let name = getsockopt(&socket.as_fd(), TcpCongestion).expect("TCP_CONGESTION");
    name.to_string_lossy().trim_end_matches('\0').to_owned()
}

/// A server that accepts connections over loopback.
pub struct Server {
    place: Namespace,
    listener: TcpListener,
}

impl Server {
    /// Begins to listen inside the namespace. `chosen`: the congestion control that its application chooses by name, if any.
    ///
    /// # Panics
    /// If it cannot listen, or may not choose.
    pub fn begin(place: &Namespace, chosen: Option<&str>) -> Self {
        let listener = place.run(|| TcpListener::bind("127.0.0.1:0")).expect("namespace").expect("bind");
        if let Some(chosen) = chosen {
            setsockopt(&listener, TcpCongestion, &chosen.into()).expect("TCP_CONGESTION");
        }
        Self { place: place.clone(), listener }
    }

    /// The port on which it listens.
    ///
    /// # Panics
    /// If the kernel does not say.
    pub fn port(&self) -> u16 {
        self.listener.local_addr().expect("address").port()
    }

    /// Both ends of a new connection, the server's second.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn accept(&self) -> (TcpStream, TcpStream) {
        let address = self.listener.local_addr().expect("address");
        let near = self.place.run(|| TcpStream::connect(address)).expect("namespace").expect("connect");
        (near, self.listener.accept().expect("accept").0)
    }

    /// The congestion control that the server's end of a new connection runs.
    pub fn next(&self) -> String {
        control(&self.accept().1)
    }
}

/// How long tests wait for what has to happen: far longer than it takes on a machine that is busy or stands still.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Whether something becomes true, by [`TIMEOUT`]. What takes long is looked at less often, since in a guest a look costs
/// processor time and waiting costs none.
pub fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if holds() {
            return true;
        }
        let waited = start.elapsed();
        if waited >= TIMEOUT {
            return false;
        }
        thread::sleep((waited / 8).clamp(Duration::from_millis(10), Duration::from_millis(500)));
    }
}
