//! What is known of flows, from events alone. Those of recordings may say anything: sums stop at the largest number.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use onramp_loader::abi::{ExitRecord, flow_flag};
use onramp_loader::algorithm::{self, Ack, Algorithm, Export, NO_THRESHOLD, Parameters, Reading};
use onramp_loader::telemetry::{AckPayload, CongestionState, Event, FlowEvent, Item, RoundEvent, What};
use onramp_loader::{ExitReason, Phase, phase};
use onramp_recording::replay::{Path, PathEstimate, Regret, Round};
use serde::{Deserialize, Serialize};

use super::history::{History, Point};
use super::limited::Limited;

/// What happened to a flow at a moment: this many are kept, of a flow that has more the first ones.
const INCIDENTS_MAX: usize = 200;
/// The newest past of a flow whose ACKs are reported: half a minute in tenths of a second.
const RECENT: usize = 300;
/// A flow with nothing in flight and without an event for so long is idle.
const IDLE_US: u64 = 1_000_000;
/// For as long after the exit as it took to come, and at least this, the beginning is still kept in detail.
const AFTER_EXIT_US: u64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct Flow {
    pub id: u64,
    pub algorithm: Algorithm,
    /// Its name, and what is worth showing of its state: looked up once, for every round asks.
    pub name: &'static str,
    exports: &'static [Export],
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Number of its parameter set.
    pub profile: u32,
    pub parameters: Parameters,
    /// Generation of those.
    pub generation: u32,
    /// Inode of its network namespace.
    pub netns: u32,
    pub adopted: bool,
    /// Monotonic clock, microseconds: first data, else the first event.
    pub start_us: u64,
    /// Whether it is the first data. A flow that begins is reported with its first ACK, an RTT later.
    start_known: bool,
    pub exit: Option<Exit>,
    pub ended: bool,
    /// As of the newest event that has it.
    pub now: Point,
    pub mss: u32,
    pub min_rtt_us: Option<u32>,
    /// Acknowledged before it was followed; 0 until an ACK or its end has shown it.
    unseen_bytes: u64,
    /// Every ACK is reported, so rounds need not be added up.
    every_ack: bool,
    /// What its rounds show of its path.
    path: Path,
    /// What limits it.
    pub limited: Limited,
    pub retransmitted_bytes: u64,
    /// Sent, retransmissions not counted again; known once it has ended.
    pub sent_bytes: Option<u64>,
    pub slow_start: bool,
    /// All that was sent is acknowledged, by the newest event that says so.
    quiet: bool,
    /// And that was a while ago: its application has nothing to send, and its window says nothing of the path.
    pub idle: bool,
    /// Window before the first loss after the exit, segments.
    pub loss_window: Option<u32>,
    /// Of its algorithm.
    state: Vec<u8>,
    /// Its beginning, until a while after the exit.
    pub beginning: History,
    /// All of its life.
    pub life: History,
    /// Its newest past, while every ACK is reported.
    pub recent: Option<History>,
    /// Losses and the like, the first ones.
    pub incidents: Vec<Incident>,
    /// Something has happened to it since this was last set to false.
    pub changed: bool,
}

/// A loss or the like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Incident {
    /// Monotonic clock, microseconds.
    pub at_us: u64,
    /// `recovery`, `loss` (a timeout), `cwr` (ECN or a queue of this host), `undone` (there was no loss), `restart` (slow start
    /// begins anew).
    pub what: Cow<'static, str>,
    pub acknowledged_bytes: u64,
    /// So far.
    pub retransmitted_bytes: u64,
}

/// The end of its first slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit {
    pub reason: ExitReason,
    pub record: ExitRecord,
}

/// All flows, and how much could not be reported.
#[derive(Debug)]
pub(crate) struct FlowTable {
    pub flows: BTreeMap<u64, Flow>,
    /// Events that came too fast.
    pub lost: u64,
    /// Time in which nothing was reported.
    pub unobserved: Duration,
    /// Flows that have ended, by number.
    ended: BTreeSet<u64>,
    flows_max: usize,
    buckets_max: usize,
}

