//! What a flow did over time, in bounded memory.

use serde::{Deserialize, Serialize};

/// Between two buckets at first, microseconds.
const STEP_US: u64 = 10_000;
/// Between two buckets of the newest past, microseconds.
const RECENT_STEP_US: u64 = 100_000;

/// A flow at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    /// Monotonic clock, microseconds.
    pub at_us: u64,
    /// Segments.
    pub cwnd: u32,
    /// Segments; `None`: no threshold yet.
    pub ssthresh: Option<u32>,
    /// Segments.
    pub in_flight: u32,
    /// Microseconds; `None`: no sample.
    pub rtt_us: Option<u32>,
    /// Delivery rate of the newest round, bits per second; `None`: no round is over.
    pub rate_bps: Option<u64>,
    pub acknowledged_bytes: u64,
    /// Sent, retransmissions not counted again, bytes: what is acknowledged and what is in flight.
    pub sent_bytes: u64,
    /// Up to which byte the receiver takes data; `None`: none, or not known.
    pub window_end_bytes: Option<u64>,
    /// Bits per second; `None`: not known, or none is in force.
    pub pacing_bps: Option<u64>,
    /// What the algorithm watches, and where it would leave ([`mod@super::track`]).
    pub watched: Option<u32>,
    pub limit: Option<u32>,
}

/// The least and the most of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Span {
    pub min: u32,
    pub max: u32,
}

/// A flow during a step: how it stood at the end, and the extremes before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bucket {
    /// Monotonic clock, microseconds: its first point.
    pub first_us: u64,
    pub last: Point,
    pub cwnd: Span,
    pub in_flight: Span,
    pub rtt_us: Option<Span>,
}

/// What becomes of the past when there is no room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Past {
    /// Two neighbours become one, and steps are twice as long from then on: all of it stays.
    Merges,
    /// The oldest goes.
    Goes,
}

/// Buckets in bounded memory.
#[derive(Clone, Debug)]
pub(crate) struct History {
    buckets: Vec<Bucket>,
    /// When the step of the last bucket is over, so that it need not be looked at once it is: thousands of flows have
    /// theirs all over the memory.
    until_us: u64,
    step_us: u64,
    room: usize,
    past: Past,
    /// Raised when buckets are not what they were, but for the last.
    generation: u32,
    /// Buckets that have gone.
    gone: u64,
}

/// How far a client knows a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    generation: u32,
    /// Number of the last bucket known, which may have grown since; `None`: nothing is known.
    last: Option<u64>,
}

/// What is new of a history: its buckets from number `first` on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// Another one than before: what was known is void.
    pub generation: u32,
    /// Number of the first bucket here; earlier ones stay as they are.
    pub first: u64,
    /// Number of the oldest bucket that there still is.
    pub oldest: u64,
    pub buckets: Vec<Bucket>,
}

impl Span {
    fn new(value: u32) -> Self {
        Self { min: value, max: value }
    }

