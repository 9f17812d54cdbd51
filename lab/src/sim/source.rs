// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Applications that send: all at once, or piece by piece with pauses between.

use serde::{Deserialize, Serialize};

use super::sender::{Out, Sender};
use crate::experiment::BLOCK;
use crate::link::Nanos;

/// When the application has something to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SourceSpec {
    /// All of it is there from the begin on.
    #[default]
    Bulk,
    /// Objects of so many bytes, each asked for some time after the one before was received: requests and think times.
    Requests {
        /// Bytes of an object, 1 or more.
        object_bytes: u64,
        /// From the last byte of one to the first of the next, as the sender sees it, microseconds.
        think_us: u64,
    },
    /// Blocks of so many bytes at fixed times, whether the one before was received or not: video.
    Periodic {
        /// Bytes of a block, 1 or more.
        block_bytes: u64,
        /// From one to the next, microseconds.
        every_us: u64,
    },
}

/// An application that sends.
#[derive(Clone, Debug)]
pub struct Source {
    spec: SourceSpec,
    bytes: u64,
    left: u64,
    /// Of the present piece, not yet written.
    piece: u64,
    wakes: Option<Nanos>,
}

impl Source {
    /// So many bytes in all.
    pub fn new(spec: SourceSpec, bytes: u64) -> Self {
        Self { spec, bytes, left: bytes, piece: 0, wakes: None }
    }

    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When [`Source::serve`] should be called, at the latest.
    pub fn wakes(&self) -> Option<Nanos> {
        self.wakes
    }

    /// Writes once what there is to write and what the send buffer takes.
    pub fn serve(&mut self, now: Nanos, sender: &mut Sender, out: &mut Out) {
        if self.left > self.piece {
            self.ask(now, sender);
        }
        if self.piece == 0 {
            return;
        }
        let mss = u64::from(sender.layout.mss);
        // What does not end a piece ends with a full segment.
        let written = sender.write(now, (BLOCK as u64 / mss * mss).min(self.piece), out);
        self.piece -= written;
        self.left -= written;
    }

    /// What the application has by now.
    fn ask(&mut self, now: Nanos, sender: &Sender) {
        let due = self.wakes.take_if(|at| *at <= now);
        match self.spec {
            SourceSpec::Bulk => self.piece = self.left,
            SourceSpec::Requests { object_bytes, think_us } => {
                if due.is_some() || self.left == self.bytes {
                    self.piece = object_bytes.min(self.left);
                } else if self.wakes.is_none() && self.piece == 0 && sender.is_done() {
                    self.wakes = Some(now + think_us * 1_000);
                }
            }
            SourceSpec::Periodic { block_bytes, every_us } => {
                if due.is_some() || self.left == self.bytes && self.wakes.is_none() {
                    self.piece = (self.piece + block_bytes).min(self.left);
                    self.wakes = (self.piece < self.left).then(|| due.unwrap_or(now) + every_us * 1_000);
                }
            }
        }
    }
}
