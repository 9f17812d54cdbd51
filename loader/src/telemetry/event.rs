//! What a consumer is told.

use std::net::SocketAddr;
use std::ops::Deref;
use std::time::Duration;

use onramp_algorithm::{Ack, Algorithm, ExitReason, Export, OUTCOME_MAX, Parameters, RoundTold, Verdict};

use crate::object::abi::{ExitRecord, FlowHeader, flow_flag};

/// What a [`crate::telemetry::Stream`] yields.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Something happened to a flow.
    Event(Event),
    /// Something happened that could not be told.
    Lost(Lost),
}

/// What could not be told since the last such report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Events for which the ring had no room.
    pub events: u64,
    /// Time in which nothing was written at all, because the consumer's keeper did not run either: all of its control
    /// group was frozen. Events of that time are not counted.
    pub unobserved: Duration,
}

/// Something that happened to a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Monotonic clock.
    pub time_ns: u64,
    /// Which flow: unique on this host until it reboots. Not the socket's cookie, which may not exist yet.
    pub flow: u64,
    /// Number of the event among those of its flow that anybody was told of. For a consumer at [`super::Level::Ack`]
    /// without a gap; lower levels skip.
    pub sequence: u32,
    /// Inode of the network namespace (`/proc/PID/ns/net`).
    pub netns: u32,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// What happened.
    pub what: What,
}

/// What happened to a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// It began, or is under way and not known yet, or its parameters have changed. Comes before all others of a flow.
    Flow(Box<FlowEvent>),
    /// It ended, or went to another control.
    End(Box<EndEvent>),
    /// Its first slow start is over; once per flow, unless taken back by [`What::Undo`].
    Exit(ExitEvent),
    /// A loss proved spurious.
    Undo(UndoEvent),
    /// A round is over.
    Round(Box<RoundEvent>),
    /// The window is to be reduced. Why, says the [`What::State`] that follows.
    Loss(LossEvent),
    /// The congestion state changes.
    State(StateEvent),
    /// Slow start begins, for the first time or anew.
    Restart(RestartEvent),
    /// An acknowledgement.
    Ack(AckEvent),
}

impl What {
    /// Name in listings and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Flow(_) => "flow",
            Self::End(_) => "end",
            Self::Exit(_) => "exit",
            Self::Undo(_) => "undo",
            Self::Round(_) => "round",
            Self::Loss(_) => "loss",
            Self::State(_) => "state",
            Self::Restart(_) => "restart",
            Self::Ack(_) => "ack",
        }
    }
}

/// Identity, parameters and state of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowEvent {
    /// Local address; IPv4 also where the socket is of IPv6.
    pub local: SocketAddr,
    /// Remote address, likewise.
    pub remote: SocketAddr,
    /// Whether this is not the flow's first event: a consumer has come or changed its wishes, or parameters have
    /// changed.
    pub again: bool,
    /// The kernel's id of the socket; `None`: nobody has asked for one yet.
    pub cookie: Option<u64>,
    /// The kernel's id of the network namespace.
    pub netns_cookie: u64,
    /// With which the next ACK will be judged.
    pub parameters: Parameters,
    /// Number of its parameter set.
    pub profile: u32,
    /// Generation of those parameters.
    pub generation: u32,
    /// What the shell keeps of it.
    pub header: FlowHeader,
    /// The algorithm's state before the next ACK, from which [`onramp_algorithm::Flow::resume`] can go on.
    pub state: Vec<u8>,
}

/// The end of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct EndEvent {
    /// Bytes cumulatively acknowledged.
    pub bytes_acked: u64,
    /// Bytes sent, retransmissions not counted again.
    pub bytes_sent: u64,
    /// Bytes sent again.
    pub bytes_retransmitted: u64,
    /// Microseconds; 0: none.
    pub smoothed_rtt_us: u32,
    /// Microseconds; 0: none.
    pub min_rtt_us: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow start threshold, segments.
    pub ssthresh: u32,
    /// What the shell kept of it: exit record, slow starts.
    pub header: FlowHeader,
    /// Verdicts by the number of their outcome, since somebody has listened.
    pub outcomes: [u32; OUTCOME_MAX],
}

