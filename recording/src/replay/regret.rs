// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What an exit from slow start cost: the time lost by leaving before the window carried what the path gives, or the
//! queue left by leaving after.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Exit, Rounds};
use crate::sample::{Event, Sample};

/// Rounds in a row over which a rate is taken: one alone may be that of acknowledgments that were bunched.
pub const ROUNDS: usize = 4;
/// Rounds until what was sent at an exit is back: that of the exit, and the next.
const BACK: u32 = 2;
/// Of the highest rate, percent, from which on the window carries it.
pub const CARRIES_PERCENT: u64 = 95;
/// CUBIC's growth, segments a second cubed (RFC 9438, section 5, constant C).
const CUBIC: f64 = 0.4;
/// Growth of Linux's CUBIC at least where it has not seen a loss: a segment for twenty that are acknowledged (`cnt` in
/// `bictcp_update`, net/ipv4/tcp_cubic.c), which is this much in a round trip.
const UNKNOWN: f64 = 1.05;
/// Growth of CUBIC's Reno-friendly region, segments a round trip: 3 (1 - 0.7) / (1 + 0.7) (RFC 9438, section 4.3).
const FRIENDLY: f64 = 0.53;

/// Steps of a continuation.
const STEPS: u32 = 24;

/// What a path gave a flow: the one place that says what its bandwidth-delay product is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PathEstimate {
    /// Peak rate: of a round, or of four in a row that were delivered at 95 % of that at least, because one alone may be that
    /// of acknowledgments that were bunched.
    pub rate_bytes_per_second: u64,
    /// The lowest RTT.
    pub base_rtt_us: u32,
    /// Their product, the bandwidth-delay product: the window that carries the rate without a queue.
    pub window_bytes: u64,
    /// All of these are lower bounds: no four rounds in a row, in none of which the application was the limit, were
    /// delivered at 95 % of the peak. The flow may never have filled its path.
    pub at_least: bool,
    /// When the window first carried the highest rate of four such rounds, since the first data: where, between the begin of
    /// the first four at 95 % of that and the begin of the four a round earlier, their rates cross it. None: there are no
    /// four.
    pub carried_since_start_us: Option<u64>,
}

/// What an exit cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regret {
    /// Window at the exit over the one that carries the path's rate without a queue: below 1 is early.
    pub window_to_bdp: f64,
    /// From the exit until the window carries the rate, less what doubling would have taken; 0: it did already, or growth
    /// was as fast.
    pub early_us: u64,
    /// Queueing delay by leaving late: of what is too much of the window, but no more than the highest smoothed RTT at the
    /// end of the round of the exit and of the next, less the lowest RTT; none: these rounds were not seen, or the window is
    /// above a bandwidth-delay product that is a lower bound.
    pub queue_us: Option<u64>,
}

impl PathEstimate {
    /// Of the exit that the flow really made, so long after its first data, and with this smoothed RTT at most when what
    /// was sent then was back: measured. `None`: when the window carried the rate is not known.
    pub fn regret(&self, at_us: u64, window_bytes: u64, rtt_us: Option<u32>) -> Option<Regret> {
        let queue_us = self.queue_us(window_bytes);
        let seen_us = queue_us.and_then(|queue_us| match rtt_us {
            Some(rtt_us) => Some(queue_us.min(rtt_us.saturating_sub(self.base_rtt_us).into())),
            None => (queue_us == 0).then_some(0),
        });
        let took_us = self.carried_since_start_us?.saturating_sub(at_us) as f64;
        Some(self.cost(window_bytes, took_us, seen_us))
    }

    /// Of an exit that an algorithm would have made: by CUBIC's growth from its window on until that carries the rate,
    /// without the memory of a loss, or with what is too much of the window in a queue that has room for it.
    pub fn regret_of(&self, exit: &Exit) -> Regret {
        let took_us = self.growth_us(exit, carries(self.window_bytes) as f64);
        self.cost(exit.window_bytes, took_us, self.queue_us(exit.window_bytes))
    }

