//! Recordings that browsers open: what is shown of them, and what is refused.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onramp_recording::replay::{Options, Replay, replay};
use onramp_recording::rows::{AckRow, ExitRow, FlowRow, RoundRow, StateRow};
use onramp_recording::{Budget, Column, Kind, Limits, Manifest, Recording, Row, Spec, Text, Writer};
use serde_json::Value;

use super::super::hub::Hub;
use super::super::kept::KEPT;
use super::super::tests::{Answer, Server, TOKEN};
use super::{BYTES_MAX, CancelOnDrop, messages, recorded};

const BOUNDARY: &str = "between-files";

/// Of one flow, as a browser would send it.
fn files() -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/src/tests/recorded");
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| (format!("rec/{}", path.file_name().unwrap().display()), std::fs::read(&path).unwrap()))
        .collect()
}

fn post(server: &Server, files: &[(String, Vec<u8>)]) -> Answer {
    server.raw(&form(files))
}

/// A request with files as a browser sends them.
fn form(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, bytes) in files {
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n"
        );
        body.extend([head.as_bytes(), bytes.as_slice(), b"\r\n"].concat());
    }
    body.extend(format!("--{BOUNDARY}--\r\n").bytes());
    let head = format!(
        "POST /api/recordings HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}

#[test]
fn a_recording_is_shown_as_what_is_live_to_who_knows_its_name() {
    let server = Server::start(false);
    let opened = post(&server, &files()).json();
    assert_eq!(
        (&opened["flows"], &opened["problems"]),
        (&Value::from(1), &Value::from(Vec::<u64>::new())),
        "{opened}"
    );
    let (name, flow) = (opened["recording"].as_str().unwrap(), opened["flow"].as_str().unwrap());
    let listed = server.get(&format!("/api/flows?recording={name}")).json();
    assert_eq!(listed["total"], 1);
    assert_eq!(listed["flows"][0]["flow"].to_string(), flow);
    let detail = server.get(&format!("/api/flows/{flow}?recording={name}")).json();
    assert!(detail["exit"]["reason"].is_string(), "{detail}");
    let acknowledged = detail["life"]["acknowledged_bytes"].as_array().unwrap();
    assert!(acknowledged.last().unwrap().as_u64() > Some(10_000), "{acknowledged:?}");
    let asked: Vec<&str> = detail["shadow"]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["algorithm"].as_str())
        .collect();
    assert!(asked.contains(&"search") && asked.contains(&"ramp") && !asked.contains(&"plain"), "{asked:?}");
    // Live, with the population; and what is live knows nothing of it.
    let mut events = server.live(&format!("/api/live?recording={name}&flow={flow}&population=true"), "");
    assert_eq!(events.named("population").2["flows"], 1);
    assert_eq!(events.named("flow").2["flow"].to_string(), flow);
    assert_eq!(server.get("/api/flows").json()["total"], 0);
    assert!(server.get("/api/flows?recording=0123").refused(404).contains("open it again"));
    assert!(server.get("/api/flows/1?record=0123").refused(400).contains("record"));
    assert!(server.get(&format!("/api/flows/{flow}?recording=0123")).refused(404).contains("open it again"));
}

/// The beginning of an upload, which would have so many bytes.
fn head(bytes: usize) -> String {
    format!(
        "POST /api/recordings HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {bytes}\r\n"
    )
}

#[test]
fn uploads_that_do_not_come_keep_no_other_from_being_read() {
    let server = Server::start(false);
    let mut slow: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    for stream in &mut slow {
        write!(stream, "{}\r\n--{BOUNDARY}\r\n", head(60 << 20)).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(post(&server, &files()).json()["flows"], 1);
    }
}

#[test]
fn an_upload_that_is_too_large_is_sent_whole_and_then_refused() {
    let server = Server::start(false);
    for bytes in [BYTES_MAX + 1, BYTES_MAX + (40 << 20)] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        write!(stream, "{}\r\n", head(bytes)).unwrap();
        let piece = vec![b'x'; 1 << 20];
        let mut rest = bytes;
        while rest > 0 {
            let now = rest.min(piece.len());
            stream.write_all(&piece[..now]).expect("it is read to its end");
            rest -= now;
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("64 MB"), "{answer}");
    }
    // The first request is answered before.
    let mut stream = TcpStream::connect(server.address).unwrap();
    write!(stream, "{}Expect: 100-continue\r\n\r\n", head(1 << 30)).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert_eq!(post(&server, &files()).json()["flows"], 1);
}

