// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The receive window. A buffer of so many bytes of memory holds packets with the kernel's bookkeeping; the window is
//! the part of it that data can take. It opens by two segments for each that arrives, up to the whole buffer, and the
//! buffer grows with what the application reads in a round-trip time (dynamic right-sizing, Fisk and Feng 2001).

use super::ReceiverSpec;
use crate::experiment::may_wait;
use crate::link::Nanos;

/// Memory of a packet besides its data, bytes: a socket buffer's bookkeeping and the rounding of its allocation.
const PACKET_MEMORY: u64 = 856;
/// The largest window that is not scaled, bytes.
const UNSCALED: u64 = 65_535;

/// See the module. Windows and buffers in bytes.
#[derive(Debug)]
pub(super) struct Window {
    grows: bool,
    mss: u64,
    /// What a segment of full size takes of memory.
    packet: u64,
    buffer: u64,
    largest: u64,
    /// Part of memory that data take, of 256.
    share: u64,
    /// The units in which the window is advertised, a power of two.
    unit: u64,
    /// What the window may be by now, and at most.
    open: u64,
    clamp: u64,
    /// What was offered last, and up to which byte.
    offered: u64,
    offered_end: u64,
    /// Memory in use by what waits for the reader or is out of order.
    held: u64,
    /// Bytes that wait for the reader.
    waiting: u64,
    /// Bytes read so far, and to be read in all.
    read: u64,
    expected: u64,
    measure: Measure,
}

/// What was read in a round-trip time.
#[derive(Debug)]
struct Measure {
    /// Eight times, microseconds; 0: none yet.
    rtt_eighths_us: u64,
    /// The clock that the last sample was of, microseconds.
    echoed_us: Option<u64>,
    since: Nanos,
    from: u64,
    bytes: u64,
}

impl Window {
    pub fn new(spec: &ReceiverSpec, now: Nanos) -> Self {
        let [buffer, largest] = spec.buffer_bytes;
        let mss = u64::from(spec.mss);
        let packet = (mss + PACKET_MEMORY).max(1_280);
        let mut unit = 1;
        while largest / unit > UNSCALED {
            unit *= 2;
        }
        // Before the first packet half of the memory counts as data; before Linux 6.10 no more than is not scaled.
        let first = buffer / 2 / (mss + 12) * (mss + 12);
        let share = (mss * 256 / packet).clamp(1, 255);
        Self {
            grows: spec.grows,
            mss,
            packet,
            buffer,
            largest,
            share,
            unit,
            // One segment of it is kept back.
            open: first.min((buffer / 2).saturating_sub(mss).max(2 * mss)),
            clamp: (buffer * share) >> 8,
            offered: first.next_multiple_of(unit),
            offered_end: first.next_multiple_of(unit),
            held: 0,
            waiting: 0,
            read: 0,
            expected: 0,
            measure: Measure {
                rtt_eighths_us: 0,
                echoed_us: None,
                since: now,
                from: 0,
                bytes: first.min(10 * mss),
            },
        }
    }

    pub fn offered(&self) -> u64 {
        self.offered
    }

    pub fn offered_end(&self) -> u64 {
        self.offered_end
    }

    /// Round-trip time as the receiver sees it, microseconds.
    pub fn rtt_us(&self) -> u64 {
        self.measure.rtt_eighths_us >> 3
    }

    fn memory(&self, bytes: u32) -> u64 {
        if u64::from(bytes) == self.mss { self.packet } else { u64::from(bytes) + PACKET_MEMORY }
    }

    /// A segment came out of order; whether the window opens.
    pub fn hold(&mut self, bytes: u32) -> bool {
        self.held += self.memory(bytes);
        self.grow(bytes)
    }

    /// A segment came in order, and so many bytes behind it are no longer out of order; whether the window opens.
    pub fn arrive(&mut self, bytes: u32, behind: u64) -> bool {
        self.held += self.memory(bytes);
        self.waiting += u64::from(bytes) + behind;
        self.grow(bytes)
    }

