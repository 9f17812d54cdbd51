// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! qlog 0.3 (draft-ietf-quic-qlog-main-schema-02, -quic-events-02) as a JSON text sequence (RFC 7464), in the form that
//! qvis reads: a header record, then one record per event. Starts from memory are events of
//! draft-ietf-tsvwg-careful-resume-qlog-02.
//!
//! All flows are in one trace, distinguished by `group_id`.

mod flow;
mod start;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde_json::{Value, json};

use flow::{FlowLog, StateChange};
use onramp_algorithm::StartEnd;
use onramp_recording::rows::{ExitRow, FlowRow, StateRow};
use onramp_recording::{Recording, each_run};

/// Begins a record (RFC 7464 section 2.2).
const RECORD_SEPARATOR: u8 = 0x1e;

/// The acknowledgments of a recording as qlog; of one flow or of all.
///
/// # Errors
/// Those of `output`.
pub fn write(recording: &mut Recording, flow: Option<u64>, output: &mut dyn Write) -> io::Result<()> {
    record(output, &header(recording))?;
    let reference_us = recording.manifest.as_ref().map(|manifest| manifest.started_monotonic_us);
    let mut logs: BTreeMap<u64, FlowLog> = BTreeMap::new();
    for row in recording.rows::<FlowRow>() {
        if row.event == "end" {
            logs.entry(row.flow).or_default().end =
                StartEnd::from_name(&row.start_end).map(|end| (row.at_us, end));
            continue;
        }
        let ends = json!({
            "ip_version": if row.local_address.contains(':') { "v6" } else { "v4" },
            "src_ip": row.local_address,
            "dst_ip": row.remote_address,
            "protocol": "TCP",
            "src_port": row.local_port,
            "dst_port": row.remote_port,
        });
        logs.entry(row.flow).or_default().ends = Some(ends);
    }
    for row in recording.rows::<StateRow>() {
        let change = StateChange { sequence: row.sequence, to_state: row.to_state.into_owned() };
        logs.entry(row.flow).or_default().states.push_back(change);
    }
    for row in recording.rows::<ExitRow>() {
        logs.entry(row.flow).or_default().exit_reason = row.reason.into_owned();
    }
    let mut result = Ok(());
    let mut write = |flow: u64, since_us: u64, name: &str, data: Value| {
        let time = since_us as f64 / 1e3;
        if result.is_ok() {
            let event = json!({ "time": time, "name": name, "group_id": flow.to_string(), "data": data });
            result = record(output, &event);
        }
    };
    each_run(recording, &HashMap::new(), |run| {
        if flow.is_some_and(|wanted| wanted != run.flow) {
            return;
        }
        let log = logs.entry(run.flow).or_default();
        let reference_us = reference_us.unwrap_or(run.samples[0].ack.now_us);
        log.since_us.get_or_insert(reference_us);
        for sample in run.samples {
            log.acknowledged(sample, &mut |time_us, name, data| {
                write(run.flow, time_us.saturating_sub(reference_us), name, data);
            });
        }
    });
    for (flow, log) in &mut logs {
        let Some(since_us) = log.since_us else { continue };
        log.ended(&mut |time_us, name, data| write(*flow, time_us.saturating_sub(since_us), name, data));
    }
    result?;
    output.flush()
}

fn header(recording: &mut Recording) -> Value {
    let flows: Vec<String> = recording
        .rows::<FlowRow>()
        .iter()
        .filter(|row| row.event != "end")
        .map(|row| {
            let (local, remote) = (&row.local_address, &row.remote_address);
            format!(
                "{}: {local} port {} to {remote} port {}, {}",
                row.flow, row.local_port, row.remote_port, row.algorithm
            )
        })
        .collect();
    let mut common = json!({ "protocol_type": ["TCP"], "time_format": "relative" });
    if let Some(manifest) = &recording.manifest {
        common["reference_time"] = json!(manifest.started_us as f64 / 1e3);
    }
    let version = recording.manifest.as_ref().map_or("", |manifest| &manifest.onramp);
    json!({
        "qlog_version": "0.3",
        "qlog_format": "JSON-SEQ",
        "title": format!("onramp {version}"),
        "description": flows.join("; "),
        "trace": {
            // The recorder sits at the sender, which is what qvis takes a server for.
            "vantage_point": { "name": "onramp", "type": "server" },
            "title": "TCP flows by number",
            "description": "packet_sent: all that was sent between two acknowledgments",
            "common_fields": common,
        },
    })
}

fn record(output: &mut dyn Write, value: &Value) -> io::Result<()> {
    output.write_all(&[RECORD_SEPARATOR])?;
    serde_json::to_writer(&mut *output, value)?;
    output.write_all(b"\n")
}
