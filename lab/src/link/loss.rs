// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Loss of packets that have left the transmitter.

use super::random::Random;
use super::spec::LossSpec;

/// Decides about each packet in turn.
pub trait Loss: Send {
    /// Whether it is lost.
    fn loses(&mut self) -> bool;
}

/// The model of a description.
pub(super) fn build(spec: &LossSpec, random: Random) -> Box<dyn Loss> {
    match *spec {
        LossSpec::Random { probability } => Box::new(Independent { probability, random }),
        LossSpec::GilbertElliott { to_bad, to_good, good_loss, bad_loss } => {
            Box::new(GilbertElliott { to_bad, to_good, good_loss, bad_loss, bad: false, random })
        }
    }
}

struct Independent {
    probability: f64,
    random: Random,
}

impl Loss for Independent {
    fn loses(&mut self) -> bool {
        self.random.unit() < self.probability
    }
}

struct GilbertElliott {
    to_bad: f64,
    to_good: f64,
    good_loss: f64,
    bad_loss: f64,
    bad: bool,
    random: Random,
}

impl Loss for GilbertElliott {
    fn loses(&mut self) -> bool {
        let change = if self.bad { self.to_good } else { self.to_bad };
        self.bad ^= self.random.unit() < change;
        self.random.unit() < if self.bad { self.bad_loss } else { self.good_loss }
    }
}
