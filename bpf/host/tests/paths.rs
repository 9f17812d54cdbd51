//! What connections learn of their paths, what is used of it, and how long a claim holds.

mod common;

use common::sender::{Leaves, RTT_US, new_sock, step};
use onramp_algorithm::shell::Shell;
use onramp_algorithm::{ExitReason, Path, Sock, StartPolicies, start_end};

const SECOND_NS: u64 = 1_000_000_000;
const LIFETIME_NS: u64 = 600 * SECOND_NS;
const BOTH: fn() -> StartPolicies = || StartPolicies::of_memory();

/// What a connection to a path of `segments` per RTT has seen when it leaves slow start, or at its end without.
fn learned(path: &mut Path, segments: u32, left: bool, now_ns: u64) -> bool {
    let mut sock = new_sock();
    (sock.rate_delivered, sock.rate_interval_us) = (segments, RTT_US);
    sock.bytes_acked = 1_000_000;
    sock.receive_window = 10_000_000;
    let mut shell = Shell::new(0);
    if left {
        step(&mut shell, &mut sock, 1);
        shell.acked(&mut sock, 1, Some(RTT_US), &mut Leaves);
        assert_eq!(shell.exit().map(|(reason, _)| reason), Some(ExitReason::Algorithm));
    }
    shell.learn(&sock, !left, path, now_ns, LIFETIME_NS)
}

/// The first window of a connection over a path as it is remembered.
fn first_window(path: &Path, now_ns: u64) -> u32 {
    let mut sock = new_sock();
    Shell::new(0).recalling(BOTH(), path, now_ns, LIFETIME_NS).begin(&mut sock);
    sock.cwnd
}

#[test]
fn an_exit_measures_a_path_and_a_connection_without_one_only_raises_what_is_fresh() {
    let mut path = Path::default();
    assert!(learned(&mut path, 100, true, SECOND_NS));
    assert_eq!((path.rate, path.rtt_us, path.learned_ns), (1_000_000, RTT_US, SECOND_NS));
    assert!(!learned(&mut path, 40, false, 2 * SECOND_NS));
    assert_eq!((path.rate, path.learned_ns), (1_000_000, SECOND_NS));
    assert!(learned(&mut path, 120, false, 3 * SECOND_NS));
    assert_eq!(path.rate, 1_200_000);
    // Measured, or old: then less counts, too.
    assert!(learned(&mut path, 40, true, 4 * SECOND_NS));
    assert!(learned(&mut path, 20, false, 4 * SECOND_NS + LIFETIME_NS / 2));
    assert_eq!(path.rate, 200_000);
}

#[test]
fn what_is_limited_by_the_application_or_the_receiver_lowers_nothing() {
    for limit in [
        |sock: &mut Sock| sock.limited_by = onramp_algorithm::ack_flag::RATE_APP_LIMITED,
        |sock: &mut Sock| sock.receive_window = 9_999,
    ] {
        let mut path = Path::default();
        learned(&mut path, 100, true, SECOND_NS);
        let mut sock = new_sock();
        (sock.rate_delivered, sock.rate_interval_us, sock.bytes_acked) = (50, RTT_US, 1_000_000);
        sock.receive_window = 10_000_000;
        let mut shell = Shell::new(0);
        step(&mut shell, &mut sock, 1);
        shell.acked(&mut sock, 1, Some(RTT_US), &mut Leaves);
        limit(&mut sock);
        assert!(!shell.learn(&sock, false, &mut path, 2 * SECOND_NS, LIFETIME_NS));
        assert_eq!(path.rate, 1_000_000);
    }
}

#[test]
fn a_connection_of_four_initial_windows_says_nothing_of_its_path() {
    let mut sock = new_sock();
    (sock.rate_delivered, sock.rate_interval_us, sock.bytes_acked) = (50, RTT_US, 40_000);
    let mut path = Path::default();
    assert!(!Shell::new(0).learn(&sock, true, &mut path, SECOND_NS, LIFETIME_NS));
    sock.bytes_acked += 1;
    assert!(Shell::new(0).learn(&sock, true, &mut path, SECOND_NS, LIFETIME_NS));
}

/// A FIN that is acknowledged alone makes the newest sample.
#[test]
fn a_connection_that_ends_while_it_doubles_has_learned_from_half_of_its_window() {
    let mut sock = new_sock();
    (sock.rate_delivered, sock.rate_interval_us) = (1, RTT_US);
    (sock.cwnd, sock.bytes_acked, sock.receive_window) = (200, 1_000_000, 10_000_000);
    let mut path = Path::default();
    assert!(Shell::new(0).learn(&sock, true, &mut path, SECOND_NS, LIFETIME_NS));
    assert_eq!(path.rate, 1_000_000);
    // It was given a window of which it has used a part.
    sock.bytes_acked = 60_000;
    let mut path = Path::default();
    assert!(Shell::new(0).learn(&sock, true, &mut path, SECOND_NS, LIFETIME_NS));
    assert_eq!(path.rate, 300_000);
    sock.srtt_eighths_us = 0;
    let mut path = Path::default();
    Shell::new(0).learn(&sock, true, &mut path, SECOND_NS, LIFETIME_NS);
    assert_eq!(path.rate, 10_000, "without an RTT the sample is all there is");
}

