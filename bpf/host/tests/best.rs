//! best: from the estimate of a round to the threshold.

mod common;

use common::pairs::{Rounds, bounds};
use onramp_algorithm::{Verdict, find, outcome};

/// The rate of the tests, bytes per second; at 100 ms in segments of 1000 bytes a threshold of 1000.
const RATE: u64 = 10_000_000;
const SEGMENTS: u32 = 1_000;

fn near(segments: u32, expected: u32) -> bool {
    let (low, high) = bounds(u64::from(expected) * 1_000);
    (low..=high).contains(&(u64::from(segments) * 1_000 + 500)) || segments.abs_diff(expected) <= 1
}

/// The outcome's name and the threshold of a round of this rate.
fn round(rounds: &mut Rounds, rate: u64) -> (&'static str, u32) {
    let (verdict, _) = rounds.round(&[rate, rate, rate]);
    (rounds.name(&verdict), verdict.ssthresh)
}

#[test]
fn a_threshold_ahead_of_the_window_is_aimed_at() {
    let mut rounds = Rounds::begun("best", &[]);
    let (verdict, _) = rounds.round(&[RATE]);
    assert_eq!(rounds.name(&verdict), "aimed");
    assert!(near(verdict.ssthresh, SEGMENTS), "{verdict:?}");
    assert_eq!(
        verdict,
        Verdict { outcome: verdict.outcome, ssthresh: verdict.ssthresh, ..Verdict::default() }
    );
    assert_eq!(rounds.read("target"), verdict.ssthresh);
}

#[test]
fn a_threshold_at_or_below_the_window_is_the_exit_and_keeps_the_window() {
    let target = round(&mut Rounds::begun("best", &[]), RATE).1;
    for (cwnd, name) in [(target - 1, "aimed"), (target, "exit"), (target + 1, "exit"), (u32::MAX, "exit")] {
        for cut in ["off", "on"] {
            let mut rounds = Rounds::begun("best", &[&format!("cut_to_bdp={cut}")]);
            rounds.ack.cwnd = cwnd;
            let (verdict, _) = rounds.round(&[RATE, RATE, RATE]);
            assert_eq!(rounds.name(&verdict), name, "{cwnd}");
            assert_eq!(verdict.ssthresh, target);
            let reduced = if cut == "on" && cwnd > target { target } else { 0 };
            assert_eq!(verdict.cwnd, reduced, "{cwnd} {cut}");
        }
    }
}

#[test]
fn a_median_must_exceed_the_minimum_rate() {
    let mut rounds = Rounds::begun("best", &[]);
    assert_eq!(round(&mut rounds, 900_000), ("rate_too_low", 0));
    let (low, high) = bounds(900_000);
    let shown = u64::from(rounds.read("estimate")) * 1_000;
    assert!((low - 1_000..=high).contains(&shown), "the estimate is shown all the same: {shown}");
    assert_eq!(round(&mut rounds, 1_100_000).0, "aimed");
    // Exactly at the value that stands for the bin, it does not exceed.
    let target = |minimum: u64| {
        let mut rounds = Rounds::new("best", &[&format!("min_rate={minimum}")]);
        rounds.ack.mss = 1;
        rounds.ack.min_rtt_us = 1_000_000;
        rounds.begin();
        round(&mut rounds, RATE)
    };
    let (_, median) = target(0);
    assert_eq!(target(u64::from(median) - 1), ("aimed", median));
    assert_eq!(target(u64::from(median)), ("rate_too_low", 0));
}

#[test]
fn a_round_must_have_the_least_number_of_pairs() {
    for (rates, outcome) in [(1, "few_pairs"), (2, "few_pairs"), (3, "aimed"), (4, "aimed")] {
        let mut rounds = Rounds::begun("best", &["pairs_min=3"]);
        let (verdict, _) = rounds.round(&vec![RATE; rates]);
        assert_eq!((rounds.name(&verdict), verdict.ssthresh > 0), (outcome, outcome == "aimed"), "{rates}");
        assert_eq!(rounds.read("round_samples") as usize, rates, "shown all the same");
    }
}

#[test]
fn later_rounds_estimate_anew_in_either_direction_and_start_clean() {
    let mut rounds = Rounds::begun("best", &[]);
    let mut last = 0;
    for rate in [RATE, RATE * 4, RATE / 2, RATE * 2] {
        let (name, target) = round(&mut rounds, rate);
        assert_eq!(name, "aimed");
        assert!(near(target, (rate / 10_000) as u32), "{rate}: {target}");
        rounds.ack.ssthresh = target;
        last = target;
    }
    // A round that tells nothing leaves the threshold that is in force.
    assert_eq!(round(&mut rounds, 2_000), ("rate_too_low", 0));
    assert_eq!(rounds.read("target"), last);
}

