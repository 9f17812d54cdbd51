// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the sequence says is what was recorded.

use onramp_algorithm::{Ack, Verdict};
use onramp_recording::rows::{AckRow, ExitRow, FlowRow, StateRow};
use onramp_recording::{Limits, Manifest, Origin, Recording, SCHEMA, Writer};
use serde_json::Value;

const ACKS: usize = 1_000;
/// Two segments are sent for each that is acknowledged.
const SENT: u64 = 10_000 + 2_000 * ACKS as u64;

fn recorded() -> (tempfile::TempDir, Recording) {
    const START_US: u64 = 5_000_000;
    let directory = tempfile::tempdir().unwrap();
    let manifest = Manifest {
        schema: SCHEMA,
        started_us: 1_700_000_000_000_000,
        started_monotonic_us: START_US,
        ..Manifest::default()
    };
    let mut writer = Writer::create(directory.path(), manifest, Limits::default()).unwrap();
    let start = FlowRow {
        at_us: START_US,
        flow: 3,
        event: "start".into(),
        local_address: "10.0.0.1".into(),
        local_port: 5000,
        remote_address: "2001:db8::2".into(),
        remote_port: 443,
        algorithm: "search".into(),
        ..FlowRow::default()
    };
    writer.push(start).unwrap();
    for index in 0..ACKS as u64 {
        let cwnd = 10 + index as u32;
        let ack = Ack {
            now_us: START_US + 50_000 + index * 1_000,
            bytes_acked: (index + 1) * 1_000,
            bytes_sent: 12_000 + index * 2_000,
            rtt_us: 50_000,
            smoothed_rtt_us: 50_000,
            min_rtt_us: 50_000,
            cwnd,
            ssthresh: onramp_algorithm::NO_THRESHOLD,
            in_flight: cwnd - 1,
            mss: 1_000,
            ..Ack::default()
        };
        let row = AckRow::new(3, &ack, &Verdict::default(), "stay".into());
        writer.push(AckRow { sequence: 2 + index as u32, slow_starts: 1, ..row }).unwrap();
    }
    let state =
        StateRow { flow: 3, sequence: ACKS as u32, to_state: "recovery".into(), ..StateRow::default() };
    writer.push(state).unwrap();
    writer
        .push(ExitRow { flow: 3, event: "exit".into(), reason: "loss".into(), ..ExitRow::default() })
        .unwrap();
    writer.finish(1_700_000_001_000_000).unwrap();
    let recording = Recording::open(directory.path()).unwrap();
    (directory, recording)
}

#[test]
fn qlog_is_a_json_text_sequence_with_what_qvis_asks_for() {
    let (_directory, mut recording) = recorded();
    let mut text = Vec::new();
    super::write(&mut recording, None, &mut text).unwrap();
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
    assert_eq!(sent, SENT);
    assert!(!named("transport:packet_received").is_empty());
}

/// A start of a flow, by the phases with which ACKs come, and how it ended; the events are of ACKs a millisecond apart.
fn started(phases: &[(&str, &str)], outcome: &str, lost: bool) -> Vec<Value> {
    let directory = tempfile::tempdir().unwrap();
    let manifest = Manifest { schema: SCHEMA, ..Manifest::default() };
    let mut writer = Writer::create(directory.path(), manifest, Limits::default()).unwrap();
    writer.push(FlowRow { flow: 3, event: "start".into(), ..FlowRow::default() }).unwrap();
    for (index, (phase, end)) in (0u64..).zip(phases) {
        let ack = Ack {
            now_us: 50_000 + index * 1_000,
            bytes_acked: (index + 1) * 10_000,
            bytes_sent: 20_000 + index * 20_000,
            bytes_outstanding: 10_000,
            cwnd: 10 + 10 * index as u32,
            ssthresh: onramp_algorithm::NO_THRESHOLD,
            mss: 1_000,
            ..Ack::default()
        };
        let row = AckRow::new(3, &ack, &Verdict::default(), "stay".into());
        let start =
            AckRow { start_phase: (*phase).to_owned().into(), start_end: (*end).to_owned().into(), ..row };
        writer.push(AckRow { sequence: 2 + index as u32, slow_starts: 1, ..start }).unwrap();
    }
    if lost {
        let exit = ExitRow { flow: 3, event: "exit".into(), reason: "loss".into(), ..ExitRow::default() };
        writer.push(exit).unwrap();
    }
    let end = FlowRow {
        flow: 3,
        at_us: 90_000,
        event: "end".into(),
        start_end: outcome.to_owned().into(),
        ..FlowRow::default()
    };
    writer.push(end).unwrap();
    writer.finish(1).unwrap();
    let mut text = Vec::new();
    super::write(&mut Recording::open(directory.path()).unwrap(), None, &mut text).unwrap();
    let records =
        text.split(|byte| *byte == 0x1e).skip(2).map(|record| serde_json::from_slice(record).unwrap());
    records.filter(|event: &Value| event["name"] == "carefulresume:phase_updated").collect()
}

