//! Starts from memory over a plain sender: which first window, when the jump, how far, and what takes it back.

use onramp_algorithm::shell::{Policy, Shell};
use onramp_algorithm::{Ack, NO_THRESHOLD, Sock, Verdict};

const MSS: u32 = 1_000;
const RTT_US: u32 = 100_000;
/// Over 100 ms this is 400 segments; a start goes to 200.
const RATE: u64 = 4_000_000;
/// Whole segments of 65,535 bytes.
const FIRST: u32 = 65;

/// An algorithm that has nothing to say.
struct Quiet;

impl Policy for Quiet {
    fn restart(&mut self) {}

    fn on_ack(&mut self, _: &Ack) -> Verdict {
        Verdict::default()
    }

    fn on_loss(&mut self, _: &Ack, base_ssthresh: u32) -> u32 {
        base_ssthresh
    }
}

/// Leaves at once.
struct Leaves;

impl Policy for Leaves {
    fn restart(&mut self) {}

    fn on_ack(&mut self, ack: &Ack) -> Verdict {
        Verdict { outcome: onramp_algorithm::outcome::EXIT, ssthresh: ack.cwnd, ..Verdict::default() }
    }

    fn on_loss(&mut self, _: &Ack, base_ssthresh: u32) -> u32 {
        base_ssthresh
    }
}

/// A connection that has begun, with much to send.
fn begun(rate: u64, rtt_us: u32) -> (Shell, Sock) {
    let mut sock = Sock {
        now_us: 1_000_000,
        max_pacing_rate: u64::MAX,
        bytes_unsent: 1_000 * MSS,
        srtt_eighths_us: 8 * RTT_US,
        min_rtt_us: RTT_US,
        cwnd_clamp: 10_000,
        mss: MSS,
        cwnd: 10,
        ssthresh: NO_THRESHOLD,
        receive_window: 65_535,
        ..Sock::default()
    };
    let mut shell = Shell::new(0).remembering(rate, rtt_us);
    shell.begin(&mut sock);
    (shell, sock)
}

/// Sends what the window allows, and has `segments` of what is on its way acknowledged an RTT later.
fn step(shell: &mut Shell, sock: &mut Sock, segments: u32) {
    send(sock);
    sock.now_us += u64::from(RTT_US);
    acknowledge(sock, segments);
    shell.acked(sock, segments, Some(RTT_US), &mut Quiet);
}

fn send(sock: &mut Sock) {
    let more = sock.cwnd.saturating_sub(sock.in_flight);
    sock.in_flight += more;
    sock.bytes_sent += u64::from(more * MSS);
    sock.bytes_outstanding += more * MSS;
}

fn acknowledge(sock: &mut Sock, segments: u32) {
    sock.in_flight -= segments;
    sock.delivered += segments;
    sock.bytes_acked += u64::from(segments * MSS);
    sock.bytes_outstanding -= segments * MSS;
}

#[test]
fn the_first_window_is_half_of_the_path_within_64_kilobytes_and_never_less_than_without() {
    for (rate, window) in [(RATE, FIRST), (400_000, 20), (200_000, 10), (100_000, 10)] {
        let (_, sock) = begun(rate, RTT_US);
        assert_eq!((sock.cwnd, sock.paced), (window, u32::from(window > 10)), "{rate} bytes per second");
    }
}

#[test]
fn a_connection_over_another_path_begins_as_without_memory() {
    for (rtt_us, window) in [(50_000, 10), (49_999, 10), (200_000, FIRST), (200_001, 10)] {
        let (_, sock) = begun(RATE, rtt_us);
        // Over half the RTT half of the path is 100 segments, which is more than the first window.
        let window = if rtt_us == 50_000 { FIRST } else { window };
        assert_eq!(sock.cwnd, window, "{rtt_us} us");
    }
}

#[test]
fn the_first_window_leaves_at_three_quarters_of_the_rate_and_pacing_ends_with_it() {
    let (mut shell, mut sock) = begun(RATE, RTT_US);
    shell.pace(&mut sock);
    assert_eq!(sock.pacing_rate, RATE * 3 / 4);
    send(&mut sock);
    shell.pace(&mut sock);
    assert_eq!(sock.paced, 0);
}

