// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One run of one arm, in namespaces of its own.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use super::arm::{Arm, FlowStorage};
use super::flow::Flow;
use super::measures::Measures;
use super::plan::{Amount, PathChange, Tool};
use super::regret::LinkRegret;
use super::result::{CompetitorRun, FlowRun, Run};
use super::sampler::{Sampler, Watched};
use super::trace::Trace;
use super::transfer::{Download, PORT, Request};
use super::{ExperimentError, Plan, builtin, cpu, files, iperf3, warm};
use crate::emulator::{ExtraRtts, Health, Wiring};
use crate::guest;
use crate::host::{HostError, Hosts};

/// Looks at the flow: fine enough for a GEO round, coarse enough to cost nothing.
const FLOW_PERIOD: Duration = Duration::from_millis(10);
/// Lines of the link's log, microseconds.
const LINK_PERIOD_US: u64 = 10_000;
/// A competitor goes on until it is ended.
const COMPETITOR_SECONDS: u32 = 86_400;

/// Makes hosts, downloads, takes everything down again. Files go to `directory` if there is one.
pub(super) fn run(
    plan: &Plan,
    arm: &Arm,
    seed: u64,
    directory: Option<&Path>,
) -> Result<(Run, Trace), ExperimentError> {
    let ready = |source| ExperimentError::Arm { arm: arm.name.clone(), source };
    let storage = arm.ready.as_ref().map(|make| (make.0)()).transpose().map_err(ready)?;
    let records_exits = storage.is_some();
    let host = arm.host.as_ref().unwrap_or(&plan.profile.host);
    let paths = paths(plan);
    let links: Vec<_> = paths.iter().map(|path| path.link.clone()).collect();
    let wiring = Wiring {
        link: &plan.profile.link,
        to_come: &links,
        extra_rtts: ExtraRtts::new(PORT, &plan.extra_rtt_us),
    };
    let hosts = Hosts::set_up(host, wiring.clone(), seed, LINK_PERIOD_US)?;
    hosts.use_congestion_control(&arm.congestion_control)?;
    let (hosts, warm, cold) = match plan.warm_bytes {
        None => (hosts, None, None),
        Some(bytes) => {
            let (hosts, warm, health) = warm::up(plan, arm, (hosts, wiring, seed, LINK_PERIOD_US), bytes)?;
            hosts.use_congestion_control(&arm.congestion_control)?;
            let cold = late(&health, plan).map(|why| format!("in the transfer before it: {why}"));
            (hosts, Some(warm), cold)
        }
    };
    let requests = requests(plan, arm);
    let sampler = Sampler::start(hosts.sender(), watched(plan, arm, storage), FLOW_PERIOD)?;
    let busy = cpu::busy_seconds()?;
    let (downloads, changed) = transfer(plan, &hosts, &requests);
    let machine_cpu_seconds = cpu::busy_seconds()? - busy;
    // The emulator's error explains that of the transfer.
    if hosts.has_failed() {
        hosts.stop()?;
        return Err(ExperimentError::NoFlow);
    }
    changed?;
    let downloads = match downloads {
        Err(error) if error.is_over_the_limit() => None,
        other => Some(other?),
    };
    let mut flows = sampler.stop()?;
    if plan.flows > 1 || warm.is_some() {
        // It is not known whose they are.
        flows.values_mut().filter_map(|flow| flow.recorded.as_mut()).for_each(|exit| exit.acks = None);
    }
    let link = hosts.stop()?;
    let competitor = plan.competitor.as_ref().and_then(|_| flows.remove(&(PORT + plan.flows)));
    // Of a transfer that was given up, a flow may never have been seen to carry data.
    let flows = match &downloads {
        Some(_) => in_order(flows, plan.flows)?,
        None => (PORT..PORT + plan.flows).map(|port| flows.remove(&port).unwrap_or_default()).collect(),
    };
    let trace = Trace { flows, competitor, link };
    let cut_off = downloads.is_none();
    let downloads = downloads.unwrap_or_else(|| as_far_as_they_came(plan, &trace));
    let result = evaluate(plan, arm, seed, &downloads, &trace, records_exits)?;
    let mut result = if cut_off { given_up(plan, result) } else { result };
    if let Some(cold) = cold.filter(|_| result.counts()) {
        result = Run { valid: false, cut_off: false, invalid_reason: Some(cold), ..result };
    }
    result.warm = warm;
    result.machine_cpu_seconds = (plan.jobs == 1).then_some(machine_cpu_seconds);
    if let Some(directory) = directory {
        files::write_run(directory, &result, &trace, &downloads)?;
    }
    Ok((result, trace))
}

