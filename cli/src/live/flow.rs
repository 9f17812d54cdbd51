//! What is known of a flow, from its events alone. Those of recordings may say anything: sums stop at the largest number.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::LazyLock;

use onramp_loader::abi::{ExitRecord, flow_flag};
use onramp_loader::algorithm::{self, Ack, Algorithm, Export, NO_THRESHOLD, Parameters, Reading};
use onramp_loader::telemetry::{AckPayload, CongestionState, Event, FlowEvent, RoundEvent, What};
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

impl Flow {
    pub(super) fn new(event: &Event, flow: &FlowEvent, room: usize) -> Self {
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

    /// What it does without events by now (monotonic clock).
    pub(super) fn rest(&mut self, now_us: u64) {
        let quiet_us = now_us.saturating_sub(self.now.at_us);
        let idle = self.quiet && !self.ended && quiet_us >= IDLE_US;
        self.changed |= idle != self.idle;
        self.idle = idle;
    }

    pub(super) fn report(&mut self, flow: &FlowEvent) {
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

    pub(super) fn event(&mut self, event: &Event) {
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
        self.slow_start = u32::from(*flags) & flow_flag::SLOW_START != 0;
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