    /// The windows to which that growth comes, each with the time since the first data, microseconds: from that of the exit to
    /// the one that carries the rate. Empty: that of the exit does.
    pub fn continuation_of(&self, exit: &Exit) -> Vec<(u64, u64)> {
        let missing = carries(self.window_bytes).saturating_sub(exit.window_bytes.into()) as f64;
        let point = |step: u32| {
            let window = exit.window_bytes as f64 + missing * f64::from(step) / f64::from(STEPS);
            (exit.since_start_us + self.growth_us(exit, window).round() as u64, window.round() as u64)
        };
        if missing > 0.0 { (0..=STEPS).map(point).collect() } else { Vec::new() }
    }

    /// For how long CUBIC would have grown from an exit's window to this one, by the fastest of its ways, microseconds.
    fn growth_us(&self, exit: &Exit, window_bytes: f64) -> f64 {
        let from = exit.window_bytes as f64;
        let segment = (from / f64::from(exit.cwnd_segments.max(1))).max(1.0);
        let missing = (window_bytes - from).max(0.0) / segment;
        let cubic_us = (missing / CUBIC).cbrt() * 1e6;
        let friendly_us = missing / FRIENDLY * f64::from(self.base_rtt_us);
        let times = (window_bytes / from.max(1.0)).max(1.0);
        let unknown_us = times.log(UNKNOWN) * f64::from(self.base_rtt_us);
        cubic_us.min(friendly_us).min(unknown_us)
    }

    /// What is too much of a window waits so long, in a queue that has room for it. `None`: whether it is too much is not
    /// known.
    fn queue_us(&self, window_bytes: u64) -> Option<u64> {
        let queued = u128::from(window_bytes.saturating_sub(self.window_bytes));
        let time_us = queued * 1_000_000 / u128::from(self.rate_bytes_per_second.max(1));
        Some(time_us.try_into().unwrap_or(u64::MAX)).filter(|us| *us == 0 || !self.at_least)
    }

    fn cost(&self, window_bytes: u64, took_us: f64, queue_us: Option<u64>) -> Regret {
        let window_to_bdp = window_bytes as f64 / self.window_bytes.max(1) as f64;
        let doubling_us = f64::from(self.base_rtt_us) * (1.0 / window_to_bdp).log2();
        let early_us = if window_to_bdp < 1.0 { (took_us - doubling_us).max(0.0) } else { 0.0 };
        Regret { window_to_bdp, early_us: early_us.round() as u64, queue_us }
    }
}

/// What a path has given so far, by rounds. Of them only those are kept that may still be the first to have carried it.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// The newest, so many of them: here and not behind a pointer, because a server has thousands of flows.
    rounds: [Round; ROUNDS],
    seen: usize,
    /// The rate of these.
    newest: Option<Pace>,
    /// Rounds in a row that were faster than all before, and those a round earlier. The last are the fastest.
    faster: VecDeque<(Option<Pace>, Pace)>,
    /// The first of these, and the rate of the last: here too, for the same reason.
    first: Option<(Option<Pace>, Pace)>,
    best_rate: u64,
    /// Peak rate of a round, bytes per second.
    peak_rate: u64,
    left: Option<Left>,
}

/// Rounds in a row.
#[derive(Clone, Copy, Debug)]
struct Pace {
    begin_us: u64,
    /// Bytes per second.
    rate: u64,
}

/// How much of the highest rate, or of the window for it, is enough to carry it.
fn carries(highest: u64) -> u128 {
    (u128::from(highest) * u128::from(CARRIES_PERCENT)).div_ceil(100)
}

/// When a rate was reached that is above that of the rounds a round earlier, as if it grew evenly from their begin on.
fn reached(earlier: Option<Pace>, pace: Pace, rate: u128) -> u64 {
    let Some(earlier) = earlier else {
        return pace.begin_us;
    };
    let time = u128::from(pace.begin_us.saturating_sub(earlier.begin_us));
    let missed = u128::from(pace.rate).saturating_sub(rate);
    let grown = u128::from(pace.rate.saturating_sub(earlier.rate)).max(1);
    pace.begin_us - u64::try_from(time * missed.min(grown) / grown).unwrap_or(0)
}

/// An exit, and what came back of what was sent then.
#[derive(Clone, Copy, Debug)]
struct Left {
    at_us: u64,
    /// Of the rounds until it was back, how many were seen.
    rounds: u32,
    /// Highest smoothed RTT at their ends; 0: none.
    rtt_us: u32,
}

