//! The ACK pairs that `best` exports, as rates.

/// Picoseconds of a second: a pair is kept as picoseconds per byte (`bpf/algorithm/ack_pairs.h`) ...
const PICOSECONDS: u64 = 1_000_000_000_000;
/// ... and this stands for one that is not there yet.
const NO_PAIR: u32 = u32::MAX;

/// Of the pairs that are there, in their order, bits per second.
pub(crate) fn rates_bps(pairs: &[u32]) -> impl Iterator<Item = u64> {
    let there = pairs.iter().filter(|pair| **pair != NO_PAIR);
    there.map(|pair| 8 * PICOSECONDS / u64::from((*pair).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_a_rate() {
        let rates: Vec<u64> = rates_bps(&[80_000, NO_PAIR, 0]).collect();
        assert_eq!(rates, [100_000_000, 8 * PICOSECONDS]);
    }
}
