//! Starts that are faster than doubling, over a plain sender: how far the window grows, what holds it back, where a loss lands.

mod common;

use common::sender::{self, MSS, RTT_US, new_sock, send};
use common::wants::Wants;
use onramp_algorithm::shell::Shell;
use onramp_algorithm::{CongestionState, Sock, StartPolicies, StartPolicy, TRAIT_PACES, ack_flag, fast_end};

const QUIET: Wants = Wants { rate: 0, ssthresh: 0 };

fn begun(traits: u32) -> (Shell, Sock) {
    let sock = Sock { bytes_unsent: 100_000 * MSS, receive_window: 1_000_000_000, ..new_sock() };
    (Shell::new(traits).starting([StartPolicy::Fast].into_iter().collect()), sock)
}

/// So many segments are acknowledged, after which the base grows the window.
fn acknowledge(shell: &mut Shell, sock: &mut Sock, segments: u32, rtt_us: u32, wants: &mut Wants) {
    sender::acknowledge(sock, segments);
    shell.acked(sock, segments, Some(rtt_us), wants);
    shell.grow(sock, segments, |sock, acked| {
        sock.cwnd = (sock.cwnd + acked).min(sock.ssthresh).min(sock.cwnd_clamp)
    });
}

/// All that is on its way is acknowledged after an RTT, segment by segment.
fn round(shell: &mut Shell, sock: &mut Sock, rtt_us: u32, wants: &mut Wants) {
    send(sock);
    sock.now_us += u64::from(rtt_us);
    for _ in 0..sock.in_flight {
        acknowledge(shell, sock, 1, rtt_us, wants);
    }
}

#[test]
fn the_window_triples_per_round_trip_and_without_the_policy_doubles() {
    let (mut shell, mut sock) = begun(0);
    // From 60 segments on, which are 600 kB/s, it doubles.
    for window in [30, 76, 152] {
        round(&mut shell, &mut sock, RTT_US, &mut { QUIET });
        assert_eq!(sock.cwnd, window);
    }
    let (_, mut sock) = begun(0);
    let mut shell = Shell::new(0).starting(StartPolicies::of_memory());
    round(&mut shell, &mut sock, RTT_US, &mut { QUIET });
    assert_eq!(sock.cwnd, 20);
    assert_eq!(shell.fast().faster, 0);
}

#[test]
fn over_a_long_path_larger_windows_are_tripled_too() {
    let (mut shell, mut sock) = begun(0);
    sock.min_rtt_us = 10 * RTT_US;
    for window in [30, 90, 270, 706, 1_412] {
        round(&mut shell, &mut sock, 10 * RTT_US, &mut { QUIET });
        assert_eq!(sock.cwnd, window);
    }
}

#[test]
fn a_queue_has_it_double_for_as_long_as_it_shows() {
    // An eighth of 100 ms.
    for (rtt_us, window) in [(112_500, 76), (112_501, 60)] {
        let (mut shell, mut sock) = begun(0);
        round(&mut shell, &mut sock, RTT_US, &mut { QUIET });
        assert_eq!(sock.cwnd, 30);
        round(&mut shell, &mut sock, rtt_us, &mut { QUIET });
        assert_eq!(sock.cwnd, window, "{rtt_us} us");
        // It is forgotten after an RTT.
        round(&mut shell, &mut sock, RTT_US, &mut { QUIET });
        round(&mut shell, &mut sock, RTT_US, &mut { QUIET });
        sock.cwnd = 20;
        round(&mut shell, &mut sock, RTT_US, &mut { QUIET });
        assert_eq!(sock.cwnd, 60);
    }
    // A millisecond is none, of however short an RTT.
    let (mut shell, mut sock) = begun(0);
    sock.min_rtt_us = 1_000;
    round(&mut shell, &mut sock, 2_000, &mut { QUIET });
    assert_eq!(sock.cwnd, 30);
}

#[test]
fn what_it_sends_is_paced_at_four_of_the_rounds_windows_per_rtt_and_no_longer_than_it_lasts() {
    let (mut shell, mut sock) = begun(0);
    for rate in [400_000, 1_200_000] {
        round(&mut shell, &mut sock, RTT_US, &mut { QUIET });
        shell.pace(&mut sock);
        assert_eq!((sock.paced, sock.pacing_rate), (1, rate));
    }
    send(&mut sock);
    acknowledge(&mut shell, &mut sock, 1, RTT_US, &mut Wants { ssthresh: 10, ..Wants::default() });
    send(&mut sock);
    shell.pace(&mut sock);
    assert_eq!(sock.paced, 0);
}

#[test]
fn it_triples_only_where_the_algorithms_rate_has_room_for_it() {
    // Three windows of ten segments per RTT are 300 kB/s.
    for (rate, window) in [(0, 30), (900_000, 30), (299_000, 20)] {
        let (mut shell, mut sock) = begun(TRAIT_PACES);
        let mut wants = Wants { rate, ..Wants::default() };
        round(&mut shell, &mut sock, RTT_US, &mut wants);
        assert_eq!(sock.cwnd, window, "{rate} bytes per second");
    }
}

