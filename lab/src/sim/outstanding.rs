// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What was sent and is not acknowledged: the scoreboard (RFC 6675, section 4), with the times at which segments were
//! sent (RFC 8985, section 5.2).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::segment::Range;

/// Arrived out of order.
pub const SACKED: u8 = 1;
/// Believed lost.
pub const LOST: u8 = 2;
/// A retransmission is on its way.
pub const RETRANSMITTED: u8 = 4;
/// Was retransmitted once.
pub const EVER_RETRANSMITTED: u8 = 8;
/// Sent while the application had less than the window allowed.
pub const APP_LIMITED: u8 = 16;

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When it was sent last, microseconds.
    pub at_us: u64,
    /// When the delivery before was, as it was sent.
    pub delivered_us: u64,
    /// When the first segment of that flight was sent.
    pub first_us: u64,
    /// Segments delivered as it was sent.
    pub delivered: u32,
    /// What is known of it.
    pub flags: u8,
}

impl Sent {
    /// Whether any of these flags is set.
    pub fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

/// See the module. Segments are counted as in [`super::segment`].
#[derive(Debug, Default)]
pub struct Outstanding {
    first: u32,
    sent: VecDeque<Sent>,
    /// In the order in which they were sent last, with the times; what was retransmitted, delivered or marked since is
    /// skipped when it is its turn.
    order: VecDeque<(u32, u64)>,
    /// Arrived out of order.
    sacked: BTreeMap<u32, u32>,
    /// Lost, and not yet retransmitted.
    lost: BTreeSet<u32>,
}

impl Outstanding {
    /// The first segment that is not acknowledged.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// The first of them.
    pub fn head(&self) -> Option<&Sent> {
        self.sent.front()
    }

    /// A segment that is outstanding.
    pub fn get(&self, sequence: u32) -> Option<&Sent> {
        self.sent.get(sequence.checked_sub(self.first)? as usize)
    }

    fn get_mut(&mut self, sequence: u32) -> Option<&mut Sent> {
        self.sent.get_mut(sequence.checked_sub(self.first)? as usize)
    }

    /// A further segment was sent.
    pub fn push(&mut self, sent: Sent) {
        self.order.push_back((self.first + self.sent.len() as u32, sent.at_us));
        self.sent.push_back(sent);
    }

    /// A segment was retransmitted.
    pub fn resend(&mut self, sequence: u32, update: impl FnOnce(&mut Sent)) {
        self.lost.remove(&sequence);
        if let Some(sent) = self.get_mut(sequence) {
            update(sent);
            sent.flags |= RETRANSMITTED | EVER_RETRANSMITTED;
            let at_us = sent.at_us;
            self.order.push_back((sequence, at_us));
        }
    }

    /// Takes the first segment off: it is acknowledged.
    pub fn pop(&mut self) -> Option<Sent> {
        let sent = self.sent.pop_front()?;
        if sent.is(LOST) {
            self.lost.remove(&self.first);
        }
        self.first += 1;
        while self.order.front().is_some_and(|(sequence, _)| *sequence < self.first) {
            self.order.pop_front();
        }
        Some(sent)
    }

    /// After segments were taken off: forgets what arrived out of order below.
    pub fn forget_sacked(&mut self) {
        while let Some(entry) = self.sacked.first_entry() {
            let (start, end) = (*entry.key(), *entry.get());
            if start >= self.first {
                return;
            }
            entry.remove();
            if end > self.first {
                self.sacked.insert(self.first, end);
            }
        }
    }

    /// Marks what a block says has arrived; calls `each` for each segment of which that is new.
    pub fn sack(&mut self, (start, end): Range, mut each: impl FnMut(u32, Sent)) {
        let (start, end) = (start.max(self.first), end.min(self.first + self.sent.len() as u32));
        if start >= end {
            return;
        }
        let (mut merged_start, mut merged_end) = (start, end);
        // All known blocks that touch this one become one with it; what is between them is new.
        let mut new = Vec::new();
        let mut above = end;
        while let Some((&known_start, &known_end)) = self.sacked.range(..=end).next_back() {
            if known_end < start {
                break;
            }
            if known_start <= start && known_end >= end {
                return;
            }
            self.sacked.remove(&known_start);
            merged_start = merged_start.min(known_start);
            merged_end = merged_end.max(known_end);
            if known_end < above {
                new.push((known_end, above));
            }
            above = above.min(known_start);
        }
        if start < above {
            new.push((start, above));
        }
        self.sacked.insert(merged_start, merged_end);
        for (from, to) in new.into_iter().rev() {
            for sequence in from..to {
                self.mark_sacked(sequence, &mut each);
            }
        }
    }