#[test]
fn a_threshold_that_is_not_its_own_is_lowered_never_raised() {
    let mut rounds = Rounds::begun("best", &[]);
    let (_, target) = round(&mut rounds, RATE);
    for (in_force, expected) in
        [(target - 1, ("threshold_kept", 0)), (target + 1, ("aimed", target)), (target, ("aimed", target))]
    {
        let mut rounds = Rounds::begun("best", &[]);
        rounds.ack.ssthresh = in_force;
        assert_eq!(round(&mut rounds, RATE), expected, "{in_force}");
    }
    // Its own of an earlier slow start is no longer its own: a timeout may have set the same.
    rounds.ack.ssthresh = target;
    rounds.flow.restart();
    rounds.begin();
    assert_eq!(round(&mut rounds, RATE * 2), ("threshold_kept", 0));
}

#[test]
fn the_rtt_is_the_one_asked_for() {
    for (source, expected) in [("min", 50), ("round_min", 200), ("latest", 400)] {
        let mut rounds = Rounds::new("best", &[&format!("rtt_source={source}")]);
        rounds.ack.min_rtt_us = 50_000;
        rounds.ack.rtt_us = 200_000;
        rounds.begin();
        rounds.ack.rtt_us = 300_000;
        rounds.pair(1_000, 10_000);
        // The ACK that ends a round is of the next one's data.
        rounds.ack.rtt_us = 400_000;
        let (verdict, _) = rounds.round(&[RATE]);
        assert!(near(verdict.ssthresh, expected * 10), "{source}: {verdict:?}");
        assert_eq!((rounds.read("min_rtt_us"), rounds.read("round_rtt_us")), (50_000, 200_000));
    }
}

#[test]
fn without_an_rtt_there_is_no_threshold() {
    let named = |source: &str, rtt_us: i32, smoothed: u32, minimum: u32| {
        let mut rounds = Rounds::new("best", &[&format!("rtt_source={source}")]);
        rounds.ack.min_rtt_us = minimum;
        rounds.ack.smoothed_rtt_us = smoothed;
        rounds.ack.rtt_us = rtt_us;
        rounds.begin();
        round(&mut rounds, RATE).0
    };
    assert_eq!(named("min", 100_000, 100_000, 0), "no_rtt_sample");
    assert_eq!(named("round_min", -1, 100_000, 100_000), "no_rtt_sample");
    assert_eq!(named("latest", -1, 0, 100_000), "no_rtt_sample");
    // Where the last ACK has no sample the smoothed RTT stands for the latest.
    assert_eq!(named("latest", -1, 100_000, 0), "aimed");
    // A sample of 0 is one of less than a microsecond.
    assert_eq!(named("latest", 0, 0, 0), "exit");
    assert_eq!(named("round_min", 0, 0, 0), "exit");
}

#[test]
fn no_threshold_below_ten_segments_or_at_infinity() {
    let mut rounds = Rounds::begun("best", &["min_rate=0"]);
    assert_eq!(round(&mut rounds, 2_000), ("exit", 10));
    let mut rounds = Rounds::new("best", &["min_rate=0"]);
    rounds.ack.mss = 1;
    rounds.ack.min_rtt_us = u32::MAX;
    rounds.begin();
    assert_eq!(round(&mut rounds, 1 << 40), ("aimed", 0x7fff_fffe));
}

#[test]
fn parameters_are_felt_at_the_next_round_and_loss_is_the_bases() {
    let mut rounds = Rounds::begun("best", &[]);
    assert_eq!(round(&mut rounds, 500_000).0, "rate_too_low");
    let mut parameters = find("best").unwrap().parameters();
    parameters.set("min_rate", "0").unwrap();
    rounds.flow.tune(parameters);
    assert_eq!(round(&mut rounds, 500_000).0, "exit");
    let ack = rounds.ack;
    assert_eq!(rounds.flow.on_loss(&ack, 31), 31);
}

#[test]
fn the_first_ack_only_begins() {
    let mut rounds = Rounds::new("best", &[]);
    let verdict = rounds.flow.on_ack(&rounds.ack);
    assert_eq!(verdict, Verdict { outcome: outcome::WARMING_UP, ..Verdict::default() });
}
