//! search, specification section 6: what the exit does (cases 31 to 36).

mod common;

use common::{Driver, MSS};
use onramp_algorithm::{Verdict, growth, outcome};

/// A flow that leaves at its next bin, having delivered `segments` in each bin so far, with this window.
fn leaving(action: &str, base: u64, segments: u64, cwnd: u32) -> (Driver, Verdict) {
    let mut flow = Driver::new(&[&format!("exit_action={action}"), "threshold_pct=50"]);
    flow.ack.bytes_acked = base;
    flow.ack.bytes_sent = base;
    flow.ack.cwnd = cwnd;
    flow.ack.delivered = u32::MAX - 10;
    flow.begin();
    flow.bins_until(12, 2 * segments * MSS + 2, segments * MSS);
    let verdict = flow.bin(2 * segments * MSS + 2, segments * MSS);
    assert_eq!(verdict.outcome, outcome::EXIT);
    (flow, verdict)
}

/// 3.x and neqo.
#[test]
fn case_31_hold_keeps_the_window() {
    let (_, verdict) = leaving("hold", 0, 4, 77);
    assert_eq!(verdict, Verdict { outcome: outcome::EXIT, ssthresh: 77, ..Verdict::default() });
}

/// The window is reduced by the deliveries of two initial RTTs (five bins); not below ten segments, and ten if more was delivered
/// than the window holds (2.0 leaves the window alone then). Bytes, so nothing depends on the total.
#[test]
fn case_31_rollback_gives_back_two_initial_rtts() {
    for base in [0, 1 << 16, (1 << 32) - 50_000, 1 << 40] {
        for (segments, cwnd, left) in [
            (4, 77, 57),
            (4, 30, 10),
            (4, 29, 10),
            (4, 20, 10),
            (4, 19, 10),
            (100, 77, 10),
            (4, 10, 10),
            (4, 7, 7),
        ] {
            let (_, verdict) = leaving("rollback", base, segments, cwnd);
            let expected =
                Verdict { outcome: outcome::EXIT, cwnd: left, ssthresh: left, ..Verdict::default() };
            assert_eq!(verdict, expected, "base {base}, {segments} a bin, window {cwnd}");
        }
    }
}

/// The bins of one and of two initial RTTs, for windows of other lengths.
#[test]
fn case_31_rollback_and_drain_count_bins_of_the_initial_rtt() {
    for (factor, two_rtts, one_rtt) in [(200, 10, 5), (300, 6, 4), (350, 5, 3), (400, 5, 3), (1_000, 2, 1)] {
        for (action, bins) in [("rollback", two_rtts), ("drain", one_rtt)] {
            let mut flow = Driver::begun(&[
                &format!("exit_action={action}"),
                &format!("window_factor_pct={factor}"),
                "threshold_pct=50",
            ]);
            flow.ack.cwnd = 1_000;
            let verdict = (0..100)
                .map(|_| flow.bin(200 * MSS + 2, 20 * MSS))
                .find(|verdict| verdict.outcome == outcome::EXIT)
                .expect("an exit");
            let window = if action == "drain" { flow.read("target") } else { 1_000 - verdict.cwnd };
            assert_eq!(window, 20 * bins, "{action} {factor}");
        }
    }
}

/// 4.0: detection changes neither window nor threshold, only stops growth; the target is the last three bins.
#[test]
fn case_32_drain_starts_without_touching_the_window() {
    for (segments, cwnd, target) in
        [(20, 100, 60), (4, 100, 12), (3, 100, 10), (1, 100, 10), (20, 50, 50), (1, 7, 7)]
    {
        let (flow, verdict) = leaving("drain", 0, segments, cwnd);
        assert_eq!(flow.read("target"), target, "{segments} a bin, window {cwnd}");
        assert_eq!(
            verdict,
            Verdict {
                outcome: outcome::EXIT,
                growth: growth::LIMITED,
                undo_limit: target,
                ..Verdict::default()
            }
        );
    }
}

/// A flow that drains towards 40 segments from a window of 100, with so many in flight.
fn draining(in_flight: u32) -> Driver {
    let (mut flow, _) = leaving("drain", 0, 13, 100);
    assert_eq!(flow.read("target"), 39);
    flow.ack.in_flight = in_flight;
    flow
}

/// One more segment acknowledged, `in_flight` of them left.
fn acknowledge(flow: &mut Driver, in_flight: u32) -> Verdict {
    flow.ack.in_flight = in_flight;
    flow.ack.delivered = flow.ack.delivered.wrapping_add(1);
    let verdict = flow.verdict_at(flow.ack.now_us + 10);
    assert_eq!(flow.name(&verdict), "draining");
    if verdict.cwnd != 0 {
        flow.ack.cwnd = verdict.cwnd;
    }
    verdict
}

