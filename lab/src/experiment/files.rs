// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The directory of an experiment. It describes itself: what was run on what, with which seed, and all that was seen.
//!
//! ```text
//! runs/20261121T021500Z-geo-cubic-bbr/
//!   manifest.json  result.json  table.tex  plot.svg  plot-points.csv  plot.py
//!   000-cubic/  result.json  flow.csv  link.csv  flow-N.csv  flow-competitor.csv
//!               with iperf3: iperf3-client.json  iperf3-server.json  iperf3-client-N.json  iperf3-server-N.json
//! ```

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::arm::Arm;
use super::flow::Flow;
use super::result::Run;
use super::trace::Trace;
use super::transfer::Download;
use super::{ExperimentError, Plan};
use crate::link::LinkSample;

/// The directory to use when none is given: `runs/<UTC time>-<profile>-<arms>`.
pub(super) fn default_directory(plan: &Plan, arms: &[Arm]) -> PathBuf {
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let names: Vec<_> = arms.iter().map(|arm| arm.name.as_str()).collect();
    let name = format!("{time}-{}-{}", plan.profile.name, names.join("-"));
    Path::new("runs").join(file_name(&name, 120))
}

/// A text as the name of a file, of at most so many characters.
fn file_name(text: &str, most: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    text.chars().map(plain).take(most).collect()
}

/// An arm's name in the name of a run's directory.
pub(crate) fn directory_name(arm: &str) -> String {
    file_name(arm, 80)
}

pub(super) fn run_directory(root: &Path, index: usize, attempt: u32, arm: &Arm) -> PathBuf {
    let name = directory_name(&arm.name);
    let again = if attempt == 0 { String::new() } else { format!("-again{attempt}") };
    root.join(format!("{index:03}-{name}{again}"))
}

pub(super) fn create(path: &Path) -> Result<(), ExperimentError> {
    fs::create_dir_all(path).map_err(|source| ExperimentError::File { path: path.into(), source })
}

/// Writes a file, in a directory that is made for it.
pub(super) fn write(path: PathBuf, text: impl AsRef<[u8]>) -> Result<(), ExperimentError> {
    path.parent().map_or(Ok(()), create)?;
    fs::write(&path, text).map_err(|source| ExperimentError::File { path, source })
}

pub(super) fn write_json(path: PathBuf, value: &impl Serialize) -> Result<(), ExperimentError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| ExperimentError::File { path: path.clone(), source: error.into() })?;
    write(path, text + "\n")
}

/// Files of one run.
pub(super) fn write_run(
    directory: &Path,
    run: &Run,
    trace: &Trace,
    downloads: &[Download],
) -> Result<(), ExperimentError> {
    create(directory)?;
    write_json(directory.join("result.json"), run)?;
    let number = |at: usize| if at == 0 { String::new() } else { format!("-{at}") };
    for (at, download) in downloads.iter().enumerate() {
        let Some(report) = &download.iperf3 else { continue };
        let number = number(at);
        write(directory.join(format!("iperf3-client{number}.json")), &report.client_json)?;
        write(directory.join(format!("iperf3-server{number}.json")), &report.server_json)?;
    }
    let began = trace.began_ns();
    for (at, flow) in trace.flows.iter().enumerate() {
        write(directory.join(format!("flow{}.csv", number(at))), flow.csv(began))?;
    }
    if let Some(competitor) = &trace.competitor {
        write(directory.join("flow-competitor.csv"), competitor.csv(began))?;
    }
    write(directory.join("link.csv"), link_csv(trace))
}

impl Flow {
    /// What was seen of it as CSV. Times are seconds of CLOCK_MONOTONIC since the first flow's first data, as in the results.
    pub fn csv(&self, began: u64) -> String {
        let mut out = String::from(
            "seconds,cwnd_segments,ssthresh_segments,mss_bytes,in_flight_segments,smoothed_rtt_us,min_rtt_us,\
             retransmitted_segments,lost_segments,acknowledged_bytes,sent_bytes,notsent_bytes,delivery_rate_bytes_per_s,\
             pacing_rate_bytes_per_s,peer_window_bytes,ca_state\n",
        );
        let optional = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        for sample in &self.samples {
            let info = &sample.info;
            // Writing to a String cannot fail.
            let _ = writeln!(
                out,
                "{:.6},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                (sample.at_ns as f64 - began as f64) / 1e9,
                info.snd_cwnd,
                optional(info.snd_ssthresh.map(u64::from)),
                info.snd_mss,
                info.in_flight(),
                info.rtt_us,
                optional(info.min_rtt_us.map(u64::from)),
                info.retrans_total,
                info.lost,
                info.bytes_acked,
                info.bytes_sent,
                info.notsent_bytes,
                info.delivery_rate_bytes_per_s,
                optional(info.pacing_rate_bytes_per_s),
                info.snd_wnd_bytes,
                info.ca_state,
            );
        }
        out
    }
}

fn link_csv(trace: &Trace) -> String {
    let mut out = String::from(
        "direction,seconds,queue_bytes,queue_packets,delivered_bytes,dropped_queue_full,dropped_aqm,dropped_loss,delay_us\n",
    );
    let began = trace.began_ns();
    let mut add = |name: &str, samples: &[LinkSample]| {
        for sample in samples {
            let _ = writeln!(
                out,
                "{name},{:.6},{},{},{},{},{},{},{:.1}",
                (sample.at_ns as f64 - began as f64) / 1e9,
                sample.queue_bytes,
                sample.queue_packets,
                sample.delivered_bytes,
                sample.dropped_queue_full,
                sample.dropped_aqm,
                sample.dropped_loss,
                sample.delay_ns as f64 / 1e3,
            );
        }
    };
    add("forward", &trace.link.forward.samples);
    add("return", &trace.link.back.samples);
    out
}