fn watched(plan: &Plan, arm: &Arm, storage: Option<FlowStorage>) -> Watched {
    let count = plan.flows + u16::from(plan.competitor.is_some());
    Watched { ports: PORT..PORT + count, arm: arm.name.clone(), storage, watch: plan.watch.clone() }
}

/// The paths to come, in the order of their times.
fn paths(plan: &Plan) -> Vec<PathChange> {
    let mut paths = plan.paths.clone();
    paths.sort_by_key(|path| path.at);
    paths
}

/// The arm's flows one after the other, and the competitor before them.
fn requests(plan: &Plan, arm: &Arm) -> Vec<Request> {
    let lead = plan.competitor.as_ref().map_or(0, |competitor| competitor.lead_seconds);
    let lead = Duration::from_secs(lead.into());
    let mut requests: Vec<_> = (0..plan.flows)
        .map(|number| Request {
            port: PORT + number,
            other_control: plan.warm_bytes.map(|_| warm::UNREMEMBERED),
            start: lead + plan.stagger * u32::from(number),
            ..Request::new(&arm.congestion_control, plan.amount)
        })
        .collect();
    requests.extend(plan.competitor.as_ref().map(|competitor| Request {
        port: PORT + plan.flows,
        accompanies: true,
        ..Request::new(&competitor.congestion_control, Amount::Seconds(COMPETITOR_SECONDS))
    }));
    requests
}

type Transferred = (Result<Vec<Download>, ExperimentError>, Result<(), HostError>);

/// Downloads, with the link's changes meanwhile; and how these went.
fn transfer(plan: &Plan, hosts: &Hosts, requests: &[Request]) -> Transferred {
    let mut changes = plan.changes.clone();
    changes.sort_by_key(|change| change.at);
    let mut changes = changes.into_iter().peekable();
    let mut paths = paths(plan).into_iter().peekable();
    let mut changed = Ok(());
    let timeout = plan.timeout();
    let (sender, receiver) = (hosts.sender(), hosts.receiver());
    let meanwhile = |elapsed| {
        while paths.next_if(|path| path.at <= elapsed).is_some() {
            changed = hosts.next_path();
            if changed.is_err() {
                return false;
            }
        }
        while let Some(due) = changes.next_if(|change| change.at <= elapsed) {
            changed = hosts.change(due.way, due.change);
            if changed.is_err() {
                return false;
            }
        }
        !hosts.has_failed()
    };
    let downloads = match plan.tool {
        Tool::Builtin => {
            builtin::download(sender, receiver, requests, timeout, meanwhile).map_err(ExperimentError::from)
        }
        Tool::Iperf3 => iperf3::download(&plan.iperf3, sender, receiver, requests, &[], timeout, meanwhile)
            .map_err(ExperimentError::from),
    };
    (downloads, changed)
}

/// What each flow had when the time was up, as its sender saw it.
fn as_far_as_they_came(plan: &Plan, trace: &Trace) -> Vec<Download> {
    let until = trace.flows.iter().filter_map(|flow| Some(flow.samples.last()?.at_ns)).max().unwrap_or(0);
    // The sender sends its first data half a round trip before the receiver's clock begins.
    let head_start_us = plan.least_base_rtt_us() / 2;
    let download = |flow: &Flow| {
        let whole = matches!(plan.amount, Amount::Bytes(bytes) if flow.acked_at(until) >= bytes);
        let ended = flow.ended_ns().filter(|_| whole).unwrap_or(until);
        let sent_for_us = flow.began_ns().map_or(0, |began| ended.saturating_sub(began) / 1_000);
        let seconds = sent_for_us.saturating_sub(head_start_us).max(1) as f64 / 1e6;
        Download { seconds, bytes: flow.acked_at(until), iperf3: None }
    };
    trace.flows.iter().map(download).collect()
}