/// 4.0: one segment leaves for three acknowledged, until what is in flight fits the target.
#[test]
fn case_33_a_drain_lets_one_out_for_three() {
    let mut flow = draining(100);
    let mut in_flight = 100;
    let mut extra = Vec::new();
    let last = loop {
        assert!(extra.len() < 1_000, "the drain never ends");
        let verdict = acknowledge(&mut flow, in_flight - 1);
        in_flight -= 1;
        if verdict.ssthresh != 0 {
            break verdict;
        }
        assert_eq!((verdict.growth, verdict.undo_limit), (growth::LIMITED, 39));
        extra.push(verdict.cwnd - in_flight);
        in_flight = verdict.cwnd;
    };
    assert_eq!(extra[..7], [0, 0, 1, 0, 0, 1, 0]);
    // 61 fewer in flight, two for every three acknowledged.
    assert!((90..=92).contains(&(extra.len() + 1)), "{}", extra.len());
    assert_eq!((last.cwnd, last.ssthresh, last.growth, last.undo_limit), (39, 39, growth::BASE, 0));
    assert_eq!(flow.read("target"), 0);
}

/// An ACK for many segments counts for all of them, also where the counter wraps; one without an RTT sample counts too.
#[test]
fn case_33_a_drain_counts_segments_not_acks() {
    let mut flow = draining(100);
    flow.ack.in_flight = 91;
    flow.ack.rtt_us = -1;
    flow.ack.delivered = flow.ack.delivered.wrapping_add(11);
    let verdict = flow.verdict_at(flow.ack.now_us + 10);
    assert_eq!(verdict.cwnd, 91 + 3);
    // Two of the eleven are left over: one more makes three.
    assert_eq!(acknowledge(&mut flow, 90).cwnd, 91);
}

/// 4.0.
#[test]
fn case_34_a_drain_with_an_idle_application_ends_at_once() {
    let mut flow = draining(5);
    let verdict = acknowledge(&mut flow, 5);
    assert_eq!((verdict.cwnd, verdict.ssthresh, verdict.growth), (39, 39, growth::BASE));
}

/// A drain is over when what is in flight fits the target exactly.
#[test]
fn case_34_a_drain_ends_at_its_target() {
    let mut flow = draining(40);
    assert_eq!(acknowledge(&mut flow, 40).ssthresh, 0);
    assert_eq!(acknowledge(&mut flow, 39).ssthresh, 39);
}

/// The window may have been lowered by others in the meantime; the end of a drain does not raise it again.
#[test]
fn case_34_the_end_of_a_drain_does_not_raise_the_window() {
    let mut flow = draining(5);
    flow.ack.cwnd = 20;
    let verdict = acknowledge(&mut flow, 5);
    assert_eq!((verdict.cwnd, verdict.ssthresh), (20, 20));
    let mut flow = draining(60);
    flow.ack.cwnd = 50;
    assert_eq!(acknowledge(&mut flow, 60).cwnd, 50);
}

/// A loss in mid-drain ends it, so if the loss is undone nothing is credited for what was delivered in between; and the
/// window is to come back to the target at most. (Fast recovery itself, and the undo, are in tests/.)
#[test]
fn case_35_a_loss_ends_the_drain_and_its_undo_gives_no_burst() {
    let mut flow = draining(100);
    let verdict = acknowledge(&mut flow, 90);
    assert_eq!(verdict.undo_limit, 39);
    assert_eq!(flow.flow.on_loss(&flow.ack.clone(), 70), 70);
    assert_eq!(flow.read("target"), 0);
    // Two thousand segments later the loss proves spurious and slow start goes on.
    flow.ack.delivered = flow.ack.delivered.wrapping_add(2_000);
    (flow.ack.in_flight, flow.ack.cwnd) = (20, 39);
    let verdict = flow.verdict_at(flow.ack.now_us + 10);
    assert_ne!(flow.name(&verdict), "draining");
    assert_eq!(verdict.cwnd, 0);
}

/// Even if the drain does not get to know of the loss, it lets out no more than the window allows.
#[test]
fn case_35_a_drain_never_raises_the_window() {
    let mut flow = draining(60);
    flow.ack.delivered = flow.ack.delivered.wrapping_add(2_000);
    flow.ack.cwnd = 80;
    let verdict = flow.verdict_at(flow.ack.now_us + 10);
    assert_eq!(verdict.cwnd, 80);
    // Nor does a counter that runs backwards.
    flow.ack.delivered = flow.ack.delivered.wrapping_sub(500);
    assert_eq!(flow.verdict_at(flow.ack.now_us + 10).cwnd, 80);
}

/// Neqo: the exit is by the algorithm, and the window after it is the window before. (The record is the kernel's, and
/// is tested in tests/, as is the loss that clears it.)
#[test]
fn case_36_the_exit_is_named_and_leaves_the_window_as_detected() {
    let (flow, verdict) = leaving("hold", 0, 4, 77);
    assert_eq!((flow.name(&verdict), verdict.cwnd, verdict.ssthresh), ("exit", 0, flow.ack.cwnd));
    assert!(flow.read("norm_pct") >= 50);
}
