// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Rate and delay of a link in use.

use super::*;

/// 10 Mb/s and 10 ms: 1250 bytes take 1 ms.
fn link(rate: Option<RateSpec>) -> Direction<u64> {
    direction(&DirectionSpec { rate, ..DirectionSpec::new(10_000_000, 10_000, Limit::Packets(100)) }, 1)
}

fn rate(rate_bps: u64) -> Change {
    Change { rate_bps: Some(rate_bps), delay_us: None }
}

fn delay(delay_us: u64) -> Change {
    Change { rate_bps: None, delay_us: Some(delay_us) }
}

fn dues(link: &mut Direction<u64>) -> Vec<Nanos> {
    drain(link, u64::MAX / 2).iter().map(|delivery| delivery.due / 1_000).collect()
}

#[test]
fn the_rest_of_a_packet_goes_at_the_new_rate() {
    let mut link = link(None);
    (0..3).for_each(|number| link.arrive(0, number, 1_250).unwrap());
    link.change(MS / 2, rate(5_000_000)).unwrap();
    assert_eq!(link.next_due(), Some(11_500_000));
    link.change(MS, rate(20_000_000)).unwrap();
    // 5000 bits, then 2500 bits, then 2500 bits in 125 us; 500 us for each of the others.
    assert_eq!(dues(&mut link), [11_125, 11_625, 12_125]);
}

#[test]
fn a_change_between_packets_and_at_the_end_of_one_counts_for_the_next() {
    let mut link = link(None);
    (0..2).for_each(|number| link.arrive(0, number, 1_250).unwrap());
    link.change(MS, rate(1_000_000)).unwrap();
    assert_eq!(dues(&mut link), [11_000, 21_000]);
    link.change(SECOND, rate(10_000_000)).unwrap();
    link.arrive(2 * SECOND, 0, 1_250).unwrap();
    assert_eq!(dues(&mut link), [2_011_000]);
}

#[test]
fn a_shorter_delay_does_not_let_packets_overtake() {
    let mut link = link(None);
    (0..3).for_each(|number| link.arrive(0, number, 1_250).unwrap());
    link.change(MS + MS / 2, delay(0)).unwrap();
    // The first keeps its 10 ms, the others wait for it.
    assert_eq!(dues(&mut link), [11_000, 11_000, 11_000]);
    link.arrive(SECOND, 3, 1_250).unwrap();
    link.change(SECOND, delay(50_000)).unwrap();
    assert_eq!(dues(&mut link), [1_051_000]);
}

#[test]
fn a_varying_rate_is_constant_afterwards() {
    let mut link = link(Some(RateSpec::Redraw { every_us: 1_000, min_bps: 9_900_000, max_bps: 10_100_000 }));
    (0..50).for_each(|number| link.arrive(0, number, 1_250).unwrap());
    link.change(0, rate(1_000_000)).unwrap();
    let dues = dues(&mut link);
    assert!(dues.windows(2).all(|pair| pair[1] - pair[0] == 10_000));
}

#[test]
fn out_of_range_nothing_changes() {
    let mut link = link(None);
    let error = link.change(0, Change { rate_bps: Some(5_000_000), delay_us: Some(10_000_001) }).unwrap_err();
    assert_eq!(error.to_string(), "link.test.delay_us = 10000001 is out of range: expected 0 to 10000000");
    assert_eq!(link.change(0, rate(999)).unwrap_err().key, "link.test.rate_bps");
    link.arrive(0, 0, 1_250).unwrap();
    assert_eq!(dues(&mut link), [11_000]);
}
