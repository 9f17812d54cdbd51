//! The flows that are watched, and what each algorithm made of them.

use std::collections::{BTreeMap, HashSet};

use onramp_loader::ExitReason;
use onramp_loader::algorithm::ExitRecord;
use onramp_loader::shadow::{Follower, SocketSnapshot, Step};
use onramp_recording::replay::{
    Candidate, Finding, Generations, Known, Options, PathEstimate, Regret, Replay,
};
use onramp_recording::{Event, Run, Sample};
use serde::Serialize;

use crate::filter::Filter;
use crate::limits::algorithm_of;

/// Flows that are kept; those after them are counted.
const FLOWS: usize = 10_000;

/// Flows by their numbers.
pub(super) struct Flows {
    candidates: Vec<Candidate>,
    /// What exits cost is asked for, too.
    regret: bool,
    filter: Filter,
    open: BTreeMap<u64, Watched>,
    closed: Vec<FlowRow>,
    unwanted: HashSet<u64>,
    /// Flows beyond those that are kept.
    pub too_many: u64,
}

struct Watched {
    first: SocketSnapshot,
    follower: Follower,
    replay: Replay,
}

/// A flow: what it did, and what each candidate would have done.
#[derive(Serialize)]
pub(super) struct FlowRow {
    pub local: String,
    pub remote: String,
    /// Inode of the network namespace.
    pub netns: u32,
    pub congestion_control: String,
    /// Its beginning was not seen.
    pub established: bool,
    pub ended: bool,
    /// Acknowledgments in its first slow start.
    pub acks: u64,
    pub dropped: u64,
    /// Closed by its sender while data were outstanding, whose acknowledgments are not seen.
    pub closed_early: bool,
    /// How it really left its first slow start; none: it has not.
    pub exit: Option<Exit>,
    /// Real exits before that were undone, because the loss was none.
    pub undone: u32,
    /// The BDP of the path; none: it is not requested, or not known.
    pub given: Option<PathEstimate>,
    /// What the real exit cost.
    pub regret: Option<Regret>,
    pub findings: Vec<Finding>,
}

/// How a flow really left.
#[derive(Serialize)]
pub(super) struct Exit {
    pub reason: &'static str,
    /// The algorithm that left, where the reason is one and its control has one of a name.
    pub algorithm: Option<&'static str>,
    pub since_start_us: u64,
    pub acknowledged_bytes: u64,
    pub cwnd_segments: u32,
    pub window_bytes: u64,
    pub rtt_us: u32,
}

impl Flows {
    pub fn new(candidates: Vec<Candidate>, regret: bool, filter: Filter) -> Self {
        let (open, closed, unwanted) = (BTreeMap::new(), Vec::new(), HashSet::new());
        Self { candidates, regret, filter, open, closed, unwanted, too_many: 0 }
    }

    /// Takes what the kernel says of a flow.
    pub fn take(&mut self, snapshot: &SocketSnapshot) {
        let number = snapshot.flow();
        let known = self.open.contains_key(&number) || self.unwanted.contains(&number);
        if !known && !self.meet(snapshot) {
            self.unwanted.insert(number);
        }
        if let Some(watched) = self.open.get_mut(&number) {
            for step in watched.follower.take(snapshot) {
                watched.evaluate(number, step);
            }
        }
        if snapshot.is_last() {
            self.unwanted.remove(&number);
            let ended = self.open.remove(&number).and_then(|watched| watched.row(true));
            self.closed.extend(ended);
        }
    }

    /// Whether a flow seen for the first time is kept.
    fn meet(&mut self, first: &SocketSnapshot) -> bool {
        if !self.filter.matches(first.local(), first.remote()) {
            return false;
        }
        if self.open.len() + self.closed.len() >= FLOWS {
            self.too_many += 1;
            return false;
        }
        // Slow start alone does not show the BDP of the path.
        let follower = if self.regret { Follower::past() } else { Follower::default() };
        let options = Options { regret: self.regret, ..Options::default() };
        let replay = Replay::new(self.candidates.clone(), options);
        self.open.insert(first.flow(), Watched { first: *first, follower, replay });
        true
    }

    /// Every flow that has been in slow start, those still open last.
    pub fn finish(self) -> Vec<FlowRow> {
        let open = self.open.into_values().filter_map(|watched| watched.row(false));
        self.closed.into_iter().chain(open).collect()
    }
}

impl Watched {
    fn evaluate(&mut self, flow: u64, step: Step) {
        let sample = match step {
            Step::Ack { ack, slow_starts } => Sample { ack, slow_starts, ..Sample::default() },
            Step::Past { ack } => Sample { ack, event: Event::NotCalled, ..Sample::default() },
            Step::Loss { ack, ssthresh } => Sample { ack, event: Event::Loss(ssthresh), ..Sample::default() },
        };
        let run = Run { flow, samples: &[sample], verdicts: &[] };
        self.replay.feed(&run, &Known::default(), &Generations::default());
    }

    /// None: it has acknowledged nothing in slow start.
    fn row(self, ended: bool) -> Option<FlowRow> {
        let Self { first, follower, replay } = self;
        let report = replay.finish().pop()?;
        let mut findings = report.findings;
        for finding in &mut findings {
            finding.flow_left_first |= finding.exit.is_none() && follower.exit().is_some();
        }
        let measured = |given: PathEstimate, (_, exit): (ExitReason, &ExitRecord)| {
            given.regret(exit.at_us, exit.window_bytes(), None)
        };
        Some(FlowRow {
            given: report.given,
            regret: report.given.zip(follower.exit()).and_then(|(given, exit)| measured(given, exit)),
            local: first.local().to_string(),
            remote: first.remote().to_string(),
            netns: first.netns(),
            established: first.is_established(),
            ended,
            acks: follower.acks,
            dropped: follower.lost,
            closed_early: follower.shut_early,
            exit: follower.exit().map(|(reason, exit)| Exit::new(reason, exit, &follower.control)),
            congestion_control: follower.control,
            undone: follower.undone,
            findings,
        })
    }
}

impl Exit {
    fn new(reason: ExitReason, exit: &ExitRecord, control: &str) -> Self {
        let algorithm = if reason == ExitReason::Algorithm { algorithm_of(control) } else { None };
        Self {
            reason: reason.name(),
            algorithm,
            since_start_us: exit.at_us,
            acknowledged_bytes: exit.bytes_acked,
            cwnd_segments: exit.window,
            window_bytes: exit.window_bytes(),
            rtt_us: exit.rtt_us,
        }
    }
}
