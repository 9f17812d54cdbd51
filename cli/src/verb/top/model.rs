//! What is known of flows, from events alone.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use onramp_loader::abi::{ExitRecord, flow_flag};
use onramp_loader::algorithm::{Algorithm, Export, Parameters};
use onramp_loader::telemetry::{AckEvent, Event, FlowEvent, Item, RoundEvent, What};
use onramp_loader::{ExitReason, Phase, phase};

use super::history::{History, Point};
use crate::verb::watch::threshold;

/// Flows that are kept: beyond that the oldest go, those that have ended first.
const FLOWS_MAX: usize = 2_000;

/// A flow.
#[derive(Debug)]
pub(super) struct Flow {
    pub id: u64,
    pub algorithm: Algorithm,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Number of its parameter set.
    pub profile: u32,
    pub parameters: Parameters,
    pub adopted: bool,
    /// Monotonic clock, microseconds: first data, else the first event.
    pub start_us: u64,
    pub exit: Option<Exit>,
    pub ended: bool,
    /// As of the newest event that tells.
    pub now: Point,
    pub mss: u32,
    pub min_rtt_us: Option<u32>,
    /// Acknowledged: since it is followed; all of it once it was open or has ended.
    pub delivered_bytes: u64,
    /// Every acknowledgement is told, so rounds need not be added up.
    every_ack: bool,
    pub retransmitted_bytes: u64,
    pub slow_start: bool,
    pub exports: Vec<(Export, Vec<u32>)>,
    pub history: History,
}

/// The end of its first slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit {
    pub reason: ExitReason,
    pub record: ExitRecord,
}

/// All flows, and how much could not be told.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub flows: BTreeMap<u64, Flow>,
    pub lost: u64,
}

impl Model {
    pub fn add(&mut self, item: &Item) {
        match item {
            Item::Lost(lost) => self.lost += lost.events,
            Item::Event(event) => self.event(event),
        }
    }

    fn event(&mut self, event: &Event) {
        if let What::Flow(told) = &event.what {
            self.flows.entry(event.flow).or_insert_with(|| Flow::new(event, told)).told(event, told);
            self.forget();
        } else if let Some(flow) = self.flows.get_mut(&event.flow) {
            flow.event(event);
        }
    }

    fn forget(&mut self) {
        if self.flows.len() > FLOWS_MAX {
            let ended = self.flows.values().find(|flow| flow.ended).map(|flow| flow.id);
            if let Some(id) = ended.or_else(|| self.flows.keys().next().copied()) {
                self.flows.remove(&id);
            }
        }
    }

    /// Forgets the flows that have ended.
    pub fn clear_ended(&mut self) {
        self.flows.retain(|_, flow| !flow.ended);
    }
}

impl Flow {
    fn new(event: &Event, told: &FlowEvent) -> Self {
        Self {
            id: event.flow,
            algorithm: event.algorithm,
            local: told.local,
            remote: told.remote,
            profile: told.profile,
            parameters: told.parameters.clone(),
            adopted: told.header.flags & flow_flag::ADOPTED != 0,
            start_us: if told.header.start_us != 0 { told.header.start_us } else { event.time_ns / 1_000 },
            exit: None,
            ended: false,
            now: Point::default(),
            mss: 0,
            min_rtt_us: None,
            delivered_bytes: 0,
            every_ack: false,
            retransmitted_bytes: 0,
            slow_start: told.header.flags & flow_flag::SLOW_START != 0,
            exports: Vec::new(),
            history: History::default(),
        }
    }

    fn told(&mut self, event: &Event, told: &FlowEvent) {
        self.profile = told.profile;
        self.parameters = told.parameters.clone();
        self.exports = told.exports(event.algorithm);
        if let Phase::Left(reason, record) | Phase::Exiting(reason, record) = phase(&told.header) {
            self.exit = Some(Exit { reason, record });
        }
    }

