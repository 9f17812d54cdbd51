// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! BBR version 1 as Linux 6.12 computes it (`net/ipv4/tcp_bbr.c`), from the samples of [`RateSample`]. What it knows of the path
//! is in parts of its own: the largest rate of ten rounds ([`maximum`]), the minimum RTT ([`least_rtt`]), acknowledgments that
//! come together ([`aggregation`]), a policer's rate ([`policer`]); so is what it does: when the pipe is full ([`full`]), the
//! gains around the rate ([`cycle`]), the window while losses are repaired ([`recovery`]) and
//! otherwise ([`window`]). [`startup`] is what onramp does to it.
//!
//! Counts of segments are those of the socket, gains and rates those of [`rate`].

mod aggregation;
mod cycle;
mod full;
mod least_rtt;
mod maximum;
mod policer;
mod rate;
mod recovery;
mod startup;
#[cfg(test)]
mod tests;
mod window;

use super::RateSample;
use crate::sim::socket::{Socket, State};
use aggregation::Aggregation;
use cycle::Cycle;
use full::FullPipe;
use least_rtt::LeastRtt;
use maximum::Maximum;
use policer::{Counted, Outcome, Policer, Shown};
use rate::{Gain, Rate, UNIT};
use recovery::Recovery;
use window::LEAST_WINDOW;

/// Rounds of which the largest rate counts.
const RATE_ROUNDS: u32 = 10;
/// 2 / ln 2, the least gain that doubles the rate each round; and its inverse, which drains what that has queued.
const HIGH_GAIN: Gain = UNIT * 2_885 / 1_000 + 1;
const DRAIN_GAIN: Gain = UNIT * 1_000 / 2_885;
/// Of the window while gains are cycled: what is on its way, and as much for acknowledgments that are late.
const WINDOW_GAIN: Gain = 2 * UNIT;
/// Below this rate a burst may be one segment, bytes per second: 1.2 Mb/s.
const SMALL_BURST_RATE: u64 = 150_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The rate doubles each round.
    Startup,
    /// What that has queued is drained.
    Drain,
    /// The gains are cycled.
    ProbeRate,
    /// The queue is drained for the minimum RTT.
    ProbeRtt,
}

/// Rounds: each ends when what was sent after the one before is delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    count: u32,
    /// With so many segments delivered.
    ends: u32,
    /// One begins with this acknowledgment.
    begins: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    pacing_gain: Gain,
    window_gain: Gain,
    rounds: Rounds,
    rates: Maximum,
    full: FullPipe,
    /// Of the rounds since the exit of onramp's algorithm, how many have raised the rate.
    raised: u32,
    least_rtt: LeastRtt,
    cycle: Cycle,
    policer: Policer,
    aggregation: Aggregation,
    recovery: Recovery,
    /// Sending has begun again after a time without anything on its way, and nothing of it is acknowledged.
    restarts: bool,
}

impl Bbr {
    /// Of flow `number` in a run of this seed, before it has a socket.
    pub fn new(seed: u64, number: u64) -> Self {
        Self {
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            rounds: Rounds::default(),
            rates: Maximum::new(RATE_ROUNDS),
            full: FullPipe::default(),
            raised: 0,
            least_rtt: LeastRtt::new(0, u32::MAX),
            cycle: Cycle::new(seed, number),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            recovery: Recovery::new(),
            restarts: false,
        }
    }

    /// The connection is open, and has sampled an RTT; nothing is sent yet (`bbr_init`).
    pub fn begin(&mut self, socket: &mut Socket) {
        self.least_rtt = LeastRtt::new(socket.now_us, socket.round_trip.least_us().unwrap_or(u32::MAX));
        self.policer = Policer::new(counted(socket));
        self.aggregation.begin(socket.now_us);
        let first = rate::of(socket.cwnd, u64::from(socket.round_trip.smoothed_us().max(1)));
        socket.pacing_rate = rate::bytes_per_second(first, socket.mss, HIGH_GAIN);
        socket.paced = true;
    }

    /// An acknowledgment, after what it says of losses (`bbr_main`).
    pub fn control(&mut self, socket: &mut Socket, sample: &RateSample) {
        self.sample_rate(socket, sample);
        if let (1.., Some(_)) = (sample.acked, sample.rate()) {
            let (rate, round) = (self.rate(), self.rounds.begins);
            self.aggregation.add(sample.acked, socket.delivered_us, rate, socket.cwnd, round);
        }
        self.cycle_gain(socket, sample);
        if self.rounds.begins && !sample.app_limited {
            self.full.round_ends(self.rates.get());
        }
        self.drain(socket);
        self.sample_rtt(socket, sample);
        self.set_gains();
        self.pace(socket, self.rate(), self.pacing_gain);
        self.set_window(socket, sample);
    }

    /// A loss, while the window is whole: the threshold, which stays (`bbr_ssthresh`).
    pub fn threshold(&mut self, socket: &Socket) -> u32 {
        self.keep_window(socket);
        socket.ssthresh
    }

    /// The state changes: a timeout ends the round (`bbr_set_state`).
    pub fn state(&mut self, socket: &Socket, new: State) {
        if new != State::Loss {
            return;
        }
        self.recovery.state = State::Loss;
        self.full.rate = 0;
        self.rounds.begins = true;
        self.sample_policer(socket, true, false);
    }

    /// A reduction was needless: the window, which is restored once recovery ends (`bbr_undo_cwnd`).
    pub fn undo(&mut self, socket: &Socket) -> u32 {
        self.full.begin_anew();
        self.policer = Policer::new(counted(socket));
        socket.cwnd
    }

