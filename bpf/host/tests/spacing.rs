//! spacing and the policy of pacing.h, case by case.

mod common;

use common::pairs::{BYTES, Rounds};
use onramp_algorithm::ack_flag::PACED;

/// The rate of the tests, bytes per second; at 100 ms a path of 1000 segments of these tests.
const RATE: u64 = 10_000_000;
/// Window in which it begins to be paced.
const FROM: u32 = 125;

fn assert_near(rate: u64, expected: u64) {
    assert!(rate.abs_diff(expected) * 500 <= expected, "{rate}, expected {expected}");
}

#[test]
fn nothing_is_spaced_until_the_window_is_an_eighth_of_the_path() {
    let mut rounds = Rounds::begun("spacing", &[]);
    rounds.ack.cwnd = FROM - 1;
    for _ in 0..3 {
        let verdict = rounds.round(RATE);
        assert_eq!((rounds.name(&verdict), verdict.pacing_rate), ("unpaced", 0));
    }
    rounds.ack.cwnd = FROM;
    let verdict = rounds.next(1_000, 10_000);
    assert_eq!(rounds.name(&verdict), "ssthresh_set", "paced from the ACK on that grows the window so far");
    assert_near(verdict.pacing_rate, RATE * 112 / 100);
    assert_eq!((rounds.read("target"), verdict.ssthresh), (1_000, 0));
}

/// A pacing rate that was not asked for would switch off the bound that the kernel keeps on this host's own queue.
#[test]
fn a_young_flow_asks_for_a_rate_only_where_another_paces() {
    let mut rounds = Rounds::begun("spacing", &[]);
    assert_eq!(rounds.next(1_000, 10_000).pacing_rate, 0);
    rounds.ack.flags = PACED;
    rounds.ack.cwnd = 20;
    assert_eq!(rounds.next(1_000, 10_000).pacing_rate, 16 * 20 * 1_000 * 10, "16 windows per RTT");
    rounds.ack.min_rtt_us = 0;
    assert_eq!(rounds.next(1_000, 10_000).pacing_rate, 0);
}

#[test]
fn probing_ends_at_half_the_path_and_a_larger_gain_stays() {
    for (gain, cwnd, expected) in
        [(100, 499, 112), (100, 500, 100), (110, 499, 112), (110, 500, 110), (150, 499, 150), (150, 500, 150)]
    {
        let mut rounds = Rounds::begun("spacing", &[&format!("gain_pct={gain}")]);
        rounds.ack.cwnd = cwnd;
        assert_near(rounds.rounds(RATE).pacing_rate, RATE * expected / 100);
    }
}

#[test]
fn rates_that_are_no_estimate_are_not_spaced_by() {
    // Below min_rate_bytes_per_s.
    let mut rounds = Rounds::begun("spacing", &[]);
    rounds.ack.cwnd = 20;
    assert_eq!(rounds.rounds(950_000).pacing_rate, 0);
    let mut rounds = Rounds::begun("spacing", &["min_rate_bytes_per_s=0"]);
    rounds.ack.cwnd = 60;
    assert_near(rounds.rounds(950_000).pacing_rate, 950_000);
    // Sent no faster than acknowledged.
    let mut rounds = Rounds::begun("spacing", &[]);
    rounds.ack.cwnd = FROM;
    for _ in 0..3 {
        for _ in 0..20 {
            rounds.next(1_000, 10_000);
        }
        assert_eq!(rounds.next(50_000, 10_000).pacing_rate, 0);
    }
}

/// What is released by the rest of the round need not leave at twice the bottleneck's rate.
#[test]
fn eight_pairs_that_shows_the_rate_are_enough_to_begin() {
    let mut rounds = Rounds::begun("spacing", &[]);
    rounds.ack.cwnd = FROM;
    for number in 1..=20 {
        rounds.ack.rtt_us += 500;
        let paced = rounds.next(1_000, BYTES).pacing_rate;
        assert_eq!(paced > 0, number >= 16, "after {number} ACKs, of which two are a pair: {paced}");
    }
}

#[test]
fn a_window_that_is_past_the_path_is_left_at_once() {
    let mut rounds = Rounds::begun("spacing", &[]);
    rounds.ack.cwnd = 1_100;
    let verdict = rounds.rounds(RATE);
    assert_eq!((rounds.name(&verdict), verdict.ssthresh), ("exit", 1_000));
}

#[test]
fn once_spaced_the_estimate_only_rises_by_what_probing_can_show() {
    let mut rounds = Rounds::begun("spacing", &["gain_pct=200"]);
    rounds.ack.cwnd = FROM;
    for (rate, expected) in [(RATE, 100), (RATE / 2, 100), (RATE * 11 / 10, 110), (RATE * 10, 123)] {
        assert_near(rounds.round(rate).pacing_rate, RATE * 2 * expected / 100);
    }
    assert_eq!(rounds.read("paced"), 1);
    rounds.flow.restart();
    rounds.ack.now_us += 1_000;
    assert_eq!(rounds.flow.on_ack(&rounds.ack).pacing_rate, 0);
}

#[test]
fn slow_start_is_left_at_the_path() {
    for (settings, cwnd, name, target) in [
        (&["exit_pct=100"], 300, "ssthresh_set", 1_000),
        (&["exit_pct=50"], 300, "ssthresh_set", 500),
        (&["exit_pct=50"], 600, "exit", 500),
        (&["exit_pct=0"], 600, "paced", 0),
        (&["exit_pct=1"], 600, "exit", 10),
    ] {
        let mut rounds = Rounds::begun("spacing", settings);
        rounds.ack.cwnd = cwnd;
        let verdict = rounds.rounds(RATE);
        assert_eq!((rounds.name(&verdict), rounds.read("target")), (name, target), "{settings:?}");
        assert_eq!(verdict.ssthresh, if name == "exit" { target } else { 0 });
        assert_eq!((verdict.cwnd, verdict.growth), (0, 0));
    }
}

#[test]
fn a_lower_threshold_that_is_not_its_own_stays() {
    let mut rounds = Rounds::begun("spacing", &[]);
    rounds.ack.cwnd = 300;
    rounds.ack.ssthresh = 400;
    let verdict = rounds.rounds(RATE);
    assert_eq!((rounds.name(&verdict), verdict.ssthresh), ("threshold_kept", 0));
    assert_ne!(verdict.pacing_rate, 0, "paced all the same");
}

#[test]
fn a_fixed_rate_is_that_rate_from_the_first_ack_and_never_leaves() {
    let mut rounds = Rounds::new("spacing", &["rate_bytes_per_s=440000"]);
    for _ in 0..5 {
        let verdict = rounds.next(1_000, 10_000);
        assert_eq!((rounds.name(&verdict), verdict.pacing_rate, verdict.ssthresh), ("paced", 440_000, 0));
    }
}

#[test]
fn pacing_is_asked_of_the_others_only_where_it_is_on() {
    for algorithm in ["best", "search", "inflight"] {
        for (setting, asked) in [("pacing=off", false), ("pacing=on", true)] {
            let mut rounds = Rounds::begun(algorithm, &[setting]);
            rounds.ack.cwnd = 300;
            let asks = (0..3).any(|_| rounds.round(RATE).pacing_rate != 0);
            assert_eq!(asks, asked, "{algorithm} {setting}");
        }
    }
}
