// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One run of one arm: what a plan asks for, simulated, and read off as the lab does.

use std::time::Duration;

use onramp_algorithm::{Ack, Path};
use onramp_net::sock_diag::TcpInfo;

use super::SimError;
use super::arm::{Identity, control};
use super::connection::{Connection, SET_UP};
use super::control::Control;
use super::network::Network;
use super::receiver::ReceiverSpec;
use super::sender::{Sender, SenderSpec};
use super::socket::{NO_THRESHOLD, State};
use super::source::{Source, SourceSpec};
use crate::emulator::{Way, one_way};
use crate::experiment::{
    Amount, Arm, Exit, ExitSource, Flow, FlowRun, FlowSample, LinkChange, LinkRegret, Measures, Plan, Run,
    WarmRun, compete, jain,
};
use crate::host::HostSpec;
use crate::link::{LinkSpec, Nanos};

/// The looks at flows, nanoseconds: as the lab's.
const LOOK: Nanos = 10_000_000;
/// Of a transfer that is to go on.
const ENDLESS: u64 = 1_000_000_000_000;

struct Runner {
    network: Network,
    /// One for each connection, the competitor's last.
    looks: Vec<Flow>,
    next_look: Nanos,
    changes: std::vec::IntoIter<LinkChange>,
    next_change: Option<LinkChange>,
    /// At the begin of the first transfer, of what is assigned: its time, and the bytes that had been delivered.
    before: Option<(Nanos, u64)>,
    /// For each object of the plan that was acknowledged, in ascending order, the same at that time.
    then: Vec<(Nanos, u64)>,
    /// When the transfers are given up.
    limit: Nanos,
}

/// Simulates a run of an arm. The same arguments give the same result, digest included, on every machine.
///
/// # Errors
/// [`SimError`]: the arm's control is not modelled, or a value is out of range.
pub fn run(plan: &Plan, arm: &Arm, seed: u64, source: SourceSpec) -> Result<Run, SimError> {
    Ok(watched(plan, arm, seed, source)?.0)
}

/// The same, and what was seen of the first flow every 10 ms.
pub(super) fn watched(
    plan: &Plan,
    arm: &Arm,
    seed: u64,
    source: SourceSpec,
) -> Result<(Run, Flow), SimError> {
    let warm = warm(plan, arm, seed)?;
    let learned = warm.as_ref().map(|(path, _)| path);
    let mut runner = prepare(plan, arm, seed, source, learned, |control| control)?;
    let complete = runner.go(plan)?;
    let (mut run, flow) = runner.evaluate(plan, arm, seed, complete);
    run.warm = warm.map(|(_, run)| run);
    // Where an application pauses, what a flow carries is not up to its window.
    run.regret = LinkRegret::new(plan, arm, &flow, run.exit.as_ref()).filter(|_| source == SourceSpec::Bulk);
    Ok((run, flow))
}

/// Every acknowledgment of the first flow as its algorithm would see it, as `onramp record` keeps them.
///
/// # Errors
/// As [`run`].
pub fn record(plan: &Plan, arm: &Arm, seed: u64, source: SourceSpec) -> Result<Vec<Ack>, SimError> {
    let warm = warm(plan, arm, seed)?;
    let learned = warm.as_ref().map(|(path, _)| path);
    let mut runner = prepare(plan, arm, seed, source, learned, Control::keeping)?;
    runner.go(plan)?;
    let sender = runner.network.connections[0].sender.as_mut();
    Ok(sender.map(|sender| sender.control.take_kept()).unwrap_or_default())
}

/// The transfer before a run, alone on a link that begins anew after it, as `onramp lab` makes it: what the arm has learned of
/// its path by the end of it, and what came of it.
fn warm(plan: &Plan, arm: &Arm, seed: u64) -> Result<Option<(Path, WarmRun)>, SimError> {
    let Some(bytes) = plan.warm_bytes else { return Ok(None) };
    let plan =
        Plan { amount: Amount::Bytes(bytes), timeout: plan.timeout, ..Plan::new(plan.profile.clone()) };
    let unlearned = Path::default();
    let mut runner = prepare(&plan, arm, seed, SourceSpec::Bulk, Some(&unlearned), Control::learning)?;
    let complete = runner.go(&plan)?;
    let sender = runner.network.connections[0].sender.as_mut();
    let path = sender.and_then(|sender| sender.control.take_learned(&sender.socket)).unwrap_or_default();
    let (run, _) = runner.evaluate(&plan, arm, seed, complete);
    Ok(Some((path, WarmRun { seconds: run.seconds, digest: run.digest.unwrap_or_default() })))
}