#[test]
fn it_keeps_within_the_receivers_window_the_clamp_and_a_threshold() {
    let (mut shell, mut sock) = begun(0);
    sock.receive_window = 25_999;
    round(&mut shell, &mut sock, RTT_US, &mut { QUIET });
    // At 24 it ends, and the base's three go on, which the receiver's window holds back.
    assert_eq!((sock.cwnd, shell.fast().faster), (27, 7));
    let (mut shell, mut sock) = begun(0);
    sock.cwnd_clamp = 22;
    round(&mut shell, &mut sock, RTT_US, &mut { QUIET });
    assert_eq!(sock.cwnd, 22);
    let (mut shell, mut sock) = begun(0);
    round(&mut shell, &mut sock, RTT_US, &mut Wants { ssthresh: 17, ..Wants::default() });
    assert_eq!(sock.cwnd, 17);
    // Where there is one from the beginning it doubles.
    let (mut shell, mut sock) = begun(0);
    sock.ssthresh = 1_000;
    round(&mut shell, &mut sock, RTT_US, &mut { QUIET });
    assert_eq!((sock.cwnd, shell.fast().faster), (20, 0));
}

#[test]
fn the_window_is_at_most_three_times_the_largest_flight() {
    let (mut shell, mut sock) = begun(0);
    sock.cwnd = 60;
    sock.in_flight = 30;
    sock.bytes_outstanding = 30 * MSS;
    acknowledge(&mut shell, &mut sock, 20, RTT_US, &mut { QUIET });
    assert_eq!(sock.cwnd, 90);
}

#[test]
fn an_application_that_has_less_to_send_and_an_exit_end_it() {
    let (mut shell, mut sock) = begun(0);
    sock.limited_by = ack_flag::APP_LIMITED;
    round(&mut shell, &mut sock, RTT_US, &mut { QUIET });
    assert_eq!(sock.cwnd, 20);
    let (mut shell, mut sock) = begun(0);
    send(&mut sock);
    acknowledge(&mut shell, &mut sock, 1, RTT_US, &mut Wants { ssthresh: 10, ..Wants::default() });
    assert_eq!((shell.fast().end, sock.ssthresh), (fast_end::EXIT, 10));
}

/// A loss in a window that has grown to `window`, of which `lost` segments are lost and the others delivered: the threshold at
/// first, and in the end.
fn landing(window: u32, lost: u32) -> (u32, u32) {
    let (mut shell, mut sock) = begun(0);
    round(&mut shell, &mut sock, RTT_US, &mut { QUIET });
    (sock.cwnd, sock.in_flight) = (window, window);
    let base = window * 7 / 10;
    sock.ssthresh = shell.reduced(&mut sock, base, &mut { QUIET }).ssthresh;
    assert_eq!(sock.ssthresh, base);
    shell.state(&mut sock, CongestionState::Recovery as u32);
    sock.state = CongestionState::Recovery as u32;
    let first = sock.ssthresh;
    for segment in 0..window {
        if segment % window < lost {
            sock.lost += 1;
        } else {
            sock.delivered += 1;
        }
        let before = sock.ssthresh;
        shell.acked(&mut sock, 0, None, &mut { QUIET });
        assert!(sock.ssthresh <= before);
    }
    assert_eq!(shell.fast().end, fast_end::LANDED);
    // Later losses are the base's.
    let last = sock.ssthresh;
    sock.lost += 1;
    shell.acked(&mut sock, 0, None, &mut { QUIET });
    assert_eq!(sock.ssthresh, last);
    (first, last)
}

#[test]
fn a_loss_lands_at_the_bases_part_of_what_was_delivered_and_at_a_third_of_its_threshold_at_least() {
    assert_eq!(landing(300, 0), (270, 210));
    assert_eq!(landing(300, 100), (270, 140));
    assert_eq!(landing(300, 200), (270, 70));
    assert_eq!(landing(300, 300), (270, 70));
}

#[test]
fn a_loss_after_slow_start_is_the_bases_own() {
    let (mut shell, mut sock) = begun(0);
    // The algorithm sets a threshold above the window, and the window comes to it.
    round(&mut shell, &mut sock, RTT_US, &mut Wants { ssthresh: 25, ..Wants::default() });
    assert_eq!(sock.cwnd, 25);
    sock.ssthresh = shell.reduced(&mut sock, 17, &mut { QUIET }).ssthresh;
    shell.state(&mut sock, CongestionState::Recovery as u32);
    assert_eq!((sock.ssthresh, shell.fast().end), (17, fast_end::EXIT));
}

#[test]
fn after_a_mark_a_timeout_or_a_window_that_only_doubled_the_bases_threshold_stays() {
    for state in [CongestionState::Cwr, CongestionState::Loss] {
        let (mut shell, mut sock) = begun(0);
        round(&mut shell, &mut sock, RTT_US, &mut { QUIET });
        sock.ssthresh = shell.reduced(&mut sock, 21, &mut { QUIET }).ssthresh;
        shell.state(&mut sock, state as u32);
        assert_eq!((sock.ssthresh, shell.fast().end), (21, fast_end::LOSS), "{}", state as u32);
    }
    let (mut shell, mut sock) = begun(0);
    sock.limited_by = ack_flag::APP_LIMITED;
    round(&mut shell, &mut sock, RTT_US, &mut { QUIET });
    sock.ssthresh = shell.reduced(&mut sock, 14, &mut { QUIET }).ssthresh;
    shell.state(&mut sock, CongestionState::Recovery as u32);
    assert_eq!(sock.ssthresh, 14);
}
