//! hystartpp, RFC 9406 step by step and at every boundary.

mod common;

use common::rounds::Rounds;
use onramp_algorithm::{Verdict, ack_flag, growth, outcome};

fn hystartpp(settings: &[&str]) -> Rounds {
    Rounds::new("hystartpp", settings)
}

/// A flow that has just entered Conservative Slow Start: baseline 60 ms.
fn conservative(settings: &[&str]) -> Rounds {
    let mut flow = hystartpp(settings);
    flow.round(50_000, 8);
    assert_eq!(flow.round(60_000, 8), "css_entered");
    assert_eq!((flow.read("phase"), flow.read("baseline_us"), flow.read("css_entries")), (1, 60_000, 1));
    flow
}

fn limited(verdict: &Verdict) -> u32 {
    assert_eq!(verdict.growth, growth::LIMITED);
    verdict.growth_limit
}

#[test]
fn a_round_ends_when_the_byte_after_it_is_acknowledged() {
    let mut flow = hystartpp(&[]);
    flow.begin(0);
    flow.ack.bytes_acked = flow.end;
    flow.next(10_000);
    assert_eq!(flow.read("samples"), 2);
    flow.ack.bytes_acked += 1;
    flow.next(10_000);
    assert_eq!((flow.read("samples"), flow.read("last_round_min_us")), (1, 50_000));
}

/// Without a sample rounds go on and the window grows, but nothing is judged and nothing counted as a sample.
#[test]
fn an_ack_without_a_sample_is_none() {
    let mut flow = hystartpp(&[]);
    flow.round(50_000, 3);
    flow.ack.rtt_us = -1;
    let verdict = flow.begin(10_000);
    assert_eq!((verdict.outcome, limited(&verdict)), (outcome::NO_RTT_SAMPLE, 8));
    assert_eq!((flow.read("samples"), flow.read("last_round_min_us")), (0, 50_000));
    let mut flow = conservative(&[]);
    (flow.ack.rtt_us, flow.ack.acked) = (-1, 4);
    let verdict = flow.next(10_000);
    assert_eq!((verdict.outcome, limited(&verdict)), (outcome::NO_RTT_SAMPLE, 1));
}

#[test]
fn the_first_round_has_nothing_to_compare_with() {
    let mut flow = hystartpp(&[]);
    assert_eq!(flow.round(50_000, 100), "warming_up");
}

/// A round without samples leaves the next one without a last round's minimum.
#[test]
fn a_round_without_a_sample_is_infinite() {
    let mut flow = hystartpp(&[]);
    flow.round(50_000, 20);
    flow.round(-1, 5);
    assert_eq!(flow.round(90_000, 20), "warming_up");
    assert_eq!(flow.round(90_000, 20), "below_threshold");
}

#[test]
fn the_eighth_sample_is_the_first_that_is_evaluated() {
    let mut flow = hystartpp(&[]);
    flow.round(50_000, 8);
    assert_eq!(flow.round(60_000, 7), "warming_up");
    let verdict = flow.next(10_000);
    assert_eq!(flow.name(&verdict), "css_entered");
}

/// An eighth of the last round's minimum, between 4 and 16 ms; that much is enough.
#[test]
fn the_threshold_is_clamped() {
    for (rtt_us, threshold_us) in [
        (1_000, 4_000),
        (32_007, 4_000),
        (32_008, 4_001),
        (50_000, 6_250),
        (127_999, 15_999),
        (128_000, 16_000),
        (600_000, 16_000),
    ] {
        let mut flow = hystartpp(&[]);
        flow.round(rtt_us, 8);
        assert_eq!(flow.round(rtt_us + threshold_us - 1, 8), "below_threshold", "{rtt_us}");
        let mut flow = hystartpp(&[]);
        flow.round(rtt_us, 8);
        assert_eq!(flow.round(rtt_us + threshold_us, 8), "css_entered", "{rtt_us}");
    }
    // The RFC's order: the minimum wins over a maximum below it.
    let mut flow = hystartpp(&["min_rtt_thresh_us=9000", "max_rtt_thresh_us=7000"]);
    flow.round(50_000, 8);
    assert_eq!(flow.round(58_999, 8), "below_threshold");
}

/// It is the last round that counts, not the smallest of all: a slow rise goes unnoticed.
#[test]
fn a_rise_is_one_from_round_to_round() {
    let mut flow = hystartpp(&[]);
    for rtt_us in (50_000..100_000).step_by(5_000) {
        assert_ne!(flow.round(rtt_us, 20), "css_entered");
    }
}