impl Left {
    fn round(&mut self, round: &Round) {
        let is_first = (round.begin_us..=round.end_us).contains(&self.at_us);
        if self.rounds < BACK && (is_first || self.rounds > 0) {
            self.rounds += 1;
            self.rtt_us = self.rtt_us.max(round.smoothed_rtt_us);
        }
    }
}

/// A round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// Any clock, microseconds, as is the next.
    pub begin_us: u64,
    /// End.
    pub end_us: u64,
    /// Delivered in it, also selectively: a hole that is filled at last acknowledges much that came before.
    pub bytes: u64,
    /// At its end; 0: none.
    pub smoothed_rtt_us: u32,
    /// Whether something else than the window was the limit in it.
    pub limited: bool,
}

impl Path {
    /// Goes on with the next round of a flow whose lowest RTT so far is this; 0: none.
    pub fn round(&mut self, round: Round, base_rtt_us: u32) {
        if let Some(left) = &mut self.left {
            left.round(&round);
        }
        self.peak_rate = self.peak_rate.max(round.rate(base_rtt_us).unwrap_or(0));
        if self.seen == ROUNDS {
            self.rounds.rotate_left(1);
        } else {
            self.seen += 1;
        }
        self.rounds[self.seen - 1] = round;
        let (first, last) = (self.rounds[0], round);
        if self.seen < ROUNDS || self.rounds.iter().any(|round| round.limited) {
            self.newest = None;
            return;
        }
        // In 128 bits: what a recording says need not make sense.
        let bytes: u128 = self.rounds.iter().map(|round| u128::from(round.bytes)).sum();
        let time = last.end_us.saturating_sub(first.begin_us);
        let rate = u64::try_from(bytes * 1_000_000 / u128::from(time.max(1))).unwrap_or(u64::MAX);
        let pace = Pace { begin_us: first.begin_us, rate };
        let earlier = self.newest.replace(pace);
        if rate > self.best_rate {
            self.faster.push_back((earlier, pace));
            let enough = carries(rate);
            while self.faster.front().is_some_and(|(_, pace)| u128::from(pace.rate) < enough) {
                self.faster.pop_front();
            }
            self.first = self.faster.front().copied();
            self.best_rate = rate;
        }
    }

    /// Slow start ended then, by the clock of the rounds. This may be reported some rounds later.
    pub fn left(&mut self, at_us: u64) {
        if self.left.is_none_or(|left| left.at_us != at_us) {
            let mut left = Left { at_us, rounds: 0, rtt_us: 0 };
            self.rounds[..self.seen].iter().for_each(|round| left.round(round));
            self.left = Some(left);
        }
    }

    /// What leaving cost with this window; `None`: it has not, or as for [`Path::given`].
    pub fn regret(&self, start_us: u64, base_rtt_us: u32, window_bytes: u64) -> Option<Regret> {
        let left = self.left?;
        let rtt_us = Some(left.rtt_us).filter(|us| *us != 0);
        let at_us = left.at_us.saturating_sub(start_us);
        self.given(start_us, base_rtt_us)?.regret(at_us, window_bytes, rtt_us)
    }

    /// What it gave to a flow whose first data was sent then, and whose lowest RTT this is; `None`: there was no round.
    pub fn given(&self, start_us: u64, base_rtt_us: u32) -> Option<PathEstimate> {
        let at_least = u128::from(self.best_rate) < carries(self.peak_rate);
        let rate = if at_least { self.peak_rate } else { self.best_rate };
        let carried_us = self.first.map(|(earlier, pace)| reached(earlier, pace, carries(self.best_rate)));
        let window = u128::from(rate) * u128::from(base_rtt_us) / 1_000_000;
        Some(PathEstimate {
            rate_bytes_per_second: rate,
            base_rtt_us,
            window_bytes: window.try_into().unwrap_or(u64::MAX),
            at_least,
            carried_since_start_us: carried_us.map(|us| us.saturating_sub(start_us)),
        })
        .filter(|given| given.window_bytes > 0)
    }
}

impl Round {
    /// Bytes per second. `None`: a round that began with nothing in flight ends with the next ACK, and its rate says nothing
    /// of the path.
    pub fn rate(&self, base_rtt_us: u32) -> Option<u64> {
        let time_us = self.end_us.saturating_sub(self.begin_us);
        let rate = u128::from(self.bytes) * 1_000_000 / u128::from(time_us.max(1));
        (time_us.saturating_mul(2) >= base_rtt_us.into()).then(|| rate.try_into().unwrap_or(u64::MAX))
    }
}

