// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A logged connection as the tables of a recording.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use onramp_algorithm::{CongestionState, NO_THRESHOLD};

use super::event::Event;
use crate::monotone::Monotone;
use crate::reader::Rows;
use crate::rows::{ACK_FLAGS, AckRow, FlowRow, StateRow};

/// Bytes of a packet, where the log does not say how large packets are: what every path carries (RFC 9000, section 14).
const LEAST_PACKET: u64 = 1_200;
/// Packets that are larger are several in one record.
const LARGEST_PACKET: u64 = 9_216;

/// Rows of all flows.
#[derive(Default)]
pub(super) struct Tables {
    numbers: u64,
    flows: Vec<FlowRow>,
    acks: Vec<AckRow>,
    states: Vec<StateRow>,
}

impl Tables {
    /// The number of flows, which is that of the last.
    pub fn numbers(&self) -> u64 {
        self.numbers
    }

    pub fn into_rows(self, rows: &mut Rows) {
        rows.add(self.flows);
        rows.add(self.acks);
        rows.add(self.states);
    }
}

/// What a log says of a connection up to an event.
pub(super) struct Connection {
    pub is_tcp: bool,
    pub times: Monotone,
    began_us: u64,
    at_us: u64,
    ends: Option<(SocketAddr, SocketAddr)>,
    /// Bytes of the largest packet: as the log says, and as they were sent.
    max_datagram: Option<u64>,
    largest: u64,
    /// Bytes of those that are neither acknowledged nor lost, by space and number.
    outstanding: BTreeMap<(u8, u64), u64>,
    sent: u64,
    acknowledged: u64,
    lost: u64,
    /// Acknowledged since the last row.
    newly: u64,
    /// All that the peer lets be sent.
    max_data: Option<u64>,
    cwnd: Option<u64>,
    ssthresh: Option<u64>,
    pacing_rate: u64,
    in_flight: Option<u64>,
    latest_us: Option<u32>,
    smoothed_us: u32,
    min_us: u32,
    /// As it is logged; `None`: it is not.
    state: Option<State>,
    /// Where it is not logged: what had been sent when the last reduction was met, until that is acknowledged.
    reduced_at: Option<u64>,
    was_lost: bool,
    rows: Vec<AckRow>,
    states: Vec<StateRow>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    SlowStart,
    Avoidance,
    ApplicationLimited,
    Recovery,
}

impl State {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "slow_start" => Self::SlowStart,
            "congestion_avoidance" => Self::Avoidance,
            "application_limited" => Self::ApplicationLimited,
            "recovery" | "recovery_start" | "persistent_congestion" => Self::Recovery,
            _ => return None,
        })
    }
}

impl Connection {
    pub fn new(is_tcp: bool) -> Self {
        Self {
            is_tcp,
            times: Monotone::default(),
            began_us: u64::MAX,
            at_us: 0,
            ends: None,
            max_datagram: None,
            largest: 0,
            outstanding: BTreeMap::new(),
            sent: 0,
            acknowledged: 0,
            lost: 0,
            newly: 0,
            max_data: None,
            cwnd: None,
            ssthresh: None,
            pacing_rate: 0,
            in_flight: None,
            latest_us: None,
            smoothed_us: 0,
            min_us: 0,
            state: None,
            reduced_at: None,
            was_lost: false,
            rows: Vec::new(),
            states: Vec::new(),
        }
    }

    pub fn take(&mut self, event: &Event) {
        let at_us = self.times.at(event.at_us);
        // What is logged of one moment belongs together.
        if at_us > self.at_us {
            self.row();
        }
        self.at_us = at_us;
        self.began_us = self.began_us.min(self.at_us);
        match event.name {
            "packet_sent" => self.sent(event),
            "packet_received" | "packets_acked" => {
                self.max_data = self.max_data.max(event.max_data());
                for (space, first, last) in event.acknowledged() {
                    self.acknowledge((space, first), (space, last.max(first)));
                }
            }
            "packet_lost" => self.lose(event),
            "metrics_updated" | "recovery_metrics_updated" => self.measure(event),
            "congestion_state_updated" => {
                let new = event.data["new"].as_str().and_then(State::from_name);
                self.change(new);
            }
            "parameters_set" | "recovery_parameters_set" => {
                self.max_datagram = event.number("max_datagram_size").or(self.max_datagram);
                self.cwnd = self.cwnd.or_else(|| event.number("initial_congestion_window"));
                if event.data["owner"] == "remote" {
                    self.max_data = self.max_data.max(event.number("initial_max_data"));
                }
            }
            "connection_started" => self.ends = event.ends().or(self.ends),
            _ => {}
        }
    }

