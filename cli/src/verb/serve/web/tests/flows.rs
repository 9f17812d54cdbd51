//! Flows as browsers ask for them: listed, followed, and counted together.

use std::thread;
use std::time::Duration;

use onramp_recording::replay::Regret;
use serde_json::Value;

use super::{Server, TIMEOUT, left, listed, row};
use crate::live::{Cursor, History, Point};
use crate::verb::serve::row::FlowSummary;
use crate::verb::serve::wire::{BrokerMessage, Detail, Histories, Lost, Request};

#[test]
fn flows_are_found_sorted_and_counted() {
    let mut ended = row(4, "203.0.113.9:80", "search");
    ended.state = "ended".into();
    let rows = vec![
        row(1, "198.51.100.7:443", "search"),
        row(2, "198.51.100.8:443", "best"),
        row(3, "[2001:db8::7]:8443", "search"),
        ended,
    ];
    let server = Server::with(rows, false);
    let found = |query: &str| -> Vec<u64> {
        let answer = server.get(&format!("/api/flows?{query}")).json();
        answer["flows"].as_array().unwrap().iter().map(|row| row["flow"].as_u64().unwrap()).collect()
    };
    assert_eq!(found(""), [3, 2, 1, 4], "the most bytes first, ended ones last");
    assert_eq!(found("sort=remote&reverse=true"), [3, 2, 1, 4]);
    assert_eq!(found("filter=dst+198.51.100.0/24+and+dport+%3D+:443&sort=remote"), [1, 2]);
    assert_eq!(found("algorithm=search"), [3, 1, 4]);
    assert_eq!(found("reason=ended"), [4]);
    assert_eq!(found("limit=1"), [3]);
    assert_eq!(found("offset=1&limit=2"), [2, 1]);
    assert_eq!(found("offset=9"), [] as [u64; 0]);
    let answer = server.get("/api/flows?group=algorithm&limit=1").json();
    assert_eq!((&answer["matched"], &answer["total"]), (&4.into(), &4.into()));
    assert_eq!(answer["lost_events"], 3);
    assert_eq!(answer["groups"][1]["name"], "search");
    assert_eq!(answer["groups"][1]["flows"], 3);
    assert_eq!(answer["groups"][1]["listed"], 0);
    assert_eq!(answer["flows"][0]["algorithm"], "best");
    let answer = server.get("/api/flows?group=prefix&limit=3").json();
    let groups = answer["groups"].as_array().unwrap().iter();
    let groups: Vec<_> =
        groups.map(|one| format!("{} {} {}", one["name"], one["flows"], one["listed"])).collect();
    let expected = ["\"198.51.100.0/24\" 2 2", "\"203.0.113.0/24\" 1 1", "\"2001:db8::/48\" 1 0"];
    assert_eq!(groups, expected, "in order of addresses, of three listed flows");
    let answer = server.get("/api/flows?group=algorithm&offset=2&limit=1").json();
    let listed: Vec<_> =
        answer["groups"].as_array().unwrap().iter().map(|one| one["listed"].clone()).collect();
    assert_eq!(listed, [0, 1], "where the first two are not sent");
}

