//! A wire between two network namespaces whose every packet has a fate that the test decides: delivered, dropped,
//! marked, held back. Where the lab's emulator models links, this stages single events.

mod packet;

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::process::Stdio;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::{read, write};
use onramp_lab::emulator::Tun;
use onramp_lab::host::abort_connections;
use onramp_net::Namespace;
pub use packet::{Ack, Data};
use packet::{Seen, mark, selecting};

/// Address of the near end.
pub const NEAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Address of the far end.
pub const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// Address of the near end, where there is IPv6 ([`Wire::with_ipv6`]).
pub const NEAR_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// Address of the far end, likewise.
pub const FAR_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

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
    /// It never arrives, and an acknowledgment says all the same that it did, by a selective one: the far end forgets
    /// what it has selected (RFC 2018, section 8). Of data over IPv4 only.
    Forget,
}

/// Two namespaces and the wire between them; ends when dropped.
pub struct Wire {
    /// Where data come from.
    pub near: Namespace,
    /// Where data go to.
    pub far: Namespace,
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Wire {
    /// Lays the wire. `fate` is asked for every data packet from the near end; all else is delivered.
    ///
    /// # Panics
    /// Without root, TUN or `ip`.
    pub fn lay(delay: Duration, fate: impl FnMut(Data) -> Fate + Send + 'static) -> Self {
        Self::lay_both(delay, fate, |_| Fate::Deliver)
    }

    /// The same with a fate for every packet from the far end, too.
    ///
    /// # Panics
    /// As [`Wire::lay`].
    pub fn lay_both(
        delay: Duration,
        fate: impl FnMut(Data) -> Fate + Send + 'static,
        fate_back: impl FnMut(Ack) -> Fate + Send + 'static,
    ) -> Self {
        let (near, near_tun) = end(NEAR);
        let (far, far_tun) = end(FAR);
        let stop = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC).expect("an eventfd"));
        let stopping = Arc::clone(&stop);
        let thread =
            std::thread::spawn(move || carry([&near_tun, &far_tun], delay, fate, fate_back, &stopping));
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

    /// Gives both ends addresses of IPv6, too.
    #[must_use]
    pub fn with_ipv6(self) -> Self {
        for (end, address) in [(&self.near, NEAR_IPV6), (&self.far, FAR_IPV6)] {
            ip(end, &format!("address add {address}/64 dev wire0 nodad\n"));
        }
        self
    }

    /// Lets packets be of so many bytes, IP header included.
    #[must_use]
    pub fn with_mtu(self, bytes: u32) -> Self {
        for end in [&self.near, &self.far] {
            ip(end, &format!("link set wire0 mtu {bytes}\n"));
        }
        self
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.write(1).expect("an eventfd that can be written");
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
    ip(
        &namespace,
        &format!(
            "link set lo up\nlink set wire0 mtu 1500 txqueuelen 10000 up\naddress add {address}/24 dev wire0\n"
        ),
    );
    namespace.sysctl_set("net.ipv4.tcp_no_metrics_save", "1").expect("sysctl");
    namespace.sysctl_set("net.ipv4.tcp_congestion_control", "reno").expect("sysctl");
    (namespace, tun)
}

fn ip(namespace: &Namespace, lines: &str) {
    let mut child = namespace.command("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().expect("ip");
    io::Write::write_all(&mut child.stdin.take().expect("stdin"), lines.as_bytes()).expect("ip's input");
    assert!(child.wait().expect("ip").success(), "ip refused {lines}");
}

/// Packets on their way, in the order of their arrival.
type Flight = VecDeque<(Instant, Vec<u8>)>;

fn carry(
    [near, far]: [&Tun; 2],
    delay: Duration,
    mut fate: impl FnMut(Data) -> Fate,
    mut fate_back: impl FnMut(Ack) -> Fate,
    stop: &EventFd,
) {
    let mut there = Flight::new();
    let mut back = Flight::new();
    let mut seen = Seen::default();
    let mut last_back = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let mut ready =
            [near.as_fd(), far.as_fd(), stop.as_fd()].map(|of| PollFd::new(of, PollFlags::POLLIN));
        let _ = poll(&mut ready, until_next([&there, &back]));
        if ready[2].any() == Some(true) {
            return;
        }
        for packet in packets(near, &mut buffer) {
            let fate = seen.data(&packet).map_or(Fate::Deliver, &mut fate);
            if fate == Fate::Forget {
                let selective = selecting(&last_back, &packet).expect("IPv4, after an acknowledgment");
                insert(&mut back, Instant::now() + 2 * delay, selective);
            }
            send(&mut there, delay, fate, packet);
        }
        for packet in packets(far, &mut buffer) {
            let fate = seen.ack(&packet).map_or(Fate::Deliver, &mut fate_back);
            last_back.clone_from(&packet);
            send(&mut back, delay, fate, packet);
        }
        arrive(&mut there, far);
        arrive(&mut back, near);
    }
}

/// The wait until the first of all packets arrives, at least a millisecond; for ever without one.
fn until_next(flights: [&Flight; 2]) -> PollTimeout {
    let Some(first) = flights.iter().filter_map(|flight| flight.front()).map(|(at, _)| *at).min() else {
        return PollTimeout::NONE;
    };
    let wait = first.saturating_duration_since(Instant::now()) + Duration::from_nanos(999_999);
    PollTimeout::try_from(wait.max(Duration::from_millis(1))).unwrap_or(PollTimeout::MAX)
}

fn send(flight: &mut Flight, delay: Duration, fate: Fate, mut packet: Vec<u8>) {
    let at = Instant::now() + delay;
    match fate {
        Fate::Deliver => insert(flight, at, packet),
        Fate::HoldBack(more) => insert(flight, at + more, packet),
        Fate::Drop | Fate::Forget => {}
        Fate::Mark => {
            mark(&mut packet);
            insert(flight, at, packet);
        }
    }
}

fn packets(tun: &Tun, buffer: &mut [u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while let Ok(bytes) = read(tun.as_fd(), buffer) {
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
