//! What a follower makes of snapshots.

use onramp_algorithm::{Ack, ExitReason, NO_THRESHOLD};

use super::follower::{Follower, Step};
use super::snapshot::state;
use crate::object::abi::{SocketSnapshot, snapshot_kind};

const MSS: u32 = 1_000;

/// The `number`th snapshot of a flow that has delivered `number` segments less one, and sent `cwnd` more.
fn snapshot(number: u32) -> SocketSnapshot {
    let delivered = number - 1;
    let cwnd = 10 + delivered;
    SocketSnapshot {
        time_ns: 1_000_000_000 + u64::from(number) * 1_000_000,
        flow: 1,
        bytes_acked: u64::from(delivered * MSS),
        bytes_sent: u64::from((delivered + cwnd) * MSS),
        kind: snapshot_kind::ACK,
        sequence: number,
        snd_una: delivered * MSS,
        snd_nxt: (delivered + cwnd) * MSS,
        cwnd,
        ssthresh: NO_THRESHOLD,
        mss: MSS,
        srtt: 50_000 << 3,
        min_rtt_us: 50_000,
        rack_rtt_us: 50_000 + number,
        packets_out: cwnd,
        delivered,
        control: *b"cubic\0\0\0\0\0\0\0\0\0\0\0",
        ..SocketSnapshot::default()
    }
}

fn state(number: u32, new_state: u32) -> SocketSnapshot {
    SocketSnapshot { kind: snapshot_kind::STATE, new_state, ssthresh: 7, ..snapshot(number) }
}

fn reason_of(follower: &Follower) -> Option<ExitReason> {
    follower.exit().map(|(reason, _)| reason)
}

fn acks(follower: &mut Follower, numbers: std::ops::RangeInclusive<u32>) -> Vec<Ack> {
    let steps = numbers.flat_map(|number| follower.take(&snapshot(number))).map(|step| match step {
        Step::Ack { ack, .. } => ack,
        Step::Loss { .. } | Step::Past { .. } => panic!("no loss"),
    });
    steps.collect()
}

#[test]
fn an_acknowledgment_has_each_field_of_its_moment() {
    let acks = acks(&mut Follower::default(), 1..=3);
    assert_eq!(acks.len(), 2, "the last is not complete");
    let expected = Ack {
        now_us: 1_002_000,
        bytes_acked: 2_000,
        // Sent when it arrived, not what it released.
        bytes_sent: 12_000,
        bytes_outstanding: 10_000,
        delivered: 2,
        acked: 1,
        rtt_us: 50_003,
        smoothed_rtt_us: 50_000,
        min_rtt_us: 50_000,
        cwnd: 11,
        ssthresh: NO_THRESHOLD,
        in_flight: 10,
        mss: MSS,
        ..Ack::default()
    };
    assert_eq!(acks[1], expected);
}

#[test]
fn what_acknowledges_nothing_has_no_sample_and_the_peers_data_are_no_acknowledgment() {
    let mut follower = Follower::default();
    follower.take(&snapshot(1));
    let same = SocketSnapshot { sequence: 2, ..snapshot(1) };
    let Some(Step::Ack { ack, .. }) = follower.take(&same).first().copied() else {
        panic!("a window update")
    };
    assert_eq!((ack.acked, ack.rtt_us), (0, -1));
    assert_eq!(follower.take(&SocketSnapshot { sequence: 3, rcv_nxt: 100, ..snapshot(1) }), []);
}

#[test]
fn a_selective_acknowledgment_delivers_and_acknowledges_nothing() {
    let mut follower = Follower::default();
    follower.take(&snapshot(1));
    let selective = SocketSnapshot { sequence: 2, sacked_out: 1, delivered: 1, ..snapshot(1) };
    let steps = follower.take(&selective);
    let Some(Step::Ack { ack, .. }) = steps.first() else { panic!("{steps:?}") };
    assert_eq!((ack.acked, ack.delivered, ack.in_flight), (0, 1, 9));
}

#[test]
fn a_gap_costs_the_acknowledgments_at_its_edges_and_is_counted() {
    let mut follower = Follower::default();
    acks(&mut follower, 1..=3);
    assert_eq!(follower.take(&snapshot(6)), []);
    assert_eq!(follower.lost, 2);
    assert_eq!(follower.take(&snapshot(7)).len(), 1);
}

