// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What decides a slow start.

use onramp_algorithm::shell::{Policy, Shell};
use onramp_algorithm::{Ack, Flow, TRAIT_PACES, Verdict};

use super::Oracle;
use crate::sim::socket::NO_THRESHOLD;

/// What decides a slow start.
#[derive(Clone, Debug)]
pub enum Start {
    /// Nothing but the base.
    Base,
    /// One of the algorithms.
    Algorithm(Flow),
    /// It knows the BDP of its path and needs no algorithm to find it: it paces slow start, and exits at a
    /// threshold that is there from the begin on.
    Oracle(Oracle),
}

impl Start {
    /// The threshold of a new connection.
    pub fn first_threshold(&self) -> u32 {
        if let Self::Oracle(path) = self { path.target } else { NO_THRESHOLD }
    }

    /// The shell of a new connection. What no attachment has is called from the first acknowledgment on.
    pub fn shell(&self) -> Shell {
        match self {
            Self::Base => Shell::new(0).from_the_first_ack(),
            Self::Algorithm(flow) => Shell::new(flow.algorithm().traits()),
            Self::Oracle(_) => Shell::new(TRAIT_PACES).from_the_first_ack(),
        }
    }
}

impl Policy for Start {
    fn restart(&mut self) {
        if let Self::Algorithm(flow) = self {
            flow.restart();
        }
    }

    fn on_ack(&mut self, ack: &Ack) -> Verdict {
        match self {
            Self::Base => Verdict::default(),
            Self::Algorithm(flow) => flow.on_ack(ack),
            Self::Oracle(path) => path.paced(),
        }
    }

    fn on_loss(&mut self, ack: &Ack, base_ssthresh: u32) -> u32 {
        if let Self::Algorithm(flow) = self { flow.on_loss(ack, base_ssthresh) } else { base_ssthresh }
    }
}
