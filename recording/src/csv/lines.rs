// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A source of lines, none of which fills the memory.

use std::io::{self, ErrorKind, Read};

/// Longest line, bytes; rows have a few hundred.
pub(super) const LINE_BYTES: usize = 1 << 20;

/// A line feed, or a carriage return where a program writes that alone.
fn ends(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

/// Passes on what it reads; a line that is longer than [`LINE_BYTES`] is an error.
pub(super) struct Lines<R> {
    source: R,
    /// Bytes of the line so far.
    length: usize,
}

impl<R> Lines<R> {
    pub fn new(source: R) -> Self {
        Self { source, length: 0 }
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        for line in buffer[..count].split_inclusive(|byte| ends(*byte)) {
            self.length += line.len();
            if self.length > LINE_BYTES {
                let reason = format!("a line has more than {LINE_BYTES} bytes");
                return Err(io::Error::new(ErrorKind::InvalidData, reason));
            }
            if line.last().is_some_and(|byte| ends(*byte)) {
                self.length = 0;
            }
        }
        Ok(count)
    }
}
