//! Many connections at once, each of whose bytes is looked at.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use onramp_net::Namespace;

use crate::traffic::eventually;

/// Bytes that a connection sends first, more than an initial window, then at a time; and the time between two.
const FIRST: u64 = 20_000;
const CHUNK: u64 = 500;
const BETWEEN: Duration = Duration::from_millis(500);

/// Connections over loopback that send for as long as this lives.
pub struct Crowd {
    /// Ends that have sent the least since they began, bytes.
    least: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<(u64, u64)>>>,
}

/// One connection, both of its ends.
struct Pair {
    near: TcpStream,
    far: TcpStream,
    sent: u64,
    received: u64,
}

/// Lets this process, and what it starts, have as many files open as its hard limit says.
///
/// # Panics
/// If the limit cannot be set.
pub fn open_as_many_files_as_allowed() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("limit");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("limit");
}

impl Crowd {
    /// Connects inside the namespace, whose default decides the congestion control of both ends.
    ///
    /// # Panics
    /// If one cannot connect.
    pub fn start(namespace: &Namespace, connections: usize) -> Self {
        open_as_many_files_as_allowed();
        let listener = namespace.run(|| TcpListener::bind("127.0.0.1:0")).expect("namespace").expect("bind");
        let address = listener.local_addr().expect("address");
        let connect = || {
            let near = namespace.run(|| TcpStream::connect(address)).expect("namespace").expect("connect");
            let (far, _) = listener.accept().expect("accept");
            for end in [&near, &far] {
                end.set_nonblocking(true).expect("nonblocking");
            }
            Pair { near, far, sent: 0, received: 0 }
        };
        let mut pairs: Vec<Pair> = (0..connections).map(|_| connect()).collect();
        let (least, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (shared, stopped) = (Arc::clone(&least), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for pair in &mut pairs {
                    pair.send();
                    pair.receive();
                }
                shared.store(pairs.iter().map(|pair| pair.received).min().unwrap_or(0), Ordering::Relaxed);
                thread::sleep(BETWEEN);
            }
            pairs.into_iter().map(Pair::finish).collect()
        });
        Self { least, stop, thread: Some(thread) }
    }

    /// Whether something more arrives on every connection.
    pub fn goes_on(&self) -> bool {
        let before = self.least.load(Ordering::Relaxed);
        eventually(|| self.least.load(Ordering::Relaxed) > before)
    }

    /// Ends all of them; returns what each has sent and received, bytes.
    ///
    /// # Panics
    /// If a byte arrived that was not sent in its place, or a connection was reset.
    pub fn finish(mut self) -> Vec<(u64, u64)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("there until it is finished").join().expect("all bytes in their places")
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The byte that belongs in a place.
fn byte(place: u64) -> u8 {
    (place % 251) as u8
}

impl Pair {
    fn send(&mut self) {
        let bytes = if self.sent < FIRST { FIRST } else { CHUNK };
        let chunk: Vec<u8> = (self.sent..self.sent + bytes).map(byte).collect();
        match self.near.write(&chunk) {
            Ok(bytes) => self.sent += bytes as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// False: the other end has sent all.
    fn receive(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.far.read(&mut buffer) {
                Ok(0) => return false,
                Ok(bytes) => {
                    let right = buffer[..bytes].iter().zip(self.received..).all(|(one, at)| *one == byte(at));
                    assert!(right, "another byte than was sent after {}", self.received);
                    self.received += bytes as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn finish(mut self) -> (u64, u64) {
        self.near.shutdown(Shutdown::Write).expect("shutdown");
        assert!(eventually(|| !self.receive()), "the end does not arrive");
        (self.sent, self.received)
    }
}
