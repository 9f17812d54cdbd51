//! Tables that an onramp made whose rules named one thing each: read, so that its rules stay, and never written.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aya::maps::MapData;
use aya::maps::lpm_trie::{Key, LpmTrie};
use onramp_net::Prefix;

use super::cgroup::Cgroup;
use super::rule::{Side, Target};
use crate::object::abi::SelectRule;

/// What the rule names, its side, two zeros, and the value: an address or port in network order, or a cgroup's id.
type KeyValue = [u8; 20];

/// Bits of a key before its value.
const HEAD_BITS: u32 = 32;

/// Such a table.
pub(super) type Trie = LpmTrie<MapData, KeyValue, SelectRule>;

/// `None`: no key of such a table.
pub(super) fn target(key: &Key<KeyValue>) -> Option<Target> {
    let [what, side, _, _, value @ ..] = key.data();
    let bits = key.prefix_len().checked_sub(HEAD_BITS)?;
    let [a, b, c, d, e, f, g, h, ..] = value;
    let prefix = |address: IpAddr| Prefix::new(address, bits);
    let mut target = Target { to: None, port: None, cgroup: None, side: Side::of(side)? };
    match what {
        1 => target.to = Some(prefix(Ipv4Addr::new(a, b, c, d).into())?),
        2 => target.to = Some(prefix(Ipv6Addr::from(value).into())?),
        3 => target.port = Some(u16::from_be_bytes([a, b])),
        4 => {
            let id = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
            target.cgroup = Some(Cgroup { id, path: None });
        }
        _ => return None,
    }
    Some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_former_rule_named_is_all_that_it_names() {
        let key = |what: u8, side: u8, bits: u32, value: &[u8]| {
            let mut bytes = [what, side].to_vec();
            bytes.extend([0, 0]);
            bytes.extend(value);
            bytes.resize(20, 0);
            Key::new(HEAD_BITS + bits, bytes.try_into().unwrap())
        };
        let written = |key: &Key<KeyValue>| target(key).map(|target| target.to_string());
        let six = [0x20, 1, 0xd, 0xb8];
        for (key, words) in [
            (key(1, 1, 24, &[192, 0, 2]), "--to 192.0.2.0/24 --accept"),
            (key(2, 0, 32, &six), "--to 2001:db8::/32"),
            (key(3, 2, 16, &[1, 187]), "--port 443 --connect"),
            (key(4, 0, 64, &7u64.to_ne_bytes()), "--cgroup (gone, number 7)"),
        ] {
            assert_eq!(written(&key).as_deref(), Some(words));
        }
        for wrong in [key(5, 0, 64, &[]), key(1, 3, 8, &[10]), key(1, 0, 33, &[10])] {
            assert_eq!(written(&wrong), None);
        }
    }
}
