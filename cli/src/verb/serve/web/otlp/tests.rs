//! The pusher with a receiver that is down, slow, full or dull, in tokio's time.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::Instant;

use super::*;
use crate::verb::serve::row::Row;
use crate::verb::serve::web::guard::Policy;
use crate::verb::serve::web::tests::{left, listed};

/// What a receiver does with a request.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Answer(u16),
    Nothing,
    RefuseConnection,
}

/// What it was told: after how many seconds, at which path, and with what.
type Heard = Arc<Mutex<Vec<(u64, String, Value)>>>;

/// Pushes for so long, to a receiver that does this in turn and then takes all; `ends` happens a moment after the begin.
async fn pushed(deeds: &[Deed], time: Duration, ends: impl FnOnce(&Hub)) -> (Hub, Vec<(u64, String, Value)>) {
    let hub = Hub::new(Policy::default(), false);
    let heard = Heard::default();
    let begun = Instant::now();
    let left = Mutex::new(deeds.iter().copied());
    let connect = async || {
        let deed = left.lock().unwrap().next().unwrap_or(Deed::Answer(200));
        let (ours, theirs) = duplex(1 << 24);
        match deed {
            Deed::RefuseConnection => return Err(io::ErrorKind::ConnectionRefused.into()),
            Deed::Nothing => std::mem::forget(theirs),
            Deed::Answer(status) => {
                tokio::spawn(answer_with(theirs, status, Arc::clone(&heard), begun));
            }
        }
        Ok(ours)
    };
    let to = receiver("http://collector.example:4318/base/").unwrap();
    tokio::select! {
        () = push(&hub, &to, connect) => unreachable!(),
        () = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            ends(&hub);
            tokio::time::sleep(time).await;
        } => {}
    }
    let heard = std::mem::take(&mut *heard.lock().unwrap());
    (hub, heard)
}

async fn answer_with(mut stream: DuplexStream, status: u16, heard: Heard, begun: Instant) {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        stream.read_buf(&mut bytes).await.unwrap();
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let Some(end) = text.find("\r\n\r\n") else { continue };
        let length = text[..end].lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if bytes.len() == end + 4 + length.parse::<usize>().unwrap() {
            break (text[..end].to_owned(), bytes.split_off(end + 4));
        }
    };
    assert!(
        head.contains("content-type: application/json") && head.contains("host: collector.example:4318"),
        "{head}"
    );
    let path = head.split(' ').nth(1).unwrap().to_owned();
    heard.lock().unwrap().push((begun.elapsed().as_secs(), path, serde_json::from_slice(&body).unwrap()));
    stream
        .write_all(format!("HTTP/1.1 {status} x\r\nContent-Length: 2\r\n\r\n{{}}").as_bytes())
        .await
        .unwrap();
}

fn ended(flow: u64) -> Row {
    Row { flow, state: "ended".into(), bdp_bytes: Some(500_000), ..left() }
}

