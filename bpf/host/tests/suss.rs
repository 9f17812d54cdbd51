//! Starts by SUSS, over a plain sender: the growth factor at the end of each blue train, what holds the window back, what ends it.

mod common;

use common::sender::{self, MSS, RTT_US, new_sock};
use common::wants::Wants;
use onramp_algorithm::shell::Shell;
use onramp_algorithm::{
    CongestionState, NO_THRESHOLD, Sock, StartPolicies, StartPolicy, TRAIT_PACES, ack_flag, suss_end,
};

/// A connection, its clock, and what its algorithm wants.
struct Sender {
    shell: Shell,
    sock: Sock,
    wants: Wants,
}

impl Sender {
    fn new(policies: StartPolicies, traits: u32) -> Self {
        let sock = Sock {
            bytes_unsent: 100_000 * MSS,
            cwnd_clamp: 100_000,
            receive_window: 1_000_000_000,
            ..new_sock()
        };
        Self { shell: Shell::new(traits).starting(policies), sock, wants: Wants::default() }
    }

    fn suss() -> Self {
        Self::new([StartPolicy::Suss].into_iter().collect(), 0)
    }

    fn send(&mut self) {
        sender::send(&mut self.sock);
        self.shell.pace(&mut self.sock);
    }

    /// A segment is acknowledged, after which the base grows the window, and what that releases leaves.
    fn acknowledge(&mut self, rtt_us: u32) {
        let sock = &mut self.sock;
        sender::acknowledge(sock, 1);
        self.shell.acked(sock, 1, Some(rtt_us), &mut self.wants);
        self.shell.grow(sock, 1, |sock, acked| {
            sock.cwnd = (sock.cwnd + acked).min(sock.ssthresh).min(sock.cwnd_clamp)
        });
        self.send();
    }

    /// All that was on its way at the beginning is acknowledged, the first of it an RTT later; the ACKs take `lasts_us`, evenly.
    fn round(&mut self, lasts_us: u32, rtt_us: u32) -> u32 {
        self.send();
        let (acks, begins_us) = (self.sock.in_flight, self.sock.now_us + u64::from(RTT_US));
        for ack in 0..acks {
            self.sock.now_us = begins_us + u64::from(lasts_us * ack / (acks - 1));
            self.acknowledge(rtt_us);
        }
        self.sock.now_us = begins_us;
        self.sock.cwnd
    }

    fn end(&self) -> u32 {
        self.shell.suss().end
    }
}

#[test]
fn rounds_2_to_4_quadruple_the_window_and_then_it_doubles() {
    let mut sender = Sender::suss();
    for (window, end) in [
        (40, suss_end::NONE),
        (160, suss_end::NONE),
        (640, suss_end::NONE),
        (1_280, suss_end::ROUNDS),
        (2_560, suss_end::ROUNDS),
    ] {
        assert_eq!((sender.round(0, RTT_US), sender.end()), (window, end));
    }
    let mut sender = Sender::new(StartPolicies::of_memory(), 0);
    assert_eq!(sender.round(0, RTT_US), 20);
    assert_eq!(sender.shell.suss().round, 0);
}

#[test]
fn a_round_quadruples_while_its_ack_train_lasts_no_longer_than_a_quarter_of_the_minimum_rtt() {
    for (lasts_us, window, end) in [(25_000, 40, suss_end::NONE), (25_001, 20, suss_end::TRAIN)] {
        let mut sender = Sender::suss();
        assert_eq!((sender.round(lasts_us, RTT_US), sender.end()), (window, end), "{lasts_us} us");
    }
    // In round 3 half of the train is blue, and stands for all of it: nineteen of the 39 intervals.
    for (lasts_us, window) in [(25_600, 160), (26_000, 80)] {
        let mut sender = Sender::suss();
        sender.round(0, RTT_US);
        assert_eq!(sender.round(lasts_us, RTT_US), window, "{lasts_us} us");
    }
    // A round that has doubled is the last that was asked.
    let mut sender = Sender::suss();
    sender.round(26_000, RTT_US);
    assert_eq!((sender.round(0, RTT_US), sender.end()), (40, suss_end::TRAIN));
}

