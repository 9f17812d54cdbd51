// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The qlog events of one flow.
//!
//! qvis scales its congestion graph by packets, which a recording does not have. What it has are the counters at each
//! acknowledgment: all that was sent between two of them becomes one `packet_sent`, and it is acknowledged when the
//! cumulative acknowledgment covers it.

use std::collections::VecDeque;

use onramp_algorithm::{Ack, NO_THRESHOLD, StartEnd};
use onramp_recording::{Event, Sample};
use serde_json::{Map, Value, json};

use super::start::{PHASE_UPDATED, StartLog};

/// A change of the kernel's congestion state.
#[derive(Debug)]
pub(super) struct StateChange {
    pub sequence: u32,
    pub to_state: String,
}

/// Where the log of a flow stands.
#[derive(Debug, Default)]
pub(super) struct FlowLog {
    /// Changes to come, in order.
    pub states: VecDeque<StateChange>,
    /// Its ends, as `connectivity:connection_started` has them.
    pub ends: Option<Value>,
    /// Why slow start ended; empty: it was not.
    pub exit_reason: String,
    /// When it ended, and how its start from memory had.
    pub end: Option<(u64, StartEnd)>,
    /// The time from which times of this flow count.
    pub since_us: Option<u64>,
    start: StartLog,
    /// Of the sample before, whatever it is of: a start changes after what is reported.
    last_us: u64,
    recovering: bool,
    state: Option<&'static str>,
    last: Option<Ack>,
    /// Number and end of every packet that is not yet acknowledged.
    outstanding: VecDeque<(u64, u64)>,
    sent: u64,
    received: u64,
}

impl FlowLog {
    /// Writes the events of one acknowledgment: time, name, data.
    pub fn acknowledged(&mut self, sample: &Sample, write: &mut dyn FnMut(u64, &str, Value)) {
        let ack = &sample.ack;
        if matches!(sample.event, Event::Loss(_)) {
            self.last_us = ack.now_us.max(self.last_us);
            return;
        }
        if self.last.is_none() {
            let rtt_us = u64::try_from(ack.rtt_us).unwrap_or(0);
            self.last_us = ack.now_us.saturating_sub(rtt_us);
            let mut begin = |name: &str, data| write(ack.now_us.saturating_sub(rtt_us), name, data);
            if let Some(ends) = self.ends.take() {
                begin("connectivity:connection_started", ends);
            }
            begin("recovery:parameters_set", json!({ "max_datagram_size": ack.mss }));
        }
        let by_mark = self.exit_reason == "ecn";
        if let Some(data) = self.start.changed(sample, self.last.as_ref(), self.sent, by_mark) {
            write(self.last_us, PHASE_UPDATED, data);
        }
        self.packets(ack, write);
        let oldest = self.outstanding.front().map_or(self.sent, |(number, _)| *number);
        if let Some(data) = self.start.recovered(ack, oldest) {
            write(ack.now_us, PHASE_UPDATED, data);
        }
        write(ack.now_us, "recovery:metrics_updated", metrics(ack));
        while self.states.front().is_some_and(|change| change.sequence < sample.sequence) {
            let change = self.states.pop_front();
            self.recovering =
                change.is_some_and(|change| matches!(change.to_state.as_str(), "cwr" | "recovery" | "loss"));
        }
        let state = match (self.recovering, ack.cwnd < ack.ssthresh) {
            (true, _) => "recovery",
            (false, true) => "slow_start",
            (false, false) => "congestion_avoidance",
        };
        if self.state != Some(state) {
            let mut data = Map::new();
            if let Some(old) = self.state {
                data.insert("old".to_owned(), old.into());
            }
            data.insert("new".to_owned(), state.into());
            if self.state == Some("slow_start") && !self.exit_reason.is_empty() {
                data.insert("trigger".to_owned(), self.exit_reason.clone().into());
            }
            self.state = Some(state);
            write(ack.now_us, "recovery:congestion_state_updated", data.into());
        }
        self.last = Some(*ack);
        self.last_us = ack.now_us;
    }

    /// Writes what became of a start that was not over with the last acknowledgment that is there.
    pub fn ended(&mut self, write: &mut dyn FnMut(u64, &str, Value)) {
        let Some(((at_us, end), last)) = self.end.zip(self.last) else { return };
        if let Some(data) = self.start.ended(end, &last, self.exit_reason == "ecn") {
            write(at_us.max(self.last_us), PHASE_UPDATED, data);
        }
    }

    fn packets(&mut self, ack: &Ack, write: &mut dyn FnMut(u64, &str, Value)) {
        let rtt_us = u64::try_from(ack.rtt_us).unwrap_or(0);
        let (sent_before, sent_at) = match &self.last {
            Some(last) => (last.bytes_sent, last.now_us),
            None => (0, ack.now_us.saturating_sub(rtt_us)),
        };
        if ack.bytes_sent > sent_before {
            self.outstanding.push_back((self.sent, ack.bytes_sent));
            let header = json!({ "packet_type": "1RTT", "packet_number": self.sent });
            let data = json!({ "header": header, "raw": { "length": ack.bytes_sent - sent_before } });
            write(sent_at, "transport:packet_sent", data);
            self.sent += 1;
        }
        let (mut first, mut last) = (None, None);
        while let Some((number, _)) = self.outstanding.front().filter(|(_, end)| *end <= ack.bytes_acked) {
            first.get_or_insert(*number);
            last = Some(*number);
            self.outstanding.pop_front();
        }
        if let (Some(first), Some(last)) = (first, last) {
            let header = json!({ "packet_type": "1RTT", "packet_number": self.received });
            let frame = json!({ "frame_type": "ack", "acked_ranges": [[first, last]] });
            write(ack.now_us, "transport:packet_received", json!({ "header": header, "frames": [frame] }));
            self.received += 1;
        }
    }
}

/// Times in milliseconds, windows in bytes, the pacing rate in bits per second; what is not known is left out.
fn metrics(ack: &Ack) -> Value {
    let bytes = |segments: u32| u64::from(segments) * u64::from(ack.mss);
    let milliseconds = |us: u32| f64::from(us) / 1e3;
    let mut data = Map::new();
    let mut add = |name: &str, value: Value| data.insert(name.to_owned(), value);
    add("congestion_window", bytes(ack.cwnd).into());
    add("bytes_in_flight", bytes(ack.in_flight).into());
    if ack.ssthresh < NO_THRESHOLD {
        add("ssthresh", bytes(ack.ssthresh).into());
    }
    if ack.pacing_rate != 0 {
        add("pacing_rate", ack.pacing_rate.saturating_mul(8).into());
    }
    if let Ok(sample @ 1..) = u32::try_from(ack.rtt_us) {
        add("latest_rtt", milliseconds(sample).into());
    }
    if ack.smoothed_rtt_us != 0 {
        add("smoothed_rtt", milliseconds(ack.smoothed_rtt_us).into());
    }
    if ack.min_rtt_us != 0 {
        add("min_rtt", milliseconds(ack.min_rtt_us).into());
    }
    data.into()
}