#[test]
fn a_browser_goes_on_where_it_was_or_begins_anew() {
    let mut server = Server::with(vec![row(1, "198.51.100.7:443", "fixed")], false);
    let mut events = server.live("/api/live", "");
    let (_, id, data) = events.named("flows");
    assert_eq!((&data["full"], data["flows"].as_array().unwrap().len()), (&true.into(), 1));
    assert_eq!(data["order"][0], "1");
    drop(events);

    let mut changed = row(1, "198.51.100.7:443", "fixed");
    changed.cwnd_segments = 77;
    server.say(&listed(vec![changed, row(2, "198.51.100.8:443", "fixed")]));
    while server.get("/api/flows").json()["total"] != 2 {}
    server.say(&listed(vec![row(3, "198.51.100.9:443", "fixed")]));
    while server.get("/api/flows").json()["total"] != 3 {}
    let mut again = server.live("/api/live", &format!("Last-Event-ID: {id}\r\n"));
    let (_, second, data) = again.named("flows");
    assert_eq!(data["full"], false);
    let flows = data["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 3, "all that was missed: {data}");
    assert!(flows.iter().any(|row| row["cwnd_segments"] == 77));

    // From there on only what changes.
    server.say(&listed(vec![row(3, "198.51.100.9:443", "fixed")]));
    let (_, third, data) = again.named("flows");
    assert_eq!((data["flows"].as_array().unwrap().len(), &data["order"]), (1, &Value::Null), "{data}");
    assert_ne!(second, third);
    server.say(&BrokerMessage::Flows { rows: Vec::new(), gone: vec![3], lost: Lost::default() });
    let (_, _, data) = again.named("flows");
    assert_eq!(data["order"].as_array().unwrap().len(), 2, "{data}");

    // Another server's numbers, numbers from the future, and what is none say nothing.
    for wrong in ["1-1", &third.replace('-', "-9999999"), "x", "-", ""] {
        let mut other = server.live("/api/live", &format!("Last-Event-ID: {wrong}\r\n"));
        assert_eq!(other.named("flows").2["full"], true, "{wrong}");
    }
    // Of a list that was cut off it is not known what the browser has.
    let mut cut = server.live("/api/live?limit=1", &format!("Last-Event-ID: {third}\r\n"));
    assert_eq!(cut.named("flows").2["full"], true);
}

#[test]
fn a_flow_that_is_looked_at_is_followed_and_left() {
    let mut server = Server::with(vec![row(7, "198.51.100.7:443", "fixed")], false);
    let mut events = server.live("/api/live?flow=7", "");
    assert!(matches!(server.asked.recv_timeout(TIMEOUT), Ok(Request::Follow { flow: 7, acks: true })));
    let mut history = History::whole(16);
    let mut cursor = Cursor::default();
    let mut say = |server: &mut Server, at_us: u64| {
        history.add(Point { at_us, cwnd: at_us as u32, ..Point::default() });
        let (change, next) = history.since(cursor);
        cursor = next;
        server.say(&BrokerMessage::Detail(Box::new(Detail {
            flow: 7,
            rounds_only: None,
            evidence: r#"{"exports":{"norm_pct":3}}"#.into(),
            histories: Histories { beginning: change.clone(), life: change, recent: None },
            incidents: Vec::new(),
            shadow: None,
        })));
    };
    say(&mut server, 10_000);
    let (_, _, data) = events.named("flow");
    assert_eq!(data["evidence"]["exports"]["norm_pct"], 3);
    assert_eq!(data["life"]["cwnd_segments"], serde_json::json!([10_000]));
    say(&mut server, 30_000);
    let (_, _, data) = events.named("flow");
    assert_eq!(data["life"]["first"], 0, "the last bucket may have grown");
    assert_eq!(data["life"]["at_us"], serde_json::json!([10_000, 30_000]));
    say(&mut server, 50_000);
    let (_, _, data) = events.named("flow");
    assert_eq!(data["life"]["at_us"], serde_json::json!([30_000, 50_000]));
    drop(events);
    // That the browser has gone is noticed when something is sent to it.
    while server.asked.try_recv().is_err() {
        say(&mut server, 60_000);
        thread::sleep(Duration::from_millis(1));
    }
    let mut unknown = server.live("/api/live?flow=8", "");
    unknown.named("gone");
}

#[test]
fn a_population_is_counted_by_the_server() {
    let mut again = FlowSummary { flow: 2, retransmitted_bytes: 500, ..left() };
    again.regret = Some(Regret { window_to_bdp: 0.1, early_us: 3_000_000, queue_us: None });
    let server = Server::with(vec![left(), again, row(3, "203.0.113.9:80", "best")], false);
    let (_, _, event) =
        server.live("/api/live?population=true&filter=dst+198.51.100.0/24", "").named("population");
    assert_eq!((&event["flows"], &event["left"]), (&2.into(), &2.into()), "those that pass");
    assert_eq!(event["map"]["flows"].as_array().unwrap().len(), 1, "both in one cell: {event}");
    assert_eq!(event["map"]["flows"][0][2], 2);
    let measures = event["distributions"].as_array().unwrap();
    let of = |measure: &str| measures.iter().find(|one| one["measure"] == measure);
    // A window of 926,720 bytes over 6,250.
    assert_eq!(of("exit_to_bdp").unwrap()["quantiles"][50], 148.275);
    assert_eq!(of("early_seconds").unwrap()["flows"], 1, "where it is known");
    assert!(of("queue_seconds").is_none());
    assert_eq!(event["networks"][0]["network"], "198.51.100.0/24");
    assert_eq!(event["worst"]["early"][0]["flow"], 2);
    assert_eq!(event["worst"]["retransmitted"][0]["flow"], 2);
    assert_eq!(event["worst"]["late"], serde_json::json!([]));
}