#[test]
fn a_round_quadruples_while_the_next_is_predicted_to_have_no_more_than_an_eighth_of_delay() {
    // One round after the minimum the next is predicted to have twice the delay: a sixteenth of 100 ms is the most.
    for (rtt_us, window, end) in [(106_250, 160, suss_end::NONE), (106_251, 80, suss_end::DELAY)] {
        let mut sender = Sender::suss();
        sender.round(0, RTT_US);
        assert_eq!((sender.round(0, rtt_us), sender.end()), (window, end), "{rtt_us} us");
    }
    // Two rounds after it, half as much again: a twelfth.
    for (rtt_us, window, end) in [(108_333, 640, suss_end::NONE), (108_334, 320, suss_end::DELAY)] {
        let mut sender = Sender::suss();
        sender.round(0, RTT_US);
        sender.round(0, RTT_US);
        assert_eq!((sender.round(0, rtt_us), sender.end()), (window, end), "{rtt_us} us");
    }
}

#[test]
fn an_rtt_of_ten_milliseconds_is_too_short() {
    for (rtt_us, window, end) in [(10_000, 20, suss_end::RTT), (10_001, 40, suss_end::NONE)] {
        let mut sender = Sender::suss();
        assert_eq!((sender.round(0, rtt_us), sender.end()), (window, end), "{rtt_us} us");
    }
}

#[test]
fn red_packets_are_paced_at_the_new_window_per_minimum_rtt_and_blue_ones_not() {
    let mut sender = Sender::suss();
    for window in [40, 160] {
        sender.send();
        let acks = sender.sock.in_flight;
        let blue = window / 4 - if window == 40 { 0 } else { 20 };
        sender.sock.now_us += u64::from(RTT_US);
        for ack in 1..=acks {
            sender.acknowledge(RTT_US);
            let paced = (sender.sock.paced, sender.sock.pacing_rate);
            if ack < blue {
                assert_eq!(paced.0, 0, "{ack} of {acks}");
            } else {
                assert_eq!(paced, (1, u64::from(window * MSS) * 10), "{ack} of {acks}");
            }
        }
    }
    // Not beyond the last round that quadruples.
    sender.round(0, RTT_US);
    sender.round(0, RTT_US);
    assert_eq!((sender.end(), sender.sock.paced), (suss_end::ROUNDS, 0));
}

#[test]
fn where_the_algorithm_paces_at_less_its_rate_holds() {
    for (rate, paced_at) in [(320_000, 320_000), (500_000, 400_000)] {
        let mut sender = Sender::new([StartPolicy::Suss].into_iter().collect(), TRAIT_PACES);
        sender.wants.rate = rate;
        assert_eq!(sender.round(0, RTT_US), 40);
        assert_eq!(sender.sock.pacing_rate, paced_at);
    }
}

#[test]
fn it_keeps_within_the_receivers_window_follows_it_and_keeps_within_the_clamp_and_a_threshold() {
    let mut sender = Sender::suss();
    sender.sock.receive_window = 32_999;
    assert_eq!(sender.round(0, RTT_US), 32);
    let mut sender = Sender::suss();
    sender.round(0, RTT_US);
    sender.send();
    sender.sock.receive_window = 80_000;
    for _ in 0..20 {
        sender.acknowledge(RTT_US);
    }
    assert_eq!(sender.sock.cwnd, 80);
    sender.sock.receive_window = 200_000;
    for _ in 0..20 {
        sender.acknowledge(RTT_US);
    }
    assert_eq!(sender.sock.cwnd, 160);
    let mut sender = Sender::suss();
    sender.sock.cwnd_clamp = 33;
    assert_eq!(sender.round(0, RTT_US), 33);
    let mut sender = Sender::suss();
    sender.wants.ssthresh = 27;
    assert_eq!(sender.round(0, RTT_US), 27);
    // Where there is one from the beginning it doubles.
    let mut sender = Sender::suss();
    sender.sock.ssthresh = 1_000;
    assert_eq!(sender.round(0, RTT_US), 20);
}

#[test]
fn the_window_is_at_most_three_times_the_largest_flight() {
    let mut sender = Sender::suss();
    sender.send();
    sender.sock.now_us += u64::from(RTT_US);
    // Nothing leaves: the flight is that of the first window.
    for _ in 0..10 {
        let sock = &mut sender.sock;
        (sock.in_flight, sock.delivered) = (sock.in_flight - 1, sock.delivered + 1);
        (sock.bytes_acked, sock.bytes_outstanding) =
            (sock.bytes_acked + u64::from(MSS), sock.bytes_outstanding - MSS);
        sender.shell.acked(sock, 1, Some(RTT_US), &mut sender.wants);
        sender.shell.grow(sock, 1, |sock, acked| sock.cwnd += acked);
    }
    assert_eq!(sender.sock.cwnd, 30);
}

