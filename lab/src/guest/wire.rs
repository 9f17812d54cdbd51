// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the guest says to the host: frames, one after the other, over a port that takes bytes.
//!
//! ```text
//!   kind (1 byte) │ length (4 bytes, little-endian) │ content
//!   o, e: what the command printed to stdout and stderr
//!   f:    length of a path (2 bytes), the path, the file's content
//!   x:    the end, as JSON
//! ```

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

const HEADER: usize = 5;

/// Where the command printed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The last that a guest says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct End {
    /// The command's exit code; 128 and the signal's number for one that a signal ended, 127 where it could not be
    /// started.
    pub status: u8,
    /// Time since the guest's boot, by its own clock, seconds.
    pub uptime_seconds: f64,
}

/// A piece of what a guest says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Frame {
    Printed(Stream, Vec<u8>),
    File { path: String, content: Vec<u8> },
    End(End),
}

impl Frame {
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let (kind, content) = match self {
            Self::Printed(Stream::Stdout, bytes) => (b'o', bytes.clone()),
            Self::Printed(Stream::Stderr, bytes) => (b'e', bytes.clone()),
            Self::File { path, content } => {
                let length = u16::try_from(path.len()).map_err(io::Error::other)?;
                (b'f', [&length.to_le_bytes(), path.as_bytes(), content].concat())
            }
            Self::End(end) => (b'x', serde_json::to_vec(end)?),
        };
        let length = u32::try_from(content.len()).map_err(io::Error::other)?;
        to.write_all(&[&[kind], &length.to_le_bytes()[..], &content].concat())
    }
}

/// Puts frames together again.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// The next frame that is complete.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn next(&mut self) -> Result<Option<Frame>, String> {
        let Some((header, rest)) = self.bytes.split_first_chunk::<HEADER>() else { return Ok(None) };
        let length = u32::from_le_bytes([header[1], header[2], header[3], header[4]]) as usize;
        let Some(content) = rest.get(..length) else { return Ok(None) };
        let frame = read(header[0], content)?;
        self.bytes.drain(..HEADER + length);
        Ok(Some(frame))
    }

    /// Whether there is the beginning of a frame.
    pub fn is_cut_short(&self) -> bool {
        !self.bytes.is_empty()
    }
}

fn read(kind: u8, content: &[u8]) -> Result<Frame, String> {
    match kind {
        b'o' => Ok(Frame::Printed(Stream::Stdout, content.to_vec())),
        b'e' => Ok(Frame::Printed(Stream::Stderr, content.to_vec())),
        b'f' => {
            let file = content
                .split_first_chunk::<2>()
                .and_then(|(length, rest)| rest.split_at_checked(u16::from_le_bytes(*length).into()));
            let (path, content) = file.ok_or("a file without its path")?;
            let path = String::from_utf8(path.to_vec()).map_err(|error| error.to_string())?;
            Ok(Frame::File { path, content: content.to_vec() })
        }
        b'x' => serde_json::from_slice(content).map(Frame::End).map_err(|error| error.to_string()),
        other => Err(format!("a frame of unknown kind {other:#x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        vec![
            Frame::Printed(Stream::Stdout, b"hello\n".to_vec()),
            Frame::File { path: "a/b.csv".into(), content: vec![0, 1, 255] },
            Frame::Printed(Stream::Stderr, Vec::new()),
            Frame::End(End { status: 3, uptime_seconds: 2.5 }),
        ]
    }

    #[test]
    fn frames_come_back_however_they_are_cut() {
        let mut bytes = Vec::new();
        frames().iter().for_each(|frame| frame.write(&mut bytes).unwrap());
        for piece in [1, 3, 7, bytes.len()] {
            let (mut read, mut all) = (Frames::default(), Vec::new());
            for part in bytes.chunks(piece) {
                read.feed(part);
                while let Some(frame) = read.next().unwrap() {
                    all.push(frame);
                }
            }
            assert_eq!(all, frames());
            assert!(!read.is_cut_short());
        }
    }

    #[test]
    fn half_a_frame_and_nonsense_are_distinguished() {
        let mut read = Frames::default();
        read.feed(b"o\x05\0\0\0hel");
        assert_eq!(read.next(), Ok(None));
        assert!(read.is_cut_short());
        let mut read = Frames::default();
        read.feed(b"?\0\0\0\0");
        assert!(read.next().unwrap_err().contains("0x3f"));
    }
}