#[test]
fn the_real_exit_is_of_the_acknowledgment_that_set_the_threshold() {
    let mut follower = Follower::default();
    acks(&mut follower, 1..=4);
    assert_eq!(follower.take(&SocketSnapshot { ssthresh: 14, ..snapshot(5) }).len(), 1);
    let (reason, exit) = follower.exit().expect("left");
    assert_eq!((reason, exit.window, exit.bytes_acked), (ExitReason::Algorithm, 14, 4_000));
    assert_eq!(exit.at_us, 1_004_000 - (1_001_000 - 50_002));
    assert_eq!(follower.take(&SocketSnapshot { ssthresh: 14, ..snapshot(6) }), [], "no more calls");
}

#[test]
fn a_threshold_that_was_there_from_the_begin_is_a_cached_one() {
    for (established, reason) in [(0, ExitReason::CachedSsthresh), (1, ExitReason::Ssthresh)] {
        let mut follower = Follower::default();
        for number in 1..=5 {
            follower.take(&SocketSnapshot { ssthresh: 14, established, ..snapshot(number) });
        }
        assert_eq!(reason_of(&follower), Some(reason));
    }
}

#[test]
fn what_comes_after_slow_start_is_followed_where_it_is_asked_for() {
    let mut follower = Follower::past();
    acks(&mut follower, 1..=4);
    assert_eq!(follower.take(&SocketSnapshot { ssthresh: 14, ..snapshot(5) }).len(), 1);
    let steps = follower.take(&SocketSnapshot { ssthresh: 14, ..snapshot(6) });
    let [Step::Past { ack }] = steps[..] else { panic!("{steps:?}") };
    assert_eq!((ack.bytes_acked, ack.cwnd, follower.acks), (5_000, 14, 4));
}

#[test]
fn a_loss_ends_slow_start_which_goes_on_where_the_loss_was_spurious() {
    let mut follower = Follower::default();
    acks(&mut follower, 1..=4);
    let steps = follower.take(&state(5, state::RECOVERY));
    let [Step::Ack { .. }, Step::Loss { ack, ssthresh: 7 }] = steps[..] else { panic!("{steps:?}") };
    assert_eq!((ack.cwnd, ack.rtt_us), (13, -1));
    assert_eq!(reason_of(&follower), Some(ExitReason::Loss));
    let recovering = SocketSnapshot { state: state::RECOVERY, ssthresh: 7, ..snapshot(6) };
    assert_eq!(follower.take(&recovering), []);
    follower.take(&snapshot(7));
    assert_eq!((reason_of(&follower), follower.undone), (None, 1));
    let [Step::Ack { slow_starts: 1, .. }] = follower.take(&snapshot(8))[..] else {
        panic!("slow start goes on")
    };
}

#[test]
fn causes_are_distinguished() {
    for (new_state, ecn, reason) in [
        (state::LOSS, 0, ExitReason::Timeout),
        (state::CWR, 1, ExitReason::Ecn),
        (state::CWR, 0, ExitReason::LocalCongestion),
    ] {
        let mut follower = Follower::default();
        acks(&mut follower, 1..=4);
        follower.take(&SocketSnapshot { ecn, ..state(5, new_state) });
        assert_eq!(reason_of(&follower), Some(reason));
    }
}

#[test]
fn an_idle_time_begins_slow_start_anew_without_an_exit() {
    let mut follower = Follower::default();
    acks(&mut follower, 1..=5);
    follower.take(&SocketSnapshot { cwnd: 10, ..snapshot(6) });
    let [Step::Ack { slow_starts: 2, .. }] = follower.take(&SocketSnapshot { cwnd: 11, ..snapshot(7) })[..]
    else {
        panic!("slow start anew")
    };
    assert_eq!(reason_of(&follower), None);
}

#[test]
fn closing_with_data_outstanding_is_said() {
    let mut follower = Follower::default();
    acks(&mut follower, 1..=4);
    assert_eq!(follower.take(&SocketSnapshot { kind: 3, ..snapshot(5) }).len(), 1, "completes the last");
    assert!(follower.shut_early && follower.exit().is_none());
}