/// A run that was given up at the limit. Where the emulator fell behind it does not count at all.
fn given_up(plan: &Plan, run: Run) -> Run {
    let unsent = Run::cut_off(run.seed, plan.timeout());
    let seconds = if run.received_bytes == 0 { unsent.seconds } else { run.seconds };
    let late = run.health.as_ref().and_then(|health| late(health, plan));
    Run {
        valid: false,
        cut_off: late.is_none(),
        invalid_reason: late.or(unsent.invalid_reason),
        seconds,
        goodput_bps: run.received_bytes as f64 * 8.0 / seconds,
        link_seconds: None,
        ..run
    }
}

fn in_order(mut flows: HashMap<u16, Flow>, count: u16) -> Result<Vec<Flow>, ExperimentError> {
    (PORT..PORT + count).map(|port| flows.remove(&port).ok_or(ExperimentError::NoFlow)).collect()
}

fn evaluate(
    plan: &Plan,
    arm: &Arm,
    seed: u64,
    downloads: &[Download],
    trace: &Trace,
    records_exits: bool,
) -> Result<Run, ExperimentError> {
    let mut seen = trace.flows.iter().filter(|flow| !flow.samples.is_empty());
    let wrong = seen.find(|flow| flow.congestion_control != arm.congestion_control);
    if let Some(flow) = wrong {
        return Err(ExperimentError::WrongControl {
            expected: arm.congestion_control.clone(),
            found: flow.congestion_control.clone(),
        });
    }
    let asked = match plan.amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Seconds(_) => 0,
    };
    let short = downloads.iter().find(|download| download.bytes < asked);
    let link = &trace.link;
    let invalid_reason = late(&link.health, plan)
        .or_else(|| short.map(|download| format!("only {} of {asked} bytes arrived", download.bytes)));
    let flow_run = |(number, (flow, download)): (usize, (&Flow, &Download))| FlowRun {
        seconds: download.seconds,
        goodput_bps: download.bytes as f64 * 8.0 / download.seconds,
        retransmitted_segments: retransmitted(flow),
        base_rtt_us: plan.own_base_rtt_us(number),
        min_rtt_us: flow.samples.last().and_then(|sample| sample.info.min_rtt_us),
        exit: exit(flow, plan.amount, records_exits),
    };
    let flows: Vec<_> = trace.flows.iter().zip(downloads).enumerate().map(flow_run).collect();
    let (Some(first), Some(flow)) = (flows.first(), trace.flows.first()) else {
        return Err(ExperimentError::NoFlow);
    };
    let last = flow.samples.last().map(|sample| sample.info).unwrap_or_default();
    let ends = (0..).zip(&flows).map(|(number, run)| (plan.stagger * number).as_secs_f64() + run.seconds);
    let seconds = ends.fold(0.0, f64::max);
    let received_bytes: u64 = downloads.iter().map(|download| download.bytes).sum();
    let counters = link.forward.counters;
    let span = link.forward.first_full_ns.zip(link.forward.last_full_ns);
    let several = flows.len() > 1;
    Ok(Run {
        valid: invalid_reason.is_none(),
        cut_off: false,
        invalid_reason,
        seed,
        seconds,
        goodput_bps: received_bytes as f64 * 8.0 / seconds,
        received_bytes,
        link_seconds: span.map(|(first, last)| (last - first) as f64 / 1e9),
        retransmitted_segments: flows.iter().map(|flow| flow.retransmitted_segments).sum(),
        iperf3_retransmitted_segments: {
            downloads.iter().map(|download| download.iperf3.as_ref()?.retransmits).sum()
        },
        queue_drops: counters.dropped_packets(),
        aqm_drops: counters.dropped_aqm.packets,
        ecn_marks: counters.marked.packets,
        max_queue_bytes: counters.max_queue_bytes,
        base_rtt_us: plan.own_base_rtt_us(0),
        max_rtt_us: flow.max_rtt_us(),
        mean_rtt_us: flow.mean_rtt_us(),
        min_rtt_us: last.min_rtt_us,
        receive_window_limited_seconds: last.rwnd_limited_us as f64 / 1e6,
        send_buffer_limited_seconds: last.sndbuf_limited_us as f64 / 1e6,
        exit: first.exit.clone(),
        regret: LinkRegret::new(plan, arm, flow, first.exit.as_ref()),
        measures: Measures::new(flow, plan.profile.link.forward.rate_bps, &plan.objects),
        fairness: several.then(|| jain(flows.iter().map(|flow| flow.goodput_bps))),
        competitor: trace.competitor.as_ref().map(|competitor| compete(plan, competitor, flow)),
        // Known to the caller.
        warm: None,
        flows: if several { flows } else { Vec::new() },
        machine_cpu_seconds: None,
        health: Some(link.health.clone()),
        guest_seconds: None,
        host_cpu_seconds: None,
        digest: Some(link.digest.clone()),
    })
}

