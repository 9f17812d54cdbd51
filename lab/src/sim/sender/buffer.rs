// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The send buffer. It has room for what two windows take in memory, or as many as the control asks for, and grows with the window, but only where the window
//! is not used up: so a bulk transfer in slow start runs out of data now and then, is marked as application limited, and
//! gets a larger buffer for it. Once it was full, it must have emptied by a third before more is taken.

use super::Sender;

/// Memory of a segment besides its data: headers and the bookkeeping behind the data, then that of the buffer itself.
const HEADERS: u64 = 512;
const BOOKKEEPING: u64 = 256;
/// The least window for which there is room, segments.
const LEAST: u32 = 10;

/// The send buffer.
#[derive(Debug)]
pub(super) struct Buffer {
    /// What it takes now and at most, bytes (`tcp_wmem`).
    limit: u64,
    most: u64,
    /// Memory of a segment, bytes.
    segment: u64,
    /// Windows for which there is room.
    windows: u64,
    /// The application waits for room.
    waited_for: bool,
}

impl Buffer {
    /// For segments of so many bytes; at first and at most so large; with room for so many windows.
    pub fn new(mss: u32, [first, most]: [u64; 2], windows: u64) -> Self {
        let segment = (u64::from(mss) + HEADERS).next_power_of_two() + BOOKKEEPING;
        let mut buffer = Self { limit: first, most, segment, windows, waited_for: false };
        buffer.grow(LEAST);
        buffer
    }

    /// Whether a packet may be begun while so many bytes are held.
    pub fn has_room(&self, held: u64) -> bool {
        held < self.limit
    }

    /// The application waits for room.
    pub fn wait(&mut self) {
        self.waited_for = true;
    }

    /// Whether it does.
    pub fn is_waited_for(&self) -> bool {
        self.waited_for
    }

    /// Something was acknowledged, and so many bytes are still held: where the application waits, the buffer may grow, and a
    /// third of it may be free. `unused`: the window, segments, where it is not used up.
    fn free(&mut self, held: u64, unused: Option<u32>) {
        if !self.waited_for {
            return;
        }
        if let Some(cwnd) = unused {
            self.grow(cwnd);
        }
        self.waited_for = self.limit.saturating_sub(held) < held / 2;
    }

    /// For a window of so many segments.
    fn grow(&mut self, cwnd: u32) {
        let wanted = self.windows * u64::from(cwnd.max(LEAST)) * self.segment;
        self.limit = self.limit.max(wanted.min(self.most));
    }
}

impl Sender {
    /// After an acknowledgment (`tcp_check_space`).
    pub(super) fn free_buffer(&mut self) {
        self.queue.forget(self.outstanding.first());
        let unused = (self.socket.in_flight() < self.socket.cwnd).then_some(self.socket.cwnd);
        self.buffer.free(self.held(), unused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_waited_for_it_has_room_when_a_third_of_it_is_free() {
        // 2 × 10 × 2,304 bytes.
        let mut buffer = Buffer::new(1_448, [16_384, 4_194_304], 2);
        assert!(buffer.has_room(46_079) && !buffer.has_room(46_080));
        buffer.wait();
        buffer.free(31_000, None);
        assert!(buffer.is_waited_for());
        buffer.free(30_720, None);
        assert!(!buffer.is_waited_for());
    }

    #[test]
    fn it_grows_up_to_its_limit_where_it_is_waited_for_and_the_window_is_not_used_up() {
        let mut buffer = Buffer::new(1_448, [16_384, 1_000_000], 2);
        buffer.free(46_080, Some(100));
        assert!(!buffer.has_room(46_080), "no writer waits");
        buffer.wait();
        buffer.free(46_080, None);
        assert!(buffer.is_waited_for(), "the window is used up");
        buffer.free(46_080, Some(100));
        assert!(buffer.has_room(460_799) && !buffer.has_room(460_800));
        buffer.wait();
        buffer.free(460_800, Some(100_000));
        assert!(buffer.has_room(999_999) && !buffer.has_room(1_000_000));
        // A buffer that is larger from the begin on stays so.
        assert!(Buffer::new(1_448, [100_000, 1_000_000], 2).has_room(99_999));
    }
}
