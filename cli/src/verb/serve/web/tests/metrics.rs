//! What `/metrics` shows, and whether Prometheus, the rules and the dashboard understand it.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use onramp_recording::replay::Regret;

use super::{Server, left, listed, row};
use crate::verb::serve::row::FlowSummary;
use crate::verb::serve::wire::BrokerMessage;

#[test]
fn metrics_count_and_name_no_user() {
    let left = left();
    let mut over = FlowSummary { state: "ended".into(), ..row(3, "198.51.100.9:443", "best") };
    over.regret = Some(Regret { window_to_bdp: 0.1, early_us: 3_000_000, queue_us: Some(0) });
    let mut server = Server::with(vec![left.clone(), row(2, "198.51.100.8:443", "best"), over], false);
    // Reported again, it is not counted again.
    server.say(&listed(vec![left]));
    server.say(&BrokerMessage::Attached(
        r#"{"unreadable":null,"algorithms":[{"state":"attached","congestion_control":"onramp_search","version":"1","generation":"a","exits":{"loss":5},"outcomes":{"css_entered":4},"ended_in_slow_start":2,"guard":{"tripped":{"metric":"goodput","at_us":1}}},{"state":"attached","congestion_control":"onramp_ramp","guard":{"tripped":null,"treated":{"flows":812,"retransmit_ratio_pct":1.5,"goodput_bps":8e6,"first_64kb_us":250000},"control":{"flows":9,"retransmit_ratio_pct":null,"goodput_bps":null},"comparisons":[{"metric":"goodput","difference_pct":-12.3,"interval_pct":[-15.0,-9.6],"margin_pct":-10.0}]}},{"state":"attached","congestion_control":"onramp_best"},{"state":"unreadable","congestion_control":"onramp_plain"}],"costs":[{"congestion_control":"onramp_search","callback":"pkts_acked","calls":1000,"nanoseconds":500000}]}"#.into(),
    ));
    server.say(&BrokerMessage::StatusRead(1_700_000_000_250_000));
    while server.get("/api/status").body().is_empty() {}
    let read = "onramp_status_last_success_timestamp_seconds";
    while !server.get("/metrics").body().contains(read) {}
    let answer = server.ask(
        "GET /metrics",
        "Host: localhost\r\nAccept: application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1\r\n",
        "",
    );
    assert!(
        answer.head().contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{answer:?}"
    );
    let text = answer.body();
    for line in [
        "onramp_build_info{version=",
        "onramp_status_readable 1\n",
        "onramp_status_last_success_timestamp_seconds 1700000000.25\n",
        "onramp_attached_readable{cc=\"onramp_search\"} 1",
        "onramp_attached_readable{cc=\"onramp_plain\"} 0",
        "onramp_flows{cc=\"onramp_search\",state=\"slow_start\"} 1",
        "onramp_flows_limited{cc=\"onramp_search\",limited=\"slow_start\"} 1",
        "onramp_slow_start_exits_total{cc=\"onramp_search\",reason=\"loss\"} 5",
        "onramp_slow_start_exits_total{cc=\"onramp_search\",reason=\"closed\"} 2",
        "onramp_slow_start_exit_cwnd_bytes_count{cc=\"onramp_search\"} 1",
        "onramp_slow_start_duration_seconds_sum{cc=\"onramp_search\"} 0.35",
        "onramp_rtt_inflation_ratio_sum{cc=\"onramp_search\"} 1.5",
        "onramp_ringbuf_dropped_total 3",
        "onramp_attached_info{cc=\"onramp_search\",version=\"1\",generation=\"a\"} 1",
        "onramp_guard_tripped{cc=\"onramp_search\"} 1",
        "onramp_slow_start_exit_regret_seconds_sum{cc=\"onramp_best\"} 3\n",
        "onramp_slow_start_exit_regret_seconds_bucket{le=\"2.56\",cc=\"onramp_best\"} 0",
        "onramp_slow_start_exit_regret_seconds_bucket{le=\"5.12\",cc=\"onramp_best\"} 1",
        "onramp_guard_tripped{cc=\"onramp_ramp\"} 0",
        "onramp_guard_flows_total{cc=\"onramp_ramp\",arm=\"treated\"} 812",
        "onramp_guard_flows_total{cc=\"onramp_ramp\",arm=\"control\"} 9",
        "onramp_guard_retransmit_ratio{cc=\"onramp_ramp\",arm=\"treated\"} 0.015",
        "onramp_guard_goodput_bytes_per_second{cc=\"onramp_ramp\",arm=\"treated\"} 1000000\n",
        "onramp_guard_first_64kb_seconds{cc=\"onramp_ramp\",arm=\"treated\"} 0.25\n",
        "onramp_guard_difference_ratio{cc=\"onramp_ramp\",metric=\"goodput\",bound=\"low\"} -0.15",
        "onramp_callback_calls_total{cc=\"onramp_search\",callback=\"pkts_acked\"} 1000",
        "onramp_callback_seconds_total{cc=\"onramp_search\",callback=\"pkts_acked\"} 0.0005",
        "onramp_guard_margin_ratio{cc=\"onramp_ramp\",metric=\"goodput\"} -0.1",
        "onramp_verdicts_total{cc=\"onramp_search\",outcome=\"css_entered\"} 4",
        "onramp_slow_start_exit_queue_seconds_count{cc=\"onramp_best\"} 1",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("onramp_guard_tripped{cc=\"onramp_best\"}"), "it has no guard: {text}");
    let unknown = ["retransmit_ratio", "goodput_bytes_per_second"]
        .map(|name| format!("onramp_guard_{name}{{cc=\"onramp_ramp\",arm=\"control\"}}"));
    assert!(unknown.iter().all(|line| !text.contains(line)), "a mean of no flow is none: {text}");
    assert!(text.ends_with("# EOF\n"));
    for word in ["198.51.100", "192.0.2.1", "port=", "address", "flow="] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

#[test]
fn rules_and_dashboard_ask_for_metrics_that_there_are() {
    let server = all();
    let response = server.get("/metrics");
    let response = response.body();
    let names = |text: &str| -> BTreeSet<String> {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        words.filter(|word| word.starts_with("onramp_")).map(str::to_owned).collect()
    };
    let there = names(response);
    for name in ["grafana.json", "rules.yml", "rules_test.yml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../monitoring").join(name);
        // Congestion controls are named alike.
        let controls = ["onramp_plain", "onramp_hystart"].map(str::to_owned);
        let asked = names(&std::fs::read_to_string(&path).unwrap());
        let missing: Vec<_> = asked.difference(&there).filter(|word| !controls.contains(word)).collect();
        assert!(asked.len() > 3 && missing.is_empty(), "{name}: {missing:?}: {response}");
    }
}

