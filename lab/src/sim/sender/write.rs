// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the application writes, as `tcp_sendmsg` takes it: into packets of up to 64 kB, or of half the largest window that
//! the receiver offered (`tcp_xmit_size_goal`). A packet that is begun is filled, whatever memory is left; another is begun
//! only while there is some. What is waited for to make a burst larger ends with the packet.

use std::collections::VecDeque;

use super::super::socket::BURST_BYTES;
use super::transmit::Push;
use super::{Out, Sender};
use crate::link::Nanos;

/// Memory of a packet besides its data, bytes: 384 for headers, 256 for the bookkeeping and 320 behind the headers (x86-64,
/// Linux 6.12). A burst that is cut off a packet becomes one of its own.
const PACKET_MEMORY: u64 = 960;

/// Packets that were written and are not acknowledged.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Segments that are not sent, of each packet that has any.
    packets: VecDeque<u32>,
    /// Where each burst ends that was sent.
    sent: VecDeque<u32>,
    /// Nothing is added to the last: its last segment is not full.
    closed: bool,
    /// Up to this segment all was to be sent (`pushed_seq`).
    pushed: u32,
}

impl Queue {
    /// Segments of the first packet.
    pub fn head(&self) -> u32 {
        self.packets.front().copied().unwrap_or(0)
    }

    /// The first packet is not the last.
    pub fn has_more(&self) -> bool {
        self.packets.len() > 1
    }

    /// So many segments of the first packet were sent, up to before this one.
    pub fn take(&mut self, count: u32, next: u32) {
        self.sent.push_back(next);
        if let Some(head) = self.packets.front_mut() {
            *head -= count;
            if *head == 0 {
                self.packets.pop_front();
            }
        }
    }

    /// All before this segment is acknowledged.
    pub fn forget(&mut self, acknowledged: u32) {
        while self.sent.front().is_some_and(|end| *end <= acknowledged) {
            self.sent.pop_front();
        }
    }

    fn count(&self) -> u64 {
        (self.packets.len() + self.sent.len()) as u64
    }

    /// Segments that the last packet has room for, where it may have so many.
    fn room(&self, most: u32) -> u32 {
        let open = self.packets.back().filter(|_| !self.closed);
        open.map_or(0, |tail| most.saturating_sub(*tail))
    }

    fn add(&mut self, count: u32, begins: bool) {
        match self.packets.back_mut() {
            Some(tail) if !begins => *tail += count,
            _ => self.packets.push_back(count),
        }
    }
}

impl Sender {
    /// The application writes; returns how many of the bytes were taken. Where none were, it waits until there is room.
    pub fn write(&mut self, now: Nanos, bytes: u64, out: &mut Out) -> u64 {
        if self.buffer.is_waited_for() {
            return 0;
        }
        self.at(now);
        if self.socket.packets_out == 0 {
            self.restart_after_idle();
        }
        if self.next == self.layout.written() && self.socket.in_flight() < self.socket.cwnd {
            self.socket.app_limited = (self.socket.delivered + self.socket.in_flight()).max(1);
        }
        let mss = u64::from(self.spec.mss);
        let most = (u64::from(BURST_BYTES).min(self.largest_window / 2) / mss).max(1) as u32;
        let mut left = bytes;
        while left > 0 {
            let (room, begins) = match self.queue.room(most) {
                0 => (most, true),
                room => (room, false),
            };
            if begins && !self.buffer.has_room(self.held()) {
                break;
            }
            let taken = left.min(u64::from(room) * mss);
            self.queue.add(taken.div_ceil(mss) as u32, begins);
            self.queue.closed = !taken.is_multiple_of(mss);
            self.layout.write(taken);
            left -= taken;
            if left > 0 {
                self.push_filled(out);
            }
        }
        if left == bytes {
            self.buffer.wait();
            return 0;
        }
        self.queue.pushed = self.layout.written();
        self.transmit(out);
        bytes - left
    }

    /// A packet is full, and more is to be written: it is sent as far as it may be if it is the first, and everything is
    /// once half of the largest window was written.
    fn push_filled(&mut self, out: &mut Out) {
        let written = self.layout.written();
        let since = self.layout.begin(written) - self.layout.begin(self.queue.pushed);
        if since > self.largest_window / 2 {
            self.queue.pushed = written;
            self.transmit(out);
        } else if !self.queue.has_more() {
            self.send_new(Push::One, out);
        }
    }

    /// Memory of what was written and is not acknowledged, bytes (`sk_wmem_queued`).
    pub(super) fn held(&self) -> u64 {
        let bytes = self.layout.begin(self.layout.written()) - self.layout.begin(self.outstanding.first());
        bytes + PACKET_MEMORY * self.queue.count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::new_sender;
    use super::*;

    const MSS: u64 = 1_448;
    const BLOCK: u64 = 45 * MSS;

    /// As over `lte`, where the receiver offers 64,256 bytes at first: what Linux 6.12 held.
    #[test]
    fn it_takes_at_first_what_the_kernel_took() {
        let (mut out, mut sender) = (Out::new(), new_sender(67_627, 16_384, 64_256));
        assert_eq!(sender.write(0, BLOCK, &mut out), 32 * MSS);
        assert_eq!((out.len(), sender.queue.head()), (10, 22));
        assert_eq!(sender.write(0, BLOCK, &mut out), 0);
        assert!(sender.buffer.is_waited_for());
    }

    #[test]
    fn a_packet_is_filled_and_another_begun_behind_it() {
        let mut queue = Queue::default();
        queue.add(20, true);
        assert_eq!((queue.room(22), queue.has_more()), (2, false));
        queue.add(2, false);
        assert_eq!((queue.room(22), queue.head()), (0, 22));
        queue.add(5, true);
        queue.take(20, 20);
        assert_eq!((queue.room(22), queue.head(), queue.has_more(), queue.count()), (17, 2, true, 3));
        queue.take(2, 22);
        queue.forget(20);
        assert_eq!((queue.head(), queue.has_more(), queue.count()), (5, false, 2));
    }
}