/// What the path of a recorded flow gives, and what its exit cost.
#[derive(Clone, Debug, Default)]
pub(super) struct Costs {
    path: Path,
    rounds: Rounds,
    base_rtt_us: u32,
}

impl Costs {
    /// Of a flow that exited slow start then, if it did; monotonic clock.
    pub fn new(left_us: Option<u64>) -> Self {
        let mut costs = Self::default();
        left_us.into_iter().for_each(|at_us| costs.path.left(at_us));
        costs
    }

    /// Goes on with the flow's next acknowledgments.
    pub fn add(&mut self, samples: &[Sample]) {
        for sample in samples.iter().filter(|one| !matches!(one.event, Event::Loss(_))) {
            let ack = &sample.ack;
            if ack.min_rtt_us != 0 && (self.base_rtt_us == 0 || ack.min_rtt_us < self.base_rtt_us) {
                self.base_rtt_us = ack.min_rtt_us;
            }
            if let Some(over) = self.rounds.add(ack) {
                let round = Round {
                    begin_us: over.begin.now_us,
                    end_us: over.end.now_us,
                    bytes: u64::from(over.delivered_segments()) * u64::from(ack.mss),
                    smoothed_rtt_us: ack.smoothed_rtt_us,
                    limited: over.app_limited,
                };
                self.path.round(round, self.base_rtt_us);
            }
        }
    }

    /// What the path gave: [`Path::given`].
    pub fn given(&self, start_us: u64) -> Option<PathEstimate> {
        self.path.given(start_us, self.base_rtt_us)
    }

    /// What its exit cost: [`Path::regret`].
    pub fn regret(&self, start_us: u64, window_bytes: u64) -> Option<Regret> {
        self.path.regret(start_us, self.base_rtt_us, window_bytes)
    }
}

#[cfg(test)]
mod tests {
    use onramp_algorithm::{Ack, ack_flag};

    use onramp_algorithm::ExitReason;

    use super::*;

    const RTT_US: u64 = 100_000;
    const SEGMENT: u64 = 1_000;
    /// Segments that the path carries in a round trip.
    const PATH: u64 = 1_024;

    /// A flow that doubles to `exit` segments, then gets `step` more a round; an acknowledgment in a hundredth of a round.
    fn flow(exit: u64, step: u64, rounds: usize, limited: bool) -> Vec<Sample> {
        let (mut window, mut acked, mut samples) = (16u64, 0, Vec::new());
        for round in 0..rounds as u64 {
            let carried = window.min(PATH);
            let sent_before = acked + carried * SEGMENT;
            let next = if window < exit { (window * 2).min(exit) } else { window + step }.min(PATH);
            for part in 1..=100 {
                let ack = Ack {
                    now_us: (round + 1) * RTT_US + part * RTT_US / 100,
                    bytes_acked: acked + carried * SEGMENT * part / 100,
                    bytes_sent: sent_before + next * SEGMENT * part / 100,
                    delivered: (acked / SEGMENT + carried * part / 100) as u32,
                    mss: SEGMENT as u32,
                    min_rtt_us: RTT_US as u32,
                    flags: if limited { ack_flag::APP_LIMITED } else { 0 },
                    ..Ack::default()
                };
                samples.push(Sample { ack, ..Sample::default() });
            }
            acked += carried * SEGMENT;
            window = next;
        }
        samples
    }

    fn given(samples: &[Sample]) -> Option<PathEstimate> {
        let mut costs = Costs::default();
        // However it comes.
        samples.chunks(37).for_each(|some| costs.add(some));
        costs.given(0)
    }

    #[test]
    fn what_an_early_exit_cost_is_the_time_until_the_path_was_full_less_that_of_doubling() {
        // Eight segments a round from 256 on: 95 % of the path's 1,024 are carried 90 rounds after the exit.
        let samples = flow(256, 8, 130, false);
        let found = given(&samples).unwrap();
        let rate = PATH * SEGMENT * 1_000_000 / RTT_US;
        assert!(found.rate_bytes_per_second.abs_diff(rate) < rate / 100, "{found:?}");
        assert!(found.window_bytes.abs_diff(PATH * SEGMENT) < PATH * SEGMENT / 100, "{found:?}");
        let exit_at = 5 * RTT_US;
        let regret = found.regret(exit_at, 256 * SEGMENT, None).unwrap();
        assert!((regret.window_to_bdp - 0.25).abs() < 0.01, "{regret:?}");
        // 90 rounds, two of which doubling takes.
        let rounds = regret.early_us / RTT_US;
        assert!((84..=92).contains(&rounds), "{rounds}");
    }

