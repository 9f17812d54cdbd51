//! search, specification section 6: starting anew (cases 23 to 28).

mod common;

use common::{Driver, MS, START};
use onramp_algorithm::ack_flag::{APP_LIMITED, RATE_APP_LIMITED};

/// Neqo.
#[test]
fn case_23_a_silence_longer_than_a_window_starts_anew_with_the_next_ack() {
    let mut flow = Driver::begun(&["missed_bins=window"]);
    assert_eq!(flow.at(START + 350 * MS), "warming_up");
    assert_eq!((flow.read("index"), flow.read("passed_bins_max")), (10, 0));
    // 11 bins later than the end of the tenth.
    let now_us = START + 735 * MS;
    assert_eq!(flow.at(now_us), "bins_missed");
    assert_eq!((flow.read("passed_bins_max"), flow.read("bin_us")), (11, 0));
    flow.ack.rtt_us = 200_000;
    assert_eq!(flow.at(now_us + 5 * MS), "warming_up");
    assert_eq!((flow.read("index"), flow.read("bin_us")), (0, 70_000));
    assert_eq!(flow.at(now_us + 75 * MS), "bin_open");
    assert_eq!(flow.at(now_us + 75 * MS + 1), "warming_up");
    // Another silence: 15 bins.
    assert_eq!(flow.at(now_us + 75 * MS + 15 * 70 * MS), "bins_missed");
    assert_eq!(flow.read("passed_bins_max"), 15);
    // A shorter one does not lower the maximum.
    flow.begin();
    let now_us = flow.ack.now_us;
    assert_eq!(flow.at(now_us + 11 * 70 * MS), "bins_missed");
    assert_eq!(flow.read("passed_bins_max"), 15);
}

/// 3.1 with alpha: a silence of up to alpha initial RTTs' bins is borne, a longer one starts anew at once, keeping the
/// length of a bin unless the silence is longer than a window.
#[test]
fn case_24_alpha_bears_two_bins_each_and_keeps_the_geometry_within_a_window() {
    for (alpha, passed, outcome, bin_us) in [
        (1, 2, "warming_up", 35_000),
        (1, 3, "bins_missed", 35_000),
        (2, 4, "warming_up", 35_000),
        (2, 5, "bins_missed", 35_000),
        (2, 10, "bins_missed", 35_000),
        (2, 11, "bins_missed", 70_000),
        (6, 12, "below_threshold", 35_000),
        (6, 13, "bins_missed", 70_000),
        (1_000, 2_000, "nothing_sent", 35_000),
        (1_000, 2_001, "bins_missed", 70_000),
    ] {
        let mut flow =
            Driver::begun(&["missed_bins=alpha", &format!("missed_bins_rtts={alpha}"), "threshold_pct=100"]);
        flow.steady_until(5, 1_000);
        flow.ack.rtt_us = 200_000;
        flow.ack.bytes_sent += 1_000;
        flow.ack.bytes_acked += 1_000;
        let now_us = flow.end_us + (passed - 1) * 35 * MS + 1;
        assert_eq!(flow.at(now_us), outcome, "alpha {alpha}, {passed} bins");
        assert_eq!(flow.read("bin_us"), bin_us, "alpha {alpha}, {passed} bins");
        if outcome == "bins_missed" {
            assert_eq!((flow.read("index"), u64::from(flow.read("passed_bins_max"))), (0, passed));
            // Begun at once: the bin that is open ends one length after this ACK.
            assert_eq!(flow.at(now_us + u64::from(bin_us)), "bin_open");
            assert_eq!(flow.at(now_us + u64::from(bin_us) + 1), "warming_up");
        } else {
            assert_eq!(u64::from(flow.read("index")), 5 + passed.min(32));
        }
    }
}

/// 3.1 with alpha off and 4.0 never start anew. A silence of any length is done in one pass over the rings, and what is
/// left is a history in which nothing happened.
#[test]
fn case_24_without_the_rule_any_silence_is_borne() {
    for passed in [1, 10, 11, 31, 32, 33, 1_000, 131_070, u64::from(u32::MAX) + 7, 1 << 45] {
        let mut flow = Driver::begun(&["missed_bins=off", "threshold_pct=100"]);
        flow.steady_until(30, 1_000);
        flow.ack.bytes_sent += 1_000;
        flow.ack.bytes_acked += 1_000;
        flow.at(flow.end_us + (passed - 1) * 35 * MS + 1);
        assert_eq!(u64::from(flow.read("index")), 30 + passed.min(32));
        assert_eq!(flow.read("passed_bins_max"), 0);
        let newest = flow.read("index");
        for ring in ["acked", "expected"] {
            assert_eq!(flow.between(ring, newest - 1, newest), 1_000);
            if passed > 10 {
                assert_eq!(flow.between(ring, newest - 10, newest - 1), 0);
            }
        }
        // The grid of the bins has not moved.
        let end_us = flow.end_us + passed * 35 * MS;
        assert_eq!(flow.at(end_us), "bin_open");
        assert_ne!(flow.at(end_us + 1), "bin_open");
    }
}

