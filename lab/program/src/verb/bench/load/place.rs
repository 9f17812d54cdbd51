//! A server and the host of its clients.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context;
use nix::libc::linger;
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use nix::sys::time::TimeVal;
use onramp_lab::experiment::veth_pair;
use onramp_lab::host::SENDER;
use onramp_net::Namespace;

use super::side::Side;

/// Threads that answer; as many connections are open at once at most.
pub(super) const THREADS: u32 = 32;
/// What was sent over a connection before it is held, bytes: more than an initial window of ten segments.
const OUTGROWN: usize = 20_000;
/// What a held connection sends when it is its turn, bytes.
const MORE: usize = 1_000;
/// How long a thread waits for a connection before it looks whether to end.
const LOOK: i64 = 200_000;
/// How long either side waits for the other; more means that it hangs.
const TIMEOUT: i64 = 20;

/// Ends with its namespaces when dropped.
pub(super) struct Place {
    pub server: Namespace,
    pub client: Namespace,
    pub address: SocketAddr,
    control: Option<String>,
    /// The clients' ends of what is held, and the server's.
    near: Side,
    far: Side,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Place {
    /// Serves with this control, or with the default of the server's namespace.
    pub fn new(control: Option<&str>) -> anyhow::Result<Self> {
        let (server, client) = veth_pair()?;
        let listener = server.run(|| listen(control))??;
        setsockopt(&listener, sockopt::ReceiveTimeout, &TimeVal::new(0, LOOK))?;
        let address = SocketAddr::from((SENDER, listener.local_addr()?.port()));
        let stop = Arc::new(AtomicBool::new(false));
        let control = control.map(str::to_owned);
        let (near, far) = (Side::new(&client)?, Side::new(&server)?);
        let threads = Vec::new();
        let mut place = Self { server, client, address, control, near, far, stop, threads };
        for _ in 0..THREADS {
            let (listener, stop) = (listener.try_clone()?, Arc::clone(&place.stop));
            place.threads.push(thread::Builder::new().spawn(move || serve(&listener, &stop))?);
        }
        Ok(place)
    }

    /// Holds so many connections, each of which has sent more than an initial window.
    pub fn hold(&self, flows: u32) -> anyhow::Result<()> {
        let control = self.control.clone();
        let (listens, port) = mpsc::channel();
        let far = self.far.begin(move |sockets| {
            let listener = listen(control.as_deref())?;
            setsockopt(&listener, sockopt::ReceiveTimeout, &TimeVal::new(TIMEOUT, 0))?;
            listens.send(listener.local_addr()?.port())?;
            for _ in 0..flows {
                let (socket, _) = listener.accept()?;
                wait_at_most(&socket)?;
                (&socket).write_all(&[0; OUTGROWN])?;
                sockets.push(socket);
            }
            Ok(())
        })?;
        // Where the far side has failed there is no port, and it says why.
        if let Ok(port) = port.recv() {
            self.near.run(move |sockets| {
                for _ in 0..flows {
                    let socket = connect((SENDER, port).into())?;
                    (&socket).read_exact(&mut [0; OUTGROWN])?;
                    sockets.push(socket);
                }
                Ok(())
            })?;
        }
        far.recv()?
    }

    /// How many connections are held.
    pub fn held(&self) -> anyhow::Result<usize> {
        self.near.run(|sockets| Ok(sockets.len()))
    }

    /// Its turn to send something.
    pub fn goes_on(&self, number: usize) -> anyhow::Result<()> {
        self.far.run(move |sockets| Ok((&sockets[number]).write_all(&[0; MORE])?))?;
        self.near.run(move |sockets| Ok((&sockets[number]).read_exact(&mut [0; MORE])?))
    }

    /// The control of the server's end of each that is held.
    pub fn controls(&self) -> anyhow::Result<Vec<String>> {
        self.far.run(|sockets| {
            let control = |socket| {
                let name = getsockopt(socket, sockopt::TcpCongestion).context("TCP_CONGESTION")?;
                Ok(name.to_string_lossy().trim_end_matches('\0').to_owned())
            };
            sockets.iter().map(control).collect()
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that has panicked has said so itself.
            let _ = thread.join();
        }
    }
}

/// What it accepts has its control. Only root may choose one that the host does not allow every user, and as a default that
/// is not possible at all.
fn listen(control: Option<&str>) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    if let Some(control) = control {
        setsockopt(&listener, sockopt::TcpCongestion, &control.into())
            .with_context(|| format!("congestion control {control}"))?;
    }
    Ok(listener)
}

/// A connection that leaves nothing behind when it is closed, and does not wait for ever.
pub(super) fn connect(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    setsockopt(&stream, sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 })?;
    wait_at_most(&stream)?;
    Ok(stream)
}

fn wait_at_most(socket: &impl AsFd) -> anyhow::Result<()> {
    let timeout = TimeVal::new(TIMEOUT, 0);
    setsockopt(socket, sockopt::ReceiveTimeout, &timeout)?;
    setsockopt(socket, sockopt::SendTimeout, &timeout)?;
    Ok(())
}

/// Answers one connection after the other, until it is to stop.
fn serve(listener: &TcpListener, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            // The client reports what goes wrong: it misses its answer.
            Ok((stream, _)) => drop(answer(&stream)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // As the client, who then waits in vain.
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Sends as many bytes as it is asked for, and waits until the client has gone.
fn answer(mut stream: &TcpStream) -> anyhow::Result<()> {
    wait_at_most(stream)?;
    let mut bytes = [0; size_of::<u32>()];
    stream.read_exact(&mut bytes)?;
    stream.write_all(&vec![0; u32::from_ne_bytes(bytes) as usize])?;
    // Its end is a reset.
    let _ = stream.read(&mut bytes);
    Ok(())
}
