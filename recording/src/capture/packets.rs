// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The TCP segments of a capture file: pcap and pcapng, of the link layers that tcpdump and Wireshark write on Linux.

use std::io::{Cursor, Read};
use std::net::{IpAddr, SocketAddr};

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TcpSlice, TransportSlice};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, LegacyPcapReader, Linktype, PcapBlockOwned, PcapError, PcapNGReader};

use crate::kind;
use crate::monotone::END_US;

/// Bytes of a file that are in memory, and the most that a block may have.
const BUFFER_BYTES: usize = 1 << 18;
const BLOCK_BYTES: usize = 1 << 26;
/// Interfaces of a section that are remembered; packets of others are passed over.
const INTERFACES: usize = 4_096;

/// A segment as it passed the interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Microseconds of the capture's clock.
    pub at_us: u64,
    /// By which interface, where the file tells them apart.
    pub interface: u32,
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// Identification of IPv4 (RFC 6864), which a copy has and what is sent again has not; 0: none.
    pub id: u16,
    pub sequence: u32,
    /// `None`: the first SYN, or a reset.
    pub acknowledged: Option<u32>,
    pub syn: bool,
    pub fin: bool,
    pub reset: bool,
    /// Congestion window reduced (RFC 3168).
    pub cwr: bool,
    /// Not scaled.
    pub window: u16,
    /// Bytes of data, also where the capture cut them off.
    pub payload: u32,
    /// Options.
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    /// TSval and TSecr (RFC 7323).
    pub clock: Option<(u32, u32)>,
    pub selective: [Option<(u32, u32)>; 4],
}

/// What was passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    /// Packets in all.
    pub packets: u64,
    /// TCP whose headers were cut off, or that is fragmented.
    pub cut: u64,
    /// Packets of a link layer that is not known.
    pub unknown_link: u64,
    /// The file ends within a packet.
    pub ends_early: bool,
}

/// Where packets come from.
#[derive(Clone, Copy)]
struct Interface {
    link: Linktype,
    ticks_per_second: u64,
    offset_s: i64,
}

/// Reads a capture to its end.
///
/// # Errors
/// Why it is none, or from where on it is damaged; what came before has been handed out.
pub(super) fn read(mut source: Box<dyn Read>, mut each: impl FnMut(Segment)) -> Result<Passed, String> {
    // A header must come at once.
    let mut head = Vec::new();
    source.by_ref().take(kind::HEAD as u64).read_to_end(&mut head).map_err(|error| error.to_string())?;
    let is_pcapng = head.starts_with(kind::PCAPNG_HEAD);
    let source = Cursor::new(head).chain(source);
    let mut reader: Box<dyn PcapReaderIterator> = if is_pcapng {
        Box::new(PcapNGReader::new(BUFFER_BYTES, source).map_err(|_| "it has no section header")?)
    } else {
        Box::new(LegacyPcapReader::new(BUFFER_BYTES, source).map_err(|_| "it has no file header")?)
    };
    let (mut passed, mut interfaces, mut room) = (Passed::default(), Vec::new(), BUFFER_BYTES);
    let mut last_missing = None;
    loop {
        match reader.next() {
            Ok((length, block)) => {
                last_missing = None;
                take(&block, &mut interfaces, &mut passed, &mut each);
                reader.consume(length);
            }
            Err(PcapError::Eof) => return Ok(passed),
            Err(PcapError::Incomplete(_)) => {
                let missing = reader.position() + reader.data().len() + reader.consumed();
                if reader.reader_exhausted() || last_missing == Some(missing) {
                    passed.ends_early = true;
                    return Ok(passed);
                }
                last_missing = Some(missing);
                reader.refill().map_err(|error| format!("it cannot be read on: {error:?}"))?;
            }
            Err(PcapError::UnexpectedEof) => {
                passed.ends_early = true;
                return Ok(passed);
            }
            Err(PcapError::BufferTooSmall) => {
                room *= 2;
                if room > BLOCK_BYTES || !reader.grow(room) {
                    return Err(format!("a block of it has more than {BLOCK_BYTES} bytes"));
                }
            }
            Err(_) => return Err(format!("its packet {} is damaged", passed.packets + 1)),
        }
    }
}

fn take(
    block: &PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    passed: &mut Passed,
    each: &mut impl FnMut(Segment),
) {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let ticks_per_second = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            *interfaces = vec![Interface { link: header.network, ticks_per_second, offset_s: 0 }];
        }
        PcapBlockOwned::Legacy(packet) => {
            let Some(interface) = interfaces.first() else { return };
            let at_us = u64::from(packet.ts_sec) * 1_000_000
                + u64::from(packet.ts_usec) * 1_000_000 / interface.ticks_per_second;
            let captured = captured(packet.data, packet.caplen);
            decode(captured, packet.origlen, (at_us, 0), interface.link, passed, each);
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
        PcapBlockOwned::NG(Block::InterfaceDescription(one)) => {
            if interfaces.len() < INTERFACES {
                let ticks_per_second = one.ts_resolution().unwrap_or(1_000_000).max(1);
                interfaces.push(Interface {
                    link: one.linktype,
                    ticks_per_second,
                    offset_s: one.ts_offset(),
                });
            }
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let Some(interface) = interfaces.get(packet.if_id as usize) else { return };
            let ticks = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
            let us = (ticks * 1_000_000 / u128::from(interface.ticks_per_second)).min(END_US.into()) as u64;
            let at_us = us.saturating_add_signed(interface.offset_s.saturating_mul(1_000_000)).min(END_US);
            let captured = captured(packet.data, packet.caplen);
            decode(captured, packet.origlen, (at_us, packet.if_id), interface.link, passed, each);
        }
        // A packet without time says nothing here.
        PcapBlockOwned::NG(_) => {}
    }
}

