// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a TUN device with offloads reads and writes: an IP packet behind a header of 10 bytes (`virtio_net_hdr`), which
//! says that the packet's checksum is left out, or that it is a TCP segment of many packets' payload that is to be cut.
//! Checksums stay left out on the whole way, and segments are cut here, as the kernel would.

use super::MTU;

/// Bytes of the header.
pub(super) const HEADER: usize = 10;
/// Most that a read yields, bytes.
pub(super) const MOST: usize = HEADER + 65_535;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum field holds the sum of the pseudo-header alone.
const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_NONE`, `_TCPV4`.
const WHOLE: u8 = 0;
const TCP_SEGMENT: u8 = 1;
/// Where the checksum is in TCP's header.
const TCP_CHECKSUM: usize = 16;
const FIN: u8 = 1;
const PSH: u8 = 8;
const CWR: u8 = 0x80;
const TCP: u8 = 6;

/// A packet as it is read and written, at most MTU bytes behind the header.
pub(super) type Frame = [u8; HEADER + MTU];

/// What was read, to be taken as packets of at most the MTU.
pub(super) enum Read<'a> {
    /// One packet behind its header.
    Whole(&'a [u8]),
    /// Several.
    Segment(Segment<'a>),
}

impl<'a> Read<'a> {
    /// `None` for what cannot be cut: nothing that the kernel hands out with the offloads that [`super::Tun`] asks for.
    pub fn parse(read: &'a [u8]) -> Option<Self> {
        let (header, ip) = read.split_at_checked(HEADER)?;
        if header[1] == WHOLE {
            return (ip.len() <= MTU).then_some(Self::Whole(read));
        }
        let payload_bytes = usize::from(u16::from_ne_bytes([header[4], header[5]]));
        // The bit above is that of congestion notification.
        let of_tcp = header[1] & 0x7f == TCP_SEGMENT;
        Some(Self::Segment(Segment::parse(ip, payload_bytes).filter(|_| of_tcp)?))
    }

    /// How many packets there are.
    pub fn packets(&self) -> usize {
        match self {
            Self::Whole(_) => 1,
            Self::Segment(segment) => segment.payload.len().div_ceil(segment.payload_bytes),
        }
    }

    /// Writes a packet, counted from 0, behind its header; returns the length of both.
    pub fn write(&self, number: usize, frame: &mut Frame) -> usize {
        match self {
            Self::Whole(read) => {
                frame[..read.len()].copy_from_slice(read);
                read.len()
            }
            Self::Segment(segment) => segment.write(number, frame),
        }
    }
}

/// A TCP segment over IPv4 with the payload of many packets.
pub(super) struct Segment<'a> {
    headers: &'a [u8],
    ip_bytes: usize,
    payload: &'a [u8],
    payload_bytes: usize,
}

impl<'a> Segment<'a> {
    fn parse(ip: &'a [u8], payload_bytes: usize) -> Option<Self> {
        let ip_bytes = usize::from(ip.first()? & 0xf) * 4;
        let of_tcp = ip[0] >> 4 == 4 && ip_bytes >= 20 && *ip.get(9)? == TCP;
        let headers_bytes = ip_bytes + usize::from(ip.get(ip_bytes + 12)? >> 4) * 4;
        let (headers, payload) = ip.split_at_checked(headers_bytes)?;
        let fits = headers_bytes >= ip_bytes + 20 && headers_bytes + payload_bytes <= MTU;
        (of_tcp && fits && payload_bytes > 0).then_some(Self { headers, ip_bytes, payload, payload_bytes })
    }

    fn write(&self, number: usize, frame: &mut Frame) -> usize {
        let from = number * self.payload_bytes;
        let last = from + self.payload_bytes >= self.payload.len();
        let payload = &self.payload[from..if last { self.payload.len() } else { from + self.payload_bytes }];
        let length = self.headers.len() + payload.len();
        let start = self.ip_bytes as u16;
        frame[..HEADER].fill(0);
        frame[0] = NEEDS_CHECKSUM;
        frame[6..8].copy_from_slice(&start.to_ne_bytes());
        frame[8..10].copy_from_slice(&(TCP_CHECKSUM as u16).to_ne_bytes());
        let packet = &mut frame[HEADER..HEADER + length];
        packet[..self.headers.len()].copy_from_slice(self.headers);
        packet[self.headers.len()..].copy_from_slice(payload);
        let (ip, tcp) = packet.split_at_mut(self.ip_bytes);
        ip[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        let identification = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(number as u16);
        ip[4..6].copy_from_slice(&identification.to_be_bytes());
        ip[10..12].fill(0);
        let checksum = !folded(sum(ip));
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        let sequence = sequence.wrapping_add(from as u32);
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        if !last {
            tcp[13] &= !(FIN | PSH);
        }
        if number > 0 {
            tcp[13] &= !CWR;
        }
        let pseudo = sum(&ip[12..20]) + u32::from(TCP) + tcp.len() as u32;
        tcp[TCP_CHECKSUM..TCP_CHECKSUM + 2].copy_from_slice(&folded(pseudo).to_be_bytes());
        HEADER + length
    }
}

/// Sum of 16-bit words (RFC 1071), of an even number of bytes, 100 at most.
pub(super) fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

pub(super) fn folded(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment of so many bytes of payload, in packets of 1 448, with FIN, PSH, ACK and CWR.
    fn segment(payload: usize) -> Vec<u8> {
        let mut read = vec![0; HEADER];
        read[0] = NEEDS_CHECKSUM;
        read[1] = TCP_SEGMENT;
        read[4..6].copy_from_slice(&1_448_u16.to_ne_bytes());
        let total = (52 + payload) as u16;
        let mut ip = vec![0x45, 0, 0, 0, 0xff, 0xff, 0x40, 0, 64, TCP, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        read.extend(ip);
        let mut tcp = vec![0; 32];
        tcp[4..8].copy_from_slice(&(u32::MAX - 999).to_be_bytes());
        (tcp[12], tcp[13]) = (0x80, FIN | PSH | 0x10 | CWR);
        read.extend(tcp);
        read.extend((0..payload).map(|at| at as u8));
        read
    }

    fn packets(read: &[u8]) -> Option<Vec<Vec<u8>>> {
        let read = Read::parse(read)?;
        let packet = |number| {
            let mut frame = [0xaa; HEADER + MTU];
            let length = read.write(number, &mut frame);
            frame[..length].to_vec()
        };
        Some((0..read.packets()).map(packet).collect())
    }

    #[test]
    fn a_segment_becomes_packets_as_the_kernel_makes_them() {
        let read = segment(1_448 * 2 + 100);
        let packets = packets(&read).unwrap();
        assert_eq!(packets.iter().map(Vec::len).collect::<Vec<_>>(), [1_510, 1_510, 162]);
        let mut payload: Vec<u8> = Vec::new();
        for (number, packet) in packets.iter().enumerate() {
            let (header, packet) = packet.split_at(HEADER);
            assert_eq!((header[0], header[1]), (NEEDS_CHECKSUM, WHOLE));
            assert_eq!(u16::from_ne_bytes([header[6], header[7]]), 20);
            assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len());
            let identification = u16::from_be_bytes([packet[4], packet[5]]);
            assert_eq!(identification, 0xffff_u16.wrapping_add(number as u16));
            assert_eq!(folded(sum(&packet[..20])), 0xffff, "the IP header's checksum");
            let sequence = u32::from_be_bytes(packet[24..28].try_into().unwrap());
            assert_eq!(sequence, (u32::MAX - 999).wrapping_add(number as u32 * 1_448));
            let flags = [0x10 | CWR, 0x10, 0x10 | FIN | PSH][number];
            assert_eq!(packet[33], flags);
            // The pseudo-header: both addresses, the protocol and the length of TCP.
            let pseudo = 2 * (0xc000 + 0x0200) + 3 + 6 + packet.len() as u32 - 20;
            assert_eq!(u16::from_be_bytes([packet[36], packet[37]]), folded(pseudo));
            payload.extend(&packet[52..]);
        }
        assert_eq!(payload, read[HEADER + 52..]);
    }

    #[test]
    fn a_whole_packet_stays_as_it_is() {
        let mut read = segment(1_448);
        read[1] = WHOLE;
        assert_eq!(packets(&read).unwrap(), [read]);
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        let base = segment(5_000);
        let refused = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut read = base.clone();
            change(&mut read);
            packets(&read).is_none()
        };
        assert!(refused(&|read| read.truncate(5)));
        assert!(refused(&|read| read.truncate(HEADER + 30)));
        assert!(refused(&|read| read[1] = 3), "UDP");
        assert!(refused(&|read| read[1] = WHOLE), "longer than the MTU");
        assert!(refused(&|read| read[HEADER] = 0x65), "IPv6");
        assert!(refused(&|read| read[HEADER + 9] = 17), "UDP in the header");
        assert!(refused(&|read| read[4..6].fill(0)), "no payload per packet");
        assert!(refused(&|read| read[4..6].fill(0xff)), "more than the MTU per packet");
    }
}
