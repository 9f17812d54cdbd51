//! search, specification section 6: look-back and interpolation (cases 8 to 12).

mod common;

use common::Driver;

/// Look-back of the bin length times this, in hundredths of a bin.
fn rtt_of(bins_pct: u32) -> i32 {
    (35_000 * bins_pct / 100) as i32
}

/// Neqo: rtt 100 ms, d 35 ms: k = 2, f = 85. One bin with data, seen by nothing but its weight in the window.
#[test]
fn case_08_look_back_of_two_bins_and_a_fraction() {
    // Sent: 1000 bytes in each bin, 1 MB more in bin 23. Delivered: 1000 in each.
    let mut flow = Driver::begun(&["threshold_pct=100"]);
    flow.steady_until(22, 1_000);
    flow.bin(1_001_000, 1_000);
    assert_eq!((flow.read("index"), flow.read("look_back_bins")), (23, 2));
    flow.bin(1_000, 1_000);
    assert_eq!(flow.read("norm_pct"), 0, "bin 23 lies after p = 22");
    flow.bin(1_000, 1_000);
    // p = 23: 15 hundredths of the large bin are in: E = 10000 + 150000, D = 10000.
    assert_eq!(flow.read("norm_pct"), 150_000 * 100 / 160_000);
    flow.bin(1_000, 1_000);
    assert_eq!(flow.read("norm_pct"), 1_000_000 * 100 / 1_010_000);
}

/// Neqo: a constant rate gives the same sum at any fraction. With 740 of 1000 delivered the norm is 26 for a sum of
/// 10000 and 25 for any less; with a byte more delivered it is 25 up to 10001.
#[test]
fn case_09_a_constant_rate_sums_to_the_same_at_every_fraction() {
    for percent in 0..100 {
        let mut flow = Driver::new(&["threshold_pct=100"]);
        flow.begin();
        flow.bins_until(20, 1_000, 740);
        flow.ack.rtt_us = rtt_of(200 + percent);
        flow.bin(1_000, 740);
        assert_eq!(flow.read("norm_pct"), 26, "fraction {percent}");
        flow.bin(1_000, 741);
        assert_eq!(flow.read("norm_pct"), 25, "fraction {percent}");
    }
}

/// Direction: with bins that double, the expectation lies between the windows that end at p-1 and at p, and falls as
/// the fraction grows. Interpolation towards p+1, as the draft has it, rises.
#[test]
fn case_10_interpolation_is_backwards() {
    let norm_at = |bins_pct: u32, interpolate: &str| {
        let mut flow = Driver::begun(&["threshold_pct=100", interpolate]);
        for bin in 1..=20_u32 {
            flow.bin(1_000 << bin, 800_000);
        }
        flow.ack.rtt_us = rtt_of(bins_pct);
        flow.bin(1_000 << 21, 800_000);
        u64::from(flow.read("norm_pct"))
    };
    // Bytes sent in the ten bins that end with bin p.
    let window = |p: u32| 1_000 * ((2_u64 << p) - (2 << (p - 10)));
    let norm = |expected: u64| (expected - 8_000_000) * 100 / expected;
    let (at_13, at_14) = (norm(window(13)), norm(window(14)));
    assert_eq!((at_13, at_14), (51, 75));
    let mut last = 75;
    for percent in 0..100 {
        let measured = norm_at(700 + percent, "interpolate=on");
        let expected = (window(13) * u64::from(percent) + window(14) * u64::from(100 - percent)) / 100;
        assert_eq!(measured, norm(expected), "fraction {percent}");
        assert!(measured <= last && measured >= at_13, "fraction {percent}");
        last = measured;
        assert_eq!(norm_at(700 + percent, "interpolate=off"), at_14, "fraction {percent}");
        assert_eq!(norm_at(700 + percent, "interpolate=older"), at_13, "fraction {percent}");
    }
    assert_eq!((last, norm_at(700, "interpolate=on"), norm_at(800, "interpolate=on")), (51, at_14, at_13));
}

/// Neqo: first check at c = 13 with k = 2, one bin later than the authors, for want of a predecessor of bin 0.
#[test]
fn case_11_the_first_check_is_at_bin_13() {
    let mut flow = Driver::begun(&[]);
    for _ in 0..12 {
        assert_eq!(flow.bin_outcome(1_000, 1_000), "warming_up");
    }
    assert_eq!(flow.read("index"), 12);
    assert_eq!(flow.bin_outcome(1_000, 1_000), "below_threshold");
    assert_eq!((flow.read("index"), flow.read("norm_pct")), (13, 0));
}

