// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Rates as BBR counts them, in segments per microsecond with 24 bits behind the point, gains with 8.

/// A rate: segments per microsecond, times 2^24.
pub type Rate = u64;
/// A gain: times 256.
pub type Gain = u64;

const RATE_BITS: u32 = 24;
const GAIN_BITS: u32 = 8;
/// A gain of 1.
pub const UNIT: Gain = 1 << GAIN_BITS;
/// What is left of the rate for pacing, percent, so that no queue builds up by chance.
const PACED_PCT: u64 = 99;

/// So many segments within so many microseconds, one or more.
pub fn of(segments: u32, interval_us: u64) -> Rate {
    (u64::from(segments) << RATE_BITS) / interval_us
}

/// Segments that it delivers within a time, rounded down.
pub fn segments_within(rate: Rate, interval_us: u64) -> u64 {
    ((u128::from(rate) * u128::from(interval_us)) >> RATE_BITS) as u64
}

/// Segments that it keeps in flight over this time, by a gain, rounded up (`bbr_bdp`).
pub fn in_flight(rate: Rate, rtt_us: u32, gain: Gain) -> u32 {
    let product = (u128::from(rate) * u128::from(rtt_us) * u128::from(gain)) >> GAIN_BITS;
    u32::try_from(product.div_ceil(1 << RATE_BITS)).unwrap_or(u32::MAX)
}

/// The pacing rate by a gain, bytes per second (`bbr_rate_bytes_per_sec`).
pub fn bytes_per_second(rate: Rate, mss: u32, gain: Gain) -> u64 {
    let scaled = (u128::from(rate) * u128::from(mss) * u128::from(gain)) >> GAIN_BITS;
    ((scaled * u128::from(1_000_000 / 100 * PACED_PCT)) >> RATE_BITS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_fills_its_path_and_is_paced_a_hundredth_below() {
        // 1,000 segments in 100 ms.
        let rate = of(1_000, 100_000);
        assert_eq!(in_flight(rate, 100_000, UNIT), 1_000);
        assert_eq!(in_flight(rate, 50_000, 2 * UNIT), 1_000);
        assert_eq!(segments_within(rate, 10_000), 99);
        let paced = bytes_per_second(rate, 1_448, UNIT);
        assert!(paced.abs_diff(1_448 * 10_000 * 99 / 100) < 200, "{paced}");
    }
}
