//! Prefixes of IPv4 and IPv6 addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address and how many of its bits count. What is written with an IPv4-mapped address (RFC 4291, section 2.5.5.2)
/// is a prefix of IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    length: u32,
}

impl Prefix {
    /// The first `length` bits of an address; `None`: it has fewer.
    pub fn new(address: IpAddr, length: u32) -> Option<Self> {
        match (address, address.to_canonical()) {
            (IpAddr::V6(_), IpAddr::V4(inner)) if (96..=128).contains(&length) => {
                Some(Self { address: inner.into(), length: length - 96 })
            }
            _ => (length <= width(address)).then_some(Self { address, length }),
        }
    }

    /// The prefix of this length that it lies in; itself where it is not longer.
    #[must_use]
    pub fn shortened(self, length: u32) -> Self {
        Self { length: self.length.min(length), ..self }
    }

    /// The address as it was given.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// How many bits count.
    pub fn length(self) -> u32 {
        self.length
    }

    /// The same without the bits that do not count.
    #[must_use]
    pub fn network(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & (self.mask() >> 96) as u32).into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & self.mask()).into(),
        };
        Self { address, ..self }
    }

    /// Whether an address lies in it; an IPv4-mapped one is one of IPv4.
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let other = Self { address, length: self.length };
        address.is_ipv4() == self.address.is_ipv4() && other.network() == self.network()
    }

    /// The bits that count, of 128, from the first.
    fn mask(self) -> u128 {
        mask(self.length)
    }
}

/// So many bits, 0 to 128, of 128, from the first; those of an IPv4 address are the first 32.
pub fn mask(length: u32) -> u128 {
    // A shift by the whole width is what /0 means; checked_shl has no result for it.
    u128::MAX.checked_shl(128 - length).unwrap_or(0)
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// All bits of an address.
impl From<IpAddr> for Prefix {
    fn from(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { address, length: width(address) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.length)
    }
}

/// `ADDRESS/LENGTH`; an address alone is a prefix of all its bits.
impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!("{text:?} is not an address or prefix: write for instance 10.0.0.0/8 or 2001:db8::/32")
        };
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| refuse())?;
        let length = length.map_or(Some(width(address)), |length| length.parse().ok());
        length
            .and_then(|length| Self::new(address, length))
            .ok_or_else(|| format!("{text:?} has a prefix length that is not one of 0 to {}", width(address)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_prefix_is_read_and_written_alike() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "192.0.2.1/32", "2001:db8::/32", "::/0", "2001:db8::1/128"] {
            assert_eq!(prefix(text).to_string(), text);
        }
        assert_eq!(prefix("192.0.2.1"), prefix("192.0.2.1/32"));
        assert_eq!(prefix("::ffff:192.0.2.0/120"), prefix("192.0.2.0/24"));
        for (text, why) in [
            ("10.0.0.0/33", "not one of 0 to 32"),
            ("2001:db8::/129", "not one of 0 to 128"),
            ("10.0.0.0/x", "not one of"),
            ("10.0.0/8", "not an address or prefix"),
            ("", "not an address or prefix"),
        ] {
            let error = text.parse::<Prefix>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn text_changed_anywhere_is_a_prefix_or_refused_with_the_text() {
        let valid =
            ["10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "::ffff:192.0.2.0/120", "::/0", "fe80::1/128"];
        let accepted = std::cell::Cell::new(0);
        onramp_mutation::check(1, 20_000, onramp_mutation::text(&valid), |text| {
            match text.parse::<Prefix>() {
                Ok(read) => {
                    accepted.set(accepted.get() + 1);
                    assert_eq!(prefix(&read.to_string()), read);
                    assert_eq!(read.network().network(), read.network());
                    // What is written with an IPv4-mapped address and is wider than those is one of IPv6.
                    let mapped = read.address() != read.address().to_canonical();
                    assert!(
                        read.contains(read.address()) != mapped && read.length() <= width(read.address())
                    );
                }
                Err(error) => assert!(error.contains(&format!("{text:?}")), "{error}"),
            }
            Ok(())
        });
        assert!(accepted.get() > 2_000, "{}", accepted.get());
    }

    #[test]
    fn bits_behind_the_length_do_not_count() {
        assert_eq!(prefix("10.1.2.3/8").network(), prefix("10.0.0.0/8"));
        assert_eq!(prefix("10.1.2.3/0").network(), prefix("0.0.0.0/0"));
        assert_eq!(prefix("2001:db8::1/32").network(), prefix("2001:db8::/32"));
        let within = |one: &str, address: &str| prefix(one).contains(address.parse().unwrap());
        assert!(within("10.0.0.0/8", "10.255.0.1") && !within("10.0.0.0/8", "11.0.0.1"));
        assert!(within("10.0.0.0/8", "::ffff:10.0.0.1"));
        assert!(within("0.0.0.0/0", "192.0.2.1") && !within("0.0.0.0/0", "2001:db8::1"));
        assert!(within("::/0", "2001:db8::1") && !within("::/0", "192.0.2.1"));
        let address = |text: &str| Prefix::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(address("::ffff:192.0.2.77").shortened(24).network(), prefix("192.0.2.0/24"));
        assert_eq!(address("2001:db8::1").shortened(0).network(), prefix("::/0"));
        assert_eq!(prefix("10.0.0.0/8").shortened(24), prefix("10.0.0.0/8"));
    }
}
