// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Values that change at given times.

use super::{Nanos, micros};

/// A series of values, each from its time on, that starts over at its end or holds its last value.
pub(super) struct Steps {
    steps: Vec<(Nanos, u64)>,
    /// When it starts over.
    end: Option<Nanos>,
    at: usize,
    /// When the current pass began.
    began: Nanos,
}

impl Steps {
    /// Times in microseconds and their values, at least one, the first time 0, none equal.
    pub fn new(steps: impl Iterator<Item = (u64, u64)>, repeat_us: Option<u64>) -> Self {
        let steps = steps.map(|(at_us, value)| (micros(at_us), value)).collect();
        Self { steps, end: repeat_us.map(micros), at: 0, began: 0 }
    }

    /// The value at `now`, which never decreases, and when the next one follows.
    pub fn at(&mut self, now: Nanos) -> (u64, Nanos) {
        if let Some(end) = self.end.filter(|end| now - self.began >= *end) {
            self.began += (now - self.began) / end * end;
            self.at = 0;
        }
        while self.steps.get(self.at + 1).is_some_and(|(from, _)| *from <= now - self.began) {
            self.at += 1;
        }
        let next = self.steps.get(self.at + 1).map(|(from, _)| *from).or(self.end);
        (self.steps[self.at].1, next.map_or(Nanos::MAX, |next| self.began + next))
    }
}
