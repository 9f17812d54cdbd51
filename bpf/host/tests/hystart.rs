//! hystart, rule by rule and at every boundary.

mod common;

use common::rounds::Rounds;
use onramp_algorithm::{Verdict, ack_flag, outcome};

const EXIT: u32 = outcome::EXIT;

fn hystart(settings: &[&str]) -> Rounds {
    Rounds::new("hystart", settings)
}

/// Only the delay is looked at.
fn delay(settings: &[&str]) -> Rounds {
    hystart(&[&["detect=delay"], settings].concat())
}

#[test]
fn an_ack_without_a_sample_changes_nothing() {
    let mut flow = hystart(&[]);
    flow.begin(0);
    let before = flow.flow.clone();
    flow.ack.rtt_us = -1;
    flow.ack.bytes_acked += 10_000_000;
    let verdict = flow.next(70_000);
    assert_eq!(verdict, Verdict { outcome: outcome::NO_RTT_SAMPLE, ..Verdict::default() });
    for export in before.algorithm().exports() {
        assert_eq!(flow.flow.export(export.name), before.export(export.name), "{}", export.name);
    }
}

#[test]
fn a_sample_of_0_counts_as_1() {
    let mut flow = hystart(&[]);
    flow.ack.rtt_us = 0;
    flow.begin(0);
    assert_eq!((flow.read("delay_min_us"), flow.read("round_min_us")), (1, 1));
}

#[test]
fn a_round_ends_when_the_byte_after_it_is_acknowledged() {
    let mut flow = hystart(&[]);
    flow.begin(0);
    flow.ack.bytes_acked = flow.end;
    flow.next(10_000);
    assert_eq!((flow.read("rounds"), flow.read("samples")), (1, 2));
    flow.ack.bytes_acked += 1;
    flow.next(10_000);
    assert_eq!((flow.read("rounds"), flow.read("samples")), (2, 1));
    // The new one lasts as long as what is in flight now.
    flow.ack.bytes_acked += u64::from(flow.ack.bytes_outstanding);
    flow.next(10_000);
    assert_eq!(flow.read("rounds"), 2);
}

#[test]
fn rounds_and_the_minimum_go_on_below_the_low_window_but_nothing_is_evaluated() {
    let mut flow = hystart(&[]);
    flow.ack.cwnd = 15;
    assert_eq!(flow.round(50_000, 20), "small_window");
    assert_eq!(flow.round(40_000, 20), "small_window");
    assert_eq!((flow.read("rounds"), flow.read("samples"), flow.read("delay_min_us")), (2, 0, 40_000));
    flow.ack.cwnd = 16;
    assert_eq!(flow.round(90_000, 8), "warming_up");
    flow.ack.cwnd = 15;
    let verdict = flow.next(0);
    assert_eq!(flow.name(&verdict), "small_window");
    flow.ack.cwnd = 16;
    assert_eq!(flow.next(0).outcome, EXIT);
}

#[test]
fn a_train_longer_than_half_the_minimum_rtt_leaves() {
    let mut flow = hystart(&["min_samples=1000"]);
    flow.begin(0);
    for _ in 0..25 {
        let verdict = flow.next(1_000);
        assert_eq!(flow.name(&verdict), "warming_up");
    }
    let verdict = flow.next(1);
    assert_eq!(verdict, Verdict { outcome: EXIT, ssthresh: 100, ..Verdict::default() });
    assert_eq!(flow.read("detected"), 1);
}

#[test]
fn a_paced_train_must_last_for_the_whole_minimum_rtt() {
    let mut flow = hystart(&["detect=train"]);
    flow.ack.flags = ack_flag::PACED;
    flow.begin(0);
    for _ in 0..50 {
        let verdict = flow.next(1_000);
        assert_eq!(flow.name(&verdict), "below_threshold");
    }
    assert_eq!(flow.next(1).outcome, EXIT);
}

#[test]
fn a_gap_ends_the_train_for_the_rest_of_the_round() {
    let mut flow = hystart(&["detect=train"]);
    flow.begin(0);
    for _ in 0..12 {
        assert_ne!(flow.next(2_000).outcome, EXIT);
    }
    let mut broken = flow.flow.clone();
    assert_ne!(flow.next(1_000).outcome, EXIT);
    assert_eq!(flow.next(2_000).outcome, EXIT, "2 ms apart is a train");
    let mut ack = flow.ack;
    ack.now_us -= 3_000;
    ack.now_us += 2_001;
    for _ in 0..100 {
        assert_ne!(broken.on_ack(&ack).outcome, EXIT, "more than 2 ms apart is none");
        ack.now_us += 1;
    }
}