    fn event(&mut self, event: &Event) {
        self.now.at_us = event.time_ns / 1_000;
        match &event.what {
            What::Flow(_) | What::Loss(_) => {}
            What::End(end) => {
                self.ended = true;
                self.delivered_bytes = end.bytes_acked;
                self.retransmitted_bytes = end.bytes_retransmitted;
            }
            What::Exit(exit) => self.exit = Some(Exit { reason: exit.reason, record: exit.record }),
            What::Undo(undo) => {
                self.now.cwnd = undo.restored;
                if undo.exit_undone {
                    self.exit = None;
                }
            }
            What::State(state) => {
                self.window(state.cwnd, state.ssthresh);
                self.now.in_flight = state.in_flight;
                self.retransmitted_bytes = state.bytes_retransmitted;
            }
            What::Restart(restart) => {
                self.slow_start = true;
                self.window(restart.cwnd, restart.ssthresh);
            }
            What::Round(round) => self.round(event, round),
            What::Ack(ack) => self.ack(ack),
        }
        self.history.add(self.now);
    }

    fn round(&mut self, event: &Event, round: &RoundEvent) {
        self.window(round.cwnd, round.ssthresh);
        self.now.in_flight = round.in_flight;
        self.now.rtt_us = [round.min_rtt_us, round.smoothed_rtt_us].into_iter().find(|us| *us != 0);
        self.min_rtt(round.min_rtt_us);
        // A round that began with nothing under way ends with the next ACK, and its rate says nothing of the path.
        if 2 * round.duration_us >= u64::from(self.min_rtt_us.unwrap_or(0)) {
            self.now.rate_bps = Some(round.rate_bps());
        }
        self.mss = round.mss;
        self.slow_start = round.slow_start();
        self.exports = round.exports(event.algorithm);
        if !self.every_ack {
            self.delivered_bytes += round.bytes;
        }
    }

    fn ack(&mut self, ack: &AckEvent) {
        let AckEvent { ack, flags, .. } = ack;
        self.window(ack.cwnd, ack.ssthresh);
        self.now.in_flight = ack.in_flight;
        if let Some(sample) = u32::try_from(ack.rtt_us).ok().filter(|us| *us != 0) {
            self.now.rtt_us = Some(sample);
        }
        self.min_rtt(ack.min_rtt_us);
        self.mss = ack.mss;
        self.slow_start = flags & flow_flag::SLOW_START != 0;
        self.delivered_bytes = ack.bytes_acked;
        self.every_ack = true;
    }

    /// Acknowledgements are told no longer.
    pub fn close(&mut self) {
        self.every_ack = false;
    }

    fn window(&mut self, cwnd: u32, ssthresh: u32) {
        self.now.cwnd = cwnd;
        self.now.ssthresh = threshold(ssthresh);
    }

    fn min_rtt(&mut self, us: u32) {
        if us != 0 {
            self.min_rtt_us = Some(self.min_rtt_us.map_or(us, |known| known.min(us)));
        }
    }

    /// Where it stands, in a word or two.
    pub fn state(&self) -> String {
        match self.exit {
            _ if self.ended => "ended".into(),
            Some(exit) => exit.reason.name().replace('_', " "),
            None if self.adopted => "adopted".into(),
            None if self.slow_start => "slow start".into(),
            None => "no data yet".into(),
        }
    }

    /// Monotonic clock, microseconds: when its first slow start ended.
    pub fn exit_us(&self) -> Option<u64> {
        self.exit.map(|exit| self.start_us + exit.record.at_us)
    }

    /// The values of an export.
    pub fn export(&self, name: &str) -> Option<&[u32]> {
        self.exports.iter().find(|(export, _)| export.name == name).map(|(_, values)| values.as_slice())
    }

    /// The only value of an export.
    pub fn value(&self, name: &str) -> Option<u32> {
        self.export(name)?.first().copied()
    }
}