onramp_recording::table! {
    /// As a column of addresses, of any length.
    LongRow = "flows" {
        /// number
        flow: u64,
        /// address
        remote_address: Text => most 10000000,
    }
}

#[test]
fn a_file_that_unpacks_to_gigabytes_is_refused_by_name_and_the_next_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows-000001.parquet");
    let long = "A".repeat(1_000_000);
    let rows = (0..1_900).map(|flow| LongRow { flow, remote_address: long.clone().into() });
    onramp_recording::write_rows(&path, rows).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() < 1 << 20, "{}", bytes.len());
    let server = Server::start(false);
    let said = post(&server, &[("rec/flows-000001.parquet".into(), bytes)]).refused(400);
    assert!(said.contains("flows-000001.parquet") && said.contains("column remote_address"), "{said}");
    assert_eq!(post(&server, &files()).json()["flows"], 1);
}

#[test]
fn whoever_does_not_wait_any_more_ends_the_reading() {
    let budget = Budget::default();
    drop(CancelOnDrop(Arc::clone(&budget.cancelled)));
    let parquet = || files().into_iter().map(|(name, bytes)| (name.into(), bytes)).collect();
    assert!(recorded(parquet(), Budget::default()).is_ok());
    let said = recorded(parquet(), budget.clone()).err().unwrap();
    assert!(said.contains("reading was cancelled"), "{said}");
    let csv = vec![("acks.csv".into(), b"at_us\n1\n".to_vec())];
    let said = recorded(csv, budget).err().unwrap();
    assert!(said.contains("reading was cancelled"), "{said}");
}

#[test]
fn a_browser_opens_what_is_dropped_on_its_page() {
    let server = Server::start(false);
    let Some(mut script) = super::super::load::script("open.mjs", server.address) else { return };
    assert!(script.status().unwrap().success(), "web/tests/open.mjs says what was wrong");
}

#[test]
fn a_page_without_live_flows_does_not_claim_to_be_live() {
    let server = Server::offline();
    assert_eq!(server.get("/api/about").json()["offline"], true);
    let Some(mut script) = super::super::load::script("offline.mjs", server.address) else { return };
    assert!(script.status().unwrap().success(), "web/tests/offline.mjs says what was wrong");
}

#[test]
fn a_browser_zooms_compares_two_flows_and_saves_its_page() {
    let server = Server::offline();
    let Some(mut script) = super::super::load::script("flow.mjs", server.address) else { return };
    assert!(script.status().unwrap().success(), "web/tests/flow.mjs says what was wrong");
}

/// Of a flow that doubles its window for so many rounds of 100 ms, exited slow start in the fifth, and then had four more
/// rounds at its peak or none.
fn doubling(rounds: u64, kept: bool) -> Vec<(String, Vec<u8>)> {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(directory.path(), Manifest::default(), Limits::default()).unwrap();
    let start = FlowRow { flow: 7, event: "start".into(), algorithm: "search".into(), ..FlowRow::default() };
    writer.push(FlowRow { at_us: 1_000_000, started_us: 1_000_000, sequence: 1, ..start }).unwrap();
    let exit = ExitRow { flow: 7, event: "exit".into(), reason: "loss".into(), ..ExitRow::default() };
    let cwnd_segments = 400;
    writer
        .push(ExitRow { sequence: 2, since_start_us: 500_000, cwnd_segments, mss_bytes: 1_000, ..exit })
        .unwrap();
    let (mut acked, mut window) = (0, 10);
    for round in 0..rounds + if kept { 8 } else { 0 } {
        let next = if round < rounds { 2 * window } else { window };
        for part in 1..=10 {
            let segments = acked + window * part / 10;
            let ack = AckRow {
                at_us: 1_100_000 + round * 100_000 + part * 10_000,
                flow: 7,
                sequence: 10 + (round * 10 + part) as u32,
                event: "ack".into(),
                called: 1,
                acknowledged_bytes: segments * 1_000,
                sent_bytes: (acked + window + next * part / 10) * 1_000,
                delivered_segments: segments as u32,
                rtt_us: 100_000,
                smoothed_rtt_us: 100_000,
                min_rtt_us: 100_000,
                cwnd_segments: window as u32,
                mss_bytes: 1_000,
                ..AckRow::default()
            };
            writer.push(ack).unwrap();
        }
        (acked, window) = (acked + window, next);
    }
    writer.finish(1).unwrap();
    let entries = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| (format!("rec/{}", path.file_name().unwrap().display()), std::fs::read(&path).unwrap()))
        .collect()
}