/// Of each event what was, what is, and why.
fn steps(events: &[Value]) -> Vec<[Option<&str>; 3]> {
    events.iter().map(|event| ["old", "new", "trigger"].map(|name| event["data"][name].as_str())).collect()
}

#[test]
fn a_start_from_memory_is_written_in_the_words_of_the_draft() {
    let (recon, jump, check) = (("reconnaissance", ""), ("unvalidated", ""), ("validating", ""));
    let over = ("over", "validated");
    let events = started(&[recon, recon, jump, jump, check, over, over], "validated", false);
    assert_eq!(
        steps(&events),
        [
            [None, Some("reconnaissance"), None],
            [Some("reconnaissance"), Some("unvalidated"), Some("congestion_window_limited")],
            [Some("unvalidated"), Some("validating"), Some("last_unvalidated_packet_sent")],
            [Some("validating"), Some("normal"), Some("last_unvalidated_packet_acknowledged")],
        ]
    );
    // The change was made after the ACK before the one that says so, whose window is the new one.
    let [_, jumped, sent, _] = &events[..] else { panic!("{events:?}") };
    assert_eq!(
        (jumped["time"].as_f64(), &jumped["data"]["state_data"]["congestion_window"]),
        (Some(51.0), &30_000.into())
    );
    let state = &sent["data"]["state_data"];
    assert_eq!(
        (&state["first_unvalidated_packet"], &state["last_unvalidated_packet"]),
        (&2.into(), &3.into())
    );
    // What was in flight then, and what has been acknowledged since.
    assert_eq!(state["pipesize"], 10_000 + 30_000);
    assert!(state.get("ssthresh").is_none(), "{state}");
}

#[test]
fn a_start_that_is_given_up_retreats_and_recovers_or_never_jumps() {
    let (recon, jump, retreat) = (("reconnaissance", ""), ("unvalidated", ""), ("over", "retreat"));
    let events = started(&[recon, jump, retreat, retreat, retreat, retreat, retreat], "retreat", true);
    let end = [Some("safe_retreat"), Some("normal"), Some("exit_recovery")];
    assert_eq!(steps(&events)[2..], [[Some("unvalidated"), Some("safe_retreat"), Some("packet_loss")], end]);
    for (outcome, trigger) in [("rtt", Some("rtt_not_validated")), ("no_gain", None)] {
        let events = started(&[recon, ("over", outcome)], outcome, false);
        assert_eq!(steps(&events)[1..], [[Some("reconnaissance"), Some("normal"), trigger]]);
    }
    // The last acknowledgment came before it was over.
    let events = started(&[recon, jump], "validated", false);
    assert_eq!(steps(&events)[2..], [[Some("unvalidated"), Some("normal"), Some("rate_limited")]]);
    assert!(started(&[("", ""), ("", "")], "", false).is_empty());
}

/// `onramp explain` reads what is written here: the same windows, and all that was acknowledged.
#[test]
fn what_is_written_is_read_as_the_flow_that_was_recorded() {
    let (directory, mut recording) = recorded();
    let path = directory.path().join("flow.sqlog");
    super::write(&mut recording, None, &mut std::fs::File::create(&path).unwrap()).unwrap();
    let mut read = Recording::open_to_explain(&path).unwrap();
    assert_eq!((read.origin, read.problems.len()), (Origin::Qlog { is_tcp: true }, 0));
    let flows: Vec<FlowRow> = read.rows();
    assert_eq!((flows[0].local_address.as_ref(), flows[0].local_port), ("10.0.0.1", 5000));
    assert_eq!((flows[0].remote_address.as_ref(), flows[0].remote_port), ("2001:db8::2", 443));
    let before: Vec<AckRow> = recording.rows();
    for row in read.rows::<AckRow>() {
        let recorded = before.iter().find(|one| row.at_us + 5_000_000 == one.at_us).unwrap();
        assert_eq!((row.cwnd_segments, row.mss_bytes), (recorded.cwnd_segments, 1_000));
        // A record has all that was sent between two acknowledgments, and is acknowledged as a whole.
        assert!(row.acknowledged_bytes <= recorded.acknowledged_bytes, "{row:?}");
    }
}