impl FlowTable {
    /// Of at most so many flows: beyond that the oldest go, those that have ended first. Each has its past in at most so
    /// many buckets.
    pub fn new(flows_max: usize, buckets_max: usize) -> Self {
        Self {
            flows: BTreeMap::new(),
            lost: 0,
            unobserved: Duration::ZERO,
            ended: BTreeSet::new(),
            flows_max,
            buckets_max,
        }
    }

    pub fn add(&mut self, item: &Item) {
        match item {
            Item::Lost(lost) => {
                self.lost = self.lost.saturating_add(lost.events);
                self.unobserved = self.unobserved.saturating_add(lost.unobserved);
            }
            Item::Event(event) => self.event(event),
        }
    }

    fn event(&mut self, event: &Event) {
        if let What::Flow(flow) = &event.what {
            let room = self.buckets_max;
            self.flows.entry(event.flow).or_insert_with(|| Flow::new(event, flow, room)).report(flow);
            self.forget();
        } else if let Some(flow) = self.flows.get_mut(&event.flow) {
            flow.event(event);
            if flow.ended {
                self.ended.insert(event.flow);
            }
        }
    }

    fn forget(&mut self) {
        if self.flows.len() > self.flows_max
            && let Some(id) = self.ended.first().or_else(|| self.flows.keys().next()).copied()
        {
            self.remove(id);
        }
    }

    /// What flows without events do by now (monotonic clock).
    pub fn rest(&mut self, now_us: u64) {
        for flow in self.flows.values_mut() {
            let quiet_us = now_us.saturating_sub(flow.now.at_us);
            let idle = flow.quiet && !flow.ended && quiet_us >= IDLE_US;
            flow.changed |= idle != flow.idle;
            flow.idle = idle;
        }
    }

    /// Forgets a flow, and hands it out.
    pub fn remove(&mut self, id: u64) -> Option<Flow> {
        self.ended.remove(&id);
        self.flows.remove(&id)
    }

    /// Forgets the flows that have ended.
    pub fn clear_ended(&mut self) {
        while let Some(id) = self.ended.pop_first() {
            self.flows.remove(&id);
        }
    }
}

impl Flow {
    fn new(event: &Event, flow: &FlowEvent, room: usize) -> Self {
        Self {
            id: event.flow,
            algorithm: event.algorithm,
            name: event.algorithm.name(),
            exports: exports_of(event.algorithm),
            local: flow.local,
            remote: flow.remote,
            profile: flow.profile,
            parameters: flow.parameters.clone(),
            generation: flow.generation,
            netns: event.netns,
            adopted: flow.header.has(flow_flag::ADOPTED),
            start_us: if flow.header.start_us != 0 { flow.header.start_us } else { event.time_ns / 1_000 },
            start_known: flow.header.start_us != 0 || flow.header.has(flow_flag::ADOPTED),
            exit: None,
            ended: false,
            now: Point::default(),
            mss: 0,
            min_rtt_us: None,
            unseen_bytes: 0,
            every_ack: false,
            path: Path::default(),
            limited: Limited::default(),
            retransmitted_bytes: 0,
            sent_bytes: None,
            slow_start: flow.header.has(flow_flag::SLOW_START),
            quiet: false,
            idle: false,
            loss_window: None,
            state: Vec::new(),
            beginning: History::whole(room),
            life: History::whole(room),
            recent: None,
            incidents: Vec::new(),
            changed: true,
        }
    }

    fn happens(&mut self, what: &'static str) {
        if self.incidents.len() < INCIDENTS_MAX {
            self.incidents.push(Incident {
                at_us: self.now.at_us,
                what: what.into(),
                acknowledged_bytes: self.now.acknowledged_bytes,
                retransmitted_bytes: self.retransmitted_bytes,
            });
        }
    }

