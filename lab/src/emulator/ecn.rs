// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Explicit congestion notification in the header of IPv4 (RFC 3168, section 5): two bits behind the DSCP, 0 where the
//! sender takes no part, both set where a router has met congestion.

use super::segment::folded;

const VERSION_4: u8 = 4;
const BITS: u8 = 3;
const HEADER_BYTES: usize = 20;

/// Whether a packet's sender takes part. IPv6 is not looked at: the lab's hosts speak IPv4.
pub(super) fn is_capable(ip: &[u8]) -> bool {
    ip.len() >= HEADER_BYTES && ip[0] >> 4 == VERSION_4 && ip[1] & BITS != 0
}

/// Marks the packet of such a sender, and corrects the header's checksum (RFC 1624, equation 3).
pub(super) fn mark(ip: &mut [u8]) {
    if !is_capable(ip) {
        return;
    }
    let word = |ip: &[u8], at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]);
    let (before, checksum) = (word(ip, 0), word(ip, 10));
    ip[1] |= BITS;
    let checksum = !folded(u32::from(!checksum) + u32::from(!before) + u32::from(word(ip, 0)));
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::segment::sum;
    use super::*;

    /// A header with this type of service and its checksum.
    fn header(service: u8, identification: u16) -> Vec<u8> {
        let mut ip = vec![0x45, service, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        ip[4..6].copy_from_slice(&identification.to_be_bytes());
        let checksum = !folded(sum(&ip));
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        ip
    }

    #[test]
    fn a_mark_sets_both_bits_and_the_checksum_stays_right() {
        for identification in 0..=u16::MAX {
            let mut ip = header(0xb8 | 2, identification);
            let before = ip.clone();
            mark(&mut ip);
            assert_eq!((ip[1], folded(sum(&ip))), (0xb8 | 3, 0xffff), "{identification}");
            assert_eq!((&ip[2..10], &ip[12..]), (&before[2..10], &before[12..]));
        }
    }

    #[test]
    fn who_takes_no_part_is_not_marked() {
        for mut ip in [header(0xb8, 7), vec![0x60; 40], vec![0x45, 2]] {
            let before = ip.clone();
            mark(&mut ip);
            assert_eq!(ip, before);
            assert!(!is_capable(&ip));
        }
        // One that another router has marked is still of a sender that takes part.
        assert!(is_capable(&header(3, 7)));
    }
}
