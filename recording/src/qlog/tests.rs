// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What logs of others become, in each of their forms.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use crate::rows::{AckRow, FlowRow, StateRow};
use crate::{Error, Origin, Recording};

const PACKET: u64 = 1_000;

/// A sender that doubles from ten packets and leaves slow start at eighty without a loss, 100 ms away, with the names of 0.3
/// or of later drafts.
fn events(is_late: bool) -> Vec<Value> {
    let name = |early: &'static str, late: &'static str| if is_late { late } else { early };
    let started = if is_late {
        json!({ "local": { "ip_v4": "192.0.2.1", "port_v4": 4433 }, "remote": { "ip_v4": "192.0.2.2", "port_v4": 50000 } })
    } else {
        json!({ "src_ip": "192.0.2.1", "dst_ip": "192.0.2.2", "src_port": 4433, "dst_port": 50000 })
    };
    let event = |time: f64, name: &str, data: Value| json!({ "time": time, "name": name, "data": data });
    let mut events = vec![
        event(0.0, name("connectivity:connection_started", "quic:connection_started"), started),
        event(
            0.0,
            name("transport:parameters_set", "quic:parameters_set"),
            json!({ "owner": "remote", "initial_max_data": 1_000_000 }),
        ),
        event(
            0.0,
            name("recovery:parameters_set", "quic:recovery_parameters_set"),
            json!({ "max_datagram_size": PACKET, "initial_congestion_window": 10 * PACKET }),
        ),
        event(
            0.0,
            name("recovery:congestion_state_updated", "quic:congestion_state_updated"),
            json!({ "new": "slow_start" }),
        ),
    ];
    let (mut number, mut window) = (0, 10);
    for round in 0..6_u32 {
        let time = f64::from(round) * 100.0;
        let first = number;
        for _ in 0..window {
            let header = json!({ "packet_type": "1RTT", "packet_number": number });
            let data = json!({ "header": header, "raw": { "length": PACKET } });
            events.push(event(time, name("transport:packet_sent", "quic:packet_sent"), data));
            number += 1;
        }
        let frame = json!({ "frame_type": "ack", "acked_ranges": [[first, number - 1]] });
        let data = json!({ "header": { "packet_type": "1RTT", "packet_number": round }, "frames": [frame] });
        events.push(event(time + 100.0, name("transport:packet_received", "quic:packet_received"), data));
        window = (2 * window).min(80);
        let metrics = json!({ "congestion_window": window * PACKET, "bytes_in_flight": 0, "latest_rtt": 100.0,
            "smoothed_rtt": 100.0, "min_rtt": 100.0 });
        events.push(event(
            time + 100.0,
            name("recovery:metrics_updated", "quic:recovery_metrics_updated"),
            metrics,
        ));
        if round == 2 {
            let data = json!({ "old": "slow_start", "new": "congestion_avoidance" });
            events.push(event(
                time + 100.0,
                name("recovery:congestion_state_updated", "quic:congestion_state_updated"),
                data,
            ));
        }
    }
    events
}

fn sequence(events: &[Value]) -> String {
    let header = json!({ "qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": { "vantage_point": { "type": "server" } } });
    let mut text = format!("\u{1e}{header}\n");
    for event in events {
        writeln!(text, "\u{1e}{event}").unwrap();
    }
    text
}

fn opened(text: &str) -> Result<Recording, Error> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    fs::write(&path, text).unwrap();
    Recording::open_to_explain(&path)
}

#[test]
fn every_form_of_a_log_becomes_the_same_flow() {
    let early = events(false);
    let lines = sequence(&early).replace('\u{1e}', "");
    let whole = json!({ "qlog_version": "0.3", "qlog_format": "JSON", "traces": [{ "events": early }] });
    let mut late = events(true);
    // Times since the event before.
    let mut before = 0.0;
    for event in &mut late {
        let time = event["time"].as_f64().unwrap();
        event["time"] = json!(time - before);
        before = time;
    }
    let late = json!({ "qlog_version": "0.4", "traces": [{
        "common_fields": { "time_format": "relative_to_previous_event" }, "events": late }] });
    let mut all = Vec::new();
    for text in [
        sequence(&early),
        lines,
        whole.to_string(),
        serde_json::to_string_pretty(&whole).unwrap(),
        late.to_string(),
    ] {
        let mut recording = opened(&text).unwrap();
        assert_eq!(recording.problems.len(), 0, "{:?}", recording.problems);
        assert_eq!(recording.origin, Origin::Qlog { is_tcp: false });
        let rows: (Vec<FlowRow>, Vec<AckRow>, Vec<StateRow>) =
            (recording.rows(), recording.rows(), recording.rows());
        all.push(rows);
    }
    assert!(all.windows(2).all(|two| two[0] == two[1]));
    let (flows, acks, states) = &all[0];
    assert_eq!((flows[0].local_address.as_ref(), flows[0].remote_port), ("192.0.2.1", 50_000));
    assert_eq!((flows[1].acknowledged_bytes, flows[1].retransmitted_bytes), (310_000, 0));
    let windows: Vec<_> = acks.iter().map(|row| (row.cwnd_segments, row.ssthresh_segments)).collect();
    let open = onramp_algorithm::NO_THRESHOLD;
    assert_eq!(windows, [(20, open), (40, open), (80, 80), (80, 80), (80, 80), (80, 80)]);
    let acknowledged: Vec<_> = acks.iter().map(|row| row.acknowledged_bytes / PACKET).collect();
    assert_eq!(acknowledged, [10, 30, 70, 150, 230, 310]);
    assert_eq!((acks[0].at_us, acks[0].rtt_us, acks[0].receive_window_bytes), (100_000, 100_000, 990_000));
    assert!(states.is_empty());
}

