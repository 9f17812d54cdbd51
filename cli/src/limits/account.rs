//! The account of a flow's time: which limit held it for how long.

use onramp_recording::replay::{Path, PathEstimate, Regret, Round};

use super::flight::{Flight, FromMemory, ROUND_TRIPS};
use super::limit::{Limit, Parts};
use super::sample::Sample;
use super::slices::Slices;
use super::slow_start::{Exit, SlowStart, Tracker};

/// From the first sample of a flow to its newest. The parts add up to the time between these.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    first: Sample,
    last: Sample,
    pub samples: u64,
    pub parts: Parts,
    pub over_time: Slices,
    charged: Charged,
    slow_start: Tracker,
    path: Path,
    flight: Flight,
    round: OpenRound,
    /// Times the window began to be reduced while the path was not full.
    pub reductions: u32,
}

/// Of the kernel's counters, how much has been charged. They go in jiffies: what exceeds one interval belongs to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Charged {
    busy_us: u64,
    receive_window_us: u64,
    send_buffer_us: u64,
}

/// The round in progress.
#[derive(Clone, Copy, Debug, Default)]
struct OpenRound {
    begin_us: u64,
    bytes: u64,
    bound_us: u64,
}

impl Account {
    pub fn new(first: Sample) -> Self {
        Self {
            first,
            last: first,
            samples: 1,
            parts: Parts::default(),
            over_time: Slices::default(),
            charged: Charged::default(),
            slow_start: Tracker::new(&first),
            path: Path::default(),
            flight: Flight::default(),
            round: OpenRound { begin_us: first.at_us, ..OpenRound::default() },
            reductions: 0,
        }
    }

    /// How its slow start ended was recorded; before its second sample.
    pub fn recorded_exit(&mut self, exit: Exit) {
        self.slow_start.recorded(exit);
    }

    /// Adds the next sample.
    pub fn add(&mut self, sample: Sample) {
        let before = self.last;
        let time_us = sample.at_us.saturating_sub(before.at_us);
        let parts = self.divide(time_us, &sample);
        self.parts.add_all(&parts);
        self.over_time.add(before.at_us.saturating_sub(self.first.at_us), &parts);
        let segments = sample.info.delivered.saturating_sub(before.info.delivered);
        let bytes = u64::from(segments) * u64::from(sample.info.snd_mss);
        self.slow_start.step(&before, &sample, &parts, bytes);
        if let SlowStart::Ended(exit) = self.slow_start.state() {
            self.path.left(self.first.at_us.saturating_add(exit.at_us));
        }
        self.round(&sample, &parts, bytes);
        let in_flight = u64::from(sample.info.in_flight()) * u64::from(sample.info.snd_mss);
        self.flight.add(sample.at_us.saturating_sub(self.first.at_us), in_flight);
        self.reductions += u32::from(sample.is_reduced() && !before.is_reduced() && !before.path_is_full());
        self.last = Sample { at_us: sample.at_us.max(before.at_us), ..sample };
        self.samples += 1;
    }

    /// Idle time, and that of the receive window and of the send buffer, are the kernel's; the rest has the limit of the later
    /// sample.
    fn divide(&mut self, time_us: u64, sample: &Sample) -> Parts {
        let (first, now) = (&self.first.info, &sample.info);
        let charged = &mut self.charged;
        let busy_us = due(now.busy_time_us, first.busy_time_us, charged.busy_us).min(time_us);
        charged.busy_us += busy_us;
        let receive_window_us =
            due(now.rwnd_limited_us, first.rwnd_limited_us, charged.receive_window_us).min(busy_us);
        charged.receive_window_us += receive_window_us;
        let send_buffer_us = due(now.sndbuf_limited_us, first.sndbuf_limited_us, charged.send_buffer_us)
            .min(busy_us - receive_window_us);
        charged.send_buffer_us += send_buffer_us;
        let mut parts = Parts::default();
        parts.add(Limit::Application, time_us - busy_us);
        parts.add(Limit::ReceiveWindow, receive_window_us);
        parts.add(Limit::SendBuffer, send_buffer_us);
        parts.add(sample.limit(), busy_us - receive_window_us - send_buffer_us);
        parts
    }

    /// A round lasts an RTT here, at least the time between two samples.
    fn round(&mut self, sample: &Sample, parts: &Parts, bytes: u64) {
        let info = &sample.info;
        self.round.bytes += bytes;
        self.round.bound_us += parts.sum(Limit::is_of_control);
        let duration_us = sample.at_us.saturating_sub(self.round.begin_us);
        let base_us = info.min_rtt_us.unwrap_or(0);
        if duration_us < u64::from(info.rtt_us.max(base_us)) || duration_us == 0 {
            return;
        }
        let over = Round {
            begin_us: self.round.begin_us,
            end_us: sample.at_us,
            bytes: self.round.bytes,
            smoothed_rtt_us: info.rtt_us,
            limited: 2 * self.round.bound_us < duration_us,
        };
        self.path.round(over, base_us);
        self.round = OpenRound { begin_us: sample.at_us, ..OpenRound::default() };
    }

    /// From the first sample to the newest.
    pub fn observed_us(&self) -> u64 {
        self.last.at_us.saturating_sub(self.first.at_us)
    }

    /// The newest sample.
    pub fn now(&self) -> &Sample {
        &self.last
    }

    pub fn acknowledged_bytes(&self) -> u64 {
        self.last.info.bytes_acked.saturating_sub(self.first.info.bytes_acked)
    }

    pub fn received_bytes(&self) -> u64 {
        self.last.info.bytes_received.saturating_sub(self.first.info.bytes_received)
    }

    pub fn retransmitted_segments(&self) -> u32 {
        self.last.info.retrans_total.saturating_sub(self.first.info.retrans_total)
    }

    /// Whether it had anything to send.
    pub fn has_sent(&self) -> bool {
        self.last.info.busy_time_us > self.first.info.busy_time_us || self.acknowledged_bytes() > 0
    }

    pub fn slow_start(&self) -> SlowStart {
        self.slow_start.state()
    }

    /// Whether its begin was observed.
    pub fn is_from_begin(&self) -> bool {
        self.slow_start.is_from_begin()
    }

    /// What the path gave, by the rounds in which the control or the path was the limit.
    pub fn given(&self) -> Option<PathEstimate> {
        self.path.given(self.first.at_us, self.last.info.min_rtt_us?)
    }

    /// What a start from memory would have done; `None`: the flow's begin was not seen, or what the path gave is not known.
    pub fn remembering(&self) -> Option<FromMemory> {
        let given = self.given().filter(|_| self.is_from_begin())?;
        let window_bytes = given.window_bytes / 2;
        let at_us = u64::from(given.base_rtt_us) * ROUND_TRIPS;
        Some(FromMemory { window_bytes, at_us, without_us: self.flight.reached(window_bytes) })
    }

    /// What the exit cost; `None`: there was none, or the window has not carried the highest rate for four rounds since.
    pub fn regret(&self) -> Option<Regret> {
        let SlowStart::Ended(exit) = self.slow_start.state() else { return None };
        self.path.regret(self.first.at_us, self.last.info.min_rtt_us?, exit.window_bytes)
    }

    /// What the exit cost at least, microseconds, by the highest rate so far. `None`: no exit was seen, or no rate.
    pub fn lost_at_least_us(&self) -> Option<u64> {
        self.slow_start.lost_us(self.given()?.rate_bytes_per_second)
    }
}

/// What a counter has gained, less what was charged.
fn due(now_us: u64, first_us: u64, charged_us: u64) -> u64 {
    now_us.saturating_sub(first_us).saturating_sub(charged_us)
}
