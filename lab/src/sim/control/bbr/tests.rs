//! BBR as a whole, over samples that a test makes: each acknowledgment is a round.

use onramp_algorithm::startup;

use super::window::{BURSTS, burst};
use super::*;

const MSS: u32 = 1_448;
const RTT_US: u32 = 100_000;

/// A connection over a path without a queue, unless a test says otherwise.
struct Connection {
    bbr: Bbr,
    socket: Socket,
}

impl Connection {
    fn new() -> Self {
        let mut socket = Socket { now_us: 1_000_000, delivered_us: 1_000_000, ..Socket::new(MSS, 10) };
        socket.round_trip.sample(RTT_US, 0, 0);
        socket.round_trip.sample_least(RTT_US);
        let mut bbr = Bbr::new(1, 0);
        bbr.begin(&mut socket);
        Self { bbr, socket }
    }

    /// A round trip later a round's segments are delivered, with so many still in flight.
    fn sample(&mut self, segments: u32, in_flight: u32) -> RateSample {
        let socket = &mut self.socket;
        let sample = RateSample {
            acked: segments,
            prior_in_flight: in_flight + segments,
            rtt_us: Some(RTT_US + 1),
            prior_delivered: socket.delivered,
            delivered: Some(segments),
            interval_us: Some(RTT_US),
            ..RateSample::default()
        };
        socket.now_us += u64::from(RTT_US) + 1_000;
        socket.delivered_us = socket.now_us;
        socket.delivered += segments;
        socket.packets_out = in_flight;
        sample
    }

    fn round(&mut self, segments: u32, in_flight: u32) {
        let sample = self.sample(segments, in_flight);
        self.bbr.control(&mut self.socket, &sample);
    }

    /// A path of 1,000 segments in a round trip is full, and its queue drained.
    fn filled() -> Self {
        let mut connection = Self::new();
        for segments in [250, 500, 1_000, 1_000, 1_000, 1_000] {
            connection.round(segments, 2_000);
        }
        connection.round(1_000, 900);
        assert_eq!(connection.bbr.mode, Mode::ProbeRate);
        connection
    }
}

#[test]
fn it_begins_with_its_first_window_times_two_over_ln_2_within_a_round_trip() {
    let Connection { bbr, socket } = Connection::new();
    let once = f64::from(10 * MSS) / f64::from(RTT_US) * 1e6;
    let gain = socket.pacing_rate as f64 / once / 0.99;
    assert!((gain - 2.0 / 2_f64.ln()).abs() < 0.01, "{gain}");
    assert!(socket.paced && bbr.in_startup());
}

#[test]
fn a_rate_that_does_not_rise_for_three_rounds_is_the_paths_and_the_queue_is_drained() {
    let mut connection = Connection::new();
    for segments in [250, 500, 1_000, 1_000, 1_000] {
        connection.round(segments, 2_000);
        assert_eq!(connection.bbr.mode, Mode::Startup);
        assert_eq!(connection.bbr.pacing_gain, HIGH_GAIN);
    }
    let paced = connection.socket.pacing_rate;
    connection.round(1_000, 2_000);
    assert_eq!((connection.bbr.mode, connection.bbr.pacing_gain), (Mode::Drain, DRAIN_GAIN));
    assert!(connection.socket.pacing_rate < paced / 7);
    // What is on its way, and three bursts.
    let threshold = connection.socket.ssthresh;
    assert!((1_000..1_200).contains(&threshold), "{threshold}");
    connection.round(1_000, threshold + 10);
    assert_eq!(connection.bbr.mode, Mode::Drain);
    connection.round(1_000, threshold - 100);
    assert_eq!(connection.bbr.mode, Mode::ProbeRate);
}

#[test]
fn rounds_of_an_application_that_has_less_to_send_do_not_fill_the_pipe() {
    let mut connection = Connection::new();
    for _ in 0..20 {
        let sample = RateSample { app_limited: true, ..connection.sample(10, 0) };
        connection.bbr.control(&mut connection.socket, &sample);
    }
    assert!(connection.bbr.in_startup());
}

#[test]
fn the_window_is_twice_what_is_on_its_way_and_what_waits_in_hosts_and_comes_together() {
    let mut connection = Connection::filled();
    for _ in 0..8 {
        connection.round(1_000, 900);
    }
    let extra = connection.bbr.aggregation.extra(connection.bbr.rate());
    let bursts = BURSTS * burst(&connection.socket);
    let window = connection.socket.cwnd;
    assert!(window.abs_diff(2_000 + bursts + extra) <= 5, "{window} {bursts} {extra}");
}

#[test]
fn the_gain_above_the_rate_lasts_until_so_much_is_in_flight_or_lost_and_the_one_below_until_that_is_drained()
{
    let mut connection = Connection::filled();
    while connection.bbr.pacing_gain != UNIT * 5 / 4 {
        connection.round(1_000, 900);
    }
    connection.round(1_000, 100);
    assert!(connection.bbr.pacing_gain > UNIT, "too little is in flight");
    let sample = RateSample { losses: 1, ..connection.sample(1_000, 100) };
    connection.bbr.control(&mut connection.socket, &sample);
    assert!(connection.bbr.pacing_gain < UNIT, "the queue is small");
    // Not a round trip later.
    let sample = connection.sample(1_000, 0);
    connection.socket.delivered_us -= u64::from(RTT_US);
    connection.bbr.control(&mut connection.socket, &RateSample { prior_in_flight: 900, ..sample });
    assert_eq!(connection.bbr.pacing_gain, UNIT);
    for _ in 0..5 {
        connection.round(1_000, 900);
        assert_eq!(connection.bbr.pacing_gain, UNIT);
    }
    connection.round(1_000, 900);
    assert!(connection.bbr.pacing_gain > UNIT);
    connection.round(1_000, 1_500);
    assert!(connection.bbr.pacing_gain < UNIT);
}