/// Why a run does not count whose emulator fell behind.
fn late(health: &Health, plan: &Plan) -> Option<String> {
    let base_rtt_us = plan.least_base_rtt_us();
    if guest::inside::is_here() {
        health.invalid_in_virtual_time(base_rtt_us)
    } else {
        health.invalid(base_rtt_us)
    }
}

fn retransmitted(flow: &Flow) -> u64 {
    flow.samples.last().map_or(0, |sample| sample.info.retrans_total.into())
}

fn exit(flow: &Flow, amount: Amount, recorded: bool) -> Option<super::Exit> {
    if recorded {
        return flow.recorded.clone();
    }
    let bytes = match amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Seconds(_) => u64::MAX,
    };
    flow.sampled_exit(bytes)
}

/// What the competitor got while the flow was there.
pub(crate) fn compete(plan: &Plan, competitor: &Flow, flow: &Flow) -> CompetitorRun {
    let base_rtt_us = plan.own_base_rtt_us(usize::from(plan.flows));
    CompetitorRun { base_rtt_us, ..shared(competitor, flow) }
}

fn shared(competitor: &Flow, flow: &Flow) -> CompetitorRun {
    let (from, to) = (flow.began_ns().unwrap_or(0), flow.ended_ns().unwrap_or(0));
    let length = to.saturating_sub(from);
    let start = from.saturating_sub(length).max(competitor.began_ns().unwrap_or(0));
    let rate = |bytes: u64, nanoseconds: u64| bytes as f64 * 8.0 / (nanoseconds.max(1) as f64 / 1e9);
    let during = competitor.acked_at(to) - competitor.acked_at(from);
    let before = competitor.acked_at(from) - competitor.acked_at(start);
    let own = flow.acked_at(to);
    CompetitorRun {
        goodput_bps: rate(during, length),
        goodput_before_bps: rate(before, from.saturating_sub(start)),
        share: during as f64 / (during + own).max(1) as f64,
        retransmitted_segments: retransmitted(competitor),
        base_rtt_us: None,
    }
}

/// Jain's fairness index: the square of the sum over the sum of squares times their number.
pub(crate) fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    for value in values {
        sum += value;
        squares += value * value;
        count += 1.0;
    }
    if squares > 0.0 { sum * sum / (count * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use onramp_net::sock_diag::TcpInfo;

    use super::*;
    use crate::experiment::FlowSample;

    #[test]
    fn jains_index_is_one_for_equals_and_falls_to_one_over_their_number() {
        assert!((jain([5.0, 5.0, 5.0].into_iter()) - 1.0).abs() < 1e-12);
        assert!((jain([9.0, 0.0, 0.0].into_iter()) - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_competitor_is_evaluated_by_the_time_in_which_both_are_there() {
        let sample = |second: u64, sent, acked| FlowSample {
            at_ns: second * 1_000_000_000,
            info: TcpInfo { bytes_sent: sent, bytes_acked: acked, ..TcpInfo::default() },
        };
        // The competitor has 10 MB/s alone from 0 to 10 s, 2 MB/s from then on; the flow 6 MB/s from 10 to 14 s.
        let rate = |second: u64| second.min(10) * 10_000_000 + second.saturating_sub(10) * 2_000_000;
        let competitor = Flow {
            samples: (0..=20).map(|second| sample(second, 1 + rate(second), rate(second))).collect(),
            ..Flow::default()
        };
        let own = |second: u64| second.saturating_sub(10).min(4) * 6_000_000;
        let flow = Flow {
            samples: (10..=20).map(|second| sample(second, 1 + own(second), own(second))).collect(),
            ..Flow::default()
        };
        let result = shared(&competitor, &flow);
        assert!((result.share - 0.25).abs() < 1e-9, "{result:?}");
        assert!((result.goodput_bps - 16e6).abs() < 1.0 && (result.goodput_before_bps - 80e6).abs() < 1.0);
    }
}
