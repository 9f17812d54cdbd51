//! best: from the estimate of a round to the threshold.

mod common;

use common::pairs::Rounds;
use onramp_algorithm::{Verdict, find, outcome};

/// The rate of the tests, bytes per second; at 100 ms in segments of 1000 bytes a target of 1000.
const RATE: u64 = 10_000_000;
const SEGMENTS: u32 = 1_000;

/// The outcome's name, and the window aimed at, after a round of this rate.
fn round(rounds: &mut Rounds, rate: u64) -> (&'static str, u32) {
    let verdict = rounds.round(rate);
    (rounds.name(&verdict), rounds.read("target"))
}

/// A threshold ahead of the window would slow down a kernel that paces, and come back with the undo of a loss.
#[test]
fn a_window_ahead_is_aimed_at_and_no_threshold_set() {
    let mut rounds = Rounds::begun("best", &[]);
    let verdict = rounds.round(RATE);
    assert_eq!(rounds.name(&verdict), "ssthresh_set");
    assert_eq!(verdict, Verdict { outcome: verdict.outcome, ..Verdict::default() });
    assert_eq!(rounds.read("target"), SEGMENTS);
}

#[test]
fn the_threshold_is_set_with_the_ack_that_takes_the_window_there() {
    let mut rounds = Rounds::begun("best", &[]);
    rounds.round(RATE);
    for (cwnd, acked, threshold, name) in [
        (SEGMENTS - 3, 2, 0, "round_open"),
        (SEGMENTS - 3, 3, SEGMENTS, "round_open"),
        (SEGMENTS, 1, SEGMENTS, "exit"),
        (SEGMENTS + 1, 0, SEGMENTS, "exit"),
        (u32::MAX, u32::MAX, SEGMENTS, "exit"),
    ] {
        for cut in ["off", "on"] {
            let mut parameters = find("best").unwrap().parameters();
            parameters.set("cut_to_bdp", cut).unwrap();
            rounds.flow.tune(parameters);
            (rounds.ack.cwnd, rounds.ack.acked) = (cwnd, acked);
            let verdict = rounds.next(10, 1_000);
            assert_eq!((rounds.name(&verdict), verdict.ssthresh), (name, threshold), "{cwnd}");
            let reduced = if cut == "on" && cwnd > SEGMENTS { SEGMENTS } else { 0 };
            assert_eq!(verdict.cwnd, reduced, "{cwnd} {cut}");
        }
    }
}

#[test]
fn a_rate_must_exceed_the_minimum_rate() {
    let mut rounds = Rounds::begun("best", &[]);
    assert_eq!(round(&mut rounds, 900_000), ("rate_too_low", 0));
    assert!(rounds.read("estimate").abs_diff(900) <= 1, "the estimate is shown all the same");
    assert_eq!(round(&mut rounds, 1_000_000), ("rate_too_low", 0), "exactly at it");
    assert_eq!(round(&mut rounds, 1_100_000).0, "ssthresh_set");
}

#[test]
fn later_rounds_estimate_anew_in_either_direction() {
    let mut rounds = Rounds::begun("best", &[]);
    for rate in [RATE, RATE * 4, RATE / 2, RATE * 2] {
        let (name, target) = round(&mut rounds, rate);
        assert_eq!(name, "ssthresh_set");
        assert!(target.abs_diff((rate / 10_000) as u32) <= 1, "{rate}: {target}");
    }
    let last = rounds.read("target");
    assert_eq!(
        round(&mut rounds, 2_000),
        ("rate_too_low", last),
        "what shows nothing leaves the last estimate"
    );
}

#[test]
fn a_threshold_that_is_not_its_own_is_lowered_never_raised() {
    for (in_force, expected) in [
        (SEGMENTS - 1, ("threshold_kept", 0)),
        (SEGMENTS + 1, ("ssthresh_set", SEGMENTS)),
        (SEGMENTS, ("ssthresh_set", SEGMENTS)),
    ] {
        let mut rounds = Rounds::begun("best", &[]);
        rounds.ack.ssthresh = in_force;
        assert_eq!(round(&mut rounds, RATE), expected, "{in_force}");
    }
}

