// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! On which way packets wait. The receiver's clock, which its acknowledgments carry (RFC 7323: TSval), knows nothing of the way
//! back: what an acknowledgment takes longer than another, from the receiver's clock to its arrival, it has waited there.

use onramp_recording::rows::AckRow;

/// Ticks of the receiver's clock for each millisecond, as far as arrivals show: those of most hosts have one.
const TICKS: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// Share of the waits that round-trip times show which acknowledgments spent on the way back; none: the receiver's clock is not
/// known, or does not tick in milliseconds.
pub(super) fn share(rows: &[AckRow]) -> Option<f64> {
    let timed = |row: &&AckRow| row.event == "ack" && row.rtt_us > 0 && row.receiver_clock != 0;
    let rows: Vec<&AckRow> = rows.iter().filter(timed).collect();
    let (first, last) = (rows.first()?, rows.last()?);
    let ticks = |row: &AckRow| f64::from(row.receiver_clock.wrapping_sub(first.receiver_clock).cast_signed());
    let arrived_ms = |row: &AckRow| (row.at_us - first.at_us) as f64 / 1e3;
    if !TICKS.contains(&(ticks(last) / arrived_ms(last))) {
        return None;
    }
    let back = waits(rows.iter().map(|row| arrived_ms(row) - ticks(row)));
    let all = waits(rows.iter().map(|row| f64::from(row.rtt_us) / 1e3));
    (all > 0.0).then(|| back / all)
}

/// What values have above their least, in all.
fn waits(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    values.map(|value| value - least).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acknowledgments every 10 ms, of which the second half waits for 40 ms on one of the ways.
    fn rows(waits_back: bool, tick_us: u64) -> Vec<AckRow> {
        let row = |number: u64| {
            let waited_us = if number < 50 { 0 } else { 40_000 };
            let left_us = number * 10_000 + if waits_back { 0 } else { waited_us };
            AckRow {
                event: "ack".into(),
                at_us: 1_000_000 + left_us + if waits_back { waited_us } else { 0 },
                rtt_us: 50_000 + waited_us as i32,
                receiver_clock: (u64::from(u32::MAX) - 40 + left_us / tick_us) as u32,
                ..AckRow::default()
            }
        };
        (0..100).map(row).collect()
    }

    #[test]
    fn the_way_on_which_packets_wait_is_known_by_the_receivers_clock() {
        let near = |share: Option<f64>, expected: f64| {
            assert!(share.is_some_and(|share| (share - expected).abs() < 0.05), "{share:?}, not {expected}");
        };
        near(share(&rows(true, 1_000)), 1.0);
        near(share(&rows(false, 1_000)), 0.0);
        assert_eq!(share(&rows(true, 10_000)), None, "another clock");
        assert_eq!(share(&[]), None);
    }
}
