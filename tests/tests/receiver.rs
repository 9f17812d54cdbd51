//! What kernels offer as receivers, by `onramp doctor --receiver`: the same as committed, and as the simulator has it.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use onramp_lab::experiment::Clock;
use onramp_lab::sim::receiver_limit;
use onramp_net::Namespace;
use onramp_net::receiver::Plan;
use onramp_profiles::host::{HEADER_BYTES, HostSpec};
use onramp_tests::Attachments;
use onramp_tests::cli::{self, inside, onramp};
use onramp_tests::traffic::{eventually, namespace};
use serde_json::Value;

const RMEM: &str = "net.ipv4.tcp_rmem";
const STOCK: &str = "4096 131072 6291456";
const GEO: &str = "--rate 150mbit --rtt 600ms";
/// Rows of docs/evaluation/receivers.csv.
const COMMITTED: &str = include_str!("../../docs/evaluation/receivers.csv");
/// Windows and times of another guest may be so far apart, as a part: where in a millisecond its clock was is chance.
const NEAR: f64 = 0.03;
/// Whether the buffer grows within the first round or after it depends on when the reader has read, and moves every later window.
const READER: f64 = 0.35;

/// `6.12`.
fn series() -> String {
    let release = Clock::Machine.origin().kernel;
    release.split(['.', '-']).take(2).collect::<Vec<_>>().join(".")
}

/// A namespace with Linux's own buffers.
fn stock() -> Namespace {
    let place = namespace();
    place.sysctl_set(RMEM, STOCK).unwrap();
    place
}

fn measured(place: &Namespace, path: &str) -> Value {
    serde_json::from_str(&inside(place, &format!("--json doctor --receiver {path}")).ok()).unwrap()
}

fn near(one: f64, two: f64) -> bool {
    (one - two).abs() <= NEAR * one.max(two)
}

/// Window by round, `syn` and `first` among them.
fn windows(measured: &Value) -> BTreeMap<String, f64> {
    let at = |name: &str| measured[name].as_f64().unwrap();
    let mut windows = BTreeMap::from([
        ("syn".to_owned(), at("syn_window_bytes")),
        ("first".to_owned(), at("first_window_bytes")),
    ]);
    for (number, round) in measured["rounds"].as_array().unwrap().iter().enumerate() {
        windows.insert(number.to_string(), round["window_bytes"].as_f64().unwrap());
    }
    windows
}

#[test]
#[ignore = "in a guest: make test"]
fn a_receiver_is_what_was_committed_of_this_kernel() {
    let _attachments = Attachments::lock();
    let (place, series) = (stock(), series());
    let report = measured(&place, GEO);
    println!("{report}");
    let mut rows = 0;
    for row in COMMITTED.lines().skip(1) {
        let row: Vec<_> = row.split(',').collect();
        let [kernel, _, setting, round, window, ..] = row[..] else { panic!("{row:?}") };
        // Which rounds come last depends on the reader most of all.
        if kernel != series || round.parse::<u32>().is_ok_and(|round| round > 3) {
            continue;
        }
        let now = windows(&report[setting])[round];
        let committed: f64 = window.parse().unwrap();
        let alike = (now - committed).abs() <= READER * now.max(committed);
        assert!(alike, "{setting} round {round}: {now} for {window}");
        rows += 1;
    }
    assert!(rows > 8, "{rows} rows of {series}");
    // Nothing of the namespace itself has changed.
    assert_eq!(place.sysctl_get(RMEM).unwrap().split_whitespace().collect::<Vec<_>>().join(" "), STOCK);
}

