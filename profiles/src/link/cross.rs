// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Description of cross traffic.

use serde::{Deserialize, Serialize};

use super::{RATES_BPS, RangeError, within};

/// Traffic of others: packets that take their place in queue and transmitter and are not delivered to the hosts. It
/// reacts to nothing, like the exogenous traffic of Barakat et al. 1999.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CrossSpec {
    /// A packet at equal intervals, the first at a random point of one.
    Constant {
        /// Rate, bit/s, 1 000 to 100 000 000 000.
        rate_bps: u64,
        /// Size of each packet, bytes, 40 to 65 535.
        packet_bytes: u32,
    },
    /// Packets at independent, exponentially distributed intervals.
    Poisson {
        /// Mean rate, bit/s, 1 000 to 100 000 000 000.
        rate_bps: u64,
        /// Size of each packet, bytes, 40 to 65 535.
        packet_bytes: u32,
    },
}

impl CrossSpec {
    /// Rate on average, bit/s.
    pub fn rate_bps(&self) -> u64 {
        let (Self::Constant { rate_bps, .. } | Self::Poisson { rate_bps, .. }) = self;
        *rate_bps
    }

    pub(super) fn validate(&self, key: &str) -> Result<(), RangeError> {
        let (Self::Constant { rate_bps, packet_bytes } | Self::Poisson { rate_bps, packet_bytes }) = self;
        within(format!("{key}.rate_bps"), *rate_bps, RATES_BPS)?;
        within(format!("{key}.packet_bytes"), *packet_bytes, 40..=65_535)
    }
}
