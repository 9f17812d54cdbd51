// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Segments of TCP over IPv4 (RFC 9293), as far as a sender of zeros needs them: written with their checksums, and read.

use std::net::Ipv4Addr;

const IP_HEADER: usize = 20;
const TCP_HEADER: usize = 20;
const PROTOCOL: u8 = 6;
pub(super) const SYN: u8 = 2;
pub(super) const PUSH: u8 = 8;
pub(super) const ACK: u8 = 16;

/// Address and port of an end.
pub(super) type End = (Ipv4Addr, u16);

/// A segment from the kernel.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    pub flags: u8,
    /// Port that it comes from.
    pub port: u16,
    pub sequence: u32,
    pub acknowledged: u32,
    /// As it is sent, before scaling.
    pub window: u16,
    /// Of a SYN: the exponent of the scale.
    pub scale: Option<u8>,
    /// Its sender's clock (RFC 7323).
    pub clock: Option<u32>,
}

/// Reads a packet; `None`: it is not TCP over IPv4, or is cut off.
pub(super) fn read(packet: &[u8]) -> Option<Heard> {
    let first = *packet.first()?;
    if first >> 4 != 4 || *packet.get(9)? != PROTOCOL {
        return None;
    }
    let tcp = packet.get(usize::from(first & 15) * 4..)?;
    let options = tcp.get(TCP_HEADER..usize::from(*tcp.get(12)? >> 4) * 4)?;
    let mut heard = Heard {
        flags: tcp[13],
        port: u16::from_be_bytes([tcp[0], tcp[1]]),
        sequence: number(tcp, 4)?,
        acknowledged: number(tcp, 8)?,
        window: u16::from_be_bytes([tcp[14], tcp[15]]),
        ..Heard::default()
    };
    let mut rest = options;
    while let Some((&kind, behind)) = rest.split_first() {
        match kind {
            0 => break,
            1 => {
                rest = behind;
                continue;
            }
            _ => {}
        }
        let length = usize::from(*behind.first()?);
        let option = rest.get(..length).filter(|option| option.len() >= 2)?;
        match kind {
            3 => heard.scale = option.get(2).copied(),
            8 => heard.clock = number(option, 2),
            _ => {}
        }
        rest = &rest[length..];
    }
    Some(heard)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// What a segment says. Its data are zeros.
#[derive(Debug)]
pub(super) struct Said<'a> {
    pub from: End,
    pub to: End,
    pub flags: u8,
    pub sequence: u32,
    pub acknowledged: u32,
    /// A multiple of four bytes.
    pub options: &'a [u8],
    pub bytes: usize,
}

impl Said<'_> {
    /// The packet.
    pub fn packet(&self) -> Vec<u8> {
        let header = TCP_HEADER + self.options.len();
        let length = IP_HEADER + header + self.bytes;
        let mut packet = Vec::with_capacity(length);
        packet.extend([0x45, 0]);
        packet.extend((length as u16).to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, PROTOCOL, 0, 0]);
        packet.extend(self.from.0.octets());
        packet.extend(self.to.0.octets());
        packet.extend(self.from.1.to_be_bytes());
        packet.extend(self.to.1.to_be_bytes());
        packet.extend(self.sequence.to_be_bytes());
        packet.extend(self.acknowledged.to_be_bytes());
        packet.extend([((header / 4) << 4) as u8, self.flags]);
        packet.extend(u16::MAX.to_be_bytes());
        packet.extend([0; 4]);
        packet.extend(self.options);
        let ip = checksum(&packet[..IP_HEADER], 0);
        // Of zeros there is nothing to add.
        let pseudo = sum(&packet[12..IP_HEADER]) + u32::from(PROTOCOL) + (header + self.bytes) as u32;
        let tcp = checksum(&packet[IP_HEADER..], pseudo);
        packet[10..12].copy_from_slice(&ip.to_be_bytes());
        packet[IP_HEADER + 16..IP_HEADER + 18].copy_from_slice(&tcp.to_be_bytes());
        packet.resize(length, 0);
        packet
    }
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum()
}

/// Of the Internet (RFC 1071), over bytes and what else is counted.
fn checksum(bytes: &[u8], more: u32) -> u16 {
    let sum = sum(bytes) + more;
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(options: &[u8]) -> Vec<u8> {
        let (from, to) = ((Ipv4Addr::new(192, 0, 2, 1), 443), (Ipv4Addr::new(192, 0, 2, 2), 40_000));
        Said { from, to, flags: SYN | ACK, sequence: 7, acknowledged: 9, options, bytes: 3 }.packet()
    }

    #[test]
    fn what_is_written_is_read_and_its_checksums_are_right() {
        let packet = said(&[2, 4, 5, 180, 1, 3, 3, 14, 1, 1, 8, 10, 0, 0, 1, 0, 0, 0, 0, 1]);
        let heard = Heard {
            flags: SYN | ACK,
            port: 443,
            sequence: 7,
            acknowledged: 9,
            window: 65_535,
            scale: Some(14),
            clock: Some(256),
        };
        assert_eq!(read(&packet), Some(heard));
        assert_eq!(checksum(&packet[..IP_HEADER], 0), 0);
        let tcp = &packet[IP_HEADER..];
        assert_eq!(checksum(tcp, sum(&packet[12..IP_HEADER]) + 6 + tcp.len() as u32), 0);
    }

    #[test]
    fn what_is_cut_off_or_something_else_is_nothing() {
        let packet = said(&[3, 3, 14, 0]);
        for length in 0..IP_HEADER + TCP_HEADER + 4 {
            assert_eq!(read(&packet[..length]), None, "{length}");
        }
        // An option that is longer than all of them, and one that is shorter than itself.
        assert_eq!(read(&said(&[3, 9, 14, 0])), None);
        assert_eq!(read(&said(&[3, 1, 14, 0])), None);
        let mut other = packet;
        other[9] = 17;
        assert_eq!(read(&other), None);
    }
}
