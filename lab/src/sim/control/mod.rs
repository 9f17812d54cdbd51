// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A congestion control: one of `bpf/algorithm` in slow start, a base for everything else, and between the two what the
//! kernel's shell does (`bpf/kernel/congestion_ops.bpf.h` and `window.bpf.h`), step by step.

mod base;
mod cubic;
mod start;
mod told;

use onramp_algorithm::{Ack, ExitReason, Verdict, ack_flag, growth, outcome};

pub use base::Base;
pub use start::Start;
pub use told::Told;

use super::socket::{Socket, State};

/// Bytes of the largest burst that is handed to a device at once.
pub const BURST_BYTES: u32 = 65_536;
/// No verdict takes the window below, segments.
const MIN_WINDOW: u32 = 2;

/// The exit record.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Why.
    pub reason: ExitReason,
    /// Since the first data was sent, microseconds.
    pub at_us: u64,
    /// Window at detection, segments.
    pub window: u32,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Control {
    base: Base,
    start: Start,
    started_us: Option<u64>,
    /// In the slow start that is judged.
    slow_start: bool,
    slow_starts: u32,
    /// The exit is decided, a drain goes on.
    exiting: bool,
    /// A loss ended slow start, which an undo takes back.
    reduced: bool,
    /// A verdict has set the threshold.
    aimed: bool,
    growth_limit: Option<u32>,
    undo_limit: u32,
    pacing_rate: u64,
    /// This control has switched pacing on.
    paces: bool,
    record: Option<Record>,
    verdicts: u64,
    /// Every acknowledgment as an algorithm would see it, where they are kept.
    kept: Option<Vec<Ack>>,
}

impl Control {
    /// A base, and what decides its slow starts.
    pub fn new(base: Base, start: Start) -> Self {
        Self {
            base,
            start,
            started_us: None,
            slow_start: false,
            slow_starts: 0,
            exiting: false,
            reduced: false,
            aimed: false,
            growth_limit: None,
            undo_limit: 0,
            pacing_rate: 0,
            paces: false,
            record: None,
            verdicts: 0,
            kept: None,
        }
    }

    /// The same with every acknowledgment kept, as recordings have them.
    pub fn keeping(self) -> Self {
        Self { kept: Some(Vec::new()), ..self }
    }

    /// The acknowledgements that were kept.
    pub fn take_kept(&mut self) -> Vec<Ack> {
        self.kept.take().unwrap_or_default()
    }

    /// The threshold of a new connection.
    pub fn first_threshold(&self) -> u32 {
        self.start.first_threshold().max(MIN_WINDOW)
    }

    /// Whether every loss begins slow start anew.
    pub fn starts_anew(&self) -> bool {
        matches!(self.base, Base::Tahoe)
    }

    /// How the first slow start ended.
    pub fn record(&self) -> Option<Record> {
        self.record
    }

    /// Acknowledgments that were judged, where they are those of a single slow start.
    pub fn judged(&self) -> Option<u64> {
        (self.slow_starts <= 1).then_some(self.verdicts)
    }

    /// Segments are acknowledged, before the window grows: `pkts_acked`.
    pub fn acked(&mut self, socket: &mut Socket, acked: u32, rtt_us: Option<u32>) {
        if let Some(kept) = &mut self.kept {
            kept.push(describe(socket, acked, rtt_us));
        }
        let recovering = socket.state == State::Recovery;
        let starting = socket.in_slow_start() && !recovering;
        if starting {
            self.on_ack_starting(socket, acked, rtt_us);
        } else if !recovering && self.start.is_always_asked() {
            let ack = describe(socket, acked, rtt_us);
            if let Some(verdict) = self.start.on_ack(&ack) {
                self.apply_window(socket, &verdict);
            }
        }
        self.base.acked(socket, rtt_us);
    }

    fn on_ack_starting(&mut self, socket: &mut Socket, acked: u32, rtt_us: Option<u32>) {
        let ack = describe(socket, acked, rtt_us);
        let begins = !self.slow_start;
        if begins {
            self.enter_slow_start(&ack);
        }
        if begins && self.exiting {
            let verdict = Verdict {
                ssthresh: self.undo_limit,
                cwnd: ack.cwnd.min(self.undo_limit),
                ..Verdict::default()
            };
            self.apply(socket, &ack, &verdict);
        } else if let Some(verdict) = self.start.on_ack(&ack) {
            self.apply(socket, &ack, &verdict);
        }
    }

    fn enter_slow_start(&mut self, ack: &Ack) {
        let rtt_us = u64::try_from(ack.rtt_us).ok().filter(|rtt| *rtt > 0);
        self.started_us.get_or_insert(ack.now_us - rtt_us.unwrap_or(ack.smoothed_rtt_us.into()));
        self.slow_start = true;
        self.slow_starts += 1;
        self.start.restart();
    }

    /// Applies a verdict on an ACK in slow start.
    fn apply(&mut self, socket: &mut Socket, ack: &Ack, verdict: &Verdict) {
        if verdict.outcome == outcome::EXIT {
            self.note(ack, ExitReason::Algorithm);
            self.exiting = true;
        }
        self.apply_window(socket, verdict);
        if verdict.ssthresh > 0 {
            self.aimed = true;
            socket.ssthresh = verdict.ssthresh.max(MIN_WINDOW);
            if socket.cwnd >= socket.ssthresh {
                self.finish();
            }
        }
    }