    fn sent(&mut self, event: &Event) {
        let (Some(packet), bytes) = (event.packet(), event.bytes()) else { return };
        self.sent = self.sent.saturating_add(bytes);
        if bytes <= LARGEST_PACKET {
            self.largest = self.largest.max(bytes);
        }
        self.outstanding.insert(packet, bytes);
    }

    fn acknowledge(&mut self, first: (u8, u64), last: (u8, u64)) {
        let numbers: Vec<_> = self.outstanding.range(first..=last).map(|(number, _)| *number).collect();
        for number in numbers {
            let bytes = self.outstanding.remove(&number).unwrap_or(0);
            self.acknowledged = self.acknowledged.saturating_add(bytes);
            self.newly = self.newly.saturating_add(bytes);
        }
        if self.reduced_at.is_some_and(|sent| self.acknowledged.saturating_add(self.lost) >= sent) {
            self.reduced_at = None;
            self.state_row(CongestionState::Recovery, CongestionState::Open);
        }
    }

    fn lose(&mut self, event: &Event) {
        if let Some(bytes) = event.packet().and_then(|packet| self.outstanding.remove(&packet)) {
            self.lost = self.lost.saturating_add(bytes);
            self.was_lost = true;
        }
    }

    fn measure(&mut self, event: &Event) {
        // The shorter name is that of picoquic and aioquic.
        if let Some(cwnd) = event.number("congestion_window").or_else(|| event.number("cwnd")) {
            if self.state.is_none() && self.cwnd.is_some_and(|before| cwnd < before) {
                self.ssthresh = Some(cwnd);
                if self.was_lost && self.reduced_at.is_none() {
                    self.reduced_at = Some(self.sent);
                    self.state_row(CongestionState::Open, CongestionState::Recovery);
                }
            }
            self.was_lost = false;
            self.cwnd = Some(cwnd);
        }
        self.ssthresh = event.number("ssthresh").or(self.ssthresh);
        self.in_flight = event.number("bytes_in_flight").or(self.in_flight);
        self.pacing_rate = event.number("pacing_rate").map_or(self.pacing_rate, |bits| bits / 8);
        self.latest_us = event.time_us("latest_rtt").or(self.latest_us);
        self.smoothed_us = event.time_us("smoothed_rtt").unwrap_or(self.smoothed_us);
        self.min_us = event.time_us("min_rtt").unwrap_or(self.min_us);
    }

    fn change(&mut self, new: Option<State>) {
        let Some(new) = new else { return };
        let recovers = |state: Option<State>| state == Some(State::Recovery) || self.reduced_at.is_some();
        let (before, after) = (recovers(self.state), new == State::Recovery);
        let of = |recovers| if recovers { CongestionState::Recovery } else { CongestionState::Open };
        if before != after {
            self.state_row(of(before), of(after));
        }
        if matches!(new, State::Avoidance | State::Recovery) {
            self.ssthresh = self.cwnd.into_iter().chain(self.ssthresh).min();
        } else if new == State::SlowStart {
            self.ssthresh = None;
        }
        self.reduced_at = None;
        self.state = Some(new);
    }

    /// Bytes of a full packet.
    fn packet_bytes(&self) -> u64 {
        let said = self.max_datagram.filter(|bytes| (1..=LARGEST_PACKET).contains(bytes));
        said.unwrap_or_else(|| self.largest.max(LEAST_PACKET))
    }