/// Four bursts at the pacing rate, at most 1 ms, are granted to a train; half of it where the sender does not pace.
#[test]
fn a_train_is_granted_the_ack_delay() {
    let burst = 65_536_u64;
    for (pacing_rate, gso_max_size, granted_us) in [
        (0, 65_536, 0),
        (u64::MAX, 65_536, 0),
        (burst * 4 * 2_000, 65_536, 500),
        (burst * 4 * 2_000, 32_768, 250),
        (burst * 4 * 1_000, 65_536, 1_000),
        (burst * 4 * 999, 65_536, 1_000),
        (1, u32::MAX, 1_000),
    ] {
        for (flags, path_us) in [(ack_flag::PACED, 50_000 + granted_us), (0, (50_000 + granted_us) / 2)] {
            let mut flow = hystart(&["detect=train", "ack_delta_us=1000000"]);
            (flow.ack.pacing_rate, flow.ack.gso_max_size, flow.ack.flags) =
                (pacing_rate, gso_max_size, flags);
            flow.begin(0);
            assert_ne!(flow.next(path_us).outcome, EXIT, "{pacing_rate} {gso_max_size}");
            assert_eq!(flow.next(1).outcome, EXIT, "{pacing_rate} {gso_max_size}");
        }
    }
}

/// The ninth sample is the first that is judged, and counts.
#[test]
fn the_delay_is_evaluated_after_eight_samples() {
    let mut flow = hystart(&[]);
    flow.round(50_000, 8);
    assert_eq!(flow.round(80_000, 8), "warming_up");
    let mut low = flow.flow.clone();
    assert_eq!(flow.next(10_000), Verdict { outcome: EXIT, ssthresh: 100, ..Verdict::default() });
    assert_eq!(flow.read("detected"), 2);
    flow.ack.rtt_us = 51_000;
    assert_eq!(low.on_ack(&flow.ack).outcome, outcome::BELOW_THRESHOLD);
    // One low sample speaks for the round to its end.
    flow.ack.rtt_us = 80_000;
    for _ in 0..50 {
        assert_eq!(low.on_ack(&flow.ack).outcome, outcome::BELOW_THRESHOLD);
    }
}

/// An eighth of the minimum RTT, between 4 and 16 ms; more than that leaves.
#[test]
fn the_threshold_of_the_delay_is_clamped() {
    for (rtt_us, threshold_us) in [
        (1_000, 4_000),
        (32_000, 4_000),
        (32_007, 4_000),
        (32_008, 4_001),
        (50_000, 6_250),
        (128_000, 16_000),
        (600_000, 16_000),
    ] {
        let mut flow = delay(&[]);
        flow.round(rtt_us, 9);
        assert_eq!(flow.round(rtt_us + threshold_us, 9), "below_threshold", "{rtt_us}");
        assert_eq!(flow.read("threshold_us"), threshold_us as u32);
        assert_eq!(flow.round(rtt_us + threshold_us + 1, 9), "exit", "{rtt_us}");
    }
    // A floor above the ceiling is lowered to it.
    let mut flow = delay(&["delay_floor_us=9000", "delay_ceiling_us=7000"]);
    flow.round(50_000, 9);
    assert_eq!(flow.read("threshold_us"), 7_000);
}

#[test]
fn the_minimum_is_updated_before_the_sample_is_evaluated() {
    let mut flow = delay(&[]);
    flow.round(80_000, 9);
    assert_eq!(flow.round(50_000, 9), "below_threshold");
    assert_eq!(flow.read("delay_min_us"), 50_000);
    assert_eq!(flow.round(56_251, 9), "exit");
}

#[test]
fn both_detectors_may_leave_on_the_same_ack() {
    let mut flow = hystart(&["min_samples=1", "ack_delta_us=1000000"]);
    flow.round(50_000, 1);
    flow.ack.rtt_us = 90_000;
    flow.begin(10_000);
    assert_eq!(flow.next(25_001).outcome, EXIT);
    assert_eq!(flow.read("detected"), 3);
}

#[test]
fn each_detector_can_be_switched_off() {
    for (detect, train, delay) in
        [("none", false, false), ("train", true, false), ("delay", false, true), ("both", true, true)]
    {
        let detect = format!("detect={detect}");
        let mut flow = hystart(&[&detect]);
        flow.begin(0);
        let left = (0..200).any(|_| flow.next(300).outcome == EXIT);
        assert_eq!(left, train, "{detect}");
        let mut flow = hystart(&[&detect]);
        flow.round(50_000, 20);
        assert_eq!(flow.round(80_000, 20) == "exit", delay, "{detect}");
    }
    let mut flow = hystart(&["detect=none"]);
    assert_eq!(flow.round(50_000, 20), "grow");
}

