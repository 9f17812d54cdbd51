//! A wire between two network namespaces whose every packet has a fate that the test decides: delivered, dropped,
//! marked, held back. Where the lab's emulator models links, this stages single events.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{read, write};
use onramp_lab::emulator::Tun;
use onramp_lab::host::abort_connections;
use onramp_net::Namespace;

/// Address of the near end.
pub const NEAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Address of the far end.
pub const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives after the wire's delay.
    Deliver,
    /// It never arrives.
    Drop,
    /// It arrives with the ECN mark "congestion experienced".
    Mark,
    /// It arrives this much later than the others.
    HoldBack(Duration),
}

/// A packet from the near end that carries data.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// Its number, from 0, retransmissions counted too.
    pub number: usize,
    /// Whether its first byte had been sent before.
    pub retransmission: bool,
}

/// Two namespaces and the wire between them; ends when dropped.
pub struct Wire {
    /// Where data come from.
    pub near: Namespace,
    /// Where data go to.
    pub far: Namespace,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Wire {
    /// Lays the wire. `fate` is asked for every data packet from the near end; all else is delivered.
    ///
    /// # Panics
    /// Without root, TUN or `ip`.
    pub fn lay(delay: Duration, fate: impl FnMut(Data) -> Fate + Send + 'static) -> Self {
        let (near, near_tun) = end(NEAR);
        let (far, far_tun) = end(FAR);
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = std::thread::spawn(move || carry(&near_tun, &far_tun, delay, fate, &stopping));
        Self { near, far, stop, thread: Some(thread) }
    }

    /// Sets a sysctl at both ends.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn sysctl(&self, name: &str, value: &str) {
        self.near.sysctl_set(name, value).expect(name);
        self.far.sysctl_set(name, value).expect(name);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        abort_connections(&self.near);
        abort_connections(&self.far);
    }
}

fn end(address: Ipv4Addr) -> (Namespace, Tun) {
    let namespace = Namespace::create().expect("a network namespace");
    let tun = Tun::create_plain(&namespace, "wire0").expect("a TUN device");
    let lines = format!(
        "link set lo up\nlink set wire0 mtu 1500 txqueuelen 10000 up\naddress add {address}/24 dev wire0\n"
    );
    let mut child = namespace.command("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().expect("ip");
    io::Write::write_all(&mut child.stdin.take().expect("stdin"), lines.as_bytes()).expect("ip's input");
    assert!(child.wait().expect("ip").success(), "ip refused {lines}");
    namespace.sysctl_set("net.ipv4.tcp_no_metrics_save", "1").expect("sysctl");
    namespace.sysctl_set("net.ipv4.tcp_congestion_control", "reno").expect("sysctl");
    (namespace, tun)
}

/// Packets on their way, in the order of their arrival.
type Flight = VecDeque<(Instant, Vec<u8>)>;

fn carry(near: &Tun, far: &Tun, delay: Duration, mut fate: impl FnMut(Data) -> Fate, stop: &AtomicBool) {
    let mut there = Flight::new();
    let mut back = Flight::new();
    let mut seen = Seen::default();
    while !stop.load(Ordering::Relaxed) {
        let mut ready =
            [PollFd::new(near.as_fd(), PollFlags::POLLIN), PollFd::new(far.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut ready, PollTimeout::from(1u8));
        for mut packet in packets(near) {
            let now = Instant::now() + delay;
            match seen.data(&packet).map_or(Fate::Deliver, &mut fate) {
                Fate::Deliver => insert(&mut there, now, packet),
                Fate::HoldBack(more) => insert(&mut there, now + more, packet),
                Fate::Drop => {}
                Fate::Mark => {
                    mark(&mut packet);
                    insert(&mut there, now, packet);
                }
            }
        }
        for packet in packets(far) {
            insert(&mut back, Instant::now() + delay, packet);
        }
        arrive(&mut there, far);
        arrive(&mut back, near);
    }
}

fn packets(tun: &Tun) -> Vec<Vec<u8>> {
    let mut buffer = [0; 2048];
    let mut packets = Vec::new();
    while let Ok(bytes) = read(tun.as_fd(), &mut buffer) {
        packets.push(buffer[..bytes].to_vec());
    }
    packets
}

fn insert(flight: &mut Flight, at: Instant, packet: Vec<u8>) {
    let position = flight.partition_point(|(other, _)| *other <= at);
    flight.insert(position, (at, packet));
}

fn arrive(flight: &mut Flight, tun: &Tun) {
    while flight.front().is_some_and(|(at, _)| *at <= Instant::now()) {
        if let Some((_, packet)) = flight.pop_front() {
            let _ = write(tun.as_fd(), &packet);
        }
    }
}

/// Which data packets have gone by.
#[derive(Default)]
struct Seen {
    number: usize,
    highest: Option<u32>,
}

impl Seen {
    /// The packet as [`Data`] if it is IPv4 TCP with a payload.
    fn data(&mut self, packet: &[u8]) -> Option<Data> {
        if packet.first()? >> 4 != 4 || *packet.get(9)? != 6 {
            return None;
        }
        let ip = usize::from(packet[0] & 15) * 4;
        let tcp = usize::from(packet.get(ip + 12)? >> 4) * 4;
        if packet.len() <= ip + tcp {
            return None;
        }
        let sequence = u32::from_be_bytes(packet.get(ip + 4..ip + 8)?.try_into().ok()?);
        let retransmission = self.highest.is_some_and(|highest| highest.wrapping_sub(sequence) as i32 >= 0);
        if !retransmission {
            self.highest = Some(sequence);
        }
        self.number += 1;
        Some(Data { number: self.number - 1, retransmission })
    }
}

/// Sets "congestion experienced" and the header checksum anew.
fn mark(packet: &mut [u8]) {
    packet[1] |= 3;
    packet[10..12].fill(0);
    let words = packet[..usize::from(packet[0] & 15) * 4].chunks_exact(2);
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}