    fn segments(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(self.packet_bytes())).unwrap_or(u32::MAX)
    }

    /// A row of what was acknowledged at a moment, as soon as there is a window.
    fn row(&mut self) {
        let (true, Some(cwnd)) = (self.newly > 0, self.cwnd) else { return };
        let in_flight = self
            .in_flight
            .unwrap_or_else(|| self.outstanding.values().fold(0, |all, bytes| all.saturating_add(*bytes)));
        // What the application and pacing hold back no log says: less than two thirds of the window are the application's, as
        // for a socket.
        let uses_little = in_flight.saturating_add(self.newly) < cwnd / 3 * 2;
        let is_app_limited = uses_little || self.state == Some(State::ApplicationLimited);
        let bit = ACK_FLAGS.iter().position(|flag| *flag == "app_limited").unwrap_or(0);
        // RTTs of a log that has only the smoothed one are that.
        let rtt_us = self.latest_us.take().unwrap_or(self.smoothed_us);
        let window = self.max_data.map_or(0, |most| most.saturating_sub(self.acknowledged));
        self.rows.push(AckRow {
            at_us: self.at_us,
            sequence: self.rows.len() as u32 + 1,
            event: "ack".into(),
            acknowledged_bytes: self.acknowledged,
            sent_bytes: self.sent,
            outstanding_bytes: u32::try_from(in_flight).unwrap_or(u32::MAX),
            delivered_segments: self.segments(self.acknowledged),
            newly_acknowledged_segments: self.segments(self.newly),
            rtt_us: i32::try_from(rtt_us).ok().filter(|us| *us > 0).unwrap_or(-1),
            smoothed_rtt_us: self.smoothed_us,
            min_rtt_us: self.min_us,
            cwnd_segments: self.segments(cwnd),
            ssthresh_segments: self.ssthresh.map_or(NO_THRESHOLD, |bytes| self.segments(bytes)),
            in_flight_segments: self.segments(in_flight),
            mss_bytes: self.packet_bytes() as u32,
            pacing_rate_bytes_per_s: self.pacing_rate,
            receive_window_bytes: u32::try_from(window).unwrap_or(u32::MAX),
            flags: u32::from(is_app_limited) << bit,
            ..AckRow::default()
        });
        self.newly = 0;
    }

    fn state_row(&mut self, from: CongestionState, to: CongestionState) {
        self.states.push(StateRow {
            at_us: self.at_us,
            sequence: self.rows.len() as u32,
            retransmitted_bytes: self.lost,
            from_state: from.name().into(),
            to_state: to.name().into(),
            ssthresh_segments: NO_THRESHOLD,
            ..StateRow::default()
        });
    }

    /// Adds the flow by its number, if data of it were acknowledged.
    pub fn finish(mut self, flow: u64, tables: &mut Tables) -> bool {
        self.row();
        let Some(last) = self.rows.last() else { return false };
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let (local, remote) = self.ends.unwrap_or((nowhere, nowhere));
        let text = |address: SocketAddr| address.ip().to_canonical().to_string().into();
        tables.flows.push(FlowRow {
            at_us: self.began_us,
            flow,
            event: "start".into(),
            local_address: text(local),
            local_port: local.port().into(),
            remote_address: text(remote),
            remote_port: remote.port().into(),
            started_us: self.began_us,
            ..FlowRow::default()
        });
        tables.flows.push(FlowRow {
            at_us: last.at_us,
            flow,
            event: "end".into(),
            sequence: last.sequence + 1,
            started_us: self.began_us,
            acknowledged_bytes: self.acknowledged,
            sent_bytes: self.sent,
            retransmitted_bytes: self.lost,
            smoothed_rtt_us: self.smoothed_us,
            min_rtt_us: self.min_us,
            cwnd_segments: last.cwnd_segments,
            ssthresh_segments: last.ssthresh_segments,
            ..FlowRow::default()
        });
        tables.acks.extend(self.rows.into_iter().map(|row| AckRow { flow, ..row }));
        tables.states.extend(self.states.into_iter().map(|row| StateRow { flow, ..row }));
        tables.numbers = flow;
        true
    }
}
