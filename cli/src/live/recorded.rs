//! Recordings, as the events that they were made of: flows as `serve` shows those that are in progress.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use onramp_loader::ExitReason;
use onramp_loader::abi::{FlowHeader, flow_flag};
use onramp_loader::algorithm::{
    self, Algorithm, Flow as HostFlow, OUTCOME_MAX, OpenLoop, Parameters, RoundPayload, Sock, Stage, shell,
};
use onramp_loader::telemetry::{
    AckPayload, CongestionState, EndEvent, Event, ExitEvent, FlowEvent, Item, Lost, RoundEvent, StateEvent,
    UndoPayload, What,
};
use onramp_recording::replay::{AckRound, FlowReport, Options, Replay, Rounds, candidates, replay_with};
use onramp_recording::rows::{DropRow, ExitRow, FlowRow, ParameterRow, RoundRow, StateRow};
use onramp_recording::{Event as Replayed, Recording, Run, Sample, replay_csv};

use super::flow_table::FlowTable;

/// What is wrong with so many flows is said.
const PROBLEMS_MAX: usize = 20;

/// Between two looks at what an algorithm knows.
const LOOK_US: u64 = 10_000;

/// What a recording holds.
pub(crate) struct Recorded {
    pub model: FlowTable,
    /// By flow: what every algorithm would have done.
    pub reports: BTreeMap<u64, FlowReport>,
    /// What could not be used.
    pub problems: Vec<String>,
}

/// Reads a recording: at most so many flows, each with its past in at most so many buckets.
pub(crate) fn read(recording: &mut Recording, flows_max: usize, buckets_max: usize) -> Recorded {
    let mut recorded = RecordedEvents::new(recording);
    let mut model = FlowTable::new(flows_max, buckets_max);
    let cancelled = Arc::clone(&recording.budget.cancelled);
    let reports = replay_with(recording, everyone(), |run| {
        !cancelled.load(Ordering::Relaxed) && recorded.run(run, &mut model)
    });
    recorded.finish(&mut model);
    recording.each_row(|row: DropRow| {
        let unobserved = Duration::from_micros(row.unobserved_us);
        model.add(&Item::Lost(Lost { events: row.events, unobserved }));
    });
    let mut problems: Vec<String> = recording.problems.iter().map(ToString::to_string).collect();
    problems.extend(recorded.problems);
    let more = recorded.more_problems;
    problems.extend((more > 0).then(|| format!("{more} more flows are not shown")));
    Recorded { model, reports: by_flow(reports), problems }
}

/// Reads acknowledgments in CSV, which does not say whose they are.
pub(crate) fn read_csv(source: impl Read, flows_max: usize, buckets_max: usize) -> Result<Recorded, String> {
    let mut recorded = RecordedEvents::default();
    let mut model = FlowTable::new(flows_max, buckets_max);
    let report = replay_csv(source, false, everyone(), |run| {
        recorded.meet(run, flows_max);
        recorded.run(run, &mut model)
    })?;
    let problems = [recorded.problems, report.problems()].concat();
    Ok(Recorded { model, reports: by_flow(report.flows), problems })
}

/// Every algorithm but baselines, with its defaults or the parameters that were recorded.
fn everyone() -> Replay {
    let names: Vec<String> =
        algorithm::all().filter(|one| !one.is_baseline()).map(|one| one.name().to_owned()).collect();
    // Names that are there, and nothing set: none is refused.
    Replay::new(
        candidates(&names, &[], &[]).unwrap_or_default(),
        Options { regret: true, ..Options::default() },
    )
}

fn by_flow(reports: Vec<FlowReport>) -> BTreeMap<u64, FlowReport> {
    reports.into_iter().map(|report| (report.flow, report)).collect()
}

/// What a recording has next to ACKs, in its order; and each flow's algorithm, run again.
#[derive(Default)]
struct RecordedEvents {
    flows: BTreeMap<u64, Followed>,
    parameters: BTreeMap<(String, u32, u32), Vec<String>>,
    /// The first ones, and the number of the others.
    problems: Vec<String>,
    more_problems: u64,
}

struct Followed {
    algorithm: Algorithm,
    netns: u32,
    parameter_set: u32,
    generation: u32,
    replayed: OpenLoop,
    /// When it was looked at what the algorithm knows, monotonic clock, microseconds.
    looked_us: u64,
    /// By their numbers.
    events: VecDeque<Event>,
    /// Where rounds are not recorded.
    rounds: Option<Rounds>,
}