#[test]
fn what_has_not_left_by_the_next_round_is_given_up_down_to_what_doubling_would_have_come_to() {
    for (in_flight, window) in [(30, 31), (12, 21)] {
        let mut sender = Sender::suss();
        sender.round(0, RTT_US);
        let sock = &mut sender.sock;
        let held = 40 - in_flight;
        sock.in_flight -= held;
        sock.bytes_sent -= u64::from(held * MSS);
        sock.bytes_outstanding -= held * MSS;
        sock.now_us += u64::from(RTT_US);
        sender.acknowledge(RTT_US);
        assert_eq!(sender.sock.cwnd, window);
    }
}

#[test]
fn a_loss_a_pause_and_an_exit_end_it() {
    let mut sender = Sender::suss();
    sender.round(0, RTT_US);
    let reduction = sender.shell.reduced(&mut sender.sock, 28, &mut sender.wants);
    assert_eq!((reduction.ssthresh, sender.end()), (28, suss_end::LOSS));
    sender.sock.ssthresh = 28;
    sender.shell.state(&mut sender.sock, CongestionState::Recovery as u32);
    assert_eq!(sender.round(0, RTT_US), 28);
    // Of a window that was half sent the threshold is half.
    let mut sender = Sender::suss();
    sender.round(0, RTT_US);
    sender.sock.bytes_outstanding = 20 * MSS;
    assert_eq!(sender.shell.reduced(&mut sender.sock, 28, &mut sender.wants).ssthresh, 14);
    let mut sender = Sender::suss();
    sender.sock.limited_by = ack_flag::APP_LIMITED;
    assert_eq!((sender.round(0, RTT_US), sender.end()), (20, suss_end::UNUSED));
    // A pause in the train makes it longer.
    let mut sender = Sender::suss();
    sender.send();
    sender.sock.now_us += u64::from(RTT_US);
    for ack in 0..10 {
        sender.sock.now_us += if ack == 5 { 1_000_000 } else { 0 };
        sender.acknowledge(RTT_US);
    }
    assert_eq!((sender.sock.cwnd, sender.end()), (20, suss_end::TRAIN));
    let mut sender = Sender::suss();
    sender.send();
    sender.wants.ssthresh = 10;
    sender.acknowledge(RTT_US);
    assert_eq!((sender.end(), sender.sock.ssthresh), (suss_end::EXIT, 10));
}

/// A linear congruential generator: the upper bits of it.
fn draw(state: &mut u64, below: u32) -> u32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((*state >> 33) % u64::from(below)) as u32
}

#[test]
fn whatever_arrives_no_window_is_raised_beyond_receiver_clamp_threshold_and_three_flights() {
    let state = &mut 47;
    let mut raised = 0;
    for _ in 0..2_000 {
        let mut sender = Sender::suss();
        sender.sock.cwnd_clamp = 10 + draw(state, 500);
        sender.sock.ssthresh = if draw(state, 2) == 0 { NO_THRESHOLD } else { 11 + draw(state, 500) };
        let mut flight = 0;
        for _ in 0..draw(state, 300) {
            sender.send();
            sender.sock.receive_window = draw(state, 600_000);
            sender.sock.now_us += u64::from(draw(state, 1_000));
            let rtt_us = RTT_US + draw(state, 4) * draw(state, 20_000);
            let (before, in_flight) = (sender.sock.cwnd, sender.sock.in_flight);
            if in_flight == 0 {
                break;
            }
            flight = flight.max(in_flight);
            let sock = &mut sender.sock;
            sock.in_flight -= 1;
            sock.bytes_acked += u64::from(MSS);
            sock.bytes_outstanding = sock.bytes_outstanding.saturating_sub(MSS);
            sender.shell.acked(sock, 1, Some(rtt_us), &mut sender.wants);
            if sock.cwnd > before {
                raised += 1;
                let most =
                    (3 * flight).min(sock.receive_window / sock.mss).min(sock.cwnd_clamp).min(sock.ssthresh);
                assert!(sock.cwnd < most, "{} of {most}", sock.cwnd);
            }
            sender.shell.grow(sock, 1, |sock, acked| sock.cwnd = (sock.cwnd + acked).min(sock.cwnd_clamp));
        }
    }
    assert!(raised > 1_000, "{raised}");
}