    fn with(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl Bucket {
    fn new(point: Point) -> Self {
        Self {
            first_us: point.at_us,
            last: point,
            cwnd: Span::new(point.cwnd),
            in_flight: Span::new(point.in_flight),
            rtt_us: point.rtt_us.map(Span::new),
        }
    }

    /// This and what came after it.
    fn then(self, later: Self) -> Self {
        Self {
            first_us: self.first_us,
            last: later.last,
            cwnd: self.cwnd.with(later.cwnd),
            in_flight: self.in_flight.with(later.in_flight),
            rtt_us: match (self.rtt_us, later.rtt_us) {
                (Some(one), Some(other)) => Some(one.with(other)),
                (one, other) => one.or(other),
            },
        }
    }
}

impl History {
    /// Of a whole life, evenly, in at most so many buckets, an even number.
    pub fn whole(room: usize) -> Self {
        Self {
            buckets: Vec::new(),
            until_us: 0,
            step_us: STEP_US,
            room,
            past: Past::Merges,
            generation: 0,
            gone: 0,
        }
    }

    /// Of the newest past, in tenths of a second, at most so many.
    pub fn recent(room: usize) -> Self {
        Self { step_us: RECENT_STEP_US, past: Past::Goes, ..Self::whole(room) }
    }

    /// Adds a point, to the last bucket if it is of the same step.
    pub fn add(&mut self, point: Point) {
        let new = Bucket::new(point);
        if point.at_us < self.until_us
            && let Some(last) = self.buckets.last_mut()
        {
            *last = last.then(new);
            return;
        }
        if self.buckets.len() == self.room {
            self.make_room();
        }
        self.until_us = point.at_us.saturating_add(self.step_us);
        self.buckets.push(new);
    }

    fn make_room(&mut self) {
        match self.past {
            Past::Merges => {
                let pairs = self.buckets.chunks(2);
                self.buckets =
                    pairs.map(|pair| pair.iter().copied().reduce(Bucket::then).unwrap_or(pair[0])).collect();
                self.step_us *= 2;
                self.generation += 1;
            }
            Past::Goes => {
                self.buckets.remove(0);
                self.gone += 1;
            }
        }
    }

    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// What a client does not know yet, and how far it knows it then.
    pub fn since(&self, cursor: Cursor) -> (Change, Cursor) {
        let there = self.gone..self.gone + self.buckets.len() as u64;
        let known = cursor.last.filter(|last| cursor.generation == self.generation && there.contains(last));
        let first = known.unwrap_or(self.gone);
        let buckets = self.buckets[(first - self.gone) as usize..].to_vec();
        let last = (self.gone + self.buckets.len() as u64).checked_sub(1);
        let change = Change { generation: self.generation, first, oldest: self.gone, buckets };
        (change, Cursor { generation: self.generation, last })
    }

    /// Takes over what is new of another history.
    pub fn apply(&mut self, change: Change) {
        if change.generation != self.generation || change.first > self.gone + self.buckets.len() as u64 {
            self.buckets.clear();
            self.gone = change.first;
            self.generation = change.generation;
        }
        self.buckets.truncate(change.first.saturating_sub(self.gone) as usize);
        self.buckets.extend(change.buckets);
        let old = change.oldest.saturating_sub(self.gone).min(self.buckets.len() as u64);
        self.buckets.drain(..old as usize);
        self.gone += old;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at_us: u64, cwnd: u32) -> Point {
        Point { at_us, cwnd, ..Point::default() }
    }

    #[test]
    fn any_number_of_points_stays_bounded_and_spans_all_of_the_time() {
        let mut history = History::whole(512);
        for step in 0..100_000 {
            history.add(point(step * 5_000, 1 + step as u32 % 7));
            assert!(history.buckets().len() <= 512);
        }
        let buckets = history.buckets();
        assert!(buckets.len() > 512 / 4, "{}", buckets.len());
        assert_eq!(buckets[0].first_us, 0);
        assert!(buckets[buckets.len() - 1].last.at_us > 490_000_000);
        let steps: Vec<u64> = buckets.windows(2).map(|pair| pair[1].first_us - pair[0].first_us).collect();
        assert!(steps.iter().max() <= steps.iter().min().map(|least| least * 3).as_ref(), "{steps:?}");
        // However often they were merged, the extremes are there.
        assert!(buckets.iter().all(|bucket| bucket.cwnd == Span { min: 1, max: 7 }));
    }

    #[test]
    fn the_newest_past_is_kept_and_the_rest_goes() {
        let mut history = History::recent(300);
        for step in 0..10_000 {
            history.add(point(step * 10_000, 1));
        }
        assert_eq!(history.buckets().len(), 300);
        assert_eq!(history.buckets()[0].first_us, 70_000_000);
        assert_eq!(history.buckets()[299].last.at_us, 99_990_000);
    }

    #[test]
    fn a_client_with_every_change_has_the_same_at_any_time() {
        for make in [History::whole, History::recent] {
            for pause in [1, 7, 100, 5_000] {
                let (mut history, mut copy) = (make(32), make(32));
                let mut cursor = Cursor::default();
                for step in 0..20_000_u64 {
                    history.add(point(step * step % 7 + step * 9_000, step as u32 % 11));
                    if step % pause == 0 {
                        let (change, next) = history.since(cursor);
                        cursor = next;
                        copy.apply(change);
                        assert_eq!(copy.buckets(), history.buckets(), "pause {pause}, step {step}");
                    }
                }
            }
        }
    }
}