/// A run before it begins, over a path of which `learned` is what an earlier one has learned; the controls of its flows are
/// changed by `with`.
fn prepare(
    plan: &Plan,
    arm: &Arm,
    seed: u64,
    source: SourceSpec,
    learned: Option<&Path>,
    with: impl Fn(Control) -> Control,
) -> Result<Runner, SimError> {
    let host = arm.host.as_ref().unwrap_or(&plan.profile.host);
    host.validate("host")?;
    if host.tcp_ecn {
        return Err(SimError::Ecn);
    }
    let LinkSpec { forward, back } = &plan.profile.link;
    for (key, direction) in [("link.forward.reordering", forward), ("link.return.reordering", back)] {
        if direction.reordering.is_some() {
            return Err(SimError::Reordering { key });
        }
    }
    if !plan.paths.is_empty() {
        return Err(SimError::Path);
    }
    let bytes = match plan.amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Seconds(_) => ENDLESS,
    };
    let lead = lead(plan);
    let stagger = plan.stagger.as_nanos() as Nanos;
    let link = &plan.profile.link;
    let mut connections = Vec::new();
    for number in 0..plan.flows {
        let after = lead + stagger * Nanos::from(number);
        connections.push(connection(
            host,
            with(control(arm, host, link, learned, Identity { seed, number: number.into() })?),
            Source::new(source, bytes),
            after,
        ));
    }
    if let Some(other) = &plan.competitor {
        let other = Arm::stock(&other.congestion_control);
        connections.push(connection(
            host,
            control(&other, host, link, None, Identity { seed, number: plan.flows.into() })?,
            Source::new(SourceSpec::Bulk, ENDLESS),
            0,
        ));
    }
    let own_delays = plan.extra_rtt_us.iter().map(|rtt_us| one_way(*rtt_us)).collect();
    let mut changes = plan.changes.clone();
    changes.sort_by_key(|change| change.at);
    let mut changes = changes.into_iter();
    Ok(Runner {
        looks: connections
            .iter()
            .map(|_| Flow { congestion_control: arm.congestion_control.clone(), ..Flow::default() })
            .collect(),
        network: Network::new(&plan.profile.link, seed, connections, own_delays)?,
        next_look: 0,
        next_change: changes.next(),
        changes,
        before: None,
        then: Vec::new(),
        limit: lead + limit(plan, source, bytes).as_nanos() as Nanos,
    })
}

/// After which a transfer is given up: the plan's limit, or its default and what pauses and requests take besides.
fn limit(plan: &Plan, source: SourceSpec, bytes: u64) -> Duration {
    if plan.timeout.is_some() {
        return plan.timeout();
    }
    let rtt_us = plan.profile.link.base_rtt_us();
    let more_us = match source {
        SourceSpec::Bulk => 0,
        // Twenty times what the round trips of each slow start need, as of the rest.
        SourceSpec::Requests { object_bytes, think_us } => {
            let rounds = 2 + u64::from((object_bytes / 10_000).max(1).ilog2());
            bytes.div_ceil(object_bytes.max(1)).saturating_mul(think_us + 20 * rounds * rtt_us)
        }
        SourceSpec::Periodic { block_bytes, every_us } => {
            bytes.div_ceil(block_bytes.max(1)).saturating_mul(every_us)
        }
    };
    plan.timeout() + Duration::from_micros(more_us)
}

/// How long a competitor is there before.
fn lead(plan: &Plan) -> Nanos {
    plan.competitor.as_ref().map_or(0, |other| Nanos::from(other.lead_seconds) * 1_000_000_000)
}

fn connection(host: &HostSpec, control: Control, source: Source, after: Nanos) -> Connection {
    let mss = host.mss();
    let sender = SenderSpec {
        mss,
        initial_window: host.initial_window(),
        sack: host.tcp_sack && !control.starts_anew(),
        fast_retransmit: host.fast_retransmit,
        buffer_bytes: [host.tcp_wmem[1], host.tcp_wmem[2]],
        paced: host.fq,
    };
    Connection::new(sender, ReceiverSpec::new(host), control, source, after)
}

