//! The sketch of rates: its median against sorting. It is read through best, which multiplies it by an RTT.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::pairs::{ENDS, Rounds, bounds, sorted_median};
use common::random::{Random, check};
use proptest::prelude::*;

/// The sketch's median of one round of these rates, and the rates as they were. With an RTT of one second and segments
/// of so many bytes the threshold is the rate.
fn sketched(rates: &[u64]) -> (u64, Vec<u64>) {
    let mss = if sorted_median(rates).unwrap() < 1 << 30 { 1 } else { 16 };
    let mut rounds = Rounds::new("best", &["min_rate=0"]);
    rounds.ack.mss = mss;
    rounds.ack.min_rtt_us = 1_000_000;
    rounds.begin();
    let (verdict, exact) = rounds.round(rates);
    assert_eq!(rounds.read("round_samples") as usize, rates.len().min(65_535));
    (u64::from(verdict.ssthresh) * u64::from(mss), exact)
}

/// Rates of a round as Ataei Kachooei et al. 2022 figure 11 shows them, and worse: bytes per second, of a link of 150 Mb/s or any other.
fn round(random: &mut Random) -> (&'static str, Vec<u64>) {
    let link = if random.once_in(2) { 18_750_000 } else { 2_000 << random.below(22) };
    let count = match random.below(10) {
        0..=2 => 1 + random.below(5),
        3 => 1_000 + random.below(20_000),
        _ => 1 + random.below(400),
    };
    let (name, low, high) = match random.below(7) {
        0 => ("many too low", 60, 0),
        1 => ("many too high", 0, 60),
        2 => ("both", 35, 35),
        3 => ("mostly noise", 48, 48),
        4 => ("constant", 0, 0),
        5 => ("two modes", 50, 0),
        _ => ("anything", 0, 0),
    };
    let rates = (0..count).map(|_| match (name, random.below(100)) {
        ("constant", _) => link,
        ("anything", _) => 1 + (random.bits() >> random.below(64)) % (1 << 35),
        ("two modes", part) if part < low => link / 7,
        ("two modes", _) => link,
        (_, part) if part < low => 1 + link / (1 + random.below(100)),
        (_, part) if part < low + high => link + link * random.below(3_000) / 100,
        _ => link * (90 + random.below(20)) / 100,
    });
    (name, rates.map(|rate| rate.max(1)).collect())
}

#[test]
fn the_median_is_within_three_percent_of_sorting() {
    check(21, 4_000, any::<u64>(), |seed| {
        let (name, rates) = round(&mut Random(seed));
        let (ours, exact) = sketched(&rates);
        let exact = sorted_median(&exact).unwrap().clamp(ENDS.0, ENDS.1);
        let (low, high) = bounds(exact);
        // One more where segments of 16 bytes are counted.
        prop_assert!((low - 16.min(low)..=high).contains(&ours), "{name}, {}: {ours} {exact}", rates.len());
        prop_assert!(ours.abs_diff(exact) * 100 <= 3 * exact, "{name}, {}: {ours} {exact}", rates.len());
        Ok(())
    });
}

/// Both edges of every bin that a pair one second apart can have: the error is largest there, and the same.
#[test]
fn the_error_is_bounded_at_the_edges_of_every_bin() {
    let mut worst = 0;
    for octave in 10..31 {
        for step in 0..18_u64 {
            let edge = (1_u64 << octave) + (1_u64 << octave) * step / 18;
            for rate in [edge, edge + 1, edge.saturating_sub(1).max(ENDS.0)] {
                let mut rounds = Rounds::new("best", &["min_rate=0"]);
                rounds.ack.mss = 1;
                rounds.ack.min_rtt_us = 1_000_000;
                rounds.window = rate as u32 - 1;
                rounds.begin();
                let ours = u64::from(rounds.pair(1_000_000, rate).ssthresh);
                let (low, high) = bounds(rate);
                assert!((low..=high).contains(&ours), "{rate}: {ours}");
                worst = worst.max(ours.abs_diff(rate) * 10_000 / rate);
            }
        }
    }
    println!("largest error at an edge: {worst} in 10,000");
    assert!((250..=275).contains(&worst), "{worst}");
}

/// A rate beyond what is told apart counts as the end of the range.
#[test]
fn rates_beyond_the_ends_count_as_the_ends() {
    let (low, high) = bounds(ENDS.0);
    let (ours, exact) = sketched(&[1, 2, 900]);
    assert!((low..=high).contains(&ours) && exact[1] < ENDS.0, "{ours}");
    let (low, high) = bounds(ENDS.1);
    let (ours, exact) = sketched(&[1 << 36, 1 << 37, 1 << 38]);
    assert!((low - 16..=high).contains(&ours) && exact[1] > ENDS.1, "{ours}");
}

/// Of an even number of rates the lower one of the two in the middle.
#[test]
fn the_median_of_two_is_the_lower() {
    let (ours, exact) = sketched(&[10_000_000, 90_000_000]);
    let (low, high) = bounds(exact[0]);
    assert!((low..=high).contains(&ours), "{ours}");
    let (ours, exact) = sketched(&[10_000_000, 90_000_000, 80_000_000]);
    let (low, high) = bounds(exact[2]);
    assert!((low..=high).contains(&ours), "{ours}");
}

/// More rates than a counter holds: the first 65,535 count, and for rates in no order that is the median of all.
#[test]
fn a_round_of_a_hundred_thousand_pairs_is_judged_by_its_first() {
    let mut random = Random(22);
    let mut rates: Vec<u64> = (0..65_535).map(|_| 9_000_000 + random.below(2_000_000)).collect();
    rates.extend((0..34_465).map(|_| 1_000_000_000));
    let (ours, exact) = sketched(&rates);
    let (low, high) = bounds(sorted_median(&exact[..65_535]).unwrap());
    assert!((low..=high).contains(&ours), "{ours}");
    let mixed: Vec<u64> = (0..100_000).map(|_| 5_000_000 + random.below(10_000_000)).collect();
    let (ours, exact) = sketched(&mixed);
    let all = sorted_median(&exact).unwrap();
    assert!(ours.abs_diff(all) * 100 <= 4 * all, "{ours} {all}");
}
