// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What candidates cost on paths.

use std::num::NonZeroUsize;
use std::ops::Range;

use super::Candidate;
use crate::emulator::MTU;
use crate::population::Path;
use crate::sim::sweep::{self, RunRow};
use crate::sim::{SimError, workers};

/// Seconds that a run took, and `loss_weight` times the seconds that the path needs for what was sent again: what a line
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
}

impl<P: Fn(u64) -> Path + Sync> Evaluator<'_, P> {
    /// The runs of candidates over paths: for each path, one of each candidate.
    pub fn rows(&self, paths: Range<u64>, candidates: &[Candidate]) -> Result<Vec<Vec<RunRow>>, SimError> {
        let arms: Vec<_> = candidates.iter().map(|candidate| candidate.arm(self.start)).collect();
        let count = (paths.end - paths.start) as usize;
        workers::make(self.jobs, count, |number| {
            sweep::path(&(self.path)(paths.start + number as u64), &arms)
        })
    }

    /// See [`cost_seconds`].
    pub fn cost(&self, row: &RunRow) -> f64 {
        cost_seconds(row.seconds(), row.retransmitted_segments, row.available_bps, self.loss_weight)
    }
}