/// A loss that proves spurious restores the threshold that was in force before it: none, for what is aimed at is not.
#[test]
fn what_is_aimed_at_can_be_raised_after_an_undo() {
    let mut rounds = Rounds::begun("best", &[]);
    assert_eq!(round(&mut rounds, RATE), ("ssthresh_set", SEGMENTS));
    rounds.flow.restart();
    assert_eq!(rounds.read("target"), 0);
    rounds.begin();
    assert_eq!(round(&mut rounds, RATE * 2), ("ssthresh_set", 2 * SEGMENTS));
}

#[test]
fn the_rtt_is_the_one_asked_for() {
    for (source, expected) in [("min", 500), ("round_min", 2_000), ("latest", 4_000)] {
        let mut rounds = Rounds::new("best", &[&format!("rtt_source={source}")]);
        rounds.ack.min_rtt_us = 50_000;
        rounds.rtt_us = 200_000;
        rounds.begin();
        // The ACK that ends a round is of the next one's data.
        rounds.rtt_us = 400_000;
        assert_eq!(round(&mut rounds, RATE).1, expected, "{source}");
        assert_eq!(rounds.read("round_rtt_us"), 200_000);
    }
}

#[test]
fn without_an_rtt_there_is_no_estimate() {
    let named = |source: &str, rtt_us: i32, smoothed: u32, minimum: u32| {
        let mut rounds = Rounds::new("best", &[&format!("rtt_source={source}")]);
        rounds.ack.min_rtt_us = minimum;
        rounds.ack.smoothed_rtt_us = smoothed;
        rounds.rtt_us = rtt_us;
        rounds.begin();
        if rtt_us < 0 {
            // Not even within the round.
            rounds.ack.rtt_us = i32::MIN / 2;
        }
        round(&mut rounds, RATE).0
    };
    assert_eq!(named("min", 100_000, 100_000, 0), "no_rtt_sample");
    assert_eq!(named("round_min", -1, 100_000, 100_000), "no_rtt_sample");
    assert_eq!(named("latest", -1, 0, 100_000), "no_rtt_sample");
    // Where the last ACK has no sample the smoothed RTT stands for the latest.
    assert_eq!(named("latest", -1, 100_000, 0), "ssthresh_set");
}

#[test]
fn no_target_below_ten_segments_or_at_infinity() {
    let mut rounds = Rounds::begun("best", &["min_rate_bytes_per_s=0"]);
    assert_eq!(round(&mut rounds, 2_000), ("exit", 10));
    let mut rounds = Rounds::new("best", &["min_rate_bytes_per_s=0"]);
    rounds.ack.mss = 1;
    rounds.ack.min_rtt_us = u32::MAX;
    rounds.begin();
    assert_eq!(round(&mut rounds, 10_000_000), ("ssthresh_set", 0x7fff_fffe));
}

#[test]
fn parameters_are_felt_at_the_next_round_and_loss_is_the_bases() {
    let mut rounds = Rounds::begun("best", &[]);
    assert_eq!(round(&mut rounds, 500_000).0, "rate_too_low");
    let mut parameters = find("best").unwrap().parameters();
    parameters.set("min_rate_bytes_per_s", "0").unwrap();
    rounds.flow.tune(parameters);
    assert_eq!(round(&mut rounds, 500_000).0, "exit");
    let ack = rounds.ack;
    assert_eq!(rounds.flow.on_loss(&ack, 31), 31);
}

#[test]
fn the_first_ack_only_begins() {
    let mut rounds = Rounds::new("best", &[]);
    assert_eq!(rounds.begin(), Verdict { outcome: outcome::WARMING_UP, ..Verdict::default() });
}
