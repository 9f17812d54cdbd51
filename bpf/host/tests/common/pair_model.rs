//! The estimator of ACK pairs once more, written from its description alone: all rates of a round in a list.

use onramp_algorithm::{Ack, ack_flag};

use super::random::Random;

/// Rates that a round is judged by, at most.
const COUNTED: usize = 65_535;

/// One flow.
#[derive(Default)]
pub struct PairModel {
    /// Arrival and bytes acknowledged of the ACK that the next one may make a pair with.
    first: Option<(u64, u64)>,
    /// Bytes acknowledged beyond which the round ends.
    end: Option<u64>,
    rates: Vec<u64>,
}

/// A random `pair_min_us`: mostly what Ataei Kachooei et al. 2022 has.
pub fn random_pair_min(random: &mut Random) -> u64 {
    if random.once_in(2) { 1 } else { 1 + (random.below(1_000_000) >> random.below(20)) }
}

/// What an ACK did to the round.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// It began the first.
    Begun,
    /// It is in it.
    Open,
    /// It is the last; the round's rates.
    Over(Vec<u64>),
}

impl PairModel {
    /// One ACK; those closer together than `apart` microseconds are one.
    pub fn on_ack(&mut self, ack: &Ack, apart: u64) -> Step {
        let limited = ack.flags & ack_flag::APP_LIMITED != 0;
        let news = self.first.map(|(at, acked)| (ack.now_us - at, ack.bytes_acked - acked));
        if let Some((us, bytes @ 1..)) = news
            && us >= apart
            && !limited
            && self.rates.len() < COUNTED
        {
            self.rates.push(bytes * 1_000_000 / us);
        }
        self.first = match news {
            _ if limited || ack.bytes_outstanding == 0 => None,
            Some((us, bytes)) if us < apart || bytes == 0 => self.first,
            _ => Some((ack.now_us, ack.bytes_acked)),
        };
        match self.end {
            Some(end) if ack.bytes_acked <= end => return Step::Open,
            _ => {}
        }
        let begun = self.end.is_none();
        self.end = Some(ack.bytes_acked + u64::from(ack.bytes_outstanding));
        if begun { Step::Begun } else { Step::Over(std::mem::take(&mut self.rates)) }
    }
}
