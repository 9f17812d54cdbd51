// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Packets that take a longer way than the others.

use super::random::Random;
use super::spec::ReorderingSpec;
use super::{Nanos, micros};

/// Decides about each packet in turn.
pub(super) struct Reordering {
    probability: f64,
    later: Nanos,
    random: Random,
}

impl Reordering {
    pub fn new(spec: &ReorderingSpec, random: Random) -> Self {
        Self { probability: spec.probability, later: micros(spec.later_us), random }
    }

    /// How much later the next packet arrives than if it had kept its place.
    pub fn later(&mut self) -> Nanos {
        if self.random.unit() < self.probability { self.later } else { 0 }
    }
}