/// An exit whose record is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitEvent {
    /// Why.
    pub reason: ExitReason,
    /// The record.
    pub record: ExitRecord,
    /// Where the algorithm would have left, if it is attached to observe and would have.
    pub observed: Option<ExitRecord>,
}

/// A loss that was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoEvent {
    /// Window before, segments.
    pub cwnd: u32,
    /// Window after, segments.
    pub restored: u32,
    /// Whether the exit told before is taken back; slow start goes on then.
    pub exit_undone: bool,
}

/// A round: from one ACK to the first that acknowledges what was sent after it, so an RTT or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundEvent {
    /// What the kernel side says of it.
    pub told: RoundTold,
    /// The algorithm's state at its end.
    pub state: Vec<u8>,
}

impl Deref for RoundEvent {
    type Target = RoundTold;

    fn deref(&self) -> &RoundTold {
        &self.told
    }
}

impl RoundEvent {
    /// Bytes that arrived in the round, as far as the sender was told. What is acknowledged jumps instead where a hole is
    /// filled: data that arrived before is acknowledged all at once.
    pub fn delivered_bytes(&self) -> u64 {
        u64::from(self.delivered) * u64::from(self.mss)
    }

    /// Delivery rate of the round, bits per second; 0 for a round without duration.
    pub fn rate_bps(&self) -> u64 {
        let bits = u128::from(self.delivered_bytes()) * 8;
        (bits * 1_000_000).checked_div(u128::from(self.duration_us)).unwrap_or(0) as u64
    }

    /// Whether the flow was in slow start when it ended.
    pub fn slow_start(&self) -> bool {
        self.flags & flow_flag::SLOW_START != 0
    }

    /// What of the algorithm's state is worth showing.
    pub fn exports(&self, algorithm: Algorithm) -> Vec<(Export, Vec<u32>)> {
        exports(algorithm, &self.state)
    }
}

impl FlowEvent {
    /// What of the algorithm's state is worth showing.
    pub fn exports(&self, algorithm: Algorithm) -> Vec<(Export, Vec<u32>)> {
        exports(algorithm, &self.state)
    }
}

fn exports(algorithm: Algorithm, state: &[u8]) -> Vec<(Export, Vec<u32>)> {
    algorithm.exports().map(|export| (export, export.read(state))).collect()
}

/// The window is to be reduced by loss, ECN or timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossEvent {
    /// The moment before: the window is still whole. `acked` is 0, and there is no RTT sample.
    pub ack: Ack,
    /// Threshold that the base proposes, segments.
    pub base_ssthresh: u32,
    /// Threshold that came of it, segments.
    pub ssthresh: u32,
    /// Whether the flow was in slow start, so that the algorithm was asked.
    pub asked: bool,
}

/// The kernel's congestion state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionState {
    /// Nothing unusual.
    Open,
    /// Duplicate or selective ACKs.
    Disorder,
    /// The window is being reduced for ECN or local congestion.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

impl CongestionState {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Open, Self::Disorder, Self::Cwr, Self::Recovery, Self::Loss];

    /// Name in listings and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Disorder => "disorder",
            Self::Cwr => "cwr",
            Self::Recovery => "recovery",
            Self::Loss => "loss",
        }
    }
}

/// The congestion state changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateEvent {
    /// Before.
    pub from: CongestionState,
    /// After.
    pub to: CongestionState,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow start threshold, segments.
    pub ssthresh: u32,
    /// Segments in flight.
    pub in_flight: u32,
    /// Bytes sent again so far.
    pub bytes_retransmitted: u64,
}

/// Slow start begins; the algorithm was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartEvent {
    /// Slow starts so far, this one included.
    pub slow_starts: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow start threshold, segments.
    pub ssthresh: u32,
}

/// An acknowledgement, and what the algorithm said of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckEvent {
    /// As given to the algorithm.
    pub ack: Ack,
    /// Its answer; `None`: it was not asked, because the flow was not in slow start.
    pub verdict: Option<Verdict>,
    /// [`flow_flag`]s after the verdict.
    pub flags: u32,
    /// Generation of the parameters that it read.
    pub generation: u32,
    /// Bytes from what is acknowledged that the receiver offers; 0: none, or not told.
    pub receive_window: u32,
}