#[test]
fn list_flow_and_replay_say_one_bandwidth_delay_product() {
    one_bandwidth_delay_product(&doubling(7, true), false);
    one_bandwidth_delay_product(&doubling(7, false), true);
}

fn one_bandwidth_delay_product(files: &[(String, Vec<u8>)], at_least: bool) {
    let server = Server::start(false);
    let opened = post(&server, files).json();
    let (name, flow) = (opened["recording"].as_str().unwrap(), opened["flow"].as_str().unwrap());
    let listed = server.get(&format!("/api/flows?recording={name}")).json()["flows"][0].clone();
    let detail = server.get(&format!("/api/flows/{flow}?recording={name}")).json();
    let parquet = files.iter().map(|(name, bytes)| (name.into(), bytes.clone()));
    let wanted = Replay::new(Vec::new(), Options { regret: true, ..Options::default() });
    let report = replay(&mut Recording::of_files(parquet), wanted).pop().unwrap();
    let given = report.given.unwrap();
    assert_eq!(given.at_least, at_least, "{given:?}");
    assert!(given.window_bytes > 300_000, "{given:?}");
    for row in [&listed, &detail] {
        assert_eq!(row["bdp_bytes"], given.window_bytes);
        assert_eq!(row["bdp_at_least"], given.at_least);
        assert_eq!(row["rate_max_bps"], given.rate_bytes_per_second * 8);
        assert_eq!(row["regret"], serde_json::to_value(report.regret).unwrap());
    }
    assert_eq!(detail["shadow"]["given"], serde_json::to_value(given).unwrap());
    let exit = report.known.recorded_exit.unwrap().window_bytes as f64 / given.window_bytes as f64;
    for finding in detail["shadow"]["findings"].as_array().unwrap() {
        let Some(ratio) = finding["regret"]["window_to_bdp"].as_f64() else { continue };
        let window = finding["exit"]["window_bytes"].as_f64().unwrap();
        assert!((ratio - window / given.window_bytes as f64).abs() < 1e-9, "{finding}");
    }
    let said = listed["exit"]["window_bytes"].as_f64().unwrap() / listed["bdp_bytes"].as_f64().unwrap();
    assert!((said - exit).abs() < 1e-9, "{said} {exit}");
}

#[test]
fn the_oldest_recording_goes() {
    let server = Server::start(false);
    let names: Vec<String> = (0..=KEPT)
        .map(|_| post(&server, &files()).json()["recording"].as_str().unwrap().to_owned())
        .collect();
    let status = |name: &String| server.get(&format!("/api/flows?recording={name}")).status();
    assert_eq!(names.iter().map(status).collect::<Vec<_>>(), [404, 200, 200, 200, 200]);
}