    fn report(&mut self, flow: &FlowEvent) {
        self.profile = flow.profile;
        self.parameters = flow.parameters.clone();
        self.generation = flow.generation;
        self.changed = true;
        self.state.clone_from(&flow.state);
        if let Phase::Left(reason, record) | Phase::Exiting(reason, record) = phase(&flow.header) {
            self.leave(reason, record);
        }
    }

    /// Of an RTT at its beginning.
    fn began(&mut self, rtt_us: u32) {
        if !self.start_known && rtt_us != 0 {
            self.start_us = self.start_us.saturating_sub(rtt_us.into());
            self.start_known = true;
        }
    }

    /// What its algorithm knows by now.
    pub fn knows(&mut self, state: &[u8]) {
        self.state.clear();
        self.state.extend_from_slice(state);
        let reading = self.reading();
        self.now.watched = reading.value;
        self.now.limit = reading.limit;
    }

    fn leave(&mut self, reason: ExitReason, record: ExitRecord) {
        self.began(record.min_rtt_us);
        self.exit = Some(Exit { reason, record });
        self.path.left(self.start_us.saturating_add(record.at_us));
    }

    fn event(&mut self, event: &Event) {
        self.changed = true;
        self.now.at_us = event.time_ns / 1_000;
        match &event.what {
            What::Flow(_) => {}
            What::Loss(loss) => {
                if self.exit.is_some() {
                    self.loss_window.get_or_insert(loss.ack.cwnd);
                }
            }
            What::End(end) => {
                self.ended = true;
                self.unseen_bytes = end.bytes_acked.saturating_sub(self.now.acknowledged_bytes);
                self.retransmitted_bytes = end.bytes_retransmitted;
                self.sent_bytes = Some(end.bytes_sent);
                self.limited.end(end);
            }
            What::Exit(exit) => self.leave(exit.reason, exit.record),
            What::Undo(undo) => {
                // Recordings do not say.
                if undo.restored != 0 {
                    self.now.cwnd = undo.restored;
                }
                if undo.exit_undone != 0 {
                    self.exit = None;
                }
                self.happens("undone");
            }
            What::State(state) => {
                self.window(state.cwnd, state.ssthresh);
                self.now.in_flight = state.in_flight;
                // What is taken for lost is not in flight, and not acknowledged.
                self.quiet &= state.to == CongestionState::Open;
                self.retransmitted_bytes = state.bytes_retransmitted;
                // Duplicate acknowledgments alone are no event.
                if !matches!(state.to, CongestionState::Open | CongestionState::Disorder) {
                    self.happens(state.to.name());
                }
            }
            What::Restart(restart) => {
                self.slow_start = true;
                self.window(restart.cwnd, restart.ssthresh);
                if restart.slow_starts > 1 {
                    self.happens("restart");
                }
            }
            What::Round(round) => self.round(round),
            What::Ack(ack) => self.ack(ack),
        }
        // Rounds are read ahead of the acknowledgments that come by another stream.
        if self.every_ack && matches!(event.what, What::Round(_) | What::State(_) | What::Restart(_)) {
            return;
        }
        self.life.add(self.now);
        if self.beginning_lasts() {
            self.beginning.add(self.now);
        }
        if let Some(recent) = &mut self.recent {
            recent.add(self.now);
        }
    }

    /// What its exit has cost so far; `None`: it has not left, or the window was hardly ever the limit.
    pub fn regret(&self) -> Option<Regret> {
        self.path.regret(self.start_us, self.min_rtt_us?, self.exit?.record.window_bytes())
    }

    /// What its path has given so far; `None`: no round is over.
    pub fn given(&self) -> Option<PathEstimate> {
        self.path.given(self.start_us, self.min_rtt_us?)
    }