impl Runner {
    /// Until all flows of the arm have ended; false if they did not in time.
    fn go(&mut self, plan: &Plan) -> Result<bool, SimError> {
        let timeout = self.limit;
        let flows = usize::from(plan.flows);
        loop {
            let limit = match plan.amount {
                Amount::Seconds(seconds) => {
                    let last = self.network.connections[flows - 1].began;
                    last.map_or(timeout, |began| began + Nanos::from(seconds) * 1_000_000_000)
                }
                Amount::Bytes(_) => timeout,
            };
            let change = self.next_change.map_or(limit, |change| SET_UP + change.at.as_nanos() as Nanos);
            let until = limit.min(self.next_look).min(change);
            if self.network.step(until) {
                if self.is_over(flows) {
                    return Ok(true);
                }
                continue;
            }
            let now = self.network.now();
            if now >= self.next_look {
                self.look(&plan.objects);
                self.next_look = now + LOOK;
            }
            if let Some(change) = self.next_change.take_if(|_| now >= change) {
                let direction = match change.way {
                    Way::Forward => &mut self.network.forward,
                    Way::Return => &mut self.network.back,
                };
                direction.change(now, change.change)?;
                self.next_change = self.changes.next();
            }
            if now >= limit {
                return Ok(matches!(plan.amount, Amount::Seconds(_)));
            }
        }
    }

    /// The sink has all, and the source knows.
    fn is_over(&self, flows: usize) -> bool {
        self.network.connections[..flows].iter().all(|connection| {
            connection.ended.is_some() && connection.sender.as_ref().is_some_and(Sender::is_done)
        })
    }

    fn look(&mut self, objects: &[u64]) {
        let at_ns = self.network.now();
        if self.before.is_none() && self.network.connections[0].began.is_some() {
            self.before = self.carried(at_ns);
        }
        for (connection, flow) in self.network.connections.iter().zip(&mut self.looks) {
            if let Some(sender) = &connection.sender {
                flow.samples.push(FlowSample { at_ns, info: info(sender) });
            }
        }
        let acked = self.looks[0].samples.last().map_or(0, |sample| sample.info.bytes_acked);
        let more = objects.iter().filter(|bytes| acked >= **bytes).count() - self.then.len();
        if more > 0
            && let Some(carried) = self.carried(at_ns)
        {
            self.then.resize(self.then.len() + more, carried);
        }
    }

    /// What was assigned to the forward link so far, and the bytes that it carried.
    fn carried(&mut self, now: Nanos) -> Option<(Nanos, u64)> {
        let assigned = self.network.forward.assigned(now)?;
        Some((assigned, self.network.forward.counters().delivered.bytes))
    }

    fn evaluate(mut self, plan: &Plan, arm: &Arm, seed: u64, complete: bool) -> (Run, Flow) {
        let now = self.network.now();
        self.network.forward.advance(now);
        self.network.back.advance(now);
        for connection in &mut self.network.connections {
            if let Some(sender) = &mut connection.sender {
                sender.finish(now);
            }
        }
        self.look(&plan.objects);
        let flows = usize::from(plan.flows);
        let competitor = plan.competitor.as_ref().and_then(|_| self.looks.pop());
        let connections = &self.network.connections[..flows];
        let began = connections.iter().filter_map(|connection| connection.began).min();
        let ended = connections.iter().filter_map(|connection| connection.ended).max().filter(|_| complete);
        let counters = [self.network.forward.counters(), self.network.back.counters()];
        let bytes = match plan.amount {
            Amount::Bytes(bytes) => bytes,
            Amount::Seconds(_) => u64::MAX,
        };
        let flow_run = |(number, (connection, flow)): (usize, (&Connection, &Flow))| FlowRun {
            base_rtt_us: plan.own_base_rtt_us(number),
            exit: connection.sender.as_ref().and_then(|sender| exit(sender, arm, flow, bytes)),
            ..flow_run(connection, now)
        };
        let runs: Vec<FlowRun> = connections.iter().zip(&self.looks).enumerate().map(flow_run).collect();
        let (Some(first), Some(flow), Some(began)) = (runs.first(), self.looks.first(), began) else {
            // Not a connection has opened.
            return (Run::cut_off(seed, Duration::from_nanos(self.limit - lead(plan))), Flow::default());
        };
        let sender = connections[0].sender.as_ref();
        let seconds = (ended.unwrap_or(now) - began) as f64 / 1e9;
        let received = connections.iter().map(Connection::received_bytes).sum::<u64>();
        let span = connections[0].first_data.zip(connections[0].last_data);
        let several = flows > 1;
        let most =
            sender.map_or(0, |sender| u64::from(sender.counts.most_cwnd) * u64::from(sender.socket.mss));
        let rate_bps = plan.profile.link.forward.rate_bps;
        let mut measures = Measures::new(flow, rate_bps, &plan.objects);
        for object in &mut measures.objects {
            let smaller = plan.objects.iter().filter(|bytes| **bytes < object.bytes).count();
            let both = self.before.zip(self.then.get(smaller).copied());
            object.utilization = both.map(|(before, then)| utilization(before, then, rate_bps));
        }
        let over = (!complete).then(|| Run::cut_off(seed, Duration::from_nanos(self.limit - lead(plan))));
        let run = Run {
            valid: complete,
            cut_off: !complete,
            invalid_reason: over.and_then(|run| run.invalid_reason),
            seconds,
            goodput_bps: received as f64 * 8.0 / seconds.max(1e-9),
            received_bytes: received,
            link_seconds: span.map(|(first, last)| (last - first) as f64 / 1e9),
            retransmitted_segments: runs.iter().map(|run| run.retransmitted_segments).sum(),
            queue_drops: counters[0].dropped_packets(),
            aqm_drops: counters[0].dropped_aqm.packets,
            ecn_marks: counters[0].marked.packets,
            max_queue_bytes: counters[0].max_queue_bytes,
            base_rtt_us: plan.own_base_rtt_us(0),
            max_rtt_us: flow.max_rtt_us(),
            mean_rtt_us: flow.mean_rtt_us(),
            min_rtt_us: sender.and_then(|sender| sender.socket.round_trip.least_us()),
            receive_window_limited_seconds: sender
                .map_or(0.0, |sender| sender.counts.receive_window_limited as f64 / 1e9),
            exit: first.exit.clone(),
            measures: Measures { max_window_bytes: measures.max_window_bytes.max(most), ..measures },
            fairness: several.then(|| jain(runs.iter().map(|run| run.goodput_bps))),
            competitor: competitor.as_ref().map(|competitor| compete(plan, competitor, flow)),
            digest: Some(self.network.digest.finish(counters)),
            ..Run::failed(seed, String::new())
        };
        let run = Run { flows: if several { runs } else { Vec::new() }, ..run };
        (run, self.looks.swap_remove(0))
    }
}

