// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One direction of several paths, of which one is in use: what routing, a handover or a failover makes of a path.
//!
//! Each path is a link of its own, with its queue, rate and delay. What a path still holds when another one takes over
//! goes on over it to its end, so that packets on a shorter path overtake it.

use std::collections::VecDeque;

use super::{
    Arrival, Change, Counters, Delivery, Direction, DropCause, LinkSample, LinkSpec, Nanos, RangeError,
};

/// Between the seeds of two paths. Those of repetitions are far closer to each other.
const SEEDS: u64 = 1 << 48;

/// Several paths in one direction, one of them in use.
pub struct Paths<P> {
    /// Those that still hold packets, in the order of their use.
    left: Vec<Direction<P>>,
    in_use: Direction<P>,
    to_come: VecDeque<Direction<P>>,
    /// Of paths that hold nothing any more.
    counters: Counters,
    /// Of paths that were left.
    samples: Vec<LinkSample>,
}

impl<P> Paths<P> {
    /// Both directions of a link, forward and return, and of those that follow it; else as [`Direction::pair`]. The first
    /// is as if there were no others.
    ///
    /// # Errors
    /// As [`Direction::pair`].
    pub fn pair(
        link: &LinkSpec,
        to_come: &[LinkSpec],
        seed: u64,
        sample_period_us: u64,
    ) -> Result<[Self; 2], RangeError> {
        let [mut forward, mut back] = Direction::pair(link, seed, sample_period_us)?.map(Self::from);
        for (number, link) in (1..).zip(to_come) {
            let seed = seed.wrapping_add(SEEDS.wrapping_mul(number));
            let [there, here] = Direction::pair(link, seed, sample_period_us)?;
            forward.to_come.push_back(there);
            back.to_come.push_back(here);
        }
        Ok([forward, back])
    }

    /// As [`Direction::start`].
    pub fn start(&mut self, now: Nanos) {
        self.in_use.start(now);
    }

    /// From now on packets go over the next path, which begins; nothing happens where there is none.
    pub fn next_path(&mut self, now: Nanos) {
        let Some(mut next) = self.to_come.pop_front() else { return };
        next.start(now);
        let mut left = std::mem::replace(&mut self.in_use, next);
        left.advance(now);
        self.samples.extend(left.take_samples());
        left.end_log();
        self.left.push(left);
        self.forget_empty();
    }

    /// As [`Direction::arrive_of`], over the path in use.
    ///
    /// # Errors
    /// As there.
    pub fn arrive_of(&mut self, now: Nanos, arrival: Arrival<P>) -> Result<(), (P, DropCause)> {
        self.in_use.arrive_of(now, arrival)
    }

    /// As [`Direction::deliver`], whichever path it comes over. Of packets that are due at once, that of the path that was
    /// left first is first.
    pub fn deliver(&mut self, now: Nanos) -> Option<Delivery<P>> {
        if self.left.is_empty() {
            return self.in_use.deliver(now);
        }
        let all = self.left.iter_mut().chain([&mut self.in_use]);
        let dues = all.filter_map(|path| Some((path.first_due(now)?, path)));
        let delivery = dues.min_by_key(|(due, _)| *due)?.1.deliver(now);
        self.forget_empty();
        delivery
    }

    /// As [`Direction::next_due`].
    pub fn next_due(&self) -> Option<Nanos> {
        self.left.iter().chain([&self.in_use]).filter_map(Direction::next_due).min()
    }

    /// As [`Direction::change`], of the path in use.
    ///
    /// # Errors
    /// As there.
    pub fn change(&mut self, now: Nanos, change: Change) -> Result<(), RangeError> {
        self.in_use.change(now, change)
    }

    /// Totals so far of all paths; the most that a queue held is that of the one that held most.
    pub fn counters(&self) -> Counters {
        let all = self.left.iter().chain([&self.in_use]);
        all.fold(self.counters, |sum, path| sum.and(path.counters()))
    }

    /// The log since the last call, of each path while it was in use. What it counts begins anew with each path.
    pub fn take_samples(&mut self) -> Vec<LinkSample> {
        let mut samples = std::mem::take(&mut self.samples);
        samples.extend(self.in_use.take_samples());
        samples
    }

    /// As [`Direction::advance`].
    pub fn advance(&mut self, now: Nanos) {
        self.left.iter_mut().for_each(|path| path.advance(now));
        self.in_use.advance(now);
    }

    fn forget_empty(&mut self) {
        let counters = &mut self.counters;
        self.left.retain(|path| {
            let keep = path.holds_any();
            if !keep {
                *counters = counters.and(path.counters());
            }
            keep
        });
    }
}

impl<P> From<Direction<P>> for Paths<P> {
    /// This one alone.
    fn from(in_use: Direction<P>) -> Self {
        let (counters, samples) = (Counters::default(), Vec::new());
        Self { left: Vec::new(), in_use, to_come: VecDeque::new(), counters, samples }
    }
}
