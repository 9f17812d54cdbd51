// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which run comes when.

use std::collections::VecDeque;

use super::{Arm, Plan};

/// A run that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// Number of the run, from 0.
    pub index: usize,
    /// Number of the arm.
    pub arm: usize,
    /// Seed of the link.
    pub seed: u64,
}

/// The runs that have not begun, and the arms of those in progress.
pub(super) struct Turns<'a> {
    arms: &'a [Arm],
    due: VecDeque<Turn>,
    running: Vec<usize>,
}

impl<'a> Turns<'a> {
    /// All runs. The first in one repetition is the last in another.
    pub fn new(plan: &Plan, arms: &'a [Arm]) -> Self {
        let order = (0..plan.repetitions as usize).flat_map(|repetition| {
            (0..arms.len()).map(move |turn| (repetition, (repetition + turn) % arms.len()))
        });
        let turn =
            |(index, (repetition, arm))| Turn { index, arm, seed: plan.seed.wrapping_add(repetition as u64) };
        Self { arms, due: order.enumerate().map(turn).collect(), running: Vec::new() }
    }

    /// The next run that may go next to those in progress. `None` if there is none, now or at all.
    pub fn begin(&mut self) -> Option<Turn> {
        let at =
            self.due.iter().position(|turn| self.running.iter().all(|arm| self.agree(*arm, turn.arm)))?;
        let turn = self.due.remove(at)?;
        self.running.push(turn.arm);
        Some(turn)
    }

    /// A run of this arm is over.
    pub fn end(&mut self, arm: usize) {
        if let Some(at) = self.running.iter().position(|one| *one == arm) {
            self.running.swap_remove(at);
        }
    }

    /// How many are in progress.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Parameters belong to a control of the whole machine, so two arms that set those of the same one cannot run at
    /// once; an arm can run next to itself.
    fn agree(&self, one: usize, other: usize) -> bool {
        let (first, second) = (&self.arms[one], &self.arms[other]);
        one == other || first.ready.is_none() || first.congestion_control != second.congestion_control
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::experiment::Ready;
    use crate::profile::Profile;

    fn plan(repetitions: u32) -> Plan {
        let text = include_str!("../../../profiles/geo.toml");
        Plan { repetitions, seed: 7, ..Plan::new(Profile::parse(text, "geo.toml").unwrap()) }
    }

    /// An arm whose control has parameters.
    fn tuned(name: &str, control: &str) -> Arm {
        let ready = Ready(Arc::new(|| Err("never called".into())));
        Arm { name: name.into(), ready: Some(ready), ..Arm::stock(control) }
    }

    #[test]
    fn arms_take_turns_and_share_seeds() {
        let arms = [Arm::stock("cubic"), Arm::stock("reno")];
        let mut turns = Turns::new(&plan(3), &arms);
        let order: Vec<_> = std::iter::from_fn(|| turns.begin()).map(|turn| (turn.arm, turn.seed)).collect();
        assert_eq!(order, [(0, 7), (1, 7), (1, 8), (0, 8), (0, 9), (1, 9)]);
    }

    #[test]
    fn arms_of_one_control_with_parameters_never_run_at_once() {
        let arms = [tuned("a", "onramp_best"), tuned("b", "onramp_best"), tuned("c", "onramp_search")];
        let mut turns = Turns::new(&plan(2), &arms);
        let mut begin = || turns.begin().map(|turn| (turn.index, turn.arm));
        // Order: a b c, b c a. The second run of `a` may go next to the first, `b` may not.
        assert_eq!([begin(), begin(), begin()], [Some((0, 0)), Some((2, 2)), Some((4, 2))]);
        assert_eq!([begin(), begin()], [Some((5, 0)), None]);
        turns.end(0);
        assert_eq!(turns.begin(), None, "another run of a is in progress");
        turns.end(0);
        assert_eq!(turns.begin().map(|turn| (turn.index, turn.arm)), Some((1, 1)));
        assert_eq!(turns.running(), 3);
    }

    #[test]
    fn arms_of_a_stock_control_run_at_once_whatever_their_hosts() {
        let arms = [Arm { name: "small".into(), ..Arm::stock("cubic") }, Arm::stock("cubic")];
        let mut turns = Turns::new(&plan(1), &arms);
        assert_eq!(std::iter::from_fn(|| turns.begin()).count(), 2);
    }
}