/// Without what fills up the block.
fn captured(data: &[u8], length: u32) -> &[u8] {
    &data[..data.len().min(length as usize)]
}

/// `at`: the time and the interface.
fn decode(
    data: &[u8],
    length: u32,
    (at_us, interface): (u64, u32),
    link: Linktype,
    passed: &mut Passed,
    each: &mut impl FnMut(Segment),
) {
    passed.packets += 1;
    let word = |at: usize| data.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    let (sliced, interface) = match link {
        Linktype::ETHERNET => (LaxSlicedPacket::from_ethernet(data).ok(), interface),
        // The protocol's number ends the header; in the second version it begins it, and the interface's is in it.
        Linktype::LINUX_SLL => (after(data, 16, word(14)), interface),
        Linktype::LINUX_SLL2 => {
            let index =
                data.get(4..8).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
            (after(data, 20, word(0)), index.unwrap_or(interface))
        }
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12 | 14) => {
            (LaxSlicedPacket::from_ip(data).ok(), interface)
        }
        // A family's number, which is the host's own.
        Linktype::NULL | Linktype::LOOP => {
            (data.get(4..).and_then(|data| LaxSlicedPacket::from_ip(data).ok()), interface)
        }
        _ => {
            passed.unknown_link += 1;
            return;
        }
    };
    let Some((net, transport)) = sliced.and_then(|packet| Some((packet.net?, packet.transport))) else {
        return;
    };
    match (segment(data, length as usize, &net, transport.as_ref()), is_tcp(&net)) {
        (Some(segment), _) => each(Segment { at_us, interface, ..segment }),
        (None, true) => passed.cut += 1,
        (None, false) => {}
    }
}

fn after(data: &[u8], header: usize, protocol: Option<u16>) -> Option<LaxSlicedPacket<'_>> {
    Some(LaxSlicedPacket::from_ether_type(EtherType(protocol?), data.get(header..)?))
}

fn is_tcp(net: &LaxNetSlice<'_>) -> bool {
    net.ip_payload_ref().is_some_and(|payload| payload.ip_number == etherparse::IpNumber::TCP)
}

/// `None`: it is no TCP, or not all of its header.
fn segment(
    data: &[u8],
    length: usize,
    net: &LaxNetSlice<'_>,
    transport: Option<&TransportSlice<'_>>,
) -> Option<Segment> {
    let at = |part: &[u8]| (part.as_ptr() as usize).saturating_sub(data.as_ptr() as usize);
    // A length of 0 is of more than 64 kB, which segmentation offload hands over at once.
    let (from, to, id, begin, said): (IpAddr, IpAddr, u16, usize, usize) = match net {
        LaxNetSlice::Ipv4(ip) if !ip.is_payload_fragmented() => {
            let header = ip.header();
            let addresses = (header.source_addr().into(), header.destination_addr().into());
            let id = header.identification();
            (addresses.0, addresses.1, id, at(header.slice()), header.total_len().into())
        }
        LaxNetSlice::Ipv6(ip) if !ip.is_payload_fragmented() => {
            let header = ip.header();
            let said = usize::from(header.payload_length());
            let addresses = (header.source_addr().into(), header.destination_addr().into());
            (addresses.0, addresses.1, 0, at(header.slice()), if said == 0 { 0 } else { said + 40 })
        }
        _ => return None,
    };
    let Some(TransportSlice::Tcp(tcp)) = transport else { return None };
    let end = if said == 0 { length } else { begin + said };
    let payload = end.saturating_sub(at(tcp.slice()) + tcp.header_slice().len());
    let mut segment = Segment {
        at_us: 0,
        interface: 0,
        from: SocketAddr::new(from, tcp.source_port()),
        to: SocketAddr::new(to, tcp.destination_port()),
        id,
        sequence: tcp.sequence_number(),
        acknowledged: tcp.ack().then(|| tcp.acknowledgment_number()),
        syn: tcp.syn(),
        fin: tcp.fin(),
        reset: tcp.rst(),
        cwr: tcp.cwr(),
        window: tcp.window_size(),
        payload: u32::try_from(payload).ok()?,
        mss: None,
        scale: None,
        clock: None,
        selective: [None; 4],
    };
    options(tcp, &mut segment);
    Some(segment)
}

fn options(tcp: &TcpSlice<'_>, segment: &mut Segment) {
    // What follows a malformed option is not read.
    for option in tcp.options_iterator().map_while(Result::ok) {
        match option {
            TcpOptionElement::MaximumSegmentSize(mss) => segment.mss = Some(mss),
            TcpOptionElement::WindowScale(scale) => segment.scale = Some(scale.min(14)),
            TcpOptionElement::Timestamp(value, echo) => segment.clock = Some((value, echo)),
            TcpOptionElement::SelectiveAcknowledgement(first, others) => {
                segment.selective = [Some(first), others[0], others[1], others[2]];
            }
            TcpOptionElement::Noop | TcpOptionElement::SelectiveAcknowledgementPermitted => {}
        }
    }
}