/// Bytes carried over those that were assigned, between two looks at both.
fn utilization(before: (Nanos, u64), after: (Nanos, u64), rate_bps: u64) -> f64 {
    let assigned = (after.0 - before.0) as f64 / 1e9 * rate_bps as f64 / 8.0;
    (after.1 - before.1) as f64 / assigned.max(1.0)
}

fn flow_run(connection: &Connection, now: Nanos) -> FlowRun {
    let began = connection.began.unwrap_or(now);
    let seconds = (connection.ended.unwrap_or(now) - began) as f64 / 1e9;
    FlowRun {
        seconds,
        goodput_bps: connection.received_bytes() as f64 * 8.0 / seconds.max(1e-9),
        retransmitted_segments: connection.sender.as_ref().map_or(0, |sender| sender.counts.retransmitted),
        base_rtt_us: None,
        min_rtt_us: connection.sender.as_ref().and_then(|sender| sender.socket.round_trip.least_us()),
        exit: None,
    }
}

/// Of a flow that was to have so many bytes acknowledged. What keeps no record shows its exit to a look alone, as in the lab.
fn exit(sender: &Sender, arm: &Arm, flow: &Flow, bytes: u64) -> Option<Exit> {
    if !sender.control.records() {
        return flow.sampled_exit(bytes);
    }
    let (reason, record) = sender.control.record()?;
    Some(Exit {
        reason,
        seconds: record.at_us as f64 / 1e6,
        window_bytes: u64::from(record.window) * u64::from(sender.socket.mss),
        acks: sender.control.calls().filter(|_| arm.records_exit),
        source: ExitSource::Simulated,
    })
}

/// What the kernel would report of it.
fn info(sender: &Sender) -> TcpInfo {
    let socket = &sender.socket;
    TcpInfo {
        ca_state: match socket.state {
            State::Open => 0,
            State::Disorder => 1,
            State::Reduced => 2,
            State::Recovery => 3,
            State::Loss => 4,
        },
        snd_mss: socket.mss,
        unacked: socket.packets_out,
        sacked: socket.sacked_out,
        lost: socket.lost_out,
        retrans: socket.retrans_out,
        rtt_us: socket.round_trip.smoothed_us(),
        snd_ssthresh: Some(socket.ssthresh).filter(|threshold| *threshold < NO_THRESHOLD),
        snd_cwnd: socket.cwnd,
        retrans_total: sender.counts.retransmitted as u32,
        pacing_rate_bytes_per_s: Some(socket.pacing_rate),
        bytes_acked: socket.bytes_acked,
        bytes_sent: socket.bytes_sent,
        min_rtt_us: socket.round_trip.least_us(),
        delivered: socket.delivered,
        ..TcpInfo::default()
    }
}
