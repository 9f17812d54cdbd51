// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The send buffer. It has room for what two windows take in memory, and grows with the window, but only where the window
//! is not used up: so a bulk transfer in slow start runs out of data now and then, is marked as application limited, and
//! gets a larger buffer for it. Once it was full, it must have emptied by a third before more is taken.

use super::Sender;

/// Memory of a segment besides its data: headers and the bookkeeping behind the data, then that of the buffer itself.
const HEADERS: u64 = 512;
const BOOKKEEPING: u64 = 256;
/// Windows for which there is room, and the least, segments.
const WINDOWS: u64 = 2;
const LEAST: u32 = 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Buffer {
    /// What it takes now and at most, bytes (`tcp_wmem`).
    limit: u64,
    most: u64,
    /// Memory of a segment, bytes.
    segment: u64,
    /// The application waits for room.
    full: bool,
}

impl Buffer {
    /// For segments of so many bytes; at first and at most so large.
    pub fn new(mss: u32, [first, most]: [u64; 2]) -> Self {
        let segment = (u64::from(mss) + HEADERS).next_power_of_two() + BOOKKEEPING;
        let mut buffer = Self { limit: first, most, segment, full: false };
        buffer.grow(LEAST);
        buffer
    }

    /// Bytes that the application may write now, where it has written `held` that are not acknowledged: whole segments, of
    /// which the last is the first beyond the limit. `unused`: the window, segments, where it is not used up.
    fn room(&mut self, held: u64, mss: u64, unused: Option<u32>) -> u64 {
        if self.full
            && let Some(cwnd) = unused
        {
            self.grow(cwnd);
        }
        let left = self.limit.saturating_sub(held);
        self.full = left == 0 || (self.full && left < held / 2);
        if self.full { 0 } else { left.div_ceil(mss) * mss }
    }

    /// For a window of so many segments.
    fn grow(&mut self, cwnd: u32) {
        let wanted = WINDOWS * u64::from(cwnd.max(LEAST)) * self.segment;
        self.limit = self.limit.max(wanted.min(self.most));
    }
}

impl Sender {
    /// Bytes that the application may write now.
    pub fn room(&mut self) -> u64 {
        let held = self.layout.begin(self.layout.written()) - self.layout.begin(self.outstanding.first());
        let unused = (self.socket.in_flight() < self.socket.cwnd).then_some(self.socket.cwnd);
        self.buffer.room(held, self.spec.mss.into(), unused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_448;

    /// As over `lte`: what Linux 6.12 held at the same windows.
    #[test]
    fn it_has_room_for_as_much_as_the_kernel_took() {
        let mut buffer = Buffer::new(MSS as u32, [16_384, 4_194_304]);
        assert_eq!(buffer.room(0, MSS, None), 32 * MSS);
        assert_eq!(buffer.room(32 * MSS, MSS, None), 0);
        assert_eq!(buffer.room(31 * MSS, MSS, Some(38)), 90 * MSS, "121 in all");
    }

    #[test]
    fn once_full_it_takes_more_when_a_third_of_it_is_free() {
        let mut buffer = Buffer::new(MSS as u32, [16_384, 4_194_304]);
        assert_eq!(buffer.room(22 * MSS, MSS, None), 10 * MSS, "it was not full");
        assert_eq!(buffer.room(32 * MSS, MSS, None), 0);
        assert_eq!(buffer.room(22 * MSS, MSS, None), 0);
        assert_eq!(buffer.room(21 * MSS, MSS, None), 11 * MSS);
    }

    #[test]
    fn it_grows_up_to_its_limit_and_only_with_a_window_that_is_not_used_up() {
        let mut buffer = Buffer::new(MSS as u32, [16_384, 1_000_000]);
        let full = 32 * MSS;
        assert_eq!((buffer.room(full, MSS, None), buffer.room(full, MSS, None)), (0, 0));
        let most = 1_000_000_u64.div_ceil(MSS) * MSS;
        assert!((most - full).abs_diff(buffer.room(full, MSS, Some(100_000))) <= MSS);
        // A buffer that is larger from the begin on stays so.
        assert_eq!(Buffer::new(MSS as u32, [100_000, 1_000_000]).room(0, MSS, None), 70 * MSS);
    }
}