impl RecordedEvents {
    fn new(recording: &mut Recording) -> Self {
        let mut recorded = Self::default();
        recording.each_row(|row: ParameterRow| {
            let key = (row.algorithm.into_owned(), row.parameter_set, row.parameters_generation);
            recorded.parameters.entry(key).or_default().push(format!("{}={}", row.name, row.value));
        });
        recording.each_row(|row: FlowRow| recorded.flow(&row));
        recording.each_row(|row: RoundRow| {
            let what = |_: &Followed| {
                Some(What::Round(Box::new(RoundEvent { payload: round(&row)?, state: Vec::new() })))
            };
            recorded.push(row.at_us, row.flow, row.sequence, what);
        });
        recording.each_row(|row: ExitRow| recorded.push(row.at_us, row.flow, row.sequence, |_| exit(&row)));
        recording.each_row(|row: StateRow| recorded.push(row.at_us, row.flow, row.sequence, |_| state(&row)));
        for flow in recorded.flows.values_mut() {
            flow.events.make_contiguous().sort_by_key(|event| event.sequence);
            // Where rounds are recorded, none are made.
            let has_rounds = flow.events.iter().any(|event| matches!(event.what, What::Round(_)));
            flow.rounds = (!has_rounds).then(Rounds::default);
        }
        recorded
    }

    fn parameters(&self, algorithm: Algorithm, set: u32, generation: u32) -> Parameters {
        let mut parameters = algorithm.parameters();
        if let Some(settings) = self.parameters.get(&(algorithm.name().to_owned(), set, generation))
            && settings.iter().any(|setting| parameters.assign([setting]).is_err())
        {
            // Values that this onramp does not take: another one's.
            return algorithm.parameters();
        }
        parameters
    }

    fn flow(&mut self, row: &FlowRow) {
        let Some(algorithm) = algorithm::find(&row.algorithm) else {
            let name = &row.algorithm;
            if self.problems.len() < PROBLEMS_MAX {
                self.problems.push(format!(
                    "flow {} ran {name:?}, which this onramp does not know: it is not shown",
                    row.flow
                ));
            } else {
                self.more_problems += 1;
            }
            return;
        };
        if row.event == "end" {
            return self.push(row.at_us, row.flow, row.sequence, |_| Some(What::End(Box::new(end(row)?))));
        }
        let parameters = self.parameters(algorithm, row.parameter_set, row.parameters_generation);
        let state = bytes(&row.state);
        let flow = self.flows.entry(row.flow).or_insert_with(|| {
            let resumed = HostFlow::resume(parameters.clone(), &state).filter(|_| row.event != "start");
            let slow_starts = if resumed.is_some() { row.slow_starts } else { 0 };
            let replayed = resumed.unwrap_or_else(|| HostFlow::new(parameters.clone()));
            Followed {
                algorithm,
                netns: row.netns,
                parameter_set: row.parameter_set,
                generation: row.parameters_generation,
                replayed: OpenLoop::new(replayed, slow_starts),
                looked_us: 0,
                events: VecDeque::new(),
                rounds: None,
            }
        });
        let flags = if row.adopted != 0 { flow_flag::ADOPTED } else { flow_flag::SLOW_START };
        let event = FlowEvent {
            local: address(&row.local_address, row.local_port),
            remote: address(&row.remote_address, row.remote_port),
            again: row.event == "again",
            cookie: None,
            netns_cookie: 0,
            parameters,
            profile: row.parameter_set,
            generation: row.parameters_generation,
            header: FlowHeader { start_us: row.started_us, flags: flags as u16, ..FlowHeader::default() },
            state,
        };
        flow.events.push_back(flow.event(row.at_us, row.flow, row.sequence, What::Flow(Box::new(event))));
    }

    /// A flow that CSV has acknowledgments of.
    fn meet(&mut self, run: &Run<'_>, flows_max: usize) {
        let Some(first) = run.samples.first() else { return };
        if self.flows.contains_key(&run.flow) {
            return;
        }
        if self.flows.len() == flows_max {
            if self.problems.is_empty() {
                self.problems
                    .push(format!("it has more than {flows_max} flows: those after them are not shown"));
            }
            return;
        }
        let ack = &first.ack;
        let before_us = u64::try_from(ack.rtt_us).unwrap_or(ack.smoothed_rtt_us.into());
        self.flow(&FlowRow {
            at_us: ack.now_us,
            flow: run.flow,
            event: "start".into(),
            started_us: ack.now_us.saturating_sub(before_us),
            algorithm: algorithm::baseline().name().into(),
            ..FlowRow::default()
        });
        if let Some(flow) = self.flows.get_mut(&run.flow) {
            flow.rounds = Some(Rounds::default());
        }
    }

    fn push(&mut self, at_us: u64, flow: u64, sequence: u32, what: impl FnOnce(&Followed) -> Option<What>) {
        if let Some(followed) = self.flows.get_mut(&flow)
            && let Some(what) = what(followed)
        {
            let event = followed.event(at_us, flow, sequence, what);
            followed.events.push_back(event);
        }
    }

    /// False: the flow is not known.
    fn run(&mut self, run: &Run<'_>, model: &mut FlowTable) -> bool {
        let Some(mut flow) = self.flows.remove(&run.flow) else { return false };
        for sample in run.samples {
            flow.until(sample.sequence, model);
            if flow.generation != sample.generation {
                flow.generation = sample.generation;
                flow.replayed.flow_mut().tune(self.parameters(
                    flow.algorithm,
                    flow.parameter_set,
                    sample.generation,
                ));
            }
            flow.sample(run.flow, sample, model);
        }
        self.flows.insert(run.flow, flow);
        true
    }

