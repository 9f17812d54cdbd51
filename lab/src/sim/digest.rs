// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A digest of all that crosses the link: what it is, when, and in what order. What happens is folded to 64 bits as it
//! happens, which takes next to no time; at the end these are hashed with the counters of the link.

use sha2::Sha256;

use crate::digest::{KEYS, hex, mix};
use crate::emulator::Way;
use crate::link::{Counters, Nanos};

/// A digest of the packets that crossed the link.
#[derive(Clone, Debug, Default)]
pub struct Digest(u64);

impl Digest {
    /// A packet reaches the link.
    pub fn arrived(&mut self, way: Way, now: Nanos, bytes: u32, what: u64) {
        self.add(way, 0, now ^ u64::from(bytes) << 48, what);
    }

    /// The link refuses the packet that arrived last.
    pub fn refused(&mut self, way: Way, now: Nanos) {
        self.add(way, 1, now, 0);
    }

    /// A packet is handed over.
    pub fn handed_over(&mut self, way: Way, now: Nanos) {
        self.add(way, 2, now, 0);
    }

    fn add(&mut self, way: Way, event: u64, time: u64, what: u64) {
        let kind = (way as u64) << 2 | event;
        self.0 = mix(self.0 ^ time ^ KEYS[0], what << 3 ^ kind ^ KEYS[1]);
    }

    /// The digest, as `sha256:` and 64 hexadecimal digits.
    pub fn finish(&self, counters: [Counters; 2]) -> String {
        use sha2::Digest as _;

        let mut sha = Sha256::new();
        sha.update(self.0.to_le_bytes());
        for counters in counters {
            sha.update(format!("{counters:?}"));
        }
        format!("sha256:{}", hex(&sha.finalize()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_an_event_counts() {
        let digest = |way, now, bytes, what| {
            let mut digest = Digest::default();
            digest.arrived(way, now, bytes, what);
            digest.finish([Counters::default(); 2])
        };
        let base = digest(Way::Forward, 7, 1_500, 3);
        assert_eq!(base, digest(Way::Forward, 7, 1_500, 3));
        for other in [
            digest(Way::Return, 7, 1_500, 3),
            digest(Way::Forward, 8, 1_500, 3),
            digest(Way::Forward, 7, 1_499, 3),
            digest(Way::Forward, 7, 1_500, 4),
        ] {
            assert_ne!(base, other);
        }
    }
}