/// The longest look-back is 20 bins, seven initial RTTs; published versions end at 13, 14, 15, 33 or 38.
#[test]
fn case_12_a_look_back_beyond_the_history_is_named_and_its_maximum_kept() {
    let mut flow = Driver::begun(&[]);
    flow.steady_until(70, 1_000);
    for (bins, outcome, longest) in [
        (13, "below_threshold", 0),
        (14, "below_threshold", 0),
        (15, "below_threshold", 0),
        (20, "below_threshold", 0),
        (21, "look_back_too_long", 21),
        (60, "look_back_too_long", 60),
        (55, "look_back_too_long", 60),
        (20, "below_threshold", 60),
        (2, "below_threshold", 60),
    ] {
        flow.ack.rtt_us = rtt_of(100 * bins);
        assert_eq!(flow.bin_outcome(1_000, 1_000), outcome, "{bins}");
        assert_eq!(flow.read("look_back_bins"), bins);
        assert_eq!(flow.read("look_back_needed"), longest);
        assert_eq!(flow.read("norm_pct"), 0);
    }
}

/// The whole ring serves the longest look-back: its oldest bins are neither overwritten nor missed.
#[test]
fn case_12_the_longest_look_back_reads_the_oldest_bins() {
    let mut flow = Driver::begun(&["threshold_pct=100"]);
    // All that was ever sent is sent in bins 1 to 10; the window that ends at p = 11 holds bins 2 to 11.
    flow.bins_until(10, 1_000, 100);
    flow.bins_until(30, 0, 100);
    flow.ack.rtt_us = rtt_of(2_000);
    flow.bin(0, 100);
    assert_eq!((flow.read("index"), flow.read("look_back_bins")), (31, 20));
    assert_eq!(flow.read("norm_pct"), (9_000 - 1_000) * 100 / 9_000);
    flow.ack.rtt_us = rtt_of(2_099);
    flow.bin(0, 100);
    // p = 12: the window that ends at 11 counts 99, the one at 12 (bins 3 to 12) once.
    assert_eq!(flow.read("norm_pct"), (8_990 - 1_000) * 100 / 8_990);
}

/// Each look-back reads its own RTT, and the sample while its own is not known.
#[test]
fn case_12_every_look_back_reads_its_own_rtt() {
    for (look_back, known, unknown) in [("latest", 8, 8), ("smoothed", 6, 8), ("min", 3, 8)] {
        let mut flow = Driver::begun(&[&format!("look_back={look_back}")]);
        flow.steady_until(30, 1_000);
        flow.ack.rtt_us = rtt_of(800);
        flow.bin(1_000, 1_000);
        assert_eq!(flow.read("look_back_bins"), unknown, "{look_back}");
        flow.ack.smoothed_rtt_us = rtt_of(600) as u32;
        flow.ack.min_rtt_us = rtt_of(300) as u32;
        flow.bin(1_000, 1_000);
        assert_eq!(flow.read("look_back_bins"), known, "{look_back}");
    }
}

/// 20 bins fill the ring with the window: at every place of it a look-back of 20 bins and a fraction is checked, by the
/// same figures as an older history has, and one of 21 is not, however old the flow is.
#[test]
fn case_12_the_limit_is_the_same_at_every_place_of_the_ring() {
    let mut flow = Driver::begun(&["threshold_pct=100"]);
    let sent = |bin: u32| u64::from(1_000 + bin % 7 * 100);
    let window = |end: u32| (end - 9..=end).map(sent).sum::<u64>();
    for bin in 1..=150 {
        flow.ack.rtt_us = rtt_of(if bin % 2 == 0 { 2_050 } else { 2_100 });
        let outcome = flow.bin_outcome(sent(bin), 100);
        if bin % 2 == 1 {
            assert_eq!((outcome, flow.read("look_back_bins")), ("look_back_too_long", 21));
        } else if bin < 20 + 11 {
            assert_eq!(outcome, "warming_up", "{bin}");
        } else {
            let expected = (window(bin - 21) * 50 + window(bin - 20) * 50) / 100;
            assert_eq!((outcome, flow.read("look_back_bins")), ("below_threshold", 20));
            assert_eq!(u64::from(flow.read("norm_pct")), (expected - 1_000) * 100 / expected, "{bin}");
        }
    }
}
