// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What an acknowledgment says of the rate, as the kernel hands it to a control that sets the window itself (`struct rate_sample`).

/// See the module. Counts are of segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// Acknowledged now, in order or not.
    pub acked: u32,
    /// Found lost now.
    pub losses: u32,
    /// In flight before.
    pub prior_in_flight: u32,
    /// Round-trip time of the segment that was sent last of those acknowledged, microseconds.
    pub rtt_us: Option<u32>,
    /// The acknowledgment may have been delayed.
    pub delayed: bool,
    /// Delivered as that segment was sent.
    pub prior_delivered: u32,
    /// Delivered since; `None`: nothing is.
    pub delivered: Option<u32>,
    /// In such a time, microseconds; `None`: it is shorter than any round-trip time.
    pub interval_us: Option<u32>,
    /// The application had less to send than the window allowed.
    pub app_limited: bool,
}

impl RateSample {
    /// Segments delivered, and the time in which they were, microseconds, more than none.
    pub fn rate(&self) -> Option<(u32, u32)> {
        self.delivered.zip(self.interval_us.filter(|interval_us| *interval_us > 0))
    }
}