    /// Something is sent while nothing is on its way (`bbr_cwnd_event`).
    pub fn transmission_starts(&mut self, socket: &mut Socket) {
        if socket.app_limited == 0 {
            return;
        }
        self.restarts = true;
        self.aggregation.begin(socket.now_us);
        match self.mode {
            Mode::ProbeRate => self.pace(socket, self.rate(), UNIT),
            Mode::ProbeRtt => self.end_probe_rtt(socket),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// Segments of a burst at least (`bbr_min_tso_segs`).
    pub fn least_burst(socket: &Socket) -> u32 {
        if socket.pacing_rate < SMALL_BURST_RATE { 1 } else { 2 }
    }

    /// The rate that it goes by (`bbr_bw`).
    fn rate(&self) -> Rate {
        self.policer.rate().unwrap_or(self.rates.get())
    }

    /// Rounds, and the largest rate of the last ones (`bbr_update_bw`).
    fn sample_rate(&mut self, socket: &Socket, sample: &RateSample) {
        self.rounds.begins = false;
        let Some((delivered, interval_us)) = sample.rate() else { return };
        if sample.prior_delivered.wrapping_sub(self.rounds.ends) as i32 >= 0 {
            self.rounds = Rounds { count: self.rounds.count + 1, ends: socket.delivered, begins: true };
            self.recovery.end_round();
        }
        self.sample_policer(socket, sample.losses > 0, sample.app_limited);
        let rate = rate::of(delivered, interval_us.into());
        // An application that sends little shows the least that the path carries.
        if !sample.app_limited || rate >= self.rates.get() {
            self.rates.add(self.rounds.count, rate);
        }
    }

    fn sample_policer(&mut self, socket: &Socket, loses: bool, app_limited: bool) {
        let shown = Shown {
            counted: counted(socket),
            mss: socket.mss,
            round: self.rounds.begins,
            loses,
            app_limited,
            cycling: self.mode == Mode::ProbeRate,
        };
        match self.policer.sample(&shown) {
            Outcome::Same => {}
            Outcome::Found => self.pacing_gain = UNIT,
            Outcome::Forgotten => self.begin_cycle(socket),
        }
    }

    fn begin_cycle(&mut self, socket: &Socket) {
        self.mode = Mode::ProbeRate;
        self.cycle.begin(socket.delivered_us);
    }

    /// The next gain, if its time has come (`bbr_is_next_cycle_phase`).
    fn cycle_gain(&mut self, socket: &Socket, sample: &RateSample) {
        if self.mode != Mode::ProbeRate {
            return;
        }
        let lasted = self.cycle.has_lasted(socket.delivered_us, self.least_rtt.us);
        let over = if self.pacing_gain == UNIT {
            lasted
        } else {
            let in_network = self.in_network(socket, sample.prior_in_flight);
            let held = |gain| self.held(socket, gain);
            if self.pacing_gain > UNIT {
                // Not in vain where the queue is too small for it.
                lasted && (sample.losses > 0 || in_network >= held(self.pacing_gain))
            } else {
                lasted || in_network <= held(UNIT)
            }
        };
        if over {
            self.cycle.advance(socket.delivered_us);
        }
    }

    /// From a full pipe to the cycle of gains, once what is queued has drained (`bbr_check_drain`).
    fn drain(&mut self, socket: &mut Socket) {
        if self.mode == Mode::Startup && self.full.reached {
            self.mode = Mode::Drain;
            socket.ssthresh = self.held(socket, UNIT);
        }
        if self.mode == Mode::Drain && self.in_network(socket, socket.in_flight()) <= self.held(socket, UNIT)
        {
            self.begin_cycle(socket);
        }
    }

    /// The minimum RTT, which is looked for once it has expired (`bbr_update_min_rtt`).
    fn sample_rtt(&mut self, socket: &mut Socket, sample: &RateSample) {
        let expired = self.least_rtt.sample(socket.now_us, sample.rtt_us, sample.delayed);
        if expired && !self.restarts && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.keep_window(socket);
            self.least_rtt.begin_probe();
        }
        if self.mode == Mode::ProbeRtt {
            // The rates that follow do not count.
            let in_flight = socket.in_flight();
            socket.app_limited = socket.delivered.wrapping_add(in_flight).max(1);
            if self.least_rtt.begin_drained(socket.now_us, in_flight <= LEAST_WINDOW) {
                self.rounds.ends = socket.delivered;
            } else if self.least_rtt.has_passed_round(self.rounds.begins) {
                self.end_probe_rtt(socket);
            }
        }
        if sample.delivered.is_some_and(|delivered| delivered > 0) {
            self.restarts = false;
        }
    }

    fn end_probe_rtt(&mut self, socket: &mut Socket) {
        if !self.least_rtt.ends_probe(socket.now_us) {
            return;
        }
        socket.cwnd = socket.cwnd.max(self.recovery.window);
        if self.full.reached {
            self.begin_cycle(socket);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn keep_window(&mut self, socket: &Socket) {
        self.recovery.keep(socket.cwnd, self.mode == Mode::ProbeRtt);
    }

    /// `bbr_update_gains`.
    fn set_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeRate if self.policer.rate().is_some() => (UNIT, WINDOW_GAIN),
            Mode::ProbeRate => (self.cycle.gain(), WINDOW_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// Before the pipe is full the rate never falls (`bbr_set_pacing_rate`).
    fn pace(&self, socket: &mut Socket, rate: Rate, gain: Gain) {
        let rate = rate::bytes_per_second(rate, socket.mss, gain);
        if self.full.reached || rate > socket.pacing_rate {
            socket.pacing_rate = rate;
        }
    }
}

fn counted(socket: &Socket) -> Counted {
    Counted { at_us: socket.delivered_us, delivered: socket.delivered, lost: socket.lost }
}