    #[test]
    fn a_hole_that_is_filled_at_last_makes_no_path_faster() {
        let mut samples = flow(PATH, 1, 40, false);
        let mut acked = 0;
        // For eleven round trips what is acknowledged is nearly one behind what is delivered.
        for sample in &mut samples[2_000..3_100] {
            acked = sample.ack.bytes_acked.saturating_sub(PATH * SEGMENT * 9 / 10).max(acked);
            sample.ack.bytes_acked = acked;
        }
        let found = given(&samples).unwrap();
        assert!(found.window_bytes.abs_diff(PATH * SEGMENT) < PATH * SEGMENT / 100, "{found:?}");
    }

    #[test]
    fn who_leaves_when_the_path_is_full_has_lost_nothing() {
        let found = given(&flow(PATH, 1, 40, false)).unwrap();
        assert_eq!(found.regret(7 * RTT_US, PATH * SEGMENT + SEGMENT * 20, None).unwrap().early_us, 0);
        let regret = found.regret(7 * RTT_US, 2 * PATH * SEGMENT, None).unwrap();
        assert!((regret.window_to_bdp - 2.0).abs() < 0.02 && regret.early_us == 0, "{regret:?}");
    }

    #[test]
    fn what_is_kept_of_a_flow_that_only_becomes_faster_is_what_may_still_count() {
        let mut path = Path::default();
        for round in 0..100_000u64 {
            let begin_us = round * RTT_US;
            let round = Round {
                begin_us,
                end_us: begin_us + RTT_US,
                bytes: 10_000 + round,
                smoothed_rtt_us: 0,
                limited: false,
            };
            path.round(round, 100_000);
        }
        assert!(path.faster.len() <= 6_000, "{}", path.faster.len());
        let found = path.given(0, 100_000).unwrap();
        // The rate of the last four rounds, 1,099,975 bytes a second; 95 % of it began at round 94,500 or just next to.
        assert_eq!((found.rate_bytes_per_second, found.at_least), (1_099_975, false));
        assert!((found.carried_since_start_us.unwrap() / RTT_US).abs_diff(94_497) <= 3, "{found:?}");
    }

    #[test]
    fn an_application_that_was_the_limit_and_a_short_flow_give_a_lower_bound() {
        for (samples, segments) in [(flow(256, 8, 130, true), PATH), (flow(256, 8, 3, false), 32)] {
            let found = given(&samples).unwrap();
            assert_eq!((found.at_least, found.carried_since_start_us), (true, None));
            assert!(found.window_bytes.abs_diff(segments * SEGMENT) < segments * SEGMENT / 50, "{found:?}");
            assert_eq!(found.regret(RTT_US, 10 * PATH * SEGMENT, Some(200_000)), None);
        }
        assert_eq!(given(&[]), None);
    }

    #[test]
    fn a_peak_that_was_not_kept_for_four_rounds_is_a_lower_bound_and_says_nothing_of_queues() {
        // It doubles until it ends: the last round that is over is twice as fast as the one before.
        let found = given(&flow(512, 0, 6, false)).unwrap();
        let peak = found.window_bytes;
        assert!(found.at_least && peak.abs_diff(256 * SEGMENT) < 5 * SEGMENT, "{found:?}");
        let cost = |window_bytes: u64| found.regret(3 * RTT_US, window_bytes, Some(300_000)).unwrap();
        assert_eq!(cost(2 * peak).queue_us, None);
        assert_eq!(cost(peak).queue_us, Some(0), "below what it carried there was none");
        assert!((cost(2 * peak).window_to_bdp - 2.0).abs() < 0.01);
        // Four at 95 % of the peak are enough.
        let found = given(&flow(512, 0, 12, false)).unwrap();
        assert!(!found.at_least && found.window_bytes.abs_diff(512 * SEGMENT) < 10 * SEGMENT, "{found:?}");
        assert!(found.regret(3 * RTT_US, 4 * peak, Some(300_000)).unwrap().queue_us > Some(90_000));
    }

