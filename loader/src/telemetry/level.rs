//! How much is told, and of which flows.

use std::net::{IpAddr, Ipv6Addr};

use crate::abi::telemetry_level;

/// How much is told of flows; each level includes those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Level {
    /// Nothing.
    Off = telemetry_level::OFF,
    /// Flows beginning and ending, exits, exits taken back.
    Exit = telemetry_level::EXIT,
    /// Also rounds, losses, congestion states, restarts.
    Round = telemetry_level::ROUND,
    /// Also every acknowledgement.
    Ack = telemetry_level::ACK,
}

impl Level {
    /// All of them, from the lowest.
    pub const ALL: [Self; 4] = [Self::Off, Self::Exit, Self::Round, Self::Ack];

    /// Name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Exit => "exit",
            Self::Round => "round",
            Self::Ack => "ack",
        }
    }

    /// The level of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// From its number; what is higher than all is the highest.
    pub(crate) fn from_number(number: u32) -> Self {
        Self::ALL.into_iter().find(|level| *level as u32 == number).unwrap_or(Self::Ack)
    }

    /// Its bits and those of the levels before, in `struct telemetry.wanted`.
    pub(crate) fn bits(self) -> u64 {
        (1 << self as u32) - 1
    }
}

/// Which flows are told of; by default all.
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

/// What a consumer wants to hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// How much; a profile may allow less, see [`crate::Changes::telemetry_max`].
    pub level: Level,
    /// Of one flow in this many, at least 1. All consumers with the same number hear of the same flows.
    pub sampling: u32,
    /// Of which flows.
    pub filter: Filter,
}

impl Wish {
    /// This level, of all flows.
    pub fn new(level: Level) -> Self {
        Self { level, sampling: 1, filter: Filter::default() }
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

    #[test]
    fn a_level_includes_those_before() {
        assert_eq!(Level::ALL.map(Level::bits), [0, 1, 3, 7]);
        assert_eq!(Level::ALL.map(|level| Level::find(level.name())), Level::ALL.map(Some));
    }
}