/// The FIN's sample again.
#[test]
fn a_connection_that_ends_after_slow_start_has_learned_from_its_window_once_that_was_full() {
    for (after_exit, cwnd, ssthresh, rate) in [
        (199_999, 200, 200, 1_000_000),
        (200_000, 200, 200, 2_000_000),
        // It has been reduced since, and has come through since.
        (140_000, 140, 140, 1_400_000),
        // It doubles again, after a timeout.
        (200_000, 140, 180, 700_000),
    ] {
        let mut sock = new_sock();
        (sock.cwnd, sock.bytes_acked, sock.receive_window) = (200, 1_000_000, 10_000_000);
        let mut shell = Shell::new(0);
        step(&mut shell, &mut sock, 1);
        shell.acked(&mut sock, 1, Some(RTT_US), &mut Leaves);
        let left = shell.exit().map(|(_, record)| record.bytes_acked).unwrap();
        (sock.cwnd, sock.ssthresh, sock.bytes_acked) = (cwnd, ssthresh, left + after_exit);
        (sock.rate_delivered, sock.rate_interval_us) = (1, RTT_US);
        let mut path = Path::default();
        assert!(shell.learn(&sock, true, &mut path, SECOND_NS, LIFETIME_NS));
        assert_eq!(path.rate, rate, "{after_exit} {cwnd} {ssthresh}");
    }
}

#[test]
fn what_is_used_of_a_path_halves_with_its_age_and_after_a_retreat_and_ends_with_its_lifetime() {
    let mut path = Path { rate: 960_000, rtt_us: RTT_US, learned_ns: SECOND_NS, ..Path::default() };
    assert_eq!(first_window(&path, SECOND_NS), 48);
    assert_eq!(first_window(&path, SECOND_NS + LIFETIME_NS / 2), 24);
    assert_eq!(first_window(&path, SECOND_NS + LIFETIME_NS), 10);
    path.judge(start_end::RETREAT);
    assert_eq!(first_window(&path, SECOND_NS), 24);
    assert_eq!(first_window(&path, SECOND_NS + LIFETIME_NS / 2), 12);
    path.judge(start_end::RETREAT);
    assert_eq!(first_window(&path, SECOND_NS), 12);
    path.judge(start_end::VALIDATED);
    assert_eq!((path.confirmed, path.retreated), (1, 0));
    assert_eq!(first_window(&path, SECOND_NS), 48);
}

#[test]
fn a_path_that_was_learned_before_boot_is_as_old_as_it_is() {
    for (age_ns, segments) in [(LIFETIME_NS / 2 - 1, 48), (LIFETIME_NS / 2, 24), (LIFETIME_NS, 10)] {
        let learned_ns = SECOND_NS.wrapping_sub(age_ns);
        assert!(learned_ns > SECOND_NS, "it wraps");
        let path = Path { rate: 960_000, rtt_us: RTT_US, learned_ns, ..Path::default() };
        assert_eq!(first_window(&path, SECOND_NS), segments, "{age_ns}");
    }
    // By a clock that was read before.
    let path = Path { rate: 960_000, rtt_us: RTT_US, learned_ns: SECOND_NS + 1, ..Path::default() };
    assert_eq!(first_window(&path, SECOND_NS), 48);
}

#[test]
fn a_path_of_another_rtt_has_no_past() {
    let mut path =
        Path { rate: 1_000_000, rtt_us: 3 * RTT_US, confirmed: 5, retreated: 1, ..Path::default() };
    assert!(learned(&mut path, 30, true, SECOND_NS));
    assert_eq!((path.rate, path.rtt_us, path.confirmed, path.retreated), (300_000, RTT_US, 0, 0));
}

#[test]
fn a_claim_is_void_after_ten_rtts_and_while_there_is_little_to_send_after_four() {
    for (rtt_us, begins_ns, ns) in [
        (1_000, SECOND_NS, SECOND_NS),
        (600_000, 24 * SECOND_NS / 10, 6 * SECOND_NS),
        (60_000_000, 60 * SECOND_NS, 60 * SECOND_NS),
    ] {
        let path = Path { rtt_us, ..Path::default() };
        assert_eq!((path.claim_lasts_ns(true), path.claim_lasts_ns(false)), (begins_ns, ns), "{rtt_us} us");
    }
    let path = Path { claim_ends_ns: SECOND_NS, ..Path::default() };
    assert!(path.is_claimed(SECOND_NS - 1) && !path.is_claimed(SECOND_NS) && !Path::default().is_claimed(1));
}