    fn mark_sacked(&mut self, sequence: u32, each: &mut impl FnMut(u32, Sent)) {
        let Some(sent) = self.get_mut(sequence) else { return };
        let before = *sent;
        sent.flags = (sent.flags | SACKED) & !(LOST | RETRANSMITTED);
        if before.is(LOST) {
            self.lost.remove(&sequence);
        }
        each(sequence, before);
    }

    /// Marks a segment as lost; whether a retransmission of it was lost with it. `None`: it was marked or has arrived.
    pub fn mark_lost(&mut self, sequence: u32) -> Option<bool> {
        let sent = self.get_mut(sequence)?;
        if sent.is(SACKED) || (sent.is(LOST) && !sent.is(RETRANSMITTED)) {
            return None;
        }
        let again = sent.is(RETRANSMITTED);
        sent.flags = (sent.flags | LOST) & !RETRANSMITTED;
        self.lost.insert(sequence);
        Some(again)
    }

    /// Takes the marks off all that is not yet retransmitted: a reduction is undone.
    pub fn unmark_lost(&mut self) {
        for sent in &mut self.sent {
            sent.flags &= !LOST;
        }
        self.lost.clear();
    }

    /// The first lost segment that is not yet retransmitted.
    pub fn next_lost(&self) -> Option<u32> {
        self.lost.first().copied()
    }

    /// The segment that was sent longest ago of those that have neither arrived nor are marked.
    pub fn oldest(&mut self) -> Option<(u32, Sent)> {
        while let Some(&(sequence, at_us)) = self.order.front() {
            let current = self.get(sequence).copied();
            match current {
                Some(sent)
                    if sent.at_us == at_us
                        && !sent.is(SACKED)
                        && (!sent.is(LOST) || sent.is(RETRANSMITTED)) =>
                {
                    return Some((sequence, sent));
                }
                _ => self.order.pop_front(),
            };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(at_us: u64) -> Sent {
        Sent { at_us, delivered_us: 0, first_us: 0, delivered: 0, flags: 0 }
    }

    fn twenty() -> Outstanding {
        let mut outstanding = Outstanding::default();
        (0..20).for_each(|at| outstanding.push(sent(at)));
        outstanding
    }

    fn sack(outstanding: &mut Outstanding, range: Range) -> Vec<u32> {
        let mut new = Vec::new();
        outstanding.sack(range, |sequence, _| new.push(sequence));
        new
    }

    #[test]
    fn blocks_name_each_segment_once() {
        let mut outstanding = twenty();
        assert_eq!(sack(&mut outstanding, (5, 8)), [5, 6, 7]);
        assert_eq!(sack(&mut outstanding, (10, 12)), [10, 11]);
        assert_eq!(sack(&mut outstanding, (5, 9)), [8]);
        assert_eq!(sack(&mut outstanding, (4, 13)), [4, 9, 12]);
        assert_eq!(sack(&mut outstanding, (4, 13)), [] as [u32; 0]);
        assert_eq!(sack(&mut outstanding, (18, 25)), [18, 19]);
    }

    #[test]
    fn what_is_lost_is_retransmitted_in_order_and_may_be_lost_again() {
        let mut outstanding = twenty();
        sack(&mut outstanding, (5, 8));
        assert_eq!(outstanding.mark_lost(3), Some(false));
        assert_eq!(outstanding.mark_lost(1), Some(false));
        assert_eq!(outstanding.mark_lost(1), None);
        assert_eq!(outstanding.mark_lost(5), None);
        assert_eq!(outstanding.next_lost(), Some(1));
        outstanding.resend(1, |sent| sent.at_us = 100);
        assert_eq!(outstanding.next_lost(), Some(3));
        assert_eq!(outstanding.mark_lost(1), Some(true));
        assert_eq!(outstanding.next_lost(), Some(1));
    }

    #[test]
    fn the_oldest_is_the_one_whose_fate_is_open() {
        let mut outstanding = twenty();
        assert_eq!(outstanding.oldest().unwrap().0, 0);
        outstanding.mark_lost(0);
        outstanding.resend(0, |sent| sent.at_us = 100);
        sack(&mut outstanding, (1, 19));
        assert_eq!(outstanding.oldest().unwrap().0, 19);
        sack(&mut outstanding, (19, 20));
        let (sequence, sent) = outstanding.oldest().unwrap();
        assert_eq!((sequence, sent.at_us), (0, 100));
        assert_eq!((0..20).filter_map(|_| outstanding.pop()).count(), 20);
        outstanding.forget_sacked();
        assert!(outstanding.oldest().is_none() && outstanding.is_empty());
        assert_eq!(outstanding.first(), 20);
    }
}