    fn beginning_lasts(&self) -> bool {
        self.exit.is_none_or(|exit| {
            let after_us = exit.record.at_us.max(AFTER_EXIT_US);
            self.now.at_us <= self.start_us.saturating_add(exit.record.at_us).saturating_add(after_us)
        })
    }

    /// Bytes acknowledged: since it is followed; all of them once it was open or has ended.
    pub fn acknowledged_bytes(&self) -> u64 {
        self.unseen_bytes.saturating_add(self.now.acknowledged_bytes)
    }

    fn round(&mut self, round: &RoundEvent) {
        self.window(round.cwnd, round.ssthresh);
        self.now.in_flight = round.in_flight;
        self.quiet = round.in_flight == 0;
        self.now.rtt_us = [round.min_rtt_us, round.smoothed_rtt_us].into_iter().find(|us| *us != 0);
        self.min_rtt(round.min_rtt_us);
        self.began(round.min_rtt_us);
        let over = Round {
            begin_us: self.now.at_us.saturating_sub(round.duration_us),
            end_us: self.now.at_us,
            bytes: round.delivered_bytes(),
            smoothed_rtt_us: round.smoothed_rtt_us,
            limited: 2 * u64::from(round.cwnd_limited_us) < round.duration_us,
        };
        let min_rtt_us = self.min_rtt_us.unwrap_or(0);
        self.now.rate_bps = over.rate(min_rtt_us).map(|rate| rate.saturating_mul(8)).or(self.now.rate_bps);
        self.path.round(over, min_rtt_us);
        self.limited.round(round, self.now.ssthresh, min_rtt_us);
        self.mss = round.mss;
        self.slow_start = round.slow_start();
        self.knows(&round.state);
        if !self.every_ack {
            self.now.acknowledged_bytes = self.now.acknowledged_bytes.saturating_add(round.bytes);
            let in_flight_bytes = u64::from(round.in_flight) * u64::from(round.mss);
            self.now.sent_bytes = self.now.acknowledged_bytes.saturating_add(in_flight_bytes);
            self.offered(round.receive_window);
            self.paced(round.pacing_rate);
        }
    }

    fn ack(&mut self, ack: &AckPayload) {
        let AckPayload { ack, flags, .. } = ack;
        self.window(ack.cwnd, ack.ssthresh);
        self.now.in_flight = ack.in_flight;
        self.quiet = ack.bytes_outstanding == 0;
        self.paced(ack.pacing_rate);
        if let Some(sample) = u32::try_from(ack.rtt_us).ok().filter(|us| *us != 0) {
            self.now.rtt_us = Some(sample);
        }
        self.min_rtt(ack.min_rtt_us);
        self.began(u32::try_from(ack.rtt_us).ok().filter(|us| *us != 0).unwrap_or(ack.smoothed_rtt_us));
        self.mss = ack.mss;
        self.slow_start = flags & flow_flag::SLOW_START != 0;
        if !self.every_ack {
            self.every_ack = true;
            self.unseen_bytes = ack.bytes_acked.saturating_sub(self.now.acknowledged_bytes);
        }
        self.now.acknowledged_bytes = ack.bytes_acked.saturating_sub(self.unseen_bytes);
        self.now.sent_bytes = self.now.acknowledged_bytes.saturating_add(ack.bytes_outstanding.into());
        self.offered(ack.receive_window);
    }

    /// The receiver takes so many bytes beyond what it has acknowledged.
    fn offered(&mut self, window: u32) {
        let end = self.now.acknowledged_bytes.saturating_add(window.into());
        self.now.window_end_bytes = Some(end).filter(|_| window != 0);
    }

    fn paced(&mut self, bytes_per_s: u64) {
        self.now.pacing_bps = Some(bytes_per_s.saturating_mul(8)).filter(|bps| *bps != 0);
    }

    /// ACKs are reported from now on.
    pub fn open(&mut self) {
        self.recent.get_or_insert_with(|| History::recent(RECENT));
    }