    #[test]
    fn what_another_exit_would_have_cost_follows_from_cubic() {
        let of = |base_rtt_us: u32, window_bytes: u64| PathEstimate {
            rate_bytes_per_second: 10_000_000,
            base_rtt_us,
            window_bytes,
            at_least: false,
            carried_since_start_us: Some(0),
        };
        let given = of(100_000, 1_000_000);
        let exit = |segments: u32| Exit {
            ack: 1,
            reason: ExitReason::Algorithm,
            at_us: 0,
            since_start_us: 0,
            acknowledged_bytes: 0,
            cwnd_segments: segments,
            window_bytes: u64::from(segments) * SEGMENT,
            in_flight_segments: segments,
            rtt_us: 100_000,
            min_rtt_us: 100_000,
            target_segments: None,
            ssthresh_segments: None,
        };
        // 450 segments are missing to 95 %: at 5 % a round trip they are there after ln 1.9 / ln 1.05 = 13.16 of these,
        // and by doubling the whole window after one.
        assert_eq!(given.regret_of(&exit(500)).early_us / 1_000, 1_215);
        // 930 segments over 600 ms: after (930 / 0.4)^(1/3) = 13.25 s; doubling takes 3.39 s.
        assert_eq!(of(600_000, 1_000_000).regret_of(&exit(20)).early_us / 1_000, 9_861);
        // Four and a half: 8.49 round trips at 0.53 a round trip.
        assert_eq!(of(100_000, 10_000).regret_of(&exit(5)).early_us / 1_000, 749);
        // It carries the rate as soon as the window of a real exit does.
        for enough in [950, 970, 999, 1_000] {
            assert_eq!(given.regret_of(&exit(enough)).early_us, 0, "{enough}");
        }
        // On the way there it is as far as the same growth has come, and it ends where the window carries the rate.
        let continuation = given.continuation_of(&Exit { since_start_us: 7_000, ..exit(500) });
        assert_eq!((continuation.len(), continuation[0]), (25, (7_000, 500 * SEGMENT)));
        assert_eq!(continuation[24].1, 950 * SEGMENT);
        assert_eq!(
            (continuation[24].0 - 7_000) / 1_000,
            1_315,
            "the time that was lost, and that of doubling"
        );
        assert!(continuation.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1), "{continuation:?}");
        assert_eq!(given.continuation_of(&exit(950)), []);
        // 500 are too many: 500 kB at 10 MB/s.
        let late = given.regret_of(&exit(1_500));
        assert_eq!((late.early_us, late.queue_us), (0, Some(50_000)));
        assert_eq!(given.regret_of(&exit(940)).queue_us, Some(0));
    }

    #[test]
    fn the_queue_of_a_late_exit_is_seen_when_what_was_sent_then_is_back() {
        // The exit is in the second round; the third is the slowest that counts. Four more show what the path gives.
        let rtts_us = [100_000, 120_000, 150_000, 170_000, 100_000, 100_000, 100_000];
        let round = |(number, smoothed_rtt_us): (u64, u32)| {
            let begin_us = number * RTT_US;
            Round { begin_us, end_us: begin_us + RTT_US, bytes: 1_000_000, smoothed_rtt_us, limited: false }
        };
        let regret = |told_after: usize, window_bytes: u64| {
            let mut path = Path::default();
            for (at, round) in (0..).zip(rtts_us).map(round).enumerate() {
                if at == told_after {
                    path.left(RTT_US * 3 / 2);
                }
                path.round(round, RTT_US as u32);
            }
            path.regret(0, RTT_US as u32, window_bytes)
        };
        assert_eq!(regret(0, 1_500_000).unwrap().queue_us, Some(50_000));
        // A drain ends, and is reported, later.
        assert_eq!(regret(4, 1_500_000).unwrap().queue_us, Some(50_000));
        assert_eq!(regret(6, 1_500_000).unwrap().queue_us, None, "its round is no longer known");
        assert_eq!(regret(0, 1_200_000).unwrap().queue_us, Some(20_000), "slow start's bursts were the rest");
        assert_eq!(regret(6, 900_000).unwrap().queue_us, Some(0), "it was early");
        assert_eq!(regret(9, 1_500_000), None);
    }
}