    /// A segment came that shows how long ago what released it was sent. The kernel's clock counts milliseconds here;
    /// where in a millisecond it is at the begin is chance, so that the simulator leaves it out.
    pub fn sample(&mut self, now: Nanos, echo_us: u64) {
        let measure = &mut self.measure;
        if measure.echoed_us.replace(echo_us) == Some(echo_us) {
            return;
        }
        let rtt_us = (now / 1_000).saturating_sub(echo_us).max(1);
        measure.rtt_eighths_us = match measure.rtt_eighths_us {
            0 => rtt_us << 3,
            known => known + rtt_us - (known >> 3),
        };
    }

    /// Opens the window for a segment that arrived; whether it did.
    fn grow(&mut self, bytes: u32) -> bool {
        let room = self.clamp.min(self.space()).saturating_sub(self.open);
        if room == 0 || bytes < 128 {
            return false;
        }
        self.open += room.min(2 * self.mss.max(u64::from(bytes)));
        true
    }

    /// Bytes of data that memory has room for.
    fn space(&self) -> u64 {
        (self.buffer.saturating_sub(self.held) * self.share) >> 8
    }

    /// The window that can be offered now.
    pub fn select(&self) -> u64 {
        let space = self.space();
        if space < self.mss {
            return 0;
        }
        space.min(self.open).next_multiple_of(self.unit)
    }

    /// Offers a window from this byte on; returns the byte where it ends, which never goes back.
    pub fn offer(&mut self, from: u64) -> u64 {
        self.offered_end = self.offered_end.max(from + self.select());
        self.offered = self.offered_end - from;
        self.offered_end
    }

    /// So many bytes more will come.
    pub fn expect(&mut self, bytes: u64) {
        self.expected += bytes;
    }

    fn low_water(&self) -> u64 {
        let left = self.expected.saturating_sub(self.read).max(1);
        may_wait(self.read, self.buffer).min(left)
    }

    /// Fewer bytes wait than wake the reader.
    pub fn is_below_low_water(&self) -> bool {
        self.waiting < self.low_water()
    }

    /// Enough bytes wait for the reader.
    pub fn wakes_reader(&self) -> bool {
        self.waiting > 0 && !self.is_below_low_water()
    }

    /// The window could be twice what is left of the one that was offered.
    pub fn may_double(&self, acknowledged: u64) -> bool {
        let left = self.offered_end.saturating_sub(acknowledged);
        2 * left <= self.clamp && self.select() >= 2 * left
    }

    /// The reader takes all that waits. What is out of order stays.
    pub fn read(&mut self, now: Nanos) {
        let packets = self.waiting.div_ceil(self.mss);
        self.held = self.held.saturating_sub(packets * self.packet);
        self.read += std::mem::take(&mut self.waiting);
        self.resize(now);
    }

    /// Once in a round-trip time.
    fn resize(&mut self, now: Nanos) {
        let measure = &mut self.measure;
        let rtt = (measure.rtt_eighths_us >> 3) * 1_000;
        if rtt == 0 || now - measure.since < rtt {
            return;
        }
        let bytes = self.read - measure.from;
        if bytes > measure.bytes {
            if self.grows {
                let least = 2 * bytes + 16 * self.mss;
                // Room for as much growth again as there was.
                let growth =
                    u128::from(least) * u128::from(bytes - measure.bytes) / u128::from(measure.bytes.max(1));
                let window = u128::from(least) + 2 * growth;
                let buffer = (window * 256 / u128::from(self.share)).min(self.largest.into()) as u64;
                if buffer > self.buffer {
                    self.buffer = buffer;
                    self.clamp = (buffer * self.share) >> 8;
                }
            }
            self.measure.bytes = bytes;
        }
        (self.measure.from, self.measure.since) = (self.read, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lab's sink waits for as much (`may_wait`).
    #[test]
    fn little_waits_at_first_and_in_small_buffers() {
        let spec = ReceiverSpec {
            mss: 1_448,
            buffer_bytes: [131_072, 131_072],
            grows: false,
            sack: true,
            quickack: false,
        };
        let mut window = Window::new(&spec, 0);
        window.expect(u64::MAX);
        let mut low_water = |read| {
            window.read = read;
            window.low_water()
        };
        assert_eq!([0, 1_024_000, 1 << 40].map(&mut low_water), [1, 1_000, 8_192]);
    }
}
