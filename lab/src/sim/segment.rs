// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What crosses the link. Sequence numbers count segments: where a segment begins and ends in the stream is agreed
//! upon in [`Layout`], and no segment is ever cut or merged on the way.

use super::opening;
use crate::host::HEADER_BYTES;

/// Blocks of an acknowledgment at most: those that fit next to the timestamps (RFC 2018, section 3).
pub const BLOCKS: usize = 3;

/// Segments from the first to before the second.
pub type Range = (u32, u32);

/// A packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Of the run's flows, from 0.
    pub flow: u16,
    /// What it carries.
    pub content: Content,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// One segment of data.
    Data(Data),
    /// An acknowledgment without data.
    Ack(Ack),
    /// Part of opening the connections.
    Opening(opening::Packet),
}

/// One segment of data.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// Its number.
    pub sequence: u32,
    /// The sender's clock, microseconds.
    pub sent_us: u64,
    /// The receiver's clock of the acknowledgment that arrived last before, microseconds.
    pub echo_us: u64,
    /// The last of a burst, which the receiver should not keep waiting (PSH).
    pub push: bool,
}

/// An acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// The first segment that is missing.
    pub next: u32,
    /// The byte of the stream up to which the receiver has room.
    pub window_end: u64,
    /// The receiver's clock, microseconds.
    pub sent_us: u64,
    /// Clock of the segment that this answers (RFC 7323, section 4.3), microseconds.
    pub echo_us: u64,
    /// What has arrived beyond, latest first.
    pub blocks: [Range; BLOCKS],
    /// How many of them there are.
    pub block_count: u8,
    /// A segment that had arrived before has arrived again (RFC 2883).
    pub duplicate: Option<u32>,
}

impl Ack {
    /// The blocks.
    pub fn blocks(&self) -> &[Range] {
        &self.blocks[..usize::from(self.block_count)]
    }

    /// Size of the packet, bytes: with blocks, their option.
    pub fn packet_bytes(&self) -> u32 {
        let blocks = u32::from(self.block_count) + u32::from(self.duplicate.is_some());
        HEADER_BYTES + if blocks > 0 { 4 + 8 * blocks } else { 0 }
    }
}

/// Which bytes of the stream segments hold: full ones, but for the last of each write.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Bytes of a full segment.
    pub mss: u32,
    /// Segments that are not full, in order, and by how many bytes all segments up to and with each fall short.
    short: Vec<(u32, u64)>,
    /// Segments written so far.
    written: u32,
}

impl Layout {
    /// An empty stream.
    pub fn new(mss: u32) -> Self {
        Self { mss, short: Vec::new(), written: 0 }
    }

    /// Segments written so far.
    pub fn written(&self) -> u32 {
        self.written
    }

    /// Appends bytes, the last of which end a segment.
    pub fn write(&mut self, bytes: u64) {
        let mss = u64::from(self.mss);
        self.written += bytes.div_ceil(mss) as u32;
        let missing = bytes.next_multiple_of(mss) - bytes;
        if missing > 0 {
            let before = self.short.last().map_or(0, |(_, sum)| *sum);
            self.short.push((self.written - 1, before + missing));
        }
    }

    /// Where a segment begins, or the one before it ends: its byte of the stream.
    pub fn begin(&self, sequence: u32) -> u64 {
        let full = u64::from(sequence) * u64::from(self.mss);
        let Some((first, _)) = self.short.first() else { return full };
        if sequence <= *first {
            return full;
        }
        let before = self.short.partition_point(|(short, _)| *short < sequence);
        full - self.short[before - 1].1
    }

    /// Bytes of a segment.
    pub fn bytes(&self, sequence: u32) -> u32 {
        (self.begin(sequence + 1) - self.begin(sequence)) as u32
    }

    /// How many whole segments, from `sequence` on, end at or before a byte of the stream.
    pub fn segments_until(&self, sequence: u32, end: u64) -> u32 {
        let full = end.saturating_sub(self.begin(sequence)) / u64::from(self.mss);
        let mut count = full.min(u64::from(self.written - sequence)) as u32;
        while sequence + count < self.written && self.begin(sequence + count + 1) <= end {
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_end_segments_and_bytes_are_found_again() {
        let mut layout = Layout::new(1_000);
        layout.write(2_500);
        layout.write(1_000);
        layout.write(1);
        assert_eq!(layout.written(), 5);
        let begins: Vec<_> = (0..=5).map(|sequence| layout.begin(sequence)).collect();
        assert_eq!(begins, [0, 1_000, 2_000, 2_500, 3_500, 3_501]);
        assert_eq!(layout.bytes(2), 500);
        assert_eq!(layout.segments_until(0, 2_499), 2);
        assert_eq!(layout.segments_until(0, 2_500), 3);
        assert_eq!(layout.segments_until(1, 3_501), 4);
        assert_eq!(layout.segments_until(4, 3_500), 0);
    }

    #[test]
    fn an_acknowledgment_is_as_long_as_its_blocks_make_it() {
        assert_eq!(Ack::default().packet_bytes(), 52);
        assert_eq!(Ack { block_count: 3, ..Ack::default() }.packet_bytes(), 80);
        assert_eq!(Ack { duplicate: Some(3), ..Ack::default() }.packet_bytes(), 64);
    }
}
