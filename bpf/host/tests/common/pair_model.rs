//! The estimator of ACK pairs once more, written from its description alone: all ACKs of a round in a list.

use onramp_algorithm::{Ack, ack_flag};

/// One pair: bytes and microseconds.
type Pair = (u64, u64);

/// What a round showed, in the words of the description.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RoundResult {
    /// Nothing: too few pairs, or too long silences.
    Coarse,
    /// Sent no faster than acknowledged: only this much, bytes per second.
    SenderLimited(u64),
    /// A rate that the round before does not agree with.
    Unsettled(u64),
    /// The rate of the bottleneck.
    Settled(u64),
}

impl RoundResult {
    /// The rate, however well it is known.
    pub fn rate(self) -> Option<u64> {
        match self {
            Self::Coarse => None,
            Self::SenderLimited(rate) | Self::Unsettled(rate) | Self::Settled(rate) => Some(rate),
        }
    }
}

/// One flow.
#[derive(Default)]
pub struct PairModel {
    round: Option<Round>,
    /// Time per byte of the round before, if it showed one.
    before: Option<u64>,
}

/// the current round.
struct Round {
    end: u64,
    least: u64,
    /// The first ACK of the current pair, and the longest silence so far.
    pair: Option<(u64, u64, u64)>,
    /// Bytes acknowledged where the newest pair began.
    last_pair: u64,
    pairs: Vec<Pair>,
    /// Time and bytes of every ACK that acknowledged something.
    acks: Vec<(u64, u64)>,
    rtts: Vec<u64>,
}

/// What an ACK did to the round.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// It began the first.
    Begun,
    /// It is in it.
    Open,
    /// It is in it, and what there is of it shows the rate of the bottleneck already.
    Sooner(RoundResult),
    /// It is the first of the next; what the round showed.
    Over(RoundResult),
}

impl PairModel {
    pub fn on_ack(&mut self, ack: &Ack) -> Step {
        let limited = ack.flags & ack_flag::APP_LIMITED != 0;
        let step = match &mut self.round {
            Some(round) if ack.bytes_acked <= round.end => {
                let kept = round.measure(ack, limited) && (8..=16).contains(&round.pairs.len());
                match round.evaluate(round.longest_us(0), self.before) {
                    result @ RoundResult::Settled(_) if kept => Step::Sooner(result),
                    _ => Step::Open,
                }
            }
            round => {
                let ended = round.take();
                self.round = Some(Round::begin(ack));
                ended.map_or(Step::Begun, |round| Step::Over(self.end(&round)))
            }
        };
        if limited || ack.bytes_outstanding == 0 {
            self.round.as_mut().unwrap().pair = None;
        }
        step
    }

    fn end(&mut self, round: &Round) -> RoundResult {
        let longest_us = round.longest_us(1);
        let result = round.evaluate(longest_us, self.before);
        self.before = match result {
            RoundResult::Coarse | RoundResult::SenderLimited(_) => None,
            RoundResult::Unsettled(_) | RoundResult::Settled(_) => round.spent(longest_us),
        };
        result
    }
}

/// The time between two ACKs as it is measured: modulo 2^32.
fn silence_us(from: u64, to: u64) -> u64 {
    (to - from) % (1 << 32)
}

impl Round {
    fn begin(ack: &Ack) -> Self {
        Self {
            end: ack.bytes_acked + u64::from(ack.bytes_outstanding),
            least: (u64::from(ack.bytes_outstanding) / 16).max(1),
            pair: Some((ack.now_us, ack.bytes_acked, 0)),
            last_pair: ack.bytes_acked,
            pairs: Vec::new(),
            acks: vec![(ack.now_us, ack.bytes_acked)],
            rtts: vec![ack.rtt_us.max(0) as u64],
        }
    }

    /// Whether a pair was kept.
    fn measure(&mut self, ack: &Ack, limited: bool) -> bool {
        let newest = self.newest();
        if ack.bytes_acked == newest.1 {
            return false;
        }
        let silence = silence_us(newest.0, ack.now_us);
        let may_have_waited = ack.acked == 1 && silence > self.longest_us(0);
        self.acks.push((ack.now_us, ack.bytes_acked));
        if ack.rtt_us > 0 && !may_have_waited {
            self.rtts.push(ack.rtt_us as u64);
        }
        let here = |silence| Some((ack.now_us, ack.bytes_acked, silence));
        let Some((at, acked, longest)) = self.pair else {
            self.pair = here(0);
            self.last_pair = ack.bytes_acked;
            return false;
        };
        let (bytes, us) = (ack.bytes_acked - acked, ack.now_us - at);
        let halvings = (bytes / self.least).min(31);
        if halvings > 0 && us > 0 && silence >= longest >> halvings {
            if !limited {
                self.pairs.push((bytes, us));
            }
            self.pair = here(silence);
            self.last_pair = ack.bytes_acked;
            return !limited;
        }
        self.pair = Some((at, acked, longest.max(silence)));
        false
    }

    fn newest(&self) -> (u64, u64) {
        self.acks[self.acks.len() - 1]
    }

    fn span_us(&self) -> u64 {
        self.silences().sum::<u64>().min(u64::from(u32::MAX))
    }

    fn silences(&self) -> impl Iterator<Item = u64> {
        self.acks.windows(2).map(|two| silence_us(two[0].0, two[1].0))
    }

    /// The longest silence but for so many at the end.
    fn longest_us(&self, last: usize) -> u64 {
        self.silences().take((self.acks.len() - 1).saturating_sub(last)).max().unwrap_or(0)
    }

    /// What there is of the round shows the rate, after a round of that time per byte.
    fn evaluate(&self, longest_us: u64, before: Option<u64>) -> RoundResult {
        let Some(spent) = self.spent(longest_us) else { return RoundResult::Coarse };
        let rate = 1_000_000_000_000 / spent;
        let agrees = |other: u64| spent <= other + other / 4 && other <= spent + spent / 4;
        if self.sender_limited() {
            RoundResult::SenderLimited(rate)
        } else if (self.pairs.len() >= 8 && longest_us * 12 <= self.span_us()) || before.is_some_and(agrees) {
            RoundResult::Settled(rate)
        } else {
            RoundResult::Unsettled(rate)
        }
    }

    /// Picoseconds per byte, unless the round is too coarse.
    fn spent(&self, longest_us: u64) -> Option<u64> {
        let mut spent: Vec<u64> = self
            .pairs
            .iter()
            .take(16)
            .map(|(bytes, us)| (us * 1_000_000 / bytes).clamp(59, u64::from(u32::MAX) - 1))
            .collect();
        let bytes = self.newest().1 - self.acks[0].1;
        let left = self.newest().1 - self.last_pair;
        if spent.len() < 4 || left > self.least * 4 || longest_us * 6 > self.span_us() {
            return None;
        }
        let count = spent.len() as u64;
        let whole = self.span_us() * 1_000_000 / bytes * (count + 1) / count;
        spent.sort_unstable();
        let aside = spent.len() / 4;
        let middle = &spent[aside..spent.len() - aside];
        if middle[middle.len() - 1] > 2 * middle[0] {
            return None;
        }
        Some((middle.iter().sum::<u64>() / middle.len() as u64).min(whole).max(59))
    }

    /// Sent over more than four fifths of the time over which it was acknowledged.
    fn sender_limited(&self) -> bool {
        let (first, last) = (self.rtts[0], self.rtts[self.rtts.len() - 1]);
        let span = self.span_us() as i64;
        let sent_over = span - (last as i64 - first as i64);
        first > 0 && last > 0 && 5 * sent_over > 4 * span
    }
}
