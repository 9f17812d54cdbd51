//! How what is in flight grew.

use serde::Serialize;

/// When the most that was in flight so far came to be so much, in steps of an eighth.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight(Vec<(u64, u64)>);

impl Flight {
    /// So many bytes are in flight so long after the first sample.
    pub fn add(&mut self, at_us: u64, bytes: u64) {
        let most = self.0.last().map_or(0, |(_, most)| *most);
        if bytes > most.saturating_add(most / 8) {
            self.0.push((at_us, bytes));
        }
    }

    /// When so much first was, to a step; `None`: it never was.
    pub fn reached(&self, bytes: u64) -> Option<u64> {
        self.0.iter().find(|(_, most)| *most >= bytes).map(|(at_us, _)| *at_us)
    }
}

/// A start from memory (Careful Resume, RFC 9959) in place of the flow's own, where the receiver's window allows it: half of what
/// the path holds leaves in the round trip after the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct FromMemory {
    /// Half of the path's bandwidth-delay product.
    pub window_bytes: u64,
    /// It would be in flight so long after the flow's begin.
    pub at_us: u64,
    /// It was in flight so long after it; none: never.
    pub without_us: Option<u64>,
}

impl FromMemory {
    /// Whether a round trip or more would be saved.
    pub fn saves(&self) -> bool {
        self.without_us.is_none_or(|us| us >= self.at_us + self.at_us / ROUND_TRIPS)
    }
}

/// After which half of what the path holds is in flight.
pub(super) const ROUND_TRIPS: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_in_flight_is_known_to_an_eighth() {
        let mut flight = Flight::default();
        for (at_us, bytes) in [(0, 800), (1, 900), (2, 901), (3, 100), (4, u64::MAX), (5, u64::MAX)] {
            flight.add(at_us, bytes);
        }
        let reached = [0, 800, 801, 901, 902, u64::MAX].map(|bytes| flight.reached(bytes));
        assert_eq!(reached, [Some(0), Some(0), Some(2), Some(2), Some(4), Some(4)]);
        assert_eq!(Flight::default().reached(0), None);
    }

    #[test]
    fn a_start_from_memory_is_worth_a_word_from_a_round_trip_on() {
        let saves = |without_us| FromMemory { window_bytes: 1, at_us: 200, without_us }.saves();
        assert_eq!([None, Some(0), Some(299), Some(300)].map(saves), [true, false, false, true]);
    }
}
