//! Starts from memory over a plain sender: which first window, when the jump, how far, and what takes it back.

mod common;

use common::sender::{Leaves, MSS, Quiet, RTT_US, acknowledge, grow, new_sock, send, step};
use onramp_algorithm::shell::{Policy, Shell};
use onramp_algorithm::{
    Ack, NO_THRESHOLD, Sock, StartPolicies, StartPolicy, Verdict, find, growth, start_end,
};

/// Over 100 ms this is 400 segments; a start goes to 200.
const RATE: u64 = 4_000_000;
/// Whole segments of 65,535 bytes, in pairs.
const FIRST: u32 = 64;

/// A connection that has begun, with much to send.
fn begun(rate: u64, rtt_us: u32) -> (Shell, Sock) {
    begun_by(StartPolicies::of_memory(), rate, rtt_us)
}

fn begun_by(policies: StartPolicies, rate: u64, rtt_us: u32) -> (Shell, Sock) {
    let mut sock = new_sock();
    let mut shell = Shell::new(0).remembering(policies, rate, rtt_us);
    shell.begin(&mut sock);
    (shell, sock)
}
#[test]
fn the_first_window_is_half_of_the_path_within_64_kilobytes_and_never_less_than_without() {
    for (rate, window) in [(RATE, FIRST), (420_000, 20), (400_000, 20), (200_000, 10), (100_000, 10)] {
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
fn the_first_window_leaves_at_three_quarters_of_the_rate_or_at_half_of_it_within_half_an_rtt() {
    // From the second rate on the path holds more than four first windows. Rates are paced in units of 64.
    for (rate, paced) in [(2_621_409, 1_966_080), (2_621_410, 1_310_720), (RATE, RATE / 2)] {
        let (mut shell, mut sock) = begun(rate, RTT_US);
        shell.pace(&mut sock);
        assert_eq!(sock.pacing_rate, paced, "{rate} bytes per second");
        send(&mut sock);
        shell.pace(&mut sock);
        assert_eq!(sock.paced, 0);
    }
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
    for (receive_window, segments, window) in [
        (100_999, FIRST, 100),
        (150_500, 50, 150),
        (150_500, 20, 150),
        (140_000, 20, 140),
        // Which is never less than without memory.
        (5_000, 20, 30),
        (900_000, 10, 210),
        (900_000, 50, 260),
    ] {
        sock.receive_window = receive_window;
        step(&mut shell, &mut sock, segments);
        grow(&mut shell, &mut sock, segments);
        assert_eq!(sock.cwnd, window, "{receive_window} bytes");
    }
}

/// Lets no window grow by more than a segment an ACK.
struct Limits;

impl Policy for Limits {
    fn restart(&mut self) {}

    fn on_ack(&mut self, _: &Ack) -> Verdict {
        Verdict { growth: growth::LIMITED, growth_limit: 1, ..Verdict::default() }
    }

    fn on_loss(&mut self, _: &Ack, base_ssthresh: u32) -> u32 {
        base_ssthresh
    }
}

#[test]
fn at_the_receivers_window_only_what_the_base_adds_is_held_back() {
    let mut sock = new_sock();
    let mut shell =
        Shell::new(find("hystartpp").unwrap().traits()).remembering(StartPolicies::of_memory(), RATE, RTT_US);
    shell.begin(&mut sock);
    sock.receive_window = 100_000;
    for segments in [FIRST, 50] {
        send(&mut sock);
        acknowledge(&mut sock, segments);
        shell.acked(&mut sock, segments, Some(RTT_US), &mut Limits);
        assert_eq!(sock.cwnd, 99);
        grow(&mut shell, &mut sock, segments);
        assert_eq!(sock.cwnd, 100);
    }
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

/// Sends no more than so many segments, and has them acknowledged an RTT later.
fn send_at_most(shell: &mut Shell, sock: &mut Sock, segments: u32) {
    sock.in_flight += segments;
    sock.bytes_sent += u64::from(segments * MSS);
    sock.bytes_outstanding += segments * MSS;
    sock.now_us += u64::from(RTT_US);
    acknowledge(sock, segments);
    shell.acked(sock, segments, Some(RTT_US), &mut Quiet);
}

#[test]
fn a_connection_that_has_sent_all_it_has_gives_up_what_it_has_not_used_of_its_jump() {
    let (mut shell, mut sock) = begun(RATE, RTT_US);
    sock.receive_window = 1_000_000;
    step(&mut shell, &mut sock, FIRST);
    assert_eq!(sock.cwnd, 200);
    sock.bytes_unsent = 0;
    send_at_most(&mut shell, &mut sock, 30);
    grow(&mut shell, &mut sock, 30);
    // As far as doubling would have come by the same ACKs.
    assert_eq!((sock.cwnd, shell.start().end), (FIRST + 30, start_end::VALIDATED));
    sock.bytes_unsent = 1_000 * MSS;
    step(&mut shell, &mut sock, 1);
    assert_eq!(sock.cwnd, FIRST + 30);
}

#[test]
fn a_jump_that_is_not_sent_within_two_rtts_is_given_up_as_far_as_it_is_not_used() {
    let (mut shell, mut sock) = begun(RATE, RTT_US);
    sock.receive_window = 1_000_000;
    step(&mut shell, &mut sock, FIRST);
    send_at_most(&mut shell, &mut sock, 20);
    assert_eq!(sock.cwnd, 200);
    send_at_most(&mut shell, &mut sock, 20);
    grow(&mut shell, &mut sock, 20);
    assert_eq!(sock.cwnd, FIRST + 40);
}

#[test]
fn a_jump_whose_claim_is_void_is_given_up_as_far_as_it_is_not_used() {
    let mut sock = new_sock();
    let late_us = sock.now_us + 4 * u64::from(RTT_US);
    let mut shell = Shell::new(0).remembering(StartPolicies::of_memory(), RATE, RTT_US).claiming(late_us);
    shell.begin(&mut sock);
    // The receiver has not the room: the jump waits for it.
    step(&mut shell, &mut sock, FIRST);
    for late in [false, false, true] {
        send_at_most(&mut shell, &mut sock, 10);
        assert_eq!(shell.start().end == start_end::LATE, late);
    }
    sock.receive_window = 1_000_000;
    let window = sock.cwnd;
    assert!(window <= FIRST + 30);
    step(&mut shell, &mut sock, 1);
    assert_eq!(sock.cwnd, window);
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

#[test]
fn by_the_first_window_alone_there_is_no_jump_and_by_the_jump_alone_the_first_window_is_as_without() {
    let (mut shell, mut sock) = begun_by([StartPolicy::Window].into_iter().collect(), RATE, RTT_US);
    sock.receive_window = 1_000_000;
    assert_eq!(sock.cwnd, FIRST);
    step(&mut shell, &mut sock, FIRST);
    assert_eq!((sock.cwnd, shell.start().end), (FIRST, start_end::VALIDATED));
    let (mut shell, mut sock) = begun_by([StartPolicy::Resume].into_iter().collect(), RATE, RTT_US);
    sock.receive_window = 1_000_000;
    assert_eq!(sock.cwnd, 10);
    step(&mut shell, &mut sock, 10);
    assert_eq!(sock.cwnd, 200);
}

/// So many segments of the first window are acknowledged one after the other, so far apart, the first an RTT after they were sent.
fn arrive(shell: &mut Shell, sock: &mut Sock, segments: u32, apart_us: u64) {
    send(sock);
    sock.now_us += u64::from(RTT_US);
    for _ in 0..segments {
        acknowledge(sock, 1);
        shell.acked(sock, 1, Some(RTT_US), &mut Quiet);
        sock.now_us += apart_us;
    }
}

#[test]
fn over_a_slower_path_the_jump_is_as_fast_as_the_first_acks_and_goes_to_three_quarters_of_that() {
    for (rate, apart_us, window, paced) in [
        // At full rate; as fast as the first window was sent, and a little more slowly; at a quarter of the rate; all at once.
        (RATE, 250, 200, RATE),
        (RATE, 561, 200, RATE),
        (RATE, 562, 133, 1_779_359),
        (RATE, 1_000, 75, 1_000_000),
        (RATE, 0, 200, RATE),
        // Sent at three quarters of the rate.
        (2_400_000, 624, 120, 2_400_000),
        (2_400_000, 625, 120, 1_600_000),
    ] {
        let (mut shell, mut sock) = begun(rate, RTT_US);
        sock.receive_window = 1_000_000;
        arrive(&mut shell, &mut sock, FIRST, apart_us);
        assert_eq!(sock.cwnd, window, "{rate} bytes per second, {apart_us} us apart");
        shell.pace(&mut sock);
        assert!(
            sock.pacing_rate.abs_diff(paced) < paced / 1_000,
            "{apart_us} us apart: {}",
            sock.pacing_rate
        );
    }
    // A first window that is the kernel's says less of the rate: the jump goes as far, at half as much again.
    let (mut shell, mut sock) = begun_by([StartPolicy::Resume].into_iter().collect(), RATE, RTT_US);
    sock.receive_window = 1_000_000;
    arrive(&mut shell, &mut sock, 10, 1_000);
    assert_eq!(sock.cwnd, 75);
    shell.pace(&mut sock);
    assert!(sock.pacing_rate.abs_diff(1_500_000) < 1_500, "{}", sock.pacing_rate);
    // What comes after a pause of the application's says nothing.
    let (mut shell, mut sock) = begun(RATE, RTT_US);
    sock.receive_window = 1_000_000;
    sock.limited_by = onramp_algorithm::ack_flag::APP_LIMITED;
    arrive(&mut shell, &mut sock, FIRST, 250);
    assert_eq!(sock.cwnd, FIRST);
    (sock.limited_by, sock.now_us) = (0, sock.now_us + 10_000_000);
    step(&mut shell, &mut sock, 1);
    assert_eq!(sock.cwnd, 200);
}

#[test]
fn what_the_first_acks_let_go_leaves_little_faster_than_they_arrive() {
    for (rate, segments, apart_us, paced) in [
        // Four segments after the first say how fast they arrive.
        (RATE, 4, 1_000, RATE),
        (RATE, 5, 1_000, 1_130_000),
        (RATE, 20, 500, 2_260_000),
        (RATE, 20, 250, RATE),
        (RATE, 20, 0, RATE),
        // Where the first window takes most of an RTT nothing is held back.
        (2_400_000, 20, 1_000, 2_400_000),
    ] {
        let (mut shell, mut sock) = begun(rate, RTT_US);
        arrive(&mut shell, &mut sock, segments, apart_us);
        shell.pace(&mut sock);
        let what = format!("{rate} bytes per second, {segments} segments, {apart_us} us apart");
        assert!(sock.pacing_rate.abs_diff(paced) < paced / 1_000, "{what}: {}", sock.pacing_rate);
    }
}

#[test]
fn where_the_application_pauses_within_the_first_window_one_leaves_in_an_rtt_at_the_least() {
    let (mut shell, mut sock) = begun(RATE, RTT_US);
    arrive(&mut shell, &mut sock, 6, 500);
    sock.now_us += 10_000_000;
    arrive(&mut shell, &mut sock, 1, 500);
    shell.pace(&mut sock);
    assert!(sock.pacing_rate.abs_diff(655_350) < 655, "{}", sock.pacing_rate);
}

#[test]
fn where_nothing_else_paces_pacing_ends_with_the_start_at_whichever_rate_that_was() {
    // The jump is validated; the first window of a slower path is larger than where the jump would go to.
    for (apart_us, rates) in [(1_000, [1_130_000, 1_016_129]), (2_000, [655_350, 655_350])] {
        let (mut shell, mut sock) = begun(RATE, RTT_US);
        sock.receive_window = 1_000_000;
        arrive(&mut shell, &mut sock, FIRST - 2, apart_us);
        shell.pace(&mut sock);
        assert!(sock.pacing_rate.abs_diff(rates[0]) < rates[0] / 1_000, "{}", sock.pacing_rate);
        acknowledge(&mut sock, 2);
        shell.acked(&mut sock, 2, Some(RTT_US), &mut Quiet);
        if shell.start().end == start_end::NONE {
            shell.pace(&mut sock);
            assert!(sock.pacing_rate.abs_diff(rates[1]) < rates[1] / 1_000, "{}", sock.pacing_rate);
            step(&mut shell, &mut sock, 10);
        }
        send(&mut sock);
        shell.pace(&mut sock);
        assert_eq!(sock.paced, 0, "{apart_us} us apart");
    }
}

#[test]
fn a_jump_that_makes_a_queue_goes_no_further() {
    let (mut shell, mut sock) = begun(RATE, RTT_US);
    sock.receive_window = 100_000;
    step(&mut shell, &mut sock, FIRST);
    grow(&mut shell, &mut sock, FIRST);
    assert_eq!(sock.cwnd, 100);
    send(&mut sock);
    // One late segment is no queue, nor are some that are a little late.
    for rtt_us in [200_000, 112_499, 112_499, 112_499, 112_499] {
        acknowledge(&mut sock, 1);
        shell.acked(&mut sock, 1, Some(rtt_us), &mut Quiet);
    }
    sock.receive_window = 120_000;
    acknowledge(&mut sock, 1);
    shell.acked(&mut sock, 1, Some(RTT_US), &mut Quiet);
    grow(&mut shell, &mut sock, 1);
    assert_eq!(sock.cwnd, 120);
    for _ in 0..4 {
        acknowledge(&mut sock, 1);
        shell.acked(&mut sock, 1, Some(112_501), &mut Quiet);
    }
    let held = sock.cwnd;

    sock.receive_window = 1_000_000;
    for _ in 0..50 {
        acknowledge(&mut sock, 1);
        shell.acked(&mut sock, 1, Some(RTT_US), &mut Quiet);
    }
    assert_eq!(sock.cwnd, held);
}

#[test]
fn there_is_no_start_where_half_of_the_path_is_no_more_than_the_first_window() {
    let (shell, sock) = begun(200_000, RTT_US);
    assert_eq!((sock.cwnd, sock.paced, shell.start().end), (10, 0, start_end::NO_GAIN));
}

#[test]
fn there_is_no_start_below_2_ms() {
    for (rtt_us, window) in [(1_999, 10), (2_000, 50)] {
        let mut sock = Sock { min_rtt_us: rtt_us, srtt_eighths_us: 8 * rtt_us, ..new_sock() };
        let mut shell = Shell::new(0).remembering(StartPolicies::of_memory(), 50_000_000, rtt_us);
        shell.begin(&mut sock);
        assert_eq!(sock.cwnd, window, "{rtt_us} us");
    }
}

#[test]
fn there_is_no_jump_alone_where_half_of_the_path_is_no_more_than_twice_the_window() {
    for (rate, end) in [(400_000, start_end::NO_GAIN), (420_000, start_end::NONE)] {
        let (shell, _) = begun_by([StartPolicy::Resume].into_iter().collect(), rate, RTT_US);
        assert_eq!(shell.start().end, end, "{rate} bytes per second");
    }
}

/// A xorshift generator: the same numbers every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    /// Of any magnitude below so many bits.
    fn of_bits(&mut self, most: u64) -> u64 {
        let bits = self.below(most);
        1 + self.below(1 << bits)
    }
}

#[test]
fn whatever_happens_a_start_keeps_within_the_receivers_window_and_never_raises_one_once_it_is_over() {
    let mut ends = [0; 16];
    for seed in 1..=20_000 {
        let mut numbers = Numbers(seed * 0x9e37_79b9_7f4a_7c15);
        let policies = StartPolicies::from_bits(1 + numbers.below(3) as u32);
        let rate = numbers.of_bits(38);
        let rtt_us = numbers.of_bits(32) as u32;
        let (mut shell, mut sock) = begun_by(policies, rate, rtt_us);
        assert!(sock.cwnd <= 65 && sock.cwnd >= 10);
        for _ in 0..40 {
            send(&mut sock);
            sock.now_us += numbers.below(300_000);
            sock.receive_window = numbers.of_bits(30) as u32;
            sock.limited_by = numbers.below(8) as u32;
            let (before, over) = (sock.cwnd, shell.start().phase == onramp_algorithm::start_phase::OVER);
            let acked = numbers.below(u64::from(sock.in_flight) + 1) as u32;
            acknowledge(&mut sock, acked);
            let rtt = (numbers.below(9) > 0).then(|| numbers.of_bits(25) as u32);
            shell.acked(&mut sock, acked, rtt, &mut Quiet);
            assert!(
                sock.cwnd == before || !over && (sock.cwnd * MSS <= sock.receive_window || sock.cwnd == 10),
                "{seed}"
            );
            if numbers.below(20) == 0 {
                let threshold = sock.cwnd / 2;
                assert!(
                    shell.reduced(&mut sock, threshold, &mut Quiet).ssthresh <= threshold.max(2),
                    "{seed}"
                );
                sock.ssthresh = NO_THRESHOLD;
            }
        }
        ends[shell.start().end as usize] += 1;
    }
    // All that can end one has.
    for end in [
        start_end::VALIDATED,
        start_end::RETREAT,
        start_end::CONGESTION,
        start_end::NO_GAIN,
        start_end::REFUSED,
    ] {
        assert!(ends[end as usize] > 10, "{end}: {ends:?}");
    }
}