    /// ACKs are no longer reported.
    pub fn close(&mut self) {
        self.every_ack = false;
        self.recent = None;
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
            _ if self.idle => "idle".into(),
            Some(exit) => exit.reason.name().replace('_', " "),
            None if self.adopted => "adopted".into(),
            None if self.slow_start => "slow start".into(),
            None => "no slow start".into(),
        }
    }

    /// Monotonic clock, microseconds: when its first slow start ended.
    pub fn exit_us(&self) -> Option<u64> {
        self.exit.map(|exit| self.start_us.saturating_add(exit.record.at_us))
    }

    /// What of its algorithm's state is worth showing.
    pub fn exports(&self) -> Vec<(Export, Vec<u32>)> {
        self.exports.iter().map(|export| (*export, export.read(&self.state))).collect()
    }

    /// Its algorithm's state, as far as it is known.
    pub fn state_bytes(&self) -> &[u8] {
        &self.state
    }

    /// What its algorithm watches, and the limit, as of what is known of the flow.
    pub fn reading(&self) -> Reading {
        let ack = Ack { cwnd: self.now.cwnd, mss: self.mss, ..Ack::default() };
        self.parameters.read_track(&self.state, &ack)
    }
}

/// What is worth showing of an algorithm's state, looked up once.
fn exports_of(algorithm: Algorithm) -> &'static [Export] {
    static ALL: LazyLock<Vec<(Algorithm, Vec<Export>)>> =
        LazyLock::new(|| algorithm::all().map(|one| (one, one.exports().collect())).collect());
    ALL.iter().find(|(one, _)| *one == algorithm).map_or(&[], |(_, exports)| exports)
}

/// A threshold that has been set.
pub(crate) fn threshold(segments: u32) -> Option<u32> {
    (segments < NO_THRESHOLD).then_some(segments)
}

#[cfg(test)]
mod tests {
    use onramp_loader::abi::FlowHeader;
    use onramp_loader::algorithm::{Ack, RoundPayload};
    use onramp_loader::telemetry::{ExitEvent, StateEvent, StatePayload};

    use super::*;

    fn observe(model: &mut FlowTable, what: What) {
        let algorithm = algorithm::find("plain").unwrap();
        let (time_ns, flow, sequence, netns) = (1_000_000_000, 7, 0, 1);
        model.add(&Item::Event(Event { time_ns, flow, sequence, netns, algorithm, what }));
    }

    /// With a flow that begins, as the kernel reports it.
    fn begun() -> FlowTable {
        let mut model = FlowTable::new(1, 16);
        let payload = FlowEvent {
            local: ([192, 0, 2, 1], 1).into(),
            remote: ([192, 0, 2, 2], 2).into(),
            again: false,
            cookie: None,
            netns_cookie: 1,
            parameters: algorithm::find("plain").unwrap().parameters(),
            profile: 0,
            generation: 0,
            header: FlowHeader::default(),
            state: Vec::new(),
        };
        observe(&mut model, What::Flow(Box::new(payload)));
        model
    }

    fn acknowledged(ack: Ack, receive_window: u32) -> What {
        What::Ack(AckPayload { ack: Ack { receive_window, ..ack }, ..AckPayload::default() })
    }

    #[test]
    fn a_flow_began_a_round_trip_before_its_first_acknowledgment() {
        let mut model = begun();
        let ack = Ack { now_us: 1_000_000, rtt_us: 600_000, smoothed_rtt_us: 600_000, ..Ack::default() };
        observe(&mut model, acknowledged(ack, 0));
        observe(&mut model, acknowledged(ack, 0));
        let exit = ExitRecord { at_us: 600_000, min_rtt_us: 600_000, ..ExitRecord::default() };
        let reason = ExitReason::Algorithm;
        observe(&mut model, What::Exit(ExitEvent { reason, record: exit, observed: None }));
        let flow = &model.flows[&7];
        assert_eq!((flow.start_us, flow.exit_us()), (400_000, Some(1_000_000)));
    }