#[test]
#[ignore = "in a guest: make test"]
fn whether_a_larger_buffer_opens_the_first_window_is_what_was_measured() {
    let _attachments = Attachments::lock();
    let report = measured(&stock(), GEO);
    let first = |setting: &str| report[setting]["first_window_bytes"].as_u64().unwrap();
    // Linux 6.10.
    let opens = series() != "6.1";
    assert_eq!(report["opens_first_window"], opens);
    assert_eq!(first("raised") > 10_000_000, opens, "{report}");
    let seconds = |setting: &str| report[setting]["transfers"][1]["seconds"].as_f64().unwrap();
    assert!(seconds("raised") < seconds("now"), "{report}");
    assert!(report["advice"].is_string());
    for transfer in report["now"]["transfers"].as_array().unwrap() {
        let [all, line, cost] =
            ["seconds", "line_seconds", "cost_seconds"].map(|name| transfer[name].as_f64().unwrap());
        assert!(line > 0.0 && (line + cost - all).abs() < 1e-6, "{transfer}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn the_larger_buffer_is_set_on_request_and_undone() {
    let _attachments = Attachments::lock();
    let place = stock();
    let value = || place.sysctl_get(RMEM).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let fix = format!("--json doctor --receiver {GEO} --fix");
    let planned = inside(&place, &format!("{fix} --dry-run")).ok();
    assert!(planned.contains(RMEM), "{planned}");
    assert_eq!(value(), STOCK);
    let fixed: Value = serde_json::from_str(&inside(&place, &fix).ok()).unwrap();
    assert_eq!(fixed["changed"][0]["set"], value());
    assert_ne!(value(), STOCK);
    // Then there is nothing to gain.
    let report = measured(&place, GEO);
    assert_eq!((&report["raised"], &report["advice"]), (&Value::Null, &Value::Null));
    let again: Value = serde_json::from_str(&inside(&place, &fix).ok()).unwrap();
    assert_eq!(again["changed"].as_array().unwrap().len(), 0);
    onramp(fixed["undo"].as_str().unwrap().strip_prefix("onramp ").unwrap()).ok();
    assert_eq!(value(), STOCK);
}

#[test]
#[ignore = "in a guest: make test"]
fn nothing_stays_behind_one_that_is_killed() {
    let _attachments = Attachments::lock();
    let all = || Namespace::all().unwrap().len();
    let before = all();
    let words = format!("doctor --receiver {GEO}");
    let mut child = cli::command(words.split(' ')).spawn().unwrap();
    assert!(eventually(|| all() > before));
    sleep(Duration::from_millis(700));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(eventually(|| all() == before), "{} namespaces for {before}", all());
}

#[test]
#[ignore = "in a guest: make test"]
fn who_may_not_and_what_is_no_path_are_refused() {
    let _attachments = Attachments::lock();
    let ran: cli::Ran =
        cli::as_nobody("").args(["doctor", "--receiver"]).current_dir("/").output().unwrap().into();
    assert_eq!(ran.code, Some(4), "{ran:?}");
    onramp("doctor --receiver --rate 1mbit --rtt 0s").refused(2);
    onramp("doctor --receiver --dry-run").refused(2);
    assert_eq!(onramp("doctor --receiver --fix --also hystart").code, Some(2));
}

/// Segments of an object.
const SEGMENTS: u64 = 3_450;

#[test]
#[ignore = "in a guest: make test"]
fn the_simulators_receiver_is_the_kernels() {
    let _attachments = Attachments::lock();
    // The simulator's is of Linux 6.10 to 6.15.
    if series() != "6.12" {
        return;
    }
    for (rate_bps, rtt_ms) in [(150_000_000, 600), (100_000_000, 80), (20_000_000, 40)] {
        for initial in [131_072, 1_048_576, 33_554_432] {
            let host = HostSpec::new([4_096, initial, 67_108_864], [4_096, 131_072, 67_108_864]);
            let bytes = SEGMENTS * u64::from(host.mss());
            let plan = Plan {
                rate_bps,
                rtt: Duration::from_millis(rtt_ms),
                bytes,
                limit: Duration::from_secs(30),
                tcp_rmem: Some(format!("4096 {initial} 67108864")),
            };
            let offered = plan.measure().unwrap();
            for segments in [100, 691, SEGMENTS] {
                let kernel = offered.time_of(segments * u64::from(host.mss())).unwrap().as_secs_f64();
                let packet = u64::from(host.mss() + HEADER_BYTES) * 8;
                let line = Duration::from_secs_f64(packet as f64 / rate_bps as f64);
                let simulated = receiver_limit(&host, segments, plan.rtt, line).as_secs_f64();
                println!("{rate_bps} {rtt_ms} {initial} {segments}: {kernel:.4} {simulated:.4}");
                assert!(near(kernel, simulated), "{initial} over {rtt_ms} ms: {kernel} {simulated}");
            }
        }
    }
}
