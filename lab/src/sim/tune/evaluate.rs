// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What candidates cost on paths.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Candidate;
use crate::emulator::MTU;
use crate::population::Path;
use crate::sim::sweep::{self, RunRow};
use crate::sim::{SimError, workers};

/// Seconds that a run took, and `loss_weight` times the seconds that the path needs for what was retransmitted: what a line
/// carries twice, others could have had.
pub fn cost_seconds(seconds: f64, retransmitted_segments: u64, available_bps: u64, loss_weight: f64) -> f64 {
    let again_bits = retransmitted_segments as f64 * MTU as f64 * 8.0;
    seconds + loss_weight * again_bits / available_bps.max(1) as f64
}

pub(super) struct Evaluator<'a, P> {
    pub start: &'a Candidate,
    pub path: P,
    pub loss_weight: f64,
    pub jobs: NonZeroUsize,
    /// Called with what is done, and of how many paths so many are.
    pub progress: &'a (dyn Fn(&str, u64, u64) + Sync),
}

impl<P: Fn(u64) -> Path + Sync> Evaluator<'_, P> {
    /// The runs of candidates over paths: for each path, one of each candidate.
    pub fn rows(
        &self,
        what: &str,
        paths: Range<u64>,
        candidates: &[Candidate],
    ) -> Result<Vec<Vec<RunRow>>, SimError> {
        let arms: Vec<_> = candidates.iter().map(|candidate| candidate.arm(self.start)).collect();
        let count = (paths.end - paths.start) as usize;
        let made = AtomicU64::new(0);
        (self.progress)(what, 0, count as u64);
        workers::make(self.jobs, count, |number| {
            let rows = sweep::path(&(self.path)(paths.start + number as u64), &arms)?;
            (self.progress)(what, made.fetch_add(1, Ordering::Relaxed) + 1, count as u64);
            Ok(rows)
        })
    }

    /// Logarithm of what a run costs over what another over the same path does. One that was given up costs no less than one
    /// that was not; of two that were, nothing is known.
    pub fn logarithm(&self, row: &RunRow, base: &RunRow) -> f64 {
        let logarithm = (self.cost(row) / self.cost(base)).ln();
        match (row.complete == 1, base.complete == 1) {
            (true, true) => logarithm,
            (false, true) => logarithm.max(0.0),
            (true, false) => logarithm.min(0.0),
            (false, false) => 0.0,
        }
    }

    /// See [`cost_seconds`].
    fn cost(&self, row: &RunRow) -> f64 {
        cost_seconds(row.seconds(), row.retransmitted_segments, row.available_bps, self.loss_weight)
    }
}