/// Each rule at the end of a bin: off ignores, reset (3.1) and rate (4.0) start anew with the geometry kept, freeze
/// (neqo) does not judge and lets the next ACK that is not limited jump.
#[test]
fn case_25_application_limits() {
    let (app, rate) = (APP_LIMITED, RATE_APP_LIMITED);
    for (rule, flags, outcome, index, base_moved) in [
        ("off", app | rate, "below_threshold", 21, true),
        ("reset", app, "app_limited", 0, true),
        ("reset", rate, "below_threshold", 21, true),
        ("rate", rate, "app_limited", 0, true),
        ("rate", app, "below_threshold", 21, true),
        ("freeze", app, "app_limited", 20, false),
        ("freeze", rate, "below_threshold", 21, true),
    ] {
        let mut flow = Driver::begun(&[&format!("app_limited={rule}")]);
        flow.steady_until(20, 1_000);
        flow.ack.rtt_us = 200_000;
        flow.ack.flags = flags;
        flow.ack.bytes_acked += 500;
        flow.ack.bytes_sent += 500;
        // Inside a bin the flag decides nothing.
        assert_eq!(flow.at(flow.end_us - 1), "bin_open", "{rule}");
        assert_eq!(flow.at(flow.end_us + 1), outcome, "{rule}");
        assert_eq!((flow.read("index"), flow.read("bin_us")), (index, 35_000), "{rule}");
        let held = flow.flow.export("acked")[index as usize % 16];
        assert_eq!(u64::from(held), flow.ack.bytes_acked - if base_moved { 0 } else { 500 }, "{rule}");
    }
}

/// Neqo: while frozen the counters run on, and the bins jump to them with the first ACK that is not limited.
#[test]
fn case_25_frozen_bins_catch_up() {
    let mut flow = Driver::begun(&["app_limited=freeze"]);
    flow.steady_until(20, 1_000);
    flow.ack.flags = APP_LIMITED;
    for bin in 0..3 {
        flow.ack.bytes_acked += 700;
        flow.ack.bytes_sent += 700;
        assert_eq!(flow.at(flow.end_us + bin * 35 * MS + 1), "app_limited");
    }
    flow.ack.flags = 0;
    assert_eq!(flow.at(flow.end_us + 3 * 35 * MS + 1), "below_threshold");
    assert_eq!(flow.read("index"), 24);
    assert_eq!((flow.between("acked", 20, 23), flow.between("acked", 23, 24)), (0, 2_100));
}

/// A flow that doubles, thinks for a little longer than two round trips and goes on: only the first ACK after the silence
/// is marked, and in the delivered form the ones after it would be judged with the silence in their window.
#[test]
fn a_think_time_does_not_end_slow_start_in_the_delivered_form() {
    let mut flow = Driver::begun(&["form=delivered", "confirm_bins=1"]);
    let step = 5 * MS;
    let mut rate = 1_000.0;
    for number in 0..290 {
        let thinking = number == 200;
        rate *= 2_f64.powf(0.05);
        flow.ack.flags = if thinking { APP_LIMITED } else { 0 };
        flow.ack.bytes_acked += rate as u64;
        flow.ack.bytes_sent = 2 * flow.ack.bytes_acked;
        let at = flow.ack.now_us + if thinking { 230 * MS } else { step };
        let outcome = flow.at(at);
        assert_ne!(outcome, "exit", "at ACK {number}");
        if number == 200 {
            assert_eq!(outcome, "app_limited");
        }
    }
}

/// Idle restart and timeout: `restart`. That the kernel's CWND_RESTART and TCP_CA_Loss call it is tested in tests/.
#[test]
fn case_26_a_restart_forgets_the_history_and_the_geometry() {
    let mut flow = Driver::begun(&[]);
    flow.steady_until(20, 1_000);
    flow.flow.restart();
    assert_eq!(flow.read("bin_us"), 0);
    flow.ack.rtt_us = 40_000;
    flow.begin();
    assert_eq!((flow.read("index"), flow.read("bin_us")), (0, 14_000));
    for _ in 0..12 {
        assert_eq!(flow.bin_outcome(1_000, 1), "warming_up");
    }
}

/// A restart ends a drain too. (The kernel side is in tests/.)
#[test]
fn case_26_a_restart_ends_a_drain() {
    let mut flow = Driver::begun(&["exit_action=drain", "threshold_pct=1"]);
    flow.steady_until(20, 10_000);
    assert_eq!(flow.bin_outcome(10_000, 1_000), "exit");
    assert_ne!(flow.read("target"), 0);
    flow.flow.restart();
    assert_eq!(flow.read("target"), 0);
    assert_eq!(flow.at(flow.end_us + 1), "warming_up");
}

/// Neqo: what the first two samples were is kept for good.
#[test]
fn case_27_the_first_two_samples_outlive_a_restart() {
    let mut flow = Driver::begun(&[]);
    flow.ack.rtt_us = 80_000;
    flow.at(START + 10 * MS);
    flow.ack.rtt_us = 150_000;
    flow.at(START + 40 * MS);
    flow.flow.restart();
    flow.begin();
    flow.at(START + 900 * MS);
    assert_eq!((flow.read("first_rtt_us"), flow.read("second_rtt_us")), (100_000, 80_000));
}

/// As 3.x and 4.0, not as 2.0: after an exit, and after a loss, the next slow start is watched again.
/// (That a loss exits slow start in the kernel, and which slow starts follow, is in tests/.)
#[test]
fn case_28_the_next_slow_start_is_watched_again() {
    let mut flow = Driver::begun(&[]);
    for _ in 0..2 {
        flow.steady_until(20, 10_000);
        let outcomes: Vec<_> = (0..10).map(|_| flow.bin_outcome(10_000, 1_000)).collect();
        assert!(outcomes.contains(&"exit"));
        assert_eq!(flow.flow.on_loss(&flow.ack.clone(), 57), 57, "the threshold is left to the base");
        flow.flow.restart();
        flow.begin();
    }
}
