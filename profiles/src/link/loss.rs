// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Description of loss on the way.

use serde::{Deserialize, Serialize};

use super::{RangeError, within};

/// Loss of packets after the transmitter: they have taken their place in queue and transmitter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossSpec {
    /// Each packet for itself.
    Random {
        /// Share of packets that is lost, 0 to 1.
        probability: f64,
    },
    /// Gilbert-Elliott: a good and a bad state, which may change before each packet. In the long run
    /// `to_bad / (to_bad + to_good)` of the packets meet the bad state, in runs of `1 / to_good` packets on average.
    GilbertElliott {
        /// Probability of going from good to bad, 0.000000001 to 1.
        to_bad: f64,
        /// Probability of going from bad to good, 0.000000001 to 1.
        to_good: f64,
        /// Share of packets that is lost in the good state, 0 to 1.
        good_loss: f64,
        /// Share of packets that is lost in the bad state, 0 to 1.
        bad_loss: f64,
    },
}

impl LossSpec {
    pub(super) fn validate(&self, key: &str) -> Result<(), RangeError> {
        let of = |name: &str| format!("{key}.{name}");
        match self {
            Self::Random { probability } => within(of("probability"), *probability, 0.0..=1.0),
            Self::GilbertElliott { to_bad, to_good, good_loss, bad_loss } => {
                within(of("to_bad"), *to_bad, 1e-9..=1.0)?;
                within(of("to_good"), *to_good, 1e-9..=1.0)?;
                within(of("good_loss"), *good_loss, 0.0..=1.0)?;
                within(of("bad_loss"), *bad_loss, 0.0..=1.0)
            }
        }
    }

    /// Share of packets that is lost in the long run.
    pub fn share(&self) -> f64 {
        match *self {
            Self::Random { probability } => probability,
            Self::GilbertElliott { to_bad, to_good, good_loss, bad_loss } => {
                (to_good * good_loss + to_bad * bad_loss) / (to_bad + to_good)
            }
        }
    }
}