#[test]
fn a_minimum_rtt_of_ten_seconds_ago_is_looked_for_with_four_segments_in_flight_for_200_ms() {
    let mut connection = Connection::filled();
    let begun_us = 1_000_000;
    while connection.bbr.mode != Mode::ProbeRtt {
        connection.round(1_000, 900);
    }
    let after_us = connection.socket.now_us - begun_us;
    assert!((10_000_000..10_200_000).contains(&after_us), "{after_us}");
    assert_eq!(connection.bbr.least_rtt.us, RTT_US + 1);
    assert_eq!((connection.socket.cwnd, connection.bbr.pacing_gain), (4, UNIT));
    assert!(connection.socket.app_limited > 0, "its rates do not count");
    // Not while more is in flight.
    for _ in 0..5 {
        connection.round(200, 500);
        assert_eq!(connection.bbr.mode, Mode::ProbeRtt);
    }
    connection.round(4, 4);
    let drained_us = connection.socket.now_us;
    while connection.bbr.mode == Mode::ProbeRtt {
        connection.round(4, 4);
    }
    let lasted_us = connection.socket.now_us - drained_us;
    assert!((200_000..400_000).contains(&lasted_us), "{lasted_us}");
    assert_eq!(connection.bbr.mode, Mode::ProbeRate);
    assert!(connection.socket.cwnd > 2_000, "{}", connection.socket.cwnd);
    // For another ten seconds.
    let ended_us = connection.socket.now_us;
    while connection.bbr.mode != Mode::ProbeRtt {
        connection.round(1_000, 900);
    }
    assert!(connection.socket.now_us - ended_us > 10_000_000);
}

#[test]
fn a_smaller_rtt_puts_that_off() {
    let mut connection = Connection::filled();
    for round in 0..300 {
        let sample = connection.sample(1_000, 900);
        let rtt_us = Some(if round % 50 == 0 { RTT_US - 1 - round } else { RTT_US });
        connection.bbr.control(&mut connection.socket, &RateSample { rtt_us, ..sample });
        assert_eq!(connection.bbr.mode, Mode::ProbeRate, "{round}");
    }
}

#[test]
fn after_an_idle_time_it_sends_at_its_rate_and_does_not_look_for_the_minimum_rtt() {
    let mut connection = Connection::filled();
    connection.socket.packets_out = 0;
    connection.socket.now_us += 30_000_000;
    connection.socket.app_limited = 1;
    let window = connection.socket.cwnd;
    connection.bbr.transmission_starts(&mut connection.socket);
    let rate = rate::bytes_per_second(connection.bbr.rate(), MSS, UNIT);
    assert_eq!((connection.socket.pacing_rate, connection.socket.cwnd), (rate, window));
    connection.round(10, 0);
    assert_eq!(connection.bbr.mode, Mode::ProbeRate);
}

#[test]
fn a_policers_rate_takes_the_place_of_the_largest() {
    let mut connection = Connection::filled();
    for _ in 0..12 {
        let sample = connection.sample(500, 400);
        connection.socket.lost += 150;
        connection.bbr.control(&mut connection.socket, &RateSample { losses: 150, ..sample });
    }
    let (rate, largest) = (connection.bbr.rate(), connection.bbr.rates.get());
    assert!(rate < largest && connection.bbr.policer.rate() == Some(rate), "{rate} {largest}");
    assert_eq!(connection.bbr.pacing_gain, UNIT);
}

#[test]
fn a_timeout_is_a_rounds_end_and_the_window_comes_back_once_it_is_over() {
    let mut connection = Connection::filled();
    let window = connection.socket.cwnd;
    assert_eq!(connection.bbr.threshold(&connection.socket), connection.socket.ssthresh);
    connection.bbr.state(&connection.socket, State::Loss);
    (connection.socket.state, connection.socket.cwnd) = (State::Loss, 1);
    connection.round(1, 0);
    assert_eq!(connection.socket.cwnd, 4);
    connection.socket.state = State::Open;
    connection.round(1, 0);
    assert!(connection.socket.cwnd >= window.min(2_000), "{} {window}", connection.socket.cwnd);
}

#[test]
fn in_the_shells_hands_the_pipe_is_not_full_until_a_round_after_the_exit_has_not_raised_the_rate() {
    let mut connection = Connection::new();
    for _ in 0..10 {
        let sample = connection.sample(1_000, 2_000);
        connection.bbr.control_held(&mut connection.socket, &sample);
    }
    assert_eq!(connection.bbr.shown(), startup::ON);
    connection.bbr.make(startup::LEFT);
    assert!(connection.bbr.has_left() && connection.bbr.shown() == startup::NONE);
    connection.socket.cwnd = 800;
    // The window has yet to be filled, and then a round begins.
    let mut next = |segments, filled| {
        let sample = connection.sample(segments, 0);
        connection.socket.cwnd = 800;
        connection.bbr.control_measuring(&mut connection.socket, &sample, filled)
    };
    assert_eq!(next(1_000, false), 800);
    // A sixteenth more, three times: an eighth more, and then a quarter.
    assert_eq!([next(1_100, true), next(1_200, true), next(1_300, true)], [900, 900, 1_000]);
    assert_eq!(next(1_300, true), 0);
    connection.bbr.make(startup::FULL);
    assert!(connection.bbr.is_full() && !connection.bbr.in_startup());
    connection.bbr.make(startup::AGAIN);
    assert_eq!(connection.bbr.shown(), startup::ON);
}
