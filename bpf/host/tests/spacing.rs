//! spacing and the policy of pacing.h, case by case.

mod common;

use common::pairs::Rounds;
use onramp_algorithm::Verdict;

const UNLIMITED: u64 = u64::MAX;
/// Window in which a path of 10 MB/s and 100 ms, 1000 segments of these tests, begins to be spaced.
const FROM: u32 = 125;

/// One round whose pairs all tell this rate, bytes per second; the verdict at its end.
fn round(rounds: &mut Rounds, rate: u64) -> Verdict {
    rounds.window = 20_000;
    for _ in 0..1_000 {
        let before = rounds.flow.export("rounds")[0];
        let verdict = rounds.pair(1_000, rate / 1_000);
        if rounds.flow.export("rounds")[0] > before {
            return verdict;
        }
    }
    panic!("the round does not end");
}

fn begun(settings: &[&str]) -> Rounds {
    let mut rounds = Rounds::new("spacing", settings);
    rounds.window = 20_000;
    rounds.ack.bytes_outstanding = rounds.window;
    let verdict = rounds.flow.on_ack(&rounds.ack);
    assert_eq!((rounds.name(&verdict), verdict.pacing_rate), ("unspaced", UNLIMITED));
    rounds
}

/// Within the sketch's error of 2.7 %.
fn assert_near(rate: u64, expected: u64) {
    assert!(rate.abs_diff(expected) * 1_000 <= expected * 28, "{rate}, expected {expected}");
}

#[test]
fn nothing_is_spaced_until_two_rounds_agree_and_the_window_is_an_eighth_of_the_path() {
    let mut rounds = begun(&[]);
    rounds.ack.cwnd = FROM - 5;
    for rate in [10_000_000, 10_000_000, 10_000_000] {
        let verdict = round(&mut rounds, rate);
        assert_eq!((rounds.name(&verdict), verdict.pacing_rate), ("unspaced", UNLIMITED));
    }
    rounds.ack.cwnd = FROM + 5;
    let verdict = rounds.pair(1_000, 10_000);
    assert_eq!(rounds.name(&verdict), "aimed", "spaced from the ACK on that grows the window so far");
    assert_near(verdict.pacing_rate, 10_000_000);
    assert_near(verdict.ssthresh.into(), 1_000);
}

#[test]
fn medians_that_rise_with_the_window_are_no_estimate() {
    let mut rounds = begun(&[]);
    rounds.ack.cwnd = 250;
    for rate in [2_000_000, 4_000_000, 8_000_000, 16_000_000] {
        assert_eq!(round(&mut rounds, rate).pacing_rate, UNLIMITED);
    }
    assert_ne!(round(&mut rounds, 17_000_000).pacing_rate, UNLIMITED);
}

#[test]
fn medians_below_min_rate_and_below_the_window_are_no_estimate() {
    let mut rounds = begun(&[]);
    rounds.ack.cwnd = 20;
    for _ in 0..3 {
        assert_eq!(round(&mut rounds, 950_000).pacing_rate, UNLIMITED);
    }
    let mut rounds = begun(&["min_rate=0"]);
    rounds.ack.cwnd = 20;
    round(&mut rounds, 950_000);
    assert_near(round(&mut rounds, 950_000).pacing_rate, 950_000);
    let mut rounds = begun(&[]);
    rounds.ack.cwnd = 1_100;
    for _ in 0..3 {
        assert_eq!(round(&mut rounds, 10_000_000).pacing_rate, UNLIMITED, "the window is past the path");
    }
}

#[test]
fn once_spaced_the_estimate_only_rises_and_a_restart_forgets_it() {
    let mut rounds = begun(&["gain_pct=150"]);
    rounds.ack.cwnd = FROM + 5;
    round(&mut rounds, 10_000_000);
    assert_near(round(&mut rounds, 10_000_000).pacing_rate, 15_000_000);
    assert_near(round(&mut rounds, 5_000_000).pacing_rate, 15_000_000);
    assert_near(round(&mut rounds, 12_000_000).pacing_rate, 18_000_000);
    assert_eq!(rounds.flow.export("spaced"), [1]);
    rounds.flow.restart();
    rounds.ack.now_us += 1_000;
    assert_eq!(rounds.flow.on_ack(&rounds.ack).pacing_rate, UNLIMITED);
}

#[test]
fn the_threshold_is_the_path_and_at_or_below_the_window_the_exit() {
    for (settings, cwnd, name, threshold) in [
        (&["exit_pct=100"], 300, "aimed", 1_000),
        (&["exit_pct=50"], 300, "aimed", 500),
        (&["exit_pct=50"], 600, "exit", 500),
        (&["exit_pct=0"], 600, "spaced", 0),
        (&["exit_pct=1"], 600, "exit", 10),
    ] {
        let mut rounds = begun(settings);
        rounds.ack.cwnd = cwnd;
        round(&mut rounds, 10_000_000);
        let verdict = round(&mut rounds, 10_000_000);
        assert_eq!(rounds.name(&verdict), name, "{settings:?}");
        assert_near(verdict.ssthresh.into(), threshold);
        assert_eq!((verdict.cwnd, verdict.growth), (0, 0));
    }
}

#[test]
fn a_lower_threshold_that_is_not_its_own_stays() {
    let mut rounds = begun(&[]);
    rounds.ack.cwnd = 300;
    rounds.ack.ssthresh = 400;
    round(&mut rounds, 10_000_000);
    let verdict = round(&mut rounds, 10_000_000);
    assert_eq!((rounds.name(&verdict), verdict.ssthresh), ("threshold_kept", 0));
    assert_ne!(verdict.pacing_rate, UNLIMITED, "spaced all the same");
}

#[test]
fn a_fixed_rate_is_that_rate_from_the_first_ack_and_never_leaves() {
    let mut rounds = Rounds::new("spacing", &["rate=440000"]);
    rounds.window = 20_000;
    for _ in 0..5 {
        let verdict = rounds.pair(1_000, 10_000);
        assert_eq!((rounds.name(&verdict), verdict.pacing_rate, verdict.ssthresh), ("spaced", 440_000, 0));
    }
}

#[test]
fn pacing_is_asked_of_best_and_search_only_where_it_is_on() {
    for algorithm in ["best", "search", "inflight"] {
        for (setting, asked) in [("pacing=off", false), ("pacing=on", true)] {
            let mut rounds = Rounds::new(algorithm, &[setting]);
            rounds.ack.cwnd = FROM + 5;
            rounds.ack.bytes_outstanding = 20_000;
            let asks = (0..50).filter(|_| rounds.pair(1_000, 10_000).pacing_rate != 0).count();
            assert_eq!(asks, if asked { 50 } else { 0 }, "{algorithm} {setting}");
        }
    }
}