    #[test]
    fn a_download_that_is_over_and_not_closed_is_idle() {
        let mut model = begun();
        let of = |model: &FlowTable| (model.flows[&7].state(), model.flows[&7].idle);
        model.rest(9_000_000);
        assert_eq!(of(&model), ("no slow start".into(), false), "nothing was sent yet");
        let (loss, open) = (CongestionState::Loss, CongestionState::Open);
        let state = |from, to| {
            let payload = StatePayload { cwnd: 1, ssthresh: 7, ..StatePayload::default() };
            What::State(StateEvent { from, to, payload })
        };
        let round = |in_flight| {
            let payload =
                RoundPayload { duration_us: 1, mss: 1_000, in_flight, cwnd: 1, ..RoundPayload::default() };
            What::Round(Box::new(RoundEvent { payload, state: Vec::new() }))
        };
        let exit =
            ExitRecord { at_us: 600_000, min_rtt_us: 600_000, window_after: 5, ..ExitRecord::default() };
        observe(&mut model, What::Exit(ExitEvent { reason: ExitReason::Loss, record: exit, observed: None }));
        // Events are of the first second.
        for (what, idle) in [
            (round(3), false),
            // A timeout: all that was sent is taken for lost.
            (state(open, loss), false),
            (round(0), true),
            (state(loss, open), true),
            (round(1), false),
        ] {
            observe(&mut model, what);
            model.rest(1_999_999);
            assert_eq!(of(&model).0, "loss", "a request may follow at once");
            model.flows.get_mut(&7).unwrap().changed = false;
            model.rest(2_000_000);
            assert_eq!(of(&model), (if idle { "idle" } else { "loss" }.into(), idle));
            assert_eq!(model.flows[&7].changed, idle, "it is reported again");
        }
    }

    #[test]
    fn a_rounds_pacing_rate_is_shown_until_every_acknowledgement_has_one() {
        let mut model = begun();
        let payload =
            RoundPayload { pacing_rate: 1_000, duration_us: 1, mss: 1_000, ..RoundPayload::default() };
        let round = What::Round(Box::new(RoundEvent { payload, state: Vec::new() }));
        observe(&mut model, round.clone());
        assert_eq!(model.flows[&7].now.pacing_bps, Some(8_000));
        observe(&mut model, acknowledged(Ack { pacing_rate: 2_000, mss: 1_000, ..Ack::default() }, 0));
        observe(&mut model, round);
        assert_eq!(model.flows[&7].now.pacing_bps, Some(16_000), "rounds are read ahead of acknowledgements");
    }

    #[test]
    fn the_receive_window_ends_so_many_bytes_behind_what_is_acknowledged() {
        let mut model = begun();
        assert_eq!(model.flows[&7].now.window_end_bytes, None);
        let round = |receive_window| {
            let payload = RoundPayload {
                bytes: 20_000,
                duration_us: 1,
                mss: 1_000,
                receive_window,
                ..RoundPayload::default()
            };
            What::Round(Box::new(RoundEvent { payload, state: Vec::new() }))
        };
        observe(&mut model, round(65_000));
        assert_eq!(model.flows[&7].now.window_end_bytes, Some(85_000));
        observe(&mut model, round(0));
        assert_eq!(model.flows[&7].now.window_end_bytes, None, "none, or not known");
        let ack = Ack { bytes_acked: 50_000, mss: 1_000, ..Ack::default() };
        observe(&mut model, acknowledged(ack, 30_000));
        let flow = &model.flows[&7];
        assert_eq!(flow.now.window_end_bytes, Some(flow.now.acknowledged_bytes + 30_000));
        let end = flow.now.window_end_bytes;
        observe(&mut model, round(0));
        assert_eq!(
            model.flows[&7].now.window_end_bytes, end,
            "rounds that are made of acknowledgments have none"
        );
    }
}
