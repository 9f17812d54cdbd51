// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Recordings for tests, made without a kernel.

use std::path::Path;

use onramp_algorithm::{Ack, Flow, Parameters};

use crate::manifest::{Manifest, SCHEMA};
use crate::rows::{AckRow, ExitRow, FlowRow, ParameterRow, StateRow};
use crate::writer::{Limits, Writer};

/// Start of the monotonic clock in these recordings.
pub(crate) const START_US: u64 = 5_000_000;

/// A slow start of 100 segments' link, 50 ms: the window doubles each round trip until the queue fills.
pub(crate) fn slow_start(acks: usize) -> Vec<Ack> {
    let mut sent = 10;
    (0..acks as u64)
        .map(|index| {
            let cwnd = 10 + index as u32;
            sent += 2;
            let queued = u64::from(cwnd.saturating_sub(100));
            let rtt_us = 50_000 + queued as u32 * 500;
            Ack {
                now_us: START_US + 50_000 + index * 1_000,
                bytes_acked: (index + 1) * 1_000,
                bytes_sent: sent * 1_000,
                bytes_outstanding: (sent - index - 1) as u32 * 1_000,
                delivered: index as u32 + 1,
                acked: 1,
                rtt_us: rtt_us as i32,
                smoothed_rtt_us: rtt_us,
                min_rtt_us: 50_000,
                cwnd,
                ssthresh: 0x7fff_ffff,
                in_flight: cwnd - 1,
                mss: 1_000,
                gso_max_size: 65_536,
                ..Ack::default()
            }
        })
        .collect()
}

/// A manifest of a recording that begins now.
pub(crate) fn manifest() -> Manifest {
    Manifest {
        schema: SCHEMA,
        onramp: "test".to_owned(),
        started_us: 1_700_000_000_000_000,
        started_monotonic_us: START_US,
        ..Manifest::default()
    }
}

/// Records one flow under an algorithm, tuned in the middle, with the verdicts that it really gives.
pub(crate) fn record(
    directory: &Path,
    flow: u64,
    parameters: &Parameters,
    acks: &[Ack],
    rows: usize,
) -> Manifest {
    let limits = Limits { rows, ..Limits::default() };
    let mut writer = Writer::create(directory, manifest(), limits).unwrap();
    let algorithm = parameters.algorithm();
    let start = FlowRow {
        at_us: START_US,
        flow,
        event: "start".into(),
        local_address: "10.0.0.1".into(),
        local_port: 5000,
        remote_address: "2001:db8::2".into(),
        remote_port: 443,
        algorithm: algorithm.name().into(),
        ..FlowRow::default()
    };
    writer.push(start).unwrap();
    for (name, value) in parameters.shown() {
        let row = ParameterRow {
            algorithm: algorithm.name().into(),
            name: name.into(),
            value: value.into(),
            ..ParameterRow::default()
        };
        writer.push(row).unwrap();
    }
    let mut driven = Flow::new(parameters.clone());
    for (index, ack) in acks.iter().enumerate() {
        let verdict = driven.on_ack(ack);
        let outcome = algorithm.outcome_name(verdict.outcome);
        let row = AckRow {
            sequence: 2 + index as u32,
            slow_starts: 1,
            ..AckRow::new(flow, ack, &verdict, outcome.into())
        };
        writer.push(row).unwrap();
    }
    let last = acks.last().unwrap();
    let state =
        StateRow { flow, sequence: acks.len() as u32, to_state: "recovery".into(), ..StateRow::default() };
    writer.push(StateRow { at_us: last.now_us, from_state: "open".into(), ..state }).unwrap();
    let exit = ExitRow { flow, event: "exit".into(), reason: "loss".into(), ..ExitRow::default() };
    writer
        .push(ExitRow { at_us: last.now_us, cwnd_segments: last.cwnd, mss_bytes: last.mss, ..exit })
        .unwrap();
    writer.finish(1_700_000_001_000_000).unwrap()
}