/// A server with all metrics that there are.
fn all() -> Server {
    let mut left = left();
    left.loss_cwnd_segments = Some(700);
    left.sent_bytes = Some(2_000_000);
    left.state = "ended".into();
    left.regret = Some(Regret { window_to_bdp: 0.1, early_us: 3_000_000, queue_us: Some(0) });
    let mut server = Server::with(vec![left], false);
    server.say(&BrokerMessage::Attached(
        r#"{"unreadable":null,"algorithms":[{"state":"attached","congestion_control":"onramp_search","version":"1","generation":"a","exits":{"loss":5},"outcomes":{"grow":7},"guard":{"tripped":null,"treated":{"flows":812,"retransmit_ratio_pct":1.5,"goodput_bps":8e6},"control":{"flows":9,"retransmit_ratio_pct":1,"goodput_bps":1},"comparisons":[{"metric":"goodput","difference_pct":-12.3,"interval_pct":[-15.0,-9.6],"margin_pct":-10.0}]}}],"costs":[{"congestion_control":"onramp_search","callback":"pkts_acked","calls":1000,"nanoseconds":500000}]}"#.into(),
    ));
    server.say(&BrokerMessage::StatusRead(1_700_000_000_250_000));
    while !server.get("/metrics").body().contains("onramp_status_last_success") {}
    server
}

#[test]
fn prometheus_finds_nothing_wrong_with_the_names() {
    let server = all();
    let response = server.get("/metrics");
    for accepted in
        ["", "Accept: */*\r\n", "Accept: text/plain;version=0.0.4;q=0.3\r\n", "Accept: text/html\r\n"]
    {
        let response = server.ask("GET /metrics", &format!("Host: localhost\r\n{accepted}"), "");
        assert!(response.head().contains("content-type: text/plain; version=0.0.4"), "{response:?}");
    }
    // The kinds that this format knows, each named as its samples are.
    let families = response.body().lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let mut kinds = BTreeSet::new();
    for (name, kind) in families {
        kinds.insert(kind);
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} {kind}");
    }
    assert_eq!(kinds, BTreeSet::from(["counter", "gauge", "histogram"]));
    assert!(!response.body().contains("# EOF") && !response.body().contains("# UNIT"), "{response:?}");
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = promtool else {
        // Past the harness, which keeps what a test prints that passes.
        let _ = std::io::stderr().write_all(b"SKIP: metrics: there is no promtool\n");
        return;
    };
    promtool.stdin.take().unwrap().write_all(response.body().as_bytes()).unwrap();
    let said = promtool.wait_with_output().unwrap();
    assert!(said.status.success() && said.stderr.is_empty(), "{said:?}: {response:?}");
}
