// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The digest of all that crossed the link: SHA-256 over one record of fixed size for each packet that arrived, was
//! refused or was handed over, in the order in which that happened, and over the counters at the end.
//!
//! A packet's bytes, headers and payload, are folded to 64 bits, so that payload costs little. A packet that was
//! dropped inside the link is a number that is never handed over, and the counters have its cause.
//! SHA-256 itself is computed by a thread of ordinary priority, which gets full buffers and gives back empty ones.

use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

use sha2::{Digest, Sha256};

use super::Way;
use crate::digest::{KEYS, hex, mix};
use crate::link::{Counters, DropCause, Nanos};

/// Bytes of a buffer, a multiple of [`RECORD`].
const BUFFER: usize = 65_536 / RECORD * RECORD;
/// Full buffers that may wait, some 4 MiB. When there are more the emulator waits, which its lateness shows.
const WAITING: usize = 64;
const RECORD: usize = 16;

/// What happened to a packet; the number is part of the digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// It reached the link; the value is the folded packet. Its number is how many reached it before.
    Arrived = 0,
    /// It was refused at once; the value is the cause.
    Refused = 1,
    /// It was handed over; the value is its number and how late that was.
    HandedOver = 2,
}

/// Writes the records, on the emulator's thread.
pub(super) struct Recorder {
    began: Nanos,
    /// Packets that arrived so far, forward and return.
    arrived: [u32; 2],
    buffer: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    hasher: JoinHandle<Sha256>,
}

impl Recorder {
    /// Times count from `began`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(began: Nanos) -> io::Result<Self> {
        let (full, filled) = mpsc::sync_channel::<Vec<u8>>(WAITING);
        let (give_back, empty) = mpsc::sync_channel(WAITING);
        let hasher = std::thread::Builder::new().name("digest".into()).spawn(move || {
            let mut sha = Sha256::new();
            for mut buffer in filled {
                sha.update(&buffer);
                buffer.clear();
                // When there are enough empty ones this one is not needed.
                let _ = give_back.try_send(buffer);
            }
            sha
        })?;
        Ok(Self { began, arrived: [0; 2], buffer: Vec::with_capacity(BUFFER), full, empty, hasher })
    }

    /// A packet has reached the link; returns its number, for [`Recorder::handed_over`].
    pub fn arrived(&mut self, way: Way, now: Nanos, packet: &[u8]) -> u32 {
        let number = &mut self.arrived[way as usize];
        *number = number.wrapping_add(1);
        let number = *number;
        self.add(way, Event::Arrived, packet.len(), now, fold(packet));
        number
    }

    /// The link refused the packet that arrived last.
    pub fn refused(&mut self, way: Way, now: Nanos, cause: DropCause) {
        self.add(way, Event::Refused, 0, now, cause as u64);
    }

    /// The packet of this number was handed over, `due` at that time.
    pub fn handed_over(&mut self, way: Way, now: Nanos, number: u32, due: Nanos) {
        let late = now.saturating_sub(due).min(u32::MAX.into());
        self.add(way, Event::HandedOver, 0, now, u64::from(number) << 32 | late);
    }

    /// The record has 3 bits of direction and event, 11 of the length, 50 of the time, which are thirteen days, and 64 of
    /// the value.
    fn add(&mut self, way: Way, event: Event, length: usize, now: Nanos, value: u64) {
        let kind = (way as u64) << 2 | event as u64;
        let head = kind | (length as u64) << 3 | now.wrapping_sub(self.began) << 14;
        self.buffer.extend_from_slice(&head.to_le_bytes());
        self.buffer.extend_from_slice(&value.to_le_bytes());
        if self.buffer.len() >= BUFFER {
            let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BUFFER));
            // The other side goes only after this one.
            let _ = self.full.send(std::mem::replace(&mut self.buffer, next));
        }
    }

    /// The digest, as `sha256:` and 64 hexadecimal digits; `None` if its thread panicked.
    pub fn finish(self, counters: [Counters; 2]) -> Option<String> {
        let Self { buffer, full, hasher, .. } = self;
        let _ = full.send(buffer);
        drop(full);
        let mut sha = hasher.join().ok()?;
        for counters in counters {
            sha.update(serde_json::to_vec(&counters).ok()?);
        }
        Some(format!("sha256:{}", hex(&sha.finalize())))
    }
}

