// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is exported says what was recorded.

use onramp_algorithm::find;
use serde_json::Value;

use crate::fixtures::{record, slow_start};
use crate::replay::{Options, Replay, candidates, replay};
use crate::rows::AckRow;
use crate::{Recording, Row, export, replay_csv};

const ACKS: usize = 1_000;

fn recorded() -> (tempfile::TempDir, Recording) {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path(), 3, &find("search").unwrap().parameters(), &slow_start(ACKS), 150);
    let recording = Recording::open(directory.path()).unwrap();
    (directory, recording)
}

#[test]
fn an_exported_csv_is_replayed_as_the_recording_is() {
    let (_directory, mut recording) = recorded();
    let mut text = Vec::new();
    export::csv(&mut recording, (AckRow::TABLE, AckRow::COLUMNS), None, &mut text).unwrap();
    let set = ["threshold_pct=5".to_owned()];
    let made = || Replay::new(candidates(&["search".to_owned()], &set, &[]).unwrap(), Options::default());
    let (mut from_csv, from_parquet) =
        (replay_csv(&text[..], false, made(), |_| true).unwrap(), replay(&mut recording, made()));
    assert_eq!((from_csv.rows, from_csv.bad_rows), (ACKS as u64, 0));
    let (one, other) = (from_csv.flows.remove(0).findings.remove(0), from_parquet[0].findings[0].clone());
    assert_eq!(one.exit, other.exit);
    assert_eq!(one.outcomes, other.outcomes);
    assert!(one.exit.is_some());
}

#[test]
fn qlog_is_a_json_text_sequence_with_what_qvis_asks_for() {
    let (_directory, mut recording) = recorded();
    let mut text = Vec::new();
    export::qlog(&mut recording, None, &mut text).unwrap();
    // RFC 7464: a record separator before and a line feed after every text.
    assert_eq!((text[0], text.last()), (0x1e, Some(&b'\n')));
    let records: Vec<Value> = text
        .split(|byte| *byte == 0x1e)
        .skip(1)
        .map(|record| {
            assert!(record.ends_with(b"\n"));
            serde_json::from_slice(record).unwrap()
        })
        .collect();
    let header = &records[0];
    assert_eq!((&header["qlog_version"], &header["qlog_format"]), (&"0.3".into(), &"JSON-SEQ".into()));
    assert_eq!(header["trace"]["vantage_point"]["type"], "server");
    assert_eq!(header["trace"]["common_fields"]["reference_time"], 1_700_000_000_000.0);
    assert!(
        header["description"]
            .as_str()
            .unwrap()
            .contains("3: 10.0.0.1 port 5000 to 2001:db8::2 port 443, search")
    );

    let mut last = 0.0;
    for event in &records[1..] {
        assert_eq!(event["group_id"], "3");
        let time = event["time"].as_f64().unwrap();
        assert!(time >= last, "{event}");
        last = time;
    }
    let named = |name: &str| records.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
    let metrics = named("recovery:metrics_updated");
    assert_eq!(metrics.len(), ACKS);
    let data = &metrics[0]["data"];
    assert_eq!((&data["congestion_window"], &data["bytes_in_flight"]), (&10_000.into(), &9_000.into()));
    assert_eq!((&data["latest_rtt"], &data["min_rtt"]), (&50.0.into(), &50.0.into()));
    // The kernel's infinity is no threshold.
    assert!(data.get("ssthresh").is_none());
    let states = named("recovery:congestion_state_updated");
    let news: Vec<_> = states.iter().map(|event| event["data"]["new"].as_str().unwrap()).collect();
    assert_eq!(news, ["slow_start", "recovery"]);
    assert_eq!(states[1]["data"]["trigger"], "loss");
    // All that was sent is there once, and what was acknowledged is acknowledged.
    let sent: u64 = named("transport:packet_sent")
        .iter()
        .map(|event| event["data"]["raw"]["length"].as_u64().unwrap())
        .sum();
    assert_eq!(sent, slow_start(ACKS).last().unwrap().bytes_sent);
    assert!(!named("transport:packet_received").is_empty());
}
