// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Description of when a transmitter may send.

use serde::{Deserialize, Serialize};

use super::{DELAYS_US, PERIODS_US, RATES_BPS, RangeError, within};

/// When a transmitter may send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ScheduleSpec {
    /// A satellite terminal's return channel: a little guaranteed capacity, and the full rate some time after the
    /// terminal has shown that it needs it. See `link/on_demand.rs`.
    OnDemand {
        /// Longest wait of a terminal that was idle for its next opportunity, microseconds, 0 to 10 000 000.
        opportunity_us: u64,
        /// Guaranteed rate before a grant, bit/s, 1 000 to 100 000 000 000.
        guaranteed_bps: u64,
        /// Packets waiting that make the terminal ask for more, 1 to 1 000 000.
        request_packets: u64,
        /// From the request to the full rate, microseconds, 0 to 100 000 000.
        grant_after_us: u64,
        /// Idle time after which the grant is gone, microseconds, 0 to 1 000 000 000.
        release_after_us: u64,
    },
    /// Bandwidth on demand as in Gotta et al. 2006: requests in proportion to the incoming rate, grants later, in slots of
    /// a frame. See `link/bandwidth_on_demand.rs`.
    BandwidthOnDemand {
        /// Requests are sent this often, microseconds (Tr), 1 000 to 1 000 000 000.
        request_every_us: u64,
        /// Grants are made this often, microseconds (Ta), 1 000 to 1 000 000 000.
        grant_every_us: u64,
        /// From a request to its grant's arrival, propagation both ways, microseconds (τ), 0 to 10 000 000.
        propagation_us: u64,
        /// Requested over incoming rate (k), 0.01 to 100.
        factor: f64,
        /// Slots of a frame, 1 to 65 536. One is guaranteed; all of them are the carrier, which is the rate.
        frame_slots: u64,
        /// Length of a frame, microseconds, to 10 000 000. Granted slots are its beginning and are sent at the
        /// carrier's rate, the rest of it is silent. 0: slots are spread over the frame, sending is smooth.
        #[serde(default)]
        frame_us: u64,
    },
    /// Aggregates of packets, one per opportunity, as in Wi-Fi and LTE. See `link/aggregate.rs`.
    Aggregate {
        /// Shortest time from the end of an aggregate to the next opportunity, microseconds, 0 to `max_gap_us`.
        min_gap_us: u64,
        /// Longest, microseconds, to 10 000 000. Gaps are uniform in between.
        max_gap_us: u64,
        /// Packets of an aggregate, at most, 1 to 65 536.
        max_packets: u64,
        /// Bytes of an aggregate, at most, 1 500 to 1 000 000 000.
        max_bytes: u64,
    },
}

impl ScheduleSpec {
    pub(super) fn validate(&self, key: &str) -> Result<(), RangeError> {
        let of = |name: &str| format!("{key}.{name}");
        match *self {
            Self::OnDemand {
                opportunity_us,
                guaranteed_bps,
                request_packets,
                grant_after_us,
                release_after_us,
            } => {
                within(of("opportunity_us"), opportunity_us, DELAYS_US)?;
                within(of("guaranteed_bps"), guaranteed_bps, RATES_BPS)?;
                within(of("request_packets"), request_packets, 1..=1_000_000)?;
                within(of("grant_after_us"), grant_after_us, 0..=100_000_000)?;
                within(of("release_after_us"), release_after_us, 0..=1_000_000_000)
            }
            Self::BandwidthOnDemand {
                request_every_us,
                grant_every_us,
                propagation_us,
                factor,
                frame_slots,
                frame_us,
            } => {
                within(of("request_every_us"), request_every_us, PERIODS_US)?;
                within(of("grant_every_us"), grant_every_us, PERIODS_US)?;
                within(of("propagation_us"), propagation_us, DELAYS_US)?;
                within(of("factor"), factor, 0.01..=100.0)?;
                within(of("frame_slots"), frame_slots, 1..=65_536)?;
                within(of("frame_us"), frame_us, DELAYS_US)
            }
            Self::Aggregate { min_gap_us, max_gap_us, max_packets, max_bytes } => {
                within(of("max_gap_us"), max_gap_us, DELAYS_US)?;
                within(of("min_gap_us"), min_gap_us, 0..=max_gap_us)?;
                within(of("max_packets"), max_packets, 1..=65_536)?;
                within(of("max_bytes"), max_bytes, 1_500..=1_000_000_000)
            }
        }
    }
}