/// Folds bytes to 64 bits: a product of two 64-bit halves at a time, both halves of which count.
fn fold(bytes: &[u8]) -> u64 {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let blocks = bytes.chunks_exact(16);
    let rest = blocks.remainder();
    let hash = blocks.fold(bytes.len() as u64 ^ KEYS[0], |hash, block| {
        mix(word(&block[..8]) ^ KEYS[1], word(&block[8..]) ^ hash)
    });
    let (first, second) = rest.split_at(rest.len().min(8));
    mix(mix(word(first) ^ KEYS[1], word(second) ^ hash), KEYS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What can be changed about an exchange of a few packets.
    #[derive(Clone)]
    struct Exchange {
        packets: Vec<Vec<u8>>,
        arrival: Nanos,
        handed_over: Vec<u32>,
        late: Nanos,
        refused: bool,
        dropped: u64,
    }

    impl Exchange {
        fn new() -> Self {
            let packet = |number: u8| (0..1_500).map(|at: u32| (at as u8).wrapping_mul(number)).collect();
            let packets = (1..=5_000).map(|number: u32| packet(number as u8)).collect();
            Self { packets, arrival: 7, handed_over: vec![1, 2, 4], late: 0, refused: false, dropped: 0 }
        }

        /// All times are moved by `began`.
        fn digest(&self, began: Nanos) -> String {
            let mut recorder = Recorder::start(began).unwrap();
            for packet in &self.packets {
                recorder.arrived(Way::Forward, began + self.arrival, packet);
            }
            if self.refused {
                recorder.refused(Way::Forward, began + self.arrival, DropCause::QueueFull);
            }
            for number in &self.handed_over {
                recorder.handed_over(Way::Forward, began + 20 + self.late, *number, began + 20);
            }
            let mut counters = Counters::default();
            counters.dropped_loss.packets = self.dropped;
            recorder.finish([Counters::default(), counters]).unwrap()
        }
    }

    #[test]
    fn the_same_has_the_same_digest_whenever_it_began() {
        let digest = Exchange::new().digest(0);
        assert_eq!(digest.len(), "sha256:".len() + 64);
        assert_eq!(digest, Exchange::new().digest(123_456_789));
    }

    #[test]
    fn one_changed_byte_time_drop_or_order_changes_it() {
        let base = Exchange::new();
        let change = |change: &dyn Fn(&mut Exchange)| {
            let mut changed = base.clone();
            change(&mut changed);
            changed.digest(0)
        };
        let mut digests = vec![
            base.digest(0),
            change(&|exchange| exchange.packets[0][0] ^= 1),
            change(&|exchange| exchange.packets[4_000][1_499] ^= 0x80),
            change(&|exchange| exchange.packets[1].push(0)),
            change(&|exchange| exchange.packets.swap(0, 1)),
            change(&|exchange| exchange.arrival += 1),
            change(&|exchange| exchange.late += 1),
            change(&|exchange| exchange.refused = true),
            change(&|exchange| exchange.dropped = 1),
            change(&|exchange| exchange.handed_over[2] = 3),
            change(&|exchange| exchange.handed_over.swap(0, 1)),
        ];
        let all = digests.len();
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), all);
    }

    #[test]
    fn every_byte_counts_in_every_length() {
        for length in 1..80 {
            let bytes = vec![0; length];
            for at in 0..length {
                let mut changed = bytes.clone();
                changed[at] = 1;
                assert_ne!(fold(&bytes), fold(&changed), "byte {at} of {length}");
            }
            assert_ne!(fold(&bytes), fold(&vec![0; length + 1]));
        }
    }
}