/// Peters et al. 2021: an eighth of the average, no ceiling. The first round is judged as by the clamp.
#[test]
fn ewma_averages_the_minima_of_the_rounds() {
    let mut flow = delay(&["delay_rule=ewma"]);
    flow.round(600_000, 9);
    assert_eq!((flow.read("average_us"), flow.read("threshold_us")), (0, 16_000));
    flow.round(640_000, 9);
    assert_eq!((flow.read("average_us"), flow.read("threshold_us")), (600_000, 75_000));
    flow.round(640_000, 9);
    assert_eq!((flow.read("average_us"), flow.read("threshold_us")), (605_000, 75_625));
    // A round without a sample that was judged does not move it.
    flow.ack.cwnd = 1;
    flow.round(900_000, 3);
    flow.ack.cwnd = 100;
    assert_eq!(flow.round(600_000 + 76_171, 9), "below_threshold");
    assert_eq!((flow.read("average_us"), flow.read("threshold_us")), (609_375, 76_171));
    assert_eq!(flow.round(600_000 + 90_000, 9), "exit");
    // The floor holds.
    let mut flow = delay(&["delay_rule=ewma"]);
    flow.round(8_000, 9);
    flow.round(8_000, 9);
    assert_eq!(flow.read("threshold_us"), 4_000);
}

#[test]
fn the_weight_of_a_round_in_the_average_can_be_set() {
    let mut flow = delay(&["delay_rule=ewma", "average_divisor=2", "delay_divisor=4"]);
    flow.round(400_000, 9);
    flow.round(500_000, 9);
    flow.round(500_000, 9);
    assert_eq!((flow.read("average_us"), flow.read("threshold_us")), (450_000, 112_500));
    let mut flow = delay(&["delay_rule=ewma", "average_divisor=1"]);
    flow.round(400_000, 9);
    flow.round(500_000, 9);
    flow.round(500_000, 9);
    assert_eq!(flow.read("average_us"), 500_000);
}

/// Half of the samples 20 ms above the others are a deviation of 10 ms.
#[test]
fn deviation_is_that_of_the_complete_rounds() {
    let mut flow = delay(&["delay_rule=deviation", "deviations=3"]);
    flow.round(600_000, 10);
    assert_eq!(flow.read("threshold_us"), 16_000, "nothing is complete: clamp");
    flow.round(620_000, 10);
    assert_eq!(flow.read("threshold_us"), 4_000, "one value has no deviation: the floor");
    assert_eq!(flow.round(600_000 + 30_000, 10), "below_threshold");
    assert_eq!(flow.read("threshold_us"), 30_000);
    assert_eq!(flow.round(600_000 + 60_000, 10), "exit");
}

/// However many samples there are, and however long: sums are halved before they overflow.
#[test]
fn deviation_outlives_its_sums() {
    let high = i32::MAX;
    for (rtts, expected) in [([100_000, 120_000], 9_999..=10_000), ([high - 1, high], 4_000..=4_000)] {
        let mut flow = delay(&["delay_rule=deviation", "deviations=1"]);
        flow.begin(0);
        for number in 0..200_000 {
            flow.ack.rtt_us = rtts[number % 2];
            flow.next(10_000);
        }
        flow.round(rtts[0], 9);
        assert!(expected.contains(&flow.read("threshold_us")), "{}", flow.read("threshold_us"));
    }
}

#[test]
fn a_restart_begins_a_round_and_keeps_the_minimum() {
    let mut flow = delay(&["delay_rule=ewma"]);
    flow.round(50_000, 9);
    flow.round(50_000, 9);
    flow.flow.restart();
    let verdict = flow.next(1_000_000);
    assert_eq!(flow.name(&verdict), "warming_up");
    assert_eq!((flow.read("rounds"), flow.read("samples"), flow.read("delay_min_us")), (1, 1, 50_000));
    assert_eq!(flow.read("average_us"), 0);
}

#[test]
fn parameters_are_felt_at_once_and_loss_is_left_to_the_base() {
    let mut flow = delay(&[]);
    flow.round(50_000, 9);
    assert_eq!(flow.round(55_000, 9), "below_threshold");
    let mut parameters = flow.flow.algorithm().parameters();
    parameters.assign(["detect=delay", "delay_ceiling_us=4000"]).unwrap();
    flow.flow.tune(parameters);
    assert_eq!(flow.next(10_000).outcome, EXIT);
    assert_eq!(flow.flow.on_loss(&flow.ack.clone(), 31), 31);
}