/// Many senders log no states: a window that falls after a loss is a recovery until what was sent by then is accounted for.
#[test]
fn a_window_that_falls_after_a_loss_is_a_recovery_also_where_no_state_is_logged() {
    let mut events = events(false);
    events.retain(|event| !event["name"].as_str().unwrap().contains("state"));
    let header = json!({ "packet_type": "1RTT", "packet_number": 240 });
    let lost = json!({ "time": 590.0, "name": "recovery:packet_lost", "data": { "header": header } });
    let falls =
        json!({ "time": 590.0, "name": "recovery:metrics_updated", "data": { "congestion_window": 56_000 } });
    let at = events.iter().position(|event| event["time"].as_f64().unwrap() > 590.0).unwrap();
    events.splice(at..at, [lost, falls]);
    let last = events.last_mut().unwrap();
    last["data"]["congestion_window"] = json!(57_000);
    let mut recording = opened(&sequence(&events)).unwrap();
    let states: Vec<StateRow> = recording.rows();
    let changes: Vec<_> = states.iter().map(|row| (row.at_us, row.to_state.as_ref())).collect();
    assert_eq!(changes, [(590_000, "recovery"), (600_000, "open")]);
    let acks: Vec<AckRow> = recording.rows();
    assert_eq!(acks.last().map(|row| (row.cwnd_segments, row.ssthresh_segments)), Some((57, 56)));
    let flows: Vec<FlowRow> = recording.rows();
    assert_eq!((flows[1].acknowledged_bytes, flows[1].retransmitted_bytes), (309_000, PACKET));
}

#[test]
fn what_ends_early_is_used_and_named_and_what_explains_nothing_is_refused() {
    let text = sequence(&events(false));
    let mut recording = opened(&text[..text.len() - 40]).unwrap();
    assert_eq!(recording.problems.len(), 1);
    assert_eq!(recording.rows::<AckRow>().len(), 6);
    let before = json!({ "qlog_version": "draft-01", "traces": [{ "events": [["0", "TRANSPORT", "PACKET_SENT", {}]] }] });
    for (text, what) in [
        (before.to_string(), "draft-01"),
        (sequence(&[]), "log at the sender"),
        ("{\"qlog_version\": nonsense".into(), "JSON"),
        // Without windows, as receivers log.
        (sequence(&events(false)[3..14]), "log at the sender"),
    ] {
        let error = opened(&text).unwrap_err();
        assert!(matches!(error, Error::NotARecording { .. }), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
    // Algorithms need more of an ACK.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    fs::write(&path, text).unwrap();
    assert!(matches!(Recording::open(&path), Err(Error::NotARecording { .. })));
}

#[test]
fn a_clock_that_is_set_back_and_times_that_cannot_be_are_problems_and_the_rest_is_used() {
    let whole = opened(&sequence(&events(false))).unwrap().rows::<AckRow>();
    let mut events = events(false);
    for event in &mut events {
        let time = event["time"].as_f64().unwrap();
        event["time"] = json!(if time < 300.0 { time + 3_600_000.0 } else { time });
    }
    events.insert(9, json!({ "time": 1e300, "name": "recovery:metrics_updated", "data": {} }));
    let mut recording = opened(&sequence(&events)).unwrap();
    let problems: Vec<_> = recording.problems.iter().map(ToString::to_string).collect();
    assert!(problems.len() == 2, "{problems:?}");
    assert!(problems[0].contains("1 time the clock"), "{problems:?}");
    assert!(problems[1].contains("1 event has a time that cannot be"), "{problems:?}");
    let acks: Vec<AckRow> = recording.rows();
    let acknowledged = |rows: &[AckRow]| rows.iter().map(|row| row.acknowledged_bytes).max();
    assert_eq!(acknowledged(&acks), acknowledged(&whole));
    let between: Vec<_> = acks.windows(2).map(|two| two[1].at_us - two[0].at_us).collect();
    assert!(between.iter().all(|us| *us <= 100_000), "{between:?}");
}

#[test]
fn numbers_are_read_as_decimals_too() {
    let mut events = events(false);
    for event in &mut events {
        if let Some(window) = event["data"]["congestion_window"].as_u64() {
            event["data"]["congestion_window"] = json!(window as f64);
        }
    }
    let windows = |events: &[Value]| {
        let mut recording = opened(&sequence(events)).unwrap();
        recording.rows::<AckRow>().iter().map(|row| row.cwnd_segments).collect::<Vec<_>>()
    };
    assert_eq!(windows(&events), windows(&super::tests::events(false)));
}

#[test]
fn nonsense_in_any_place_ends_no_reading() {
    for (place, _) in events(false).iter().enumerate() {
        for nonsense in [
            json!(null),
            json!(-1),
            json!("x"),
            json!([[]]),
            json!({ "frames": [{ "frame_type": "ack",
            "acked_ranges": [[5, 1], [u64::MAX], ["3", "900"], {}] }] }),
        ] {
            for key in ["time", "name", "data"] {
                let mut events = events(false);
                events[place][key] = nonsense.clone();
                let _ = opened(&sequence(&events));
            }
        }
    }
}