#[test]
fn the_jump_waits_for_the_whole_first_window_and_then_goes_to_half_of_the_path() {
    let (mut shell, mut sock) = begun(RATE, RTT_US);
    sock.receive_window = 1_000_000;
    step(&mut shell, &mut sock, FIRST - 1);
    assert_eq!(sock.cwnd, FIRST);
    step(&mut shell, &mut sock, 1);
    assert_eq!((sock.cwnd, sock.paced), (200, 1));
}

#[test]
fn the_jump_follows_the_receivers_window_in_whole_segments_and_stops_at_half_of_the_path() {
    let (mut shell, mut sock) = begun(RATE, RTT_US);
    sock.receive_window = 100_999;
    step(&mut shell, &mut sock, FIRST);
    assert_eq!(sock.cwnd, 100);
    sock.receive_window = 150_500;
    step(&mut shell, &mut sock, 50);
    assert_eq!(sock.cwnd, 150);
    sock.receive_window = 900_000;
    step(&mut shell, &mut sock, 50);
    assert_eq!(sock.cwnd, 200);
    step(&mut shell, &mut sock, 50);
    assert_eq!(sock.cwnd, 200);
}

#[test]
fn nothing_is_jumped_to_while_the_application_has_less_to_send() {
    let (mut shell, mut sock) = begun(RATE, RTT_US);
    sock.receive_window = 1_000_000;
    send(&mut sock);
    sock.limited_by = onramp_algorithm::ack_flag::APP_LIMITED;
    acknowledge(&mut sock, FIRST);
    shell.acked(&mut sock, FIRST, Some(RTT_US), &mut Quiet);
    assert_eq!(sock.cwnd, FIRST);
    sock.limited_by = 0;
    step(&mut shell, &mut sock, 1);
    assert_eq!(sock.cwnd, 200);
}

#[test]
fn a_loss_in_the_jump_leaves_half_of_what_has_been_delivered_since() {
    let (mut shell, mut sock) = begun(RATE, RTT_US);
    sock.receive_window = 1_000_000;
    step(&mut shell, &mut sock, FIRST);
    step(&mut shell, &mut sock, 80);
    assert_eq!(shell.reduced(&mut sock, 140, &mut Quiet).ssthresh, 40);
    assert_eq!(sock.plateau, 40);
    // Slow start anew is like any other.
    (sock.cwnd, sock.ssthresh) = (10, NO_THRESHOLD);
    step(&mut shell, &mut sock, 1);
    assert_eq!(sock.cwnd, 10);
}

#[test]
fn a_loss_of_the_first_window_is_the_bases_and_there_is_no_jump() {
    let (mut shell, mut sock) = begun(RATE, RTT_US);
    sock.receive_window = 1_000_000;
    step(&mut shell, &mut sock, 10);
    assert_eq!(shell.reduced(&mut sock, 45, &mut Quiet).ssthresh, 45);
    assert_eq!(sock.plateau, 0);
    (sock.cwnd, sock.ssthresh) = (45, NO_THRESHOLD);
    step(&mut shell, &mut sock, 40);
    step(&mut shell, &mut sock, 40);
    assert_eq!(sock.cwnd, 45);
}

#[test]
fn once_all_of_the_jump_is_acknowledged_a_loss_is_like_any_other() {
    let (mut shell, mut sock) = begun(RATE, RTT_US);
    sock.receive_window = 1_000_000;
    step(&mut shell, &mut sock, FIRST);
    // All of it sent, then all of it acknowledged.
    step(&mut shell, &mut sock, 1);
    step(&mut shell, &mut sock, 200);
    step(&mut shell, &mut sock, 1);
    assert_eq!(shell.reduced(&mut sock, 140, &mut Quiet).ssthresh, 140);
    assert_eq!(sock.plateau, 0);
}

#[test]
fn an_exit_of_the_algorithm_ends_the_start() {
    let (mut shell, mut sock) = begun(RATE, RTT_US);
    sock.receive_window = 1_000_000;
    send(&mut sock);
    acknowledge(&mut sock, FIRST);
    shell.acked(&mut sock, FIRST, Some(RTT_US), &mut Leaves);
    assert_eq!((sock.cwnd, sock.ssthresh), (FIRST, FIRST));
}
