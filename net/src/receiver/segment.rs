// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Segments of TCP over IPv4 (RFC 9293), as far as a sender of zeros needs them.

use std::io;
use std::net::Ipv4Addr;

use etherparse::{PacketBuilder, SlicedPacket, TcpOptionElement, TcpOptionReadError, TransportSlice};

use super::MTU;

/// Hops that a packet may take.
const TTL: u8 = 64;
/// What data there are.
const ZEROS: [u8; MTU as usize] = [0; MTU as usize];

/// Address and port of an end.
pub(super) type End = (Ipv4Addr, u16);

/// A segment from the kernel.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    pub syn: bool,
    pub ack: bool,
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

/// Reads a packet; `None`: it is not TCP, or is cut off.
pub(super) fn read(packet: &[u8]) -> Option<Heard> {
    let Some(TransportSlice::Tcp(tcp)) = SlicedPacket::from_ip(packet).ok()?.transport else { return None };
    let mut heard = Heard {
        syn: tcp.syn(),
        ack: tcp.ack(),
        port: tcp.source_port(),
        sequence: tcp.sequence_number(),
        acknowledged: tcp.acknowledgment_number(),
        window: tcp.window_size(),
        ..Heard::default()
    };
    for option in tcp.options_iterator() {
        match option {
            Ok(TcpOptionElement::WindowScale(scale)) => heard.scale = Some(scale),
            Ok(TcpOptionElement::Timestamp(clock, _)) => heard.clock = Some(clock),
            Ok(_) => {}
            // What comes behind is not read either.
            Err(TcpOptionReadError::UnknownId(_)) => break,
            Err(_) => return None,
        }
    }
    Some(heard)
}

/// What a segment says, which acknowledges. Its data are zeros.
#[derive(Debug)]
pub(super) struct Said<'a> {
    pub from: End,
    pub to: End,
    pub syn: bool,
    pub push: bool,
    pub sequence: u32,
    pub acknowledged: u32,
    pub options: &'a [TcpOptionElement],
    /// Of data, at most [`MTU`].
    pub bytes: usize,
}

impl Said<'_> {
    /// The packet.
    ///
    /// # Errors
    /// It would be longer than packets are.
    pub fn packet(&self) -> io::Result<Vec<u8>> {
        let ip = PacketBuilder::ipv4(self.from.0.octets(), self.to.0.octets(), TTL);
        let mut tcp = ip.tcp(self.from.1, self.to.1, self.sequence, u16::MAX).ack(self.acknowledged);
        if self.syn {
            tcp = tcp.syn();
        }
        if self.push {
            tcp = tcp.psh();
        }
        let tcp = tcp.options(self.options).map_err(|error| io::Error::other(format!("{error:?}")))?;
        let mut packet = Vec::with_capacity(ZEROS.len());
        tcp.write(&mut packet, &ZEROS[..self.bytes]).map_err(io::Error::other)?;
        Ok(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP_HEADER: usize = 20;
    const TCP_HEADER: usize = 20;

    fn said(options: &[TcpOptionElement]) -> Vec<u8> {
        let (from, to) = ((Ipv4Addr::new(192, 0, 2, 1), 443), (Ipv4Addr::new(192, 0, 2, 2), 40_000));
        let said = Said { from, to, syn: true, push: false, sequence: 7, acknowledged: 9, options, bytes: 3 };
        said.packet().unwrap()
    }

    /// Of the Internet (RFC 1071).
    fn sum(bytes: &[u8]) -> u32 {
        let sum: u32 =
            bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum();
        (sum & 0xffff) + (sum >> 16)
    }

    #[test]
    fn what_is_written_is_read_and_its_checksums_are_right() {
        let packet = said(&[
            TcpOptionElement::MaximumSegmentSize(1_460),
            TcpOptionElement::Noop,
            TcpOptionElement::WindowScale(14),
            TcpOptionElement::Noop,
            TcpOptionElement::Noop,
            TcpOptionElement::Timestamp(256, 1),
        ]);
        let heard = Heard {
            syn: true,
            ack: true,
            port: 443,
            sequence: 7,
            acknowledged: 9,
            window: 65_535,
            scale: Some(14),
            clock: Some(256),
        };
        assert_eq!(read(&packet), Some(heard));
        assert_eq!(sum(&packet[..IP_HEADER]), 0xffff);
        let tcp = &packet[IP_HEADER..];
        let pseudo = sum(&packet[12..IP_HEADER]) + 6 + tcp.len() as u32;
        assert_eq!(sum(&(sum(tcp) + pseudo).to_be_bytes()), 0xffff);
    }

    #[test]
    fn what_is_cut_off_or_something_else_is_nothing() {
        let packet = said(&[TcpOptionElement::WindowScale(14)]);
        for length in 0..IP_HEADER + TCP_HEADER + 4 {
            assert_eq!(read(&packet[..length]), None, "{length}");
        }
        // An option that is longer than all of them, and one that is shorter than itself.
        for length in [9, 1] {
            let mut wrong = packet.clone();
            wrong[IP_HEADER + TCP_HEADER + 1] = length;
            assert_eq!(read(&wrong), None, "{length}");
        }
        let mut other = packet;
        other[9] = 17;
        assert_eq!(read(&other), None);
    }
}
