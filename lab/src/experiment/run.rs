// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One download, in namespaces of its own.

use std::path::Path;
use std::time::Duration;

use super::arm::Arm;
use super::iperf3::{self, Download};
use super::result::Run;
use super::sampler::{Flow, Sampler};
use super::{ExperimentError, Plan, files};
use crate::emulator::Report;
use crate::host::Hosts;

/// Looks at the flow: fine enough for a GEO round, coarse enough to cost nothing.
const FLOW_PERIOD: Duration = Duration::from_millis(10);
/// Lines of the link's log, microseconds.
const LINK_PERIOD_US: u64 = 10_000;

/// What a run leaves for files and figures.
pub(super) struct Trace {
    pub flow: Flow,
    pub link: Report,
}

/// Makes hosts, downloads, takes everything down again. Files go to `directory` if there is one.
pub(super) fn run(
    plan: &Plan,
    arm: &Arm,
    seed: u64,
    directory: Option<&Path>,
) -> Result<(Run, Trace), ExperimentError> {
    let profile = &plan.profile;
    let hosts = Hosts::set_up(&profile.host, &profile.link, seed, LINK_PERIOD_US)?;
    hosts.use_congestion_control(&arm.congestion_control)?;
    let sampler = Sampler::start(hosts.sender(), arm.clone(), plan.watch.clone(), FLOW_PERIOD)?;
    let download = iperf3::download(
        &plan.iperf3,
        hosts.sender(),
        hosts.receiver(),
        &arm.congestion_control,
        plan.bytes,
        plan.timeout(),
    );
    // The emulator's error explains iperf3's.
    if hosts.has_failed() {
        hosts.stop()?;
        return Err(ExperimentError::NoFlow);
    }
    let download = download?;
    let flow = sampler.stop()?.ok_or(ExperimentError::NoFlow)?;
    let link = hosts.stop()?;
    let result = evaluate(plan, arm, seed, &download, &flow, &link)?;
    let trace = Trace { flow, link };
    if let Some(directory) = directory {
        files::write_run(directory, &result, &trace, &download)?;
    }
    Ok((result, trace))
}

fn evaluate(
    plan: &Plan,
    arm: &Arm,
    seed: u64,
    download: &Download,
    flow: &Flow,
    link: &Report,
) -> Result<Run, ExperimentError> {
    if flow.congestion_control != arm.congestion_control {
        return Err(ExperimentError::WrongControl {
            expected: arm.congestion_control.clone(),
            found: flow.congestion_control.clone(),
        });
    }
    let last = flow.samples.last().map(|sample| sample.info).unwrap_or_default();
    let invalid_reason = link.health.invalid(plan.profile.link.base_rtt_us()).or_else(|| {
        let (got, asked) = (download.bytes, plan.bytes);
        (got < asked).then(|| format!("only {got} of {asked} bytes arrived"))
    });
    let counters = link.forward.counters;
    let span = link.forward.first_full_ns.zip(link.forward.last_full_ns);
    Ok(Run {
        valid: invalid_reason.is_none(),
        invalid_reason,
        seed,
        seconds: download.seconds,
        goodput_bps: download.bytes as f64 * 8.0 / download.seconds,
        bytes_received: download.bytes,
        link_seconds: span.map(|(first, last)| (last - first) as f64 / 1e9),
        retransmitted_segments: u64::from(last.retrans_total),
        iperf3_retransmitted_segments: download.retransmits,
        queue_drops: counters.dropped_packets(),
        aqm_drops: counters.dropped_aqm.packets,
        max_queue_bytes: counters.max_queue_bytes,
        max_rtt_us: flow.max_rtt_us(),
        min_rtt_us: last.min_rtt_us,
        receive_window_limited_seconds: last.rwnd_limited_us as f64 / 1e6,
        send_buffer_limited_seconds: last.sndbuf_limited_us as f64 / 1e6,
        exit: if arm.storage.is_some() { flow.recorded.clone() } else { flow.sampled_exit(plan.bytes) },
        health: Some(link.health.clone()),
    })
}