    fn finish(&mut self, model: &mut FlowTable) {
        self.flows.values_mut().for_each(|flow| flow.until(u32::MAX, model));
    }
}

impl Followed {
    fn event(&self, at_us: u64, flow: u64, sequence: u32, what: What) -> Event {
        let time_ns = at_us.saturating_mul(1_000);
        Event { time_ns, flow, sequence, netns: self.netns, algorithm: self.algorithm, what }
    }

    /// What happened before the event of this number.
    fn until(&mut self, sequence: u32, model: &mut FlowTable) {
        while self.events.front().is_some_and(|event| event.sequence <= sequence)
            && let Some(mut event) = self.events.pop_front()
        {
            if let What::Round(round) = &mut event.what {
                round.state = self.replayed.flow().state();
            }
            model.add(&Item::Event(event));
        }
    }

    fn sample(&mut self, flow: u64, sample: &Sample, model: &mut FlowTable) {
        let ack = sample.ack;
        if let Replayed::Loss(base_ssthresh) = sample.event {
            self.replayed.loss(&ack, base_ssthresh);
            return;
        }
        let called = sample.event == Replayed::Called;
        let stage = if called { Stage::SlowStart } else { Stage::Past };
        // What it did is recorded: an exit that it would have made is no end of that.
        self.replayed.grow(ack.cwnd);
        self.replayed.go_on();
        let verdict = self.replayed.ack(&ack, sample.slow_starts, stage).unwrap_or_default();
        let flags = slow_start(ack.cwnd, ack.ssthresh);
        if ack.now_us.saturating_sub(self.looked_us) >= LOOK_US
            && let Some(shown) = model.flows.get_mut(&flow)
        {
            self.looked_us = ack.now_us;
            shown.knows(&self.replayed.flow().state());
        }
        let generation = sample.generation;
        let what = What::Ack(AckPayload {
            ack,
            verdict,
            called: called.into(),
            flags,
            generation,
            ..AckPayload::default()
        });
        model.add(&Item::Event(self.event(ack.now_us, flow, sample.sequence, what)));
        if let Some(over) = self.rounds.as_mut().and_then(|rounds| rounds.add(&ack)) {
            let round = RoundEvent { payload: made(&over), state: self.replayed.flow().state() };
            let what = What::Round(Box::new(round));
            model.add(&Item::Event(self.event(ack.now_us, flow, sample.sequence, what)));
        }
    }
}

/// A round that is made of acknowledgments. The application was the limit in all of it, or the window.
fn made(over: &AckRound) -> RoundPayload {
    let AckRound { begin, end, .. } = over;
    let duration_us = end.now_us.saturating_sub(begin.now_us);
    RoundPayload {
        duration_us,
        bytes: end.bytes_acked.saturating_sub(begin.bytes_acked),
        pacing_rate: end.pacing_rate,
        delivered: over.delivered_segments(),
        cwnd_limited_us: if over.app_limited { 0 } else { duration_us.try_into().unwrap_or(u32::MAX) },
        min_rtt_us: over.min_rtt_us,
        smoothed_rtt_us: end.smoothed_rtt_us,
        cwnd: end.cwnd,
        ssthresh: end.ssthresh,
        in_flight: end.in_flight,
        mss: end.mss,
        flags: slow_start(end.cwnd, end.ssthresh),
        ..RoundPayload::default()
    }
}

fn slow_start(cwnd: u32, ssthresh: u32) -> u16 {
    let starts = shell::in_slow_start(&Sock { cwnd, ssthresh, ..Sock::default() });
    if starts { flow_flag::SLOW_START as u16 } else { 0 }
}

fn address(host: &str, port: u32) -> SocketAddr {
    let none = IpAddr::from([0, 0, 0, 0]);
    SocketAddr::new(host.parse().unwrap_or(none), port.try_into().unwrap_or(0))
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(hexadecimal.get(at..at + 2)?, 16).ok();
    (0..hexadecimal.len()).step_by(2).map_while(byte).collect()
}

fn round(row: &RoundRow) -> Option<RoundPayload> {
    Some(RoundPayload { flags: slow_start(row.cwnd_segments, row.ssthresh_segments), ..row.round_payload()? })
}

fn end(row: &FlowRow) -> Option<EndEvent> {
    Some(EndEvent { payload: row.end_payload()?, header: FlowHeader::default(), outcomes: [0; OUTCOME_MAX] })
}

fn exit(row: &ExitRow) -> Option<What> {
    if row.event != "exit" {
        return Some(What::Undo(UndoPayload { exit_undone: 1, ..UndoPayload::default() }));
    }
    let record = row.exit_record()?;
    Some(What::Exit(ExitEvent {
        reason: ExitReason::from_number(record.reason.into())?,
        record,
        observed: None,
    }))
}

fn state(row: &StateRow) -> Option<What> {
    let payload = row.state_payload()?;
    let named = CongestionState::from_number;
    Some(What::State(StateEvent { from: named(payload.from)?, to: named(payload.to)?, payload }))
}
