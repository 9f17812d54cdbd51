//! What the route of a connection says of its congestion control (`congctl`), asked over `NETLINK_ROUTE` as
//! `ip route get` asks.

use std::io;
use std::net::IpAddr;

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket as NetlinkSocket, SocketAddr as NetlinkAddress};
use thiserror::Error;

use crate::netlink::{attributes, messages, push_attribute, text, u32_at, with_header};

/// linux/rtnetlink.h.
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_INTERFACE: u16 = 4;
const RTA_METRICS: u16 = 8;
const RTAX_LOCK: u16 = 1;
const RTAX_CC_ALGO: u16 = 16;
/// `struct rtmsg`.
const ROUTE_MESSAGE: usize = 12;

/// One route with all its metrics is far below this.
const BUFFER_BYTES: usize = 16 * 1024;
/// The answer comes from the system call itself; this only guards against waiting for ever.
const TIMEOUT_SECONDS: i64 = 5;

/// The kernel could not be asked.
#[derive(Debug, Error)]
#[error("cannot ask NETLINK_ROUTE for a route: {0}")]
pub struct RouteError(#[from] io::Error);

/// The congestion control of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteControl {
    /// Its name.
    pub name: String,
    /// `congctl lock`: no socket may have another one.
    pub locked: bool,
}

/// A netlink socket that asks for routes of the namespace of the thread that opened it.
pub struct Routes {
    socket: NetlinkSocket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Routes {
    /// # Errors
    /// [`RouteError`] if the kernel gives no netlink socket.
    pub fn open() -> Result<Self, RouteError> {
        let mut socket = NetlinkSocket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        let timeout = nix::sys::time::TimeVal::new(TIMEOUT_SECONDS, 0);
        nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::ReceiveTimeout, &timeout)
            .map_err(io::Error::from)?;
        socket.connect(&NetlinkAddress::new(0, 0))?;
        Ok(Self { socket, sequence: 0, buffer: vec![0; BUFFER_BYTES] })
    }

    /// The congestion control of the route to an address, from an address of this host if it is known, over the interface
    /// that the socket is bound to (0: none). `None`: the route has none, or there is no route.
    ///
    /// Routes that are chosen by a mark, a user or a type of service are not found: nothing is known of these.
    ///
    /// # Errors
    /// [`RouteError`].
    pub fn control(
        &mut self,
        to: IpAddr,
        from: Option<IpAddr>,
        interface: u32,
    ) -> Result<Option<RouteControl>, RouteError> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&request(to, from, interface, self.sequence), 0)?;
        loop {
            let bytes = match self.socket.recv(&mut &mut self.buffer[..], 0) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                received => received?,
            };
            let datagram = self.buffer.get(..bytes).unwrap_or_default();
            let mut answers = messages(datagram).filter_map(Result::ok);
            if let Some(message) = answers.find(|message| message.sequence == self.sequence) {
                // Anything but a route is an error: there is none.
                let route = (message.kind == RTM_NEWROUTE).then(|| control(message.payload));
                return Ok(route.flatten());
            }
        }
    }
}

fn request(to: IpAddr, from: Option<IpAddr>, interface: u32, sequence: u32) -> Vec<u8> {
    let to = to.to_canonical();
    let from = from.map(|from| from.to_canonical()).filter(|from| from.is_ipv4() == to.is_ipv4());
    let (family, bits) = if to.is_ipv4() { (libc::AF_INET, 32) } else { (libc::AF_INET6, 128) };
    with_header(RTM_GETROUTE, libc::NLM_F_REQUEST, sequence, |out| {
        let from_bits = if from.is_some() { bits } else { 0 };
        out.extend([family as u8, bits, from_bits, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        push_attribute(out, RTA_DST, &octets(to));
        if let Some(from) = from {
            push_attribute(out, RTA_SRC, &octets(from));
        }
        if interface != 0 {
            push_attribute(out, RTA_INTERFACE, &interface.to_ne_bytes());
        }
    })
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Reads `struct rtmsg` and what follows it.
fn control(payload: &[u8]) -> Option<RouteControl> {
    let (_, metrics) = attributes(payload.get(ROUTE_MESSAGE..)?).find(|(kind, _)| *kind == RTA_METRICS)?;
    let metric = |wanted| attributes(metrics).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let locks = metric(RTAX_LOCK).and_then(|value| u32_at(value, 0)).unwrap_or(0);
    Some(RouteControl { name: text(metric(RTAX_CC_ALGO)?), locked: locks & 1 << RTAX_CC_ALGO != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(metrics: &[(u16, &[u8])]) -> Vec<u8> {
        let mut nested = Vec::new();
        for (kind, value) in metrics {
            push_attribute(&mut nested, *kind, value);
        }
        let mut out = vec![0; ROUTE_MESSAGE];
        push_attribute(&mut out, RTA_DST, &[192, 0, 2, 1]);
        push_attribute(&mut out, RTA_METRICS, &nested);
        out
    }

    #[test]
    fn the_control_and_its_lock_are_read() {
        let lock = (1_u32 << RTAX_CC_ALGO).to_ne_bytes();
        let read = |metrics: &[(u16, &[u8])]| control(&answer(metrics)).map(|one| (one.name, one.locked));
        assert_eq!(read(&[(RTAX_CC_ALGO, b"reno\0")]), Some(("reno".into(), false)));
        assert_eq!(read(&[(RTAX_LOCK, &lock), (RTAX_CC_ALGO, b"bbr\0")]), Some(("bbr".into(), true)));
        // Another metric is locked.
        assert_eq!(
            read(&[(RTAX_LOCK, &4_u32.to_ne_bytes()), (RTAX_CC_ALGO, b"bbr\0")]),
            Some(("bbr".into(), false))
        );
        assert_eq!(read(&[(RTAX_LOCK, &lock)]), None);
        assert_eq!(control(&[0; 4]), None);
    }

    #[test]
    fn this_host_answers_for_loopback() {
        // Whatever it is, and for an address that has no route.
        let mut routes = Routes::open().unwrap();
        let loopback = "127.0.0.1".parse().unwrap();
        assert_eq!(routes.control(loopback, Some(loopback), 0).unwrap(), None);
        assert_eq!(routes.control("2001:db8::1".parse().unwrap(), None, 7_777_777).unwrap(), None);
    }
}
