// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The documents' closed forms: pure functions of their arguments, packets and seconds.
//!
//! * [`threshold`]: Barakat et al. 1999, when slow start overflows a small buffer and what avoids it.
//! * [`buffers`]: Ataei Kachooei et al. 2022 and Peters et al. 2021, which paths fit into socket buffers.
//! * [`on_demand`]: Gotta et al. 2006, slow start over a channel that grants bandwidth on demand.

pub mod buffers;
pub mod on_demand;
pub mod threshold;

use std::ops::RangeInclusive;

use crate::link::RangeError;
use crate::link::spec::within;

/// Rates of links, bit/s; those of the lab's links.
pub const RATES_BPS: RangeInclusive<u64> = 1_000..=100_000_000_000;
/// Round-trip times, seconds; those of the lab's links.
pub const RTTS_SECONDS: RangeInclusive<f64> = 1e-6..=20.0;
/// Sizes of packets, bytes; those of IP.
pub const PACKETS_BYTES: RangeInclusive<u64> = 1..=65_535;

/// A link's rate in packets per second.
///
/// # Errors
/// [`RangeError`] unless the rate is in [`RATES_BPS`] and the size in [`PACKETS_BYTES`].
pub fn packets_per_second(rate_bps: u64, packet_bytes: u64) -> Result<f64, RangeError> {
    within("rate_bps".into(), rate_bps, RATES_BPS)?;
    within("packet_bytes".into(), packet_bytes, PACKETS_BYTES)?;
    Ok(rate_bps as f64 / (packet_bytes * 8) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_sizes_have_their_limits() {
        assert_eq!(packets_per_second(1_500_000, 512).unwrap(), 366.2109375);
        assert!(packets_per_second(1_000, 65_535).is_ok() && packets_per_second(100_000_000_000, 1).is_ok());
        for (rate_bps, packet_bytes, key) in [
            (999, 512, "rate_bps = 999"),
            (100_000_000_001, 512, "rate_bps"),
            (1_000, 0, "packet_bytes = 0"),
            (1_000, 65_536, "packet_bytes"),
        ] {
            let message = packets_per_second(rate_bps, packet_bytes).unwrap_err().to_string();
            assert!(message.starts_with(key) && message.contains("expected"), "{message}");
        }
    }
}
