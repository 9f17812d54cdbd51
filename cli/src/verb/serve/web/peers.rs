//! Connections by where they are from: nobody on the network keeps the others out.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use onramp_net::Prefix;

/// Connections of one address, or of one network of IPv6. Those of this host, where a web server may be in front, are not
/// counted.
const CONNECTIONS_MAX: usize = 64;
/// What one host has of IPv6.
const NETWORK_BITS: u32 = 64;

#[derive(Clone, Default)]
pub(super) struct Peers(Arc<Mutex<BTreeMap<Prefix, usize>>>);

/// A connection's place.
pub(super) struct Peer {
    peers: Peers,
    network: Option<Prefix>,
}

impl Peers {
    /// `None`: it has enough.
    pub fn take(&self, address: IpAddr) -> Option<Peer> {
        let address = address.to_canonical();
        if address.is_loopback() {
            return Some(Peer { peers: self.clone(), network: None });
        }
        let whole: Prefix = address.into();
        let network = if address.is_ipv4() { whole } else { whole.shortened(NETWORK_BITS).network() };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = all.entry(network).or_default();
        if *open >= CONNECTIONS_MAX {
            return None;
        }
        *open += 1;
        Some(Peer { peers: self.clone(), network: Some(network) })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let Some(network) = self.network else { return };
        let mut all = self.peers.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = all.get_mut(&network) else { return };
        *open -= 1;
        if *open == 0 {
            all.remove(&network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_its_share_and_gets_it_back() {
        let peers = Peers::default();
        let take = |address: &str| peers.take(address.parse().unwrap());
        let mut open: Vec<Peer> = (0..CONNECTIONS_MAX).map(|_| take("192.0.2.1").unwrap()).collect();
        assert!(take("192.0.2.1").is_none() && take("::ffff:192.0.2.1").is_none());
        assert!(take("192.0.2.2").is_some());
        open.pop();
        open.extend(take("192.0.2.1"));
        assert!(take("192.0.2.1").is_none());
        drop(open);
        assert!(peers.0.lock().unwrap().is_empty());
        let far: Vec<Peer> =
            (0..CONNECTIONS_MAX).map(|host| take(&format!("2001:db8::{host:x}")).unwrap()).collect();
        assert!(take("2001:db8::ffff").is_none() && take("2001:db8:0:1::1").is_some());
        drop(far);
        let near: Vec<_> = (0..500).filter_map(|_| take("127.0.0.1")).collect();
        assert_eq!(near.len(), 500);
    }
}
