// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What decides a slow start.

use onramp_algorithm::{Ack, Flow, Verdict};

use super::Told;
use crate::sim::socket::NO_THRESHOLD;

/// See the module.
#[derive(Clone, Debug)]
pub enum Start {
    /// Nothing but the base.
    Base,
    /// One of the algorithms.
    Algorithm(Flow),
    /// What its path holds, which it was told and needs no algorithm to find: it spaces what slow start sends, and leaves at a
    /// threshold that is there from the begin on.
    Told(Told),
}

impl Start {
    /// The threshold of a new connection.
    pub fn first_threshold(&self) -> u32 {
        if let Self::Told(path) = self { path.target } else { NO_THRESHOLD }
    }

    /// Whether it is asked outside slow start, too.
    pub fn is_always_asked(&self) -> bool {
        matches!(self, Self::Algorithm(flow) if flow.algorithm().is_always_asked())
    }

    /// A slow start begins.
    pub fn restart(&mut self) {
        if let Self::Algorithm(flow) = self {
            flow.restart();
        }
    }

    /// What it says to an acknowledgment, if anything.
    pub fn on_ack(&mut self, ack: &Ack) -> Option<Verdict> {
        match self {
            Self::Base => None,
            Self::Algorithm(flow) => Some(flow.on_ack(ack)),
            Self::Told(path) => Some(path.spaced(ack)),
        }
    }

    /// The threshold after a loss, where the base would have this one.
    pub fn on_loss(&mut self, ack: &Ack, threshold: u32) -> u32 {
        if let Self::Algorithm(flow) = self { flow.on_loss(ack, threshold) } else { threshold }
    }
}
