//! Events, as a consumer gets them.

use std::net::SocketAddr;
use std::ops::Deref;
use std::time::Duration;

use onramp_algorithm::{
    AckPayload, Algorithm, CongestionState, EndPayload, EventKind, ExitReason, ExitRecord, Export,
    LossPayload, OUTCOME_MAX, Parameters, RestartPayload, RoundPayload, StatePayload, UndoPayload,
};

use crate::object::abi::{FlowHeader, flow_flag};

/// What a [`crate::telemetry::Stream`] yields.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Something happened to a flow.
    Event(Event),
    /// Something happened that could not be reported.
    Lost(Lost),
}

/// What could not be reported since the last such item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Events for which the ring had no room.
    pub events: u64,
    /// Time in which nothing was written at all, because the consumer's lease process did not run either: all of its control
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
    /// Number of the event among the reported ones of its flow. For a consumer at [`super::Level::Ack`]
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
    /// It began, or is in progress and not known yet, or its parameters have changed. Comes before all others of a flow.
    Flow(Box<FlowEvent>),
    /// It ended, or went to another control.
    End(Box<EndEvent>),
    /// Its first slow start is over; once per flow, unless undone by [`What::Undo`].
    Exit(ExitEvent),
    /// A loss proved spurious.
    Undo(UndoPayload),
    /// A round is over.
    Round(Box<RoundEvent>),
    /// The window is to be reduced. Why, says the [`What::State`] that follows.
    Loss(LossPayload),
    /// The congestion state changes.
    State(StateEvent),
    /// Slow start begins, for the first time or anew.
    Restart(RestartPayload),
    /// An acknowledgment.
    Ack(AckPayload),
}

impl What {
    /// Which kind of event.
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Flow(_) => EventKind::Flow,
            Self::End(_) => EventKind::End,
            Self::Exit(_) => EventKind::Exit,
            Self::Undo(_) => EventKind::Undo,
            Self::Round(_) => EventKind::Round,
            Self::Loss(_) => EventKind::Loss,
            Self::State(_) => EventKind::State,
            Self::Restart(_) => EventKind::Restart,
            Self::Ack(_) => EventKind::Ack,
        }
    }

    /// Name in listings and JSON.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }
}

/// Identity, parameters and state of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowEvent {
    /// Local address; IPv4 also where the socket is of IPv6.
    pub local: SocketAddr,
    /// Remote address, likewise.
    pub remote: SocketAddr,
    /// Whether this is not the flow's first event: a consumer has come or changed its subscription, or parameters have
    /// changed.
    pub again: bool,
    /// The kernel's id of the socket; `None`: none was requested yet.
    pub cookie: Option<u64>,
    /// The kernel's id of the network namespace.
    pub netns_cookie: u64,
    /// With which the algorithm is called at the next ACK.
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
    /// What the socket came to.
    pub payload: EndPayload,
    /// What the shell kept of it: exit record, slow starts.
    pub header: FlowHeader,
    /// Verdicts by the number of their outcome, since the flow had a subscriber.
    pub outcomes: [u32; OUTCOME_MAX],
}

/// An exit whose record is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitEvent {
    /// The record's reason, decoded here once: no reader meets a number that is none.
    pub reason: ExitReason,
    /// The record.
    pub record: ExitRecord,
    /// Where the algorithm would have left, if it is attached to observe and would have.
    pub observed: Option<ExitRecord>,
}

/// A round: from one ACK to the first that acknowledges what was sent after it, so an RTT or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundEvent {
    /// What the kernel side says of it.
    pub payload: RoundPayload,
    /// The algorithm's state at its end.
    pub state: Vec<u8>,
}

/// Events are read as their payloads.
macro_rules! payload {
    ($($event:ident => $payload:ident),+) => {
        $(impl Deref for $event {
            type Target = $payload;

            fn deref(&self) -> &$payload {
                &self.payload
            }
        })+
    };
}
payload!(EndEvent => EndPayload, RoundEvent => RoundPayload, StateEvent => StatePayload);

impl RoundEvent {
    /// Whether the flow was in slow start when it ended.
    pub fn slow_start(&self) -> bool {
        u32::from(self.flags) & flow_flag::SLOW_START != 0
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

/// The congestion state changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateEvent {
    /// Before.
    pub from: CongestionState,
    /// After.
    pub to: CongestionState,
    /// What the socket was at.
    pub payload: StatePayload,
}
