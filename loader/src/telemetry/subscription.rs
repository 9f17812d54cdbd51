//! What a consumer asks for: how much, of which flows, and its ring.

use std::net::{IpAddr, Ipv6Addr};

use crate::object::level::Level;

/// Which flows are reported; by default all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Remote address: network and length of its prefix in bits, up to 32 or 128. Bits beyond the prefix are ignored.
    /// IPv4 also matches IPv4 flows of IPv6 sockets.
    pub remote: Option<(IpAddr, u8)>,
    /// Remote port.
    pub remote_port: Option<u16>,
    /// Local port.
    pub local_port: Option<u16>,
}

impl Filter {
    /// The prefix as two words each of value and mask; `None` if it is longer than the address.
    pub(crate) fn words(&self) -> Option<([u64; 2], [u64; 2])> {
        let Some((address, bits)) = self.remote else { return Some(([0; 2], [0; 2])) };
        let (address, bits) = match address {
            IpAddr::V4(address) if bits <= 32 => (address.to_ipv6_mapped(), 96 + u32::from(bits)),
            IpAddr::V6(address) if bits <= 128 => (address, u32::from(bits)),
            _ => return None,
        };
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        Some((split(address), [(mask >> 64) as u64, mask as u64]))
    }
}

fn split(address: Ipv6Addr) -> [u64; 2] {
    [(address.to_bits() >> 64) as u64, address.to_bits() as u64]
}

/// What a consumer subscribes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// How much; a profile may allow less, see [`crate::Changes::telemetry_max`].
    pub level: Level,
    /// Of one flow in this many, at least 1. All consumers with the same number get the same flows.
    pub sampling: u32,
    /// Of which flows.
    pub filter: Filter,
}

impl Subscription {
    /// This level, of all flows.
    pub fn new(level: Level) -> Self {
        Self { level, sampling: 1, filter: Filter::default() }
    }
}

/// What a consumer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Shown by `onramp status`; at most 15 bytes.
    pub name: String,
    /// Its subscription.
    pub subscription: Subscription,
    /// Size of its ring in kernel memory: a power of two, at least a page. What does not fit is lost, and counted.
    pub ring_bytes: u32,
}

impl Options {
    /// This level of all flows, with a ring of 4 MiB: about 20,000 acknowledgments.
    pub fn new(name: impl Into<String>, level: Level) -> Self {
        Self { name: name.into(), subscription: Subscription::new(level), ring_bytes: 4 << 20 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(address: &str, bits: u8) -> Option<([u64; 2], [u64; 2])> {
        Filter { remote: Some((address.parse().unwrap(), bits)), ..Filter::default() }.words()
    }

    #[test]
    fn prefixes_become_masks_and_too_long_ones_are_refused() {
        assert_eq!(words("192.0.2.0", 24), Some(([0, 0xffff_c000_0200], [u64::MAX, 0xffff_ffff_ffff_ff00])));
        assert_eq!(words("0.0.0.0", 0), Some(([0, 0xffff_0000_0000], [u64::MAX, 0xffff_ffff_0000_0000])));
        assert_eq!(words("2001:db8::", 32), Some(([0x2001_0db8_0000_0000, 0], [0xffff_ffff_0000_0000, 0])));
        assert_eq!(words("::", 0), Some(([0, 0], [0, 0])));
        assert_eq!(words("::1", 128), Some(([0, 1], [u64::MAX, u64::MAX])));
        assert_eq!((words("192.0.2.0", 33), words("::", 129)), (None, None));
        assert_eq!(Filter::default().words(), Some(([0, 0], [0, 0])), "everything");
    }
}