/// L segments of an ACK count, of any number acknowledged; all of them where the sender paces.
#[test]
fn an_ack_grows_the_window_by_at_most_l_unless_paced() {
    let mut flow = hystartpp(&[]);
    flow.ack.acked = 20;
    assert_eq!(limited(&flow.begin(0)), 8);
    flow.ack.flags = ack_flag::PACED;
    let verdict = flow.next(0);
    assert_eq!((verdict.growth, verdict.growth_limit), (growth::BASE, 0));
    let mut flow = conservative(&[]);
    flow.ack.acked = 20;
    assert_eq!(limited(&flow.next(0)), 2);
    flow.ack.flags = ack_flag::PACED;
    assert_eq!(limited(&flow.next(0)), 5);
    let mut flow = hystartpp(&["ack_limit_segments=3"]);
    flow.ack.acked = 20;
    assert_eq!(limited(&flow.begin(0)), 3);
}

/// What the division leaves over is kept: one segment for four acknowledged, however they come.
#[test]
fn conservative_slow_start_grows_by_a_quarter() {
    let mut flow = conservative(&[]);
    let grown: Vec<u32> = (0..8).map(|_| limited(&flow.next(10_000))).collect();
    assert_eq!(grown, [0, 0, 0, 1, 0, 0, 0, 1]);
    flow.ack.acked = 7;
    let grown: Vec<u32> = (0..4).map(|_| limited(&flow.next(10_000))).collect();
    assert_eq!(grown, [1, 2, 2, 2]);
}

/// The ACK that enters grows as slow start does, the one that returns as Conservative Slow Start does.
#[test]
fn an_ack_grows_by_the_phase_that_it_finds() {
    let mut flow = hystartpp(&[]);
    flow.ack.acked = 4;
    flow.round(50_000, 8);
    flow.round(60_000, 7);
    assert_eq!(limited(&flow.next(10_000)), 8);
    assert_eq!(limited(&flow.next(10_000)), 1);
    flow.ack.rtt_us = 59_999;
    let verdict = flow.next(10_000);
    assert_eq!((flow.name(&verdict), limited(&verdict)), ("css_left", 1));
    assert_eq!(limited(&flow.next(10_000)), 8);
}

/// The baseline is the round's minimum at the entry. Below it, by any amount, the rise was none.
#[test]
fn it_returns_to_slow_start_when_the_rtt_falls_below_the_baseline() {
    let mut flow = conservative(&[]);
    assert_eq!(flow.round(60_000, 20), "css");
    assert_eq!(flow.round(59_999, 7), "css", "too few samples");
    let verdict = flow.next(10_000);
    assert_eq!(flow.name(&verdict), "css_left");
    assert_eq!((flow.read("phase"), flow.read("baseline_us"), flow.read("css_rounds")), (0, 0, 2));
    // And may slow down again, with five rounds before it.
    assert_eq!(flow.round(80_000, 8), "css_entered");
    for _ in 0..4 {
        assert_eq!(flow.round(90_000, 8), "css");
    }
    assert_eq!(flow.begin(10_000).outcome, outcome::EXIT);
    assert_eq!((flow.read("css_entries"), flow.read("css_rounds")), (2, 7));
}

/// The round of the entry counts, wherever in it that was: with five, the fifth ACK that begins a round leaves.
#[test]
fn after_its_rounds_the_window_is_the_threshold() {
    for rounds in [1, 2, 5] {
        let mut flow = conservative(&[&format!("css_rounds={rounds}")]);
        for _ in 1..rounds {
            assert_eq!(flow.round(70_000, 8), "css");
        }
        flow.ack.cwnd = 123;
        let verdict = flow.begin(10_000);
        assert_eq!(verdict, Verdict { outcome: outcome::EXIT, ssthresh: 123, ..Verdict::default() });
        assert_eq!((flow.read("phase"), flow.read("css_rounds")), (0, rounds));
    }
}

/// RFC 9406 section 4.3: later slow starts know a threshold.
#[test]
fn only_a_slow_start_without_a_threshold_is_watched() {
    let mut flow = hystartpp(&[]);
    flow.ack.ssthresh = 0x7fff_fffe;
    let verdict = flow.begin(0);
    assert_eq!(flow.name(&verdict), "threshold_known");
    assert_eq!(verdict.growth, growth::BASE);
    flow.ack.ssthresh = u32::MAX;
    let verdict = flow.next(0);
    assert_eq!(flow.name(&verdict), "warming_up");
}

#[test]
fn a_restart_forgets_rounds_and_phase_and_keeps_the_counts() {
    let mut flow = conservative(&[]);
    flow.round(70_000, 8);
    flow.flow.restart();
    assert_eq!(flow.round(200_000, 20), "warming_up");
    assert_eq!((flow.read("phase"), flow.read("css_entries"), flow.read("css_rounds")), (0, 1, 1));
    assert_eq!(flow.flow.on_loss(&flow.ack.clone(), 31), 31, "the threshold is left to the base");
}