    fn apply_window(&mut self, socket: &mut Socket, verdict: &Verdict) {
        self.verdicts += 1;
        self.undo_limit = verdict.undo_limit;
        self.growth_limit = (verdict.growth == growth::LIMITED).then_some(verdict.growth_limit);
        if verdict.pacing_rate > 0 {
            self.pacing_rate = verdict.pacing_rate;
            self.start_pacing(socket);
        } else {
            self.stop_pacing(socket);
        }
        if verdict.cwnd > 0 {
            socket.cwnd = verdict.cwnd.max(MIN_WINDOW);
        }
    }

    fn start_pacing(&mut self, socket: &mut Socket) {
        if !socket.paced {
            socket.paced = true;
            self.paces = true;
        }
    }

    fn stop_pacing(&mut self, socket: &mut Socket) {
        self.pacing_rate = 0;
        if self.paces {
            self.paces = false;
            socket.paced = false;
        }
    }

    /// Before data are sent: `min_tso_segs`, where the rate is set in place of the kernel's own.
    pub fn before_sending(&mut self, socket: &mut Socket) {
        if !socket.paced {
            return;
        }
        if self.pacing_rate > 0 {
            socket.pacing_rate = self.pacing_rate;
        } else if self.paces {
            let filled = socket.in_flight() + socket.cwnd / 32 >= socket.cwnd;
            let smoothed = u64::from(socket.round_trip.smoothed_eighths_us);
            if filled || smoothed == 0 {
                self.stop_pacing(socket);
            } else {
                let window = u64::from(socket.cwnd) * u64::from(socket.mss);
                socket.pacing_rate = 8_000_000 * window / smoothed;
            }
        }
    }

    /// The window may grow: `cong_avoid`.
    pub fn grow(&mut self, socket: &mut Socket, acked: u32) {
        let starting = socket.in_slow_start();
        let before = socket.cwnd;
        match self.growth_limit.filter(|_| starting || self.start.is_always_asked()) {
            Some(limit) => {
                let acked = acked.min(limit);
                if acked == 0 {
                    return;
                }
                self.base.grow(socket, acked);
                socket.cwnd = socket.cwnd.min(before.saturating_add(limit));
            }
            None => self.base.grow(socket, acked),
        }
        if starting && !socket.in_slow_start() && self.slow_start {
            let ack = describe(socket, 0, None);
            self.note(&ack, if self.aimed { ExitReason::Algorithm } else { ExitReason::Ssthresh });
            self.finish();
        }
    }

    /// Loss or timeout: the threshold.
    pub fn threshold(&mut self, socket: &Socket, timeout: bool) -> u32 {
        let threshold = self.base.threshold(socket);
        if !self.slow_start && !self.starts_anew() {
            // From here on an undo is about this event, not about the one that ended slow start.
            self.reduced = false;
            return threshold;
        }
        let ack = describe(socket, 0, None);
        let threshold = self.start.on_loss(&ack, threshold);
        if !self.slow_start {
            return threshold;
        }
        self.reduced = true;
        self.note(&ack, if timeout { ExitReason::Timeout } else { ExitReason::Loss });
        self.finish();
        threshold
    }

    /// The state changes.
    pub fn state(&mut self, new: State) {
        self.base.state(new);
        if new == State::Loss {
            self.slow_start = false;
        }
    }

    /// The window was reduced because the connection was idle.
    pub fn restarted(&mut self) {
        self.slow_start = false;
    }

    /// Sending begins again after `idle_us` without anything on its way.
    pub fn resumed(&mut self, now_us: u64, idle_us: u64) {
        self.base.resumed(now_us, idle_us);
    }

    /// The loss was none: the window to go back to.
    pub fn undo(&mut self, socket: &Socket) -> u32 {
        let mut window = socket.cwnd.max(socket.prior_cwnd);
        if self.reduced && self.record.is_some_and(|record| record.reason == ExitReason::Algorithm) {
            if self.undo_limit > 0 {
                self.exiting = true;
                window = socket.cwnd.max(window.min(self.undo_limit));
            }
        } else if self.reduced {
            self.record = None;
        }
        self.reduced = false;
        window
    }

    fn note(&mut self, ack: &Ack, reason: ExitReason) {
        let started_us = self.started_us.unwrap_or(ack.now_us);
        self.record.get_or_insert(Record { reason, at_us: ack.now_us - started_us, window: ack.cwnd });
    }

    fn finish(&mut self) {
        (self.slow_start, self.exiting, self.aimed) = (false, false, false);
        self.growth_limit = None;
        self.pacing_rate = 0;
    }
}

/// What an algorithm may know of this moment.
fn describe(socket: &Socket, acked: u32, rtt_us: Option<u32>) -> Ack {
    let flags = [
        (socket.app_limited > 0, ack_flag::APP_LIMITED),
        (socket.rate_app_limited, ack_flag::RATE_APP_LIMITED),
        (socket.cwnd_limited, ack_flag::CWND_LIMITED),
        (socket.paced, ack_flag::PACED),
    ];
    Ack {
        now_us: socket.now_us,
        bytes_acked: socket.bytes_acked,
        bytes_sent: socket.bytes_sent,
        pacing_rate: socket.pacing_rate,
        bytes_outstanding: (socket.bytes_sent - socket.bytes_acked) as u32,
        delivered: socket.delivered,
        acked,
        rtt_us: rtt_us.map_or(-1, |rtt| rtt as i32),
        smoothed_rtt_us: socket.round_trip.smoothed_us(),
        min_rtt_us: socket.round_trip.least_us().unwrap_or(0),
        cwnd: socket.cwnd,
        ssthresh: socket.ssthresh,
        in_flight: socket.in_flight(),
        mss: socket.mss,
        gso_max_size: BURST_BYTES,
        flags: flags.into_iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag),
        receiver_clock: socket.receiver_ms,
        receive_window: 0,
    }
}
