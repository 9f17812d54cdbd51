//! Packets as a wire sees them: TCP over IPv4, or over IPv6 without extension headers.

/// A packet from the near end that carries data, in a SYN too.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// Its number, from 0, retransmissions counted too.
    pub number: usize,
    /// Whether its first byte had been sent before.
    pub retransmission: bool,
    /// Whether it opens the connection (RFC 7413).
    pub syn: bool,
    /// The last byte of the address that it goes to.
    pub to: u8,
}

/// A packet from the far end, which carries no data here.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Its number, from 0.
    pub number: usize,
    /// The window that it advertises, before scaling.
    pub window: u16,
}

/// Where the parts of a packet are.
pub(super) struct Segment<'a> {
    packet: &'a [u8],
    tcp: usize,
    payload: usize,
}

impl<'a> Segment<'a> {
    /// `None`: it is not TCP.
    pub fn new(packet: &'a [u8]) -> Option<Self> {
        let (tcp, protocol) = match packet.first()? >> 4 {
            4 => (usize::from(packet[0] & 15) * 4, *packet.get(9)?),
            _ => (40, *packet.get(6)?),
        };
        let payload = tcp + usize::from(packet.get(tcp + 12)? >> 4) * 4;
        (protocol == 6 && packet.len() >= payload).then_some(Self { packet, tcp, payload })
    }

    /// Bytes of payload.
    pub fn bytes(&self) -> u32 {
        (self.packet.len() - self.payload) as u32
    }

    fn to(&self) -> u8 {
        self.packet[if self.packet[0] >> 4 == 4 { 19 } else { 39 }]
    }

    pub fn sequence(&self) -> u32 {
        self.number(4)
    }

    /// Its window, before scaling.
    pub fn window(&self) -> u16 {
        (self.number(12) & 0xffff) as u16
    }

    fn is_syn(&self) -> bool {
        self.packet[self.tcp + 13] & 2 != 0
    }

    fn number(&self, at: usize) -> u32 {
        let at = self.tcp + at;
        self.packet[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }
}

/// Which packets have gone by.
#[derive(Default)]
pub(super) struct Seen {
    number: usize,
    highest: Option<u32>,
    back: usize,
}

impl Seen {
    /// A packet from the near end as [`Data`], if it has any.
    pub fn data(&mut self, packet: &[u8]) -> Option<Data> {
        let segment = Segment::new(packet).filter(|segment| segment.bytes() > 0)?;
        let sequence = segment.sequence();
        let retransmission = self.highest.is_some_and(|highest| highest.wrapping_sub(sequence) as i32 >= 0);
        if !retransmission {
            self.highest = Some(sequence);
        }
        self.number += 1;
        Some(Data { number: self.number - 1, retransmission, syn: segment.is_syn(), to: segment.to() })
    }

    /// A packet from the far end as [`Ack`].
    pub fn ack(&mut self, packet: &[u8]) -> Option<Ack> {
        let segment = Segment::new(packet)?;
        self.back += 1;
        Some(Ack { number: self.back - 1, window: segment.window() })
    }
}

/// Sets "congestion experienced", and of IPv4 the header checksum anew.
pub(super) fn mark(packet: &mut [u8]) {
    if packet[0] >> 4 == 6 {
        packet[1] |= 0x30;
    } else {
        packet[1] |= 3;
        checksum_ip(packet);
    }
}

fn checksum_ip(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let header = usize::from(packet[0] & 15) * 4;
    let checksum = checksum(&packet[..header], 0);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Of the Internet (RFC 1071).
fn checksum(bytes: &[u8], more: u32) -> u16 {
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum::<u32>() + more;
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// No operation, twice, and the timestamps (RFC 7323), as Linux begins its options.
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];

/// An acknowledgment over IPv4 again, which besides says by a selective one (RFC 2018) that these bytes have arrived.
///
/// # Panics
/// If it has no timestamps.
pub(super) fn selecting(ack: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    let (of, block) = (Segment::new(ack)?, Segment::new(data)?);
    let options = of.tcp + 20;
    assert_eq!(ack[options..options + 4], TIMESTAMPS, "the options of an acknowledgment");
    let mut packet = ack[..options + 12].to_vec();
    packet.extend([1, 1, 5, 10]);
    packet.extend(block.sequence().to_be_bytes());
    packet.extend((block.sequence() + block.bytes()).to_be_bytes());
    let length = (packet.len() as u16).to_be_bytes();
    packet[2..4].copy_from_slice(&length);
    checksum_ip(&mut packet);
    let tcp = of.tcp;
    packet[tcp + 12] = ((packet.len() - tcp) as u8 / 4) << 4;
    packet[tcp + 16..tcp + 18].fill(0);
    let addresses = packet[12..20].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let pseudo = addresses.sum::<u32>() + 6 + (packet.len() - tcp) as u32;
    let checksum = checksum(&packet[tcp..], pseudo);
    packet[tcp + 16..tcp + 18].copy_from_slice(&checksum.to_be_bytes());
    Some(packet)
}