/// The flows of pushes, in order.
fn flows(heard: &[(u64, String, Value)]) -> Vec<u64> {
    let records = heard.iter().filter(|(_, path, _)| path == "/base/v1/logs").flat_map(|(_, _, body)| {
        body["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap().clone()
    });
    let flow = |record: Value| {
        of(&record["attributes"], "onramp.flow")["intValue"].as_str().unwrap().parse().unwrap()
    };
    records.map(flow).collect()
}

/// The value of an attribute.
fn of(attributes: &Value, name: &str) -> Value {
    let found = attributes.as_array().unwrap().iter().find(|one| one["key"] == name);
    found.unwrap_or_else(|| panic!("{name}: {attributes}"))["value"].clone()
}

#[tokio::test(start_paused = true)]
async fn metrics_and_ends_of_flows_come_as_the_protocol_says() {
    let (hub, heard) =
        pushed(&[], Duration::from_secs(15), |hub| hub.heard(listed(vec![ended(7), left()]))).await;
    assert_eq!(flows(&heard), [7], "the other one goes on");
    let (_, _, logs) = heard.iter().find(|(_, path, _)| path == "/base/v1/logs").unwrap();
    let resource = &logs["resourceLogs"][0]["resource"]["attributes"];
    assert_eq!(of(resource, "service.name")["stringValue"], "onramp");
    let record = &logs["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
    assert_eq!(record["body"]["stringValue"], "a flow of search has ended: algorithm");
    let attributes = &record["attributes"];
    assert_eq!(of(attributes, "network.peer.address")["stringValue"], "198.51.100.7");
    assert_eq!(of(attributes, "network.peer.port")["intValue"], "443");
    assert_eq!(of(attributes, "onramp.exit.window_bytes")["intValue"], "926720");
    assert!(record["timeUnixNano"].as_str().unwrap().parse::<u64>().unwrap() > 1_000_000_000);
    assert!(!attributes.to_string().contains("sent_bytes"), "it is not known: {attributes}");

    let times: Vec<u64> = heard.iter().filter(|one| one.1 == "/base/v1/metrics").map(|one| one.0).collect();
    assert_eq!(times, [1, 11]);
    let (_, _, metrics) = heard.iter().find(|(_, path, _)| path == "/base/v1/metrics").unwrap();
    let metrics = metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let metric = |name: &str| {
        metrics.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {metrics:?}"))
    };
    let ratio = metric("onramp_slow_start_exit");
    assert_eq!(ratio["unit"], "1");
    assert_eq!(ratio["exponentialHistogram"]["aggregationTemporality"], 2);
    let point = &ratio["exponentialHistogram"]["dataPoints"][0];
    assert_eq!(
        (&point["count"], &point["scale"], &point["zeroCount"]),
        (&"1".into(), &3.into(), &"0".into())
    );
    // 1.853 lies above 2^(7/8) and up to 2^(8/8).
    assert_eq!(point["positive"], serde_json::json!({"offset": 7, "bucketCounts": ["1"]}));
    let lost = &metric("onramp_ringbuf_dropped")["sum"];
    assert_eq!((&lost["isMonotonic"], &lost["dataPoints"][0]["asDouble"]), (&true.into(), &3.0.into()));
    assert_eq!(metric("onramp_build_info")["gauge"]["dataPoints"][0]["asDouble"], 1.0);
    let outbox = hub.knowledge().exits.outbox.take().unwrap();
    assert_eq!((outbox.taken, outbox.dropped), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_taken_comes_later_and_what_is_refused_does_not() {
    let ends = |hub: &Hub| hub.heard(listed((0..600).map(ended).collect()));
    // Nobody there, no answer, full, broken: each time it waits for twice as long.
    let deeds = [Deed::RefuseConnection, Deed::Nothing, Deed::Answer(429), Deed::Answer(503)];
    let (hub, heard) = pushed(&deeds, Duration::from_secs(60), ends).await;
    let times: Vec<u64> = heard.iter().filter(|one| one.1.ends_with("logs")).map(|one| one.0).collect();
    // 1, +2 and ten seconds without an answer, +4, +8, +16; the rest at once.
    assert_eq!(times, [17, 25, 41, 41]);
    let taken: Vec<u64> = flows(&heard[2..]);
    assert_eq!(taken, (0..600).collect::<Vec<u64>>(), "all, once, in order");
    let outbox = hub.knowledge().exits.outbox.take().unwrap();
    assert_eq!((outbox.taken, outbox.dropped), (600, 0));

    let (hub, heard) = pushed(&[Deed::Answer(400)], Duration::from_secs(5), ends).await;
    assert_eq!(flows(&heard).len(), 600, "the refused ones are not sent again");
    let outbox = hub.knowledge().exits.outbox.take().unwrap();
    assert_eq!((outbox.taken, outbox.dropped), (88, 512));
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_bounded_and_what_is_dropped_is_counted() {
    let deeds = [Deed::RefuseConnection; 3];
    let ends = |hub: &Hub| {
        for first in 0..10 {
            hub.heard(listed((first * 1_000..(first + 1) * 1_000).map(ended).collect()));
        }
    };
    let (_, heard) = pushed(&deeds, Duration::from_secs(40), ends).await;
    assert_eq!(flows(&heard), (5_904..10_000).collect::<Vec<u64>>());
    let (_, _, metrics) = heard.iter().rev().find(|(_, path, _)| path.ends_with("metrics")).unwrap();
    let metrics = metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let value = |name: &str| {
        metrics.iter().find(|one| one["name"] == name).unwrap()["sum"]["dataPoints"][0]["asDouble"].as_f64()
    };
    assert_eq!((value("onramp_otlp_taken"), value("onramp_otlp_dropped")), (Some(4_096.0), Some(5_904.0)));
}

#[test]
fn a_receivers_address_is_plain_http_and_no_more() {
    let read = receiver("http://[::1]:4318/otlp/").unwrap();
    assert_eq!((read.authority.as_str(), read.base.as_str()), ("[::1]:4318", "/otlp"));
    assert_eq!(receiver("http://collector").unwrap().base, "");
    for (wrong, said) in [
        ("", "http://127.0.0.1:4318"),
        ("collector:4318", "does not begin with http://"),
        ("https://collector", "speaks no TLS"),
        ("http://user:secret@collector", "names no host"),
        ("http://collector/?a=b", "has a query"),
        ("grpc://collector:4317", "does not begin with http://"),
        ("http://", "it is no address"),
    ] {
        assert!(receiver(wrong).unwrap_err().contains(said), "{wrong}: {:?}", receiver(wrong));
    }
}