#[test]
fn what_is_no_recording_is_named() {
    let server = Server::start(false);
    assert!(post(&server, &[]).refused(400).contains("no file was sent"));
    assert!(server.raw(b"POST /api/recordings HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}").refused(400).contains("multipart"));
    for (kind, body) in [
        ("text/csv", &b"at_us\n"[..]),
        ("multipart/form-data", b"--b"),
        ("multipart/form-data; boundary=", b"--b"),
        ("multipart/form-data; boundary=b", b"neither"),
        ("multipart/form-data; boundary=b", b"--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\ncut"),
        ("application/x-www-form-urlencoded", b"a=1"),
    ] {
        let head = format!(
            "POST /api/recordings HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let said = server.raw(&[head.as_bytes(), body].concat()).refused(400);
        assert!(said.contains("curl -F file=@"), "{kind}: {said}");
    }
    let text = [("notes.txt".to_owned(), b"precious".to_vec())];
    assert!(post(&server, &text).refused(400).contains("notes.txt"));
    for (name, bytes, kind) in [
        ("capture.pcap", &b"\xd4\xc3\xb2\xa1\x02\0\x04\0"[..], "pcap"),
        ("other.sqlog", b"\x1e{\"qlog_version\":\"0.3\"}", "qlog"),
        ("iperf3.json", b"{\"start\":{\"connected\":[]},\"intervals\":[]}", "iperf3"),
        ("acks.csv.gz", b"\x1f\x8b\x08\0", "gzip"),
        ("utf16.csv", b"\xff\xfea\0t\0", "UTF-16"),
        ("empty.csv", b"", "empty"),
        ("acks-000001.parquet", b"\x1f\x8b\x08\0", "gzip"),
    ] {
        let said = post(&server, &[(name.to_owned(), bytes.to_vec())]).refused(400);
        assert!(said.contains(name) && said.contains(kind), "{name}: {said}");
    }
    let mut damaged = files();
    for (_, bytes) in damaged.iter_mut().filter(|(name, _)| name.contains("flows-")) {
        bytes[20] ^= 1;
    }
    let said = post(&server, &damaged).refused(400);
    assert!(said.contains("there is no flow") && said.contains("flows-000001.parquet"), "{said}");
    // One that lacks ACKs still shows how it ended.
    let mut few = files();
    few.retain(|(name, _)| !name.contains("acks-"));
    assert_eq!(post(&server, &few).json()["flows"], 1);
}

/// The same as far as it is the same for two servers: a recording has a name that is drawn.
fn comparable(answer: &Answer) -> (u16, String) {
    let mut body: Value = serde_json::from_str(answer.body()).unwrap_or_else(|_| answer.body().into());
    if let Some(name) = body.get_mut("recording").filter(|name| name.is_string()) {
        *name = "drawn".into();
    }
    (answer.status(), body.to_string())
}

#[test]
fn whatever_is_posted_is_answered_confined_as_it_is_without() {
    let (confined, free) = (Server::start(true), Server::unconfined());
    let csv = "at_us,acknowledged_bytes,sent_bytes,rtt_us,cwnd_segments,in_flight_segments,mss_bytes,app_limited\n\
        1000,2896,14480,50000,10,8,1448,0\n2000,5792,17376,50000,12,10,1448,0\n";
    let mut damaged = files();
    damaged.iter_mut().for_each(|(_, bytes)| bytes.truncate(bytes.len() / 2));
    let with = |route: &str, headers: &str, body: &str| {
        let length = body.len();
        let head = "Host: localhost\r\nConnection: close\r\n";
        format!("POST {route} HTTP/1.1\r\n{head}{headers}Content-Length: {length}\r\n\r\n{body}").into_bytes()
    };
    let json = "Content-Type: application/json\r\n";
    let token = format!("{json}Authorization: Bearer {TOKEN}\r\n");
    let set = "{\"algorithm\":\"best\",\"settings\":[\"loss_pct=2\"]}";
    let chunked = "POST /api/recordings HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\
         Content-Type: multipart/form-data; boundary=b\r\n\r\n5\r\n--b--\r\n0\r\n\r\n";
    let mut statuses = std::collections::BTreeSet::new();
    for request in [
        form(&files()),
        form(&[("acks.csv".into(), csv.into())]),
        form(&[("acks.csv".into(), b"\x1f\x8b\x08\0".to_vec())]),
        form(&damaged),
        form(&[]),
        chunked.into(),
        with("/api/recordings", "", "{}"),
        with("/api/recordings", "Content-Type: text/csv\r\n", csv),
        with("/api/tune", &token, set),
        with("/api/tune", json, set),
        with("/api/tune", &token.replace("0123", "3210"), set),
        with("/api/tune", &token, "{"),
        with("/api/tune", &token, &"x".repeat(1 << 20)),
        with("/api/tune", "", set),
        with("/api/flows", "", ""),
        with("/api/nothing", "", ""),
        with("/metrics", "", ""),
        with("/", "", ""),
    ] {
        let answer = confined.raw(&request);
        assert_ne!(answer.status(), 0, "{}", String::from_utf8_lossy(&request));
        assert_eq!(comparable(&answer), comparable(&free.raw(&request)));
        statuses.insert(answer.status());
    }
    assert!(statuses.is_superset(&[200, 400, 401, 405].into()), "{statuses:?}");
}

#[test]
fn acknowledgments_in_csv_are_flows_too() {
    let server = Server::start(false);
    let mut csv = String::from(
        "at_us,acknowledged_bytes,sent_bytes,rtt_us,cwnd_segments,in_flight_segments,mss_bytes,app_limited\n",
    );
    for ack in 1..=200_u64 {
        csv += &format!(
            "{},{},{},50000,{},{},1000,0\n",
            1_000_000 + ack * 1_000,
            ack * 1_000,
            (2 * ack + 10) * 1_000,
            ack + 10,
            ack + 10
        );
    }
    let opened = post(&server, &[("acks.csv".into(), csv.clone().into_bytes())]).json();
    let detail = server
        .get(&format!(
            "/api/flows/{}?recording={}",
            opened["flow"].as_str().unwrap(),
            opened["recording"].as_str().unwrap()
        ))
        .json();
    assert_eq!((&detail["algorithm"], &detail["state"]), (&"unknown".into(), &"slow_start".into()));
    assert!(detail["rate_max_bps"].as_u64() > Some(4_000_000), "{detail}");
    let wrong = csv.replace("app_limited", "appetite");
    assert!(post(&server, &[("acks.csv".into(), wrong.into_bytes())]).refused(400).contains("app_limited"));
}

/// A row whose numbers and words are any.
fn row<R: Row>(numbers: &mut impl Iterator<Item = u64>) -> R {
    let words =
        ["start", "exit", "undone", "end", "again", "open", "recovery", "search", "ramp", "loss", "", "::1"];
    let mut column = |spec: &Spec| {
        let number = numbers.next().unwrap();
        match spec.kind {
            _ if spec.name == "flow" => Column::I64(vec![(number % 2) as i64]),
            _ if spec.name == "mss_bytes" => Column::I32(vec![(number as i32).max(1)]),
            _ if spec.name == "algorithm" => Column::Text(vec!["search".to_owned().into_bytes().into()]),
            Kind::U64 => Column::I64(vec![number as i64]),
            Kind::U32 | Kind::I32 => Column::I32(vec![number as i32]),
            Kind::Text => {
                Column::Text(vec![words[number as usize % words.len()].to_owned().into_bytes().into()])
            }
        }
    };
    let columns: Vec<Column> = R::COLUMNS.iter().map(&mut column).collect();
    R::get(&columns, 0).unwrap()
}

#[test]
fn rows_that_make_no_sense_are_shown_to_the_end() {
    let ends: Vec<u8> = [0, 1, 2, 9, 1_448, 100_000, u64::from(u32::MAX), 1 << 40, i64::MAX as u64, u64::MAX]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    let shown = std::cell::Cell::new(0);
    onramp_mutation::check(3, 100, onramp_mutation::bytes(vec![ends]), |bytes| {
        let numbers: Vec<u64> =
            bytes.chunks_exact(8).map(|one| u64::from_le_bytes(one.try_into().unwrap())).collect();
        let mut numbers = numbers.iter().copied().chain([3]).cycle();
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(directory.path(), Manifest::default(), Limits::default()).unwrap();
        for flow in 0..2 {
            writer
                .push(FlowRow {
                    flow,
                    event: "start".into(),
                    algorithm: "search".into(),
                    ..row(&mut numbers)
                })
                .unwrap();
        }
        for _ in 0..6 {
            writer.push(row::<FlowRow>(&mut numbers)).unwrap();
            writer.push(row::<AckRow>(&mut numbers)).unwrap();
            writer.push(row::<RoundRow>(&mut numbers)).unwrap();
            writer.push(row::<ExitRow>(&mut numbers)).unwrap();
            writer.push(row::<StateRow>(&mut numbers)).unwrap();
            writer.push(row::<AckRow>(&mut numbers)).unwrap();
        }
        writer.finish(1).unwrap();
        let read = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.unwrap().path();
            (path.clone(), std::fs::read(path).unwrap())
        };
        let recorded =
            recorded(std::fs::read_dir(directory.path()).unwrap().map(read).collect(), Budget::default())
                .unwrap();
        let hub = Hub::from_messages(messages(&recorded).0);
        shown.set(shown.get() + hub.state().open.len());
        Ok(())
    });
    assert_eq!(shown.get(), 200);
}

#[test]
fn bytes_changed_anywhere_are_a_recording_or_refused() {
    let valid: Vec<Vec<u8>> = files().into_iter().map(|(_, bytes)| bytes).collect();
    onramp_mutation::check(7, 300, onramp_mutation::bytes(valid), |bytes| {
        let mut all: Vec<(PathBuf, Vec<u8>)> =
            files().into_iter().map(|(name, bytes)| (name.into(), bytes)).collect();
        all.push(("rec/acks-000002.parquet".into(), bytes));
        if let Ok(recorded) = recorded(all, Budget::default()) {
            let (messages, flows) = messages(&recorded);
            assert!(messages.len() > flows.len());
        }
        Ok(())
    });
}
