//! `onramp watch`: what happens to a flow, in order and with counts that agree; for several at once; and its ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_loader::AttachOptions;
use onramp_loader::algorithm::find;
use onramp_tests::Attachments;
use onramp_tests::bottleneck::bottleneck;
use onramp_tests::cli::{self, Ran, onramp};
use onramp_tests::sender::Sender;
use onramp_tests::telemetry::traces;
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{Data, Fate, Wire};
use serde_json::Value;

/// One way.
const DELAY: Duration = Duration::from_millis(10);

/// Consumers that are there now.
fn watchers() -> usize {
    onramp_loader::consumers().unwrap().iter().filter(|consumer| consumer.name == "watch").count()
}

/// `onramp watch` in progress; killed when dropped.
struct Watcher(Option<Child>);

impl Watcher {
    /// Starts it and waits until it is a consumer.
    fn start(arguments: &str) -> Self {
        let before = watchers();
        let mut command = cli::command(["watch"]);
        command.args(arguments.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let watcher = Self(Some(command.spawn().unwrap()));
        assert!(eventually(|| watchers() == before + 1), "it does not watch");
        watcher
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    fn signal(&mut self, signal: Signal) {
        kill(Pid::from_raw(self.child().id() as i32), signal).unwrap();
    }

    fn end(mut self) -> Ran {
        self.0.take().unwrap().wait_with_output().unwrap().into()
    }

    fn stdout(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.child().stdout.take().unwrap())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn rows(text: &str) -> Vec<Value> {
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.iter().all(|row| row["schema"] == 1), "{text}");
    rows
}

fn kinds(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["event"].as_str().unwrap()).collect()
}

/// A whole connection: slow start up to an exit by the algorithm, and the end.
fn flow(bytes: usize) {
    let wire = Wire::lay(DELAY, |_| Fate::Deliver);
    let mut sender = Sender::connect(wire, "onramp_fixed");
    sender.deliver(bytes);
}

fn attach(attachments: &Attachments) {
    let mut parameters = find("fixed").unwrap().parameters();
    parameters.set("exit_window_bytes", "60000").unwrap();
    attachments.attach(&AttachOptions::new(parameters));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_flow_is_reported_in_order_and_the_counts_agree() {
    let attachments = Attachments::lock();
    attach(&attachments);
    let mut watcher = Watcher::start("--json --level ack");
    flow(300_000);
    let mut out = watcher.stdout();
    let mut text = String::new();
    while !text.contains("\"event\":\"end\"") {
        assert_ne!(out.read_line(&mut text).unwrap(), 0, "{text}");
    }
    watcher.signal(Signal::SIGINT);
    out.read_to_string(&mut text).unwrap();
    watcher.end().ok();

    let rows = rows(&text);
    let kinds = kinds(&rows);
    let position =
        |kind: &str| kinds.iter().position(|one| *one == kind).unwrap_or_else(|| panic!("{kind}: {text}"));
    assert_eq!((position("flow"), position("restart")), (0, 1), "{kinds:?}");
    assert!(position("ack") < position("exit") && position("exit") < position("end"), "{kinds:?}");
    assert_eq!(position("end"), kinds.len() - 1);
    let sequence: Vec<u64> = rows.iter().map(|row| row["sequence"].as_u64().unwrap()).collect();
    assert!(sequence.windows(2).all(|pair| pair[1] == pair[0] + 1), "without a gap: {sequence:?}");
    assert!(rows.windows(2).all(|pair| pair[0]["at_us"].as_u64() <= pair[1]["at_us"].as_u64()));
    assert!(rows.iter().all(|row| row["flow"] == rows[0]["flow"] && row["algorithm"] == "fixed"));
    assert!(rows[0]["flow"].as_u64().unwrap() < 1 << 53, "not exact for all readers of JSON: {text}");

    let (start, exit, end) = (&rows[0], &rows[position("exit")], &rows[position("end")]);
    assert_eq!((&start["remote_address"], &start["again"]), (&"192.0.2.2".into(), &false.into()));
    assert_eq!(start["parameters"]["exit_window_bytes"], 60_000);
    assert_eq!(exit["exit"]["reason"], "algorithm");
    assert!(exit["exit"]["window_bytes"].as_u64().unwrap() >= 60_000, "{exit}");
    assert_eq!(exit["exit"], end["exit"]);
    assert!(end["limited"].is_string(), "{end}");
    // The kernel counts the FIN as a byte.
    assert!((300_000..=300_001).contains(&end["acknowledged_bytes"].as_u64().unwrap()), "{end}");
    let acks = || rows.iter().filter(|row| row["event"] == "ack");
    let of_rounds = |field: &str| -> u64 {
        let rounds = rows.iter().filter(|row| row["event"] == "round");
        rounds.map(|row| row[field].as_u64().unwrap()).sum()
    };
    assert!(of_rounds("acks") > 3 && of_rounds("acks") <= acks().count() as u64, "{kinds:?}");
    assert!(
        rows.iter().any(|row| row["event"] == "round" && row["pacing_rate_bytes_per_s"].is_u64()),
        "{text}"
    );
    assert!(of_rounds("acknowledged_bytes") <= end["acknowledged_bytes"].as_u64().unwrap(), "{end}");
    let asked = acks().filter(|row| !row["verdict_outcome"].is_null()).count() as u64;
    let counted: u64 = end["outcomes"].as_object().unwrap().values().map(|one| one.as_u64().unwrap()).sum();
    assert_eq!(asked, counted, "{end}");
}

#[test]
#[ignore = "in a guest: make test"]
fn two_watchers_hear_what_each_asked_for() {
    let attachments = Attachments::lock();
    attach(&attachments);
    let exits = Watcher::start("--json --count 3");
    let text = Watcher::start("--level round --for 3s");
    let elsewhere = Watcher::start("--json --for 3s dst 198.51.100.0/24");
    let not_ours = Watcher::start("--json --for 3s src 198.51.100.0/24");
    flow(300_000);
    let exits = exits.end().ok();
    assert_eq!(kinds(&rows(&exits)), ["flow", "exit", "end"], "{exits}");
    let text = text.end().ok();
    let words: Vec<&str> = text.lines().map(|line| line.split_whitespace().nth(2).unwrap()).collect();
    assert_eq!((words[0], words[1], *words.last().unwrap()), ("flow", "restart", "end"), "{text}");
    assert!(words.contains(&"round") && words.contains(&"exit") && !words.contains(&"ack"), "{text}");
    assert!(text.contains("-> 192.0.2.2:") && text.contains("algorithm at "), "{text}");
    assert_eq!((elsewhere.end().ok(), not_ours.end().ok()), (String::new(), String::new()));
}

#[test]
#[ignore = "in a guest: make test"]
fn what_an_early_exit_cost_is_reported_at_the_end_to_a_consumer_of_rounds() {
    let attachments = Attachments::lock();
    attach(&attachments);
    let exits = Watcher::start("--json --count 3");
    let rounds = Watcher::start("--json --level round --for 8s");
    let mut sender = Sender::connect(Wire::lay(DELAY, bottleneck(6_000_000, 300)), "onramp_fixed");
    sender.deliver(12_000_000);
    drop(sender);
    let end = |text: String| rows(&text).into_iter().find(|row| row["event"] == "end").expect("an end");
    assert!(end(exits.end().ok())["regret"].is_null());
    let reported = end(rounds.end().ok());
    let regret = &reported["regret"];
    let window = reported["exit"]["window_bytes"].as_f64().unwrap();
    let path = 6_000_000.0 * reported["min_rtt_us"].as_f64().unwrap() / 1e6;
    let of_path = window / path;
    let found = regret["window_to_bdp"].as_f64().unwrap();
    assert!(
        of_path < 0.9 && (0.9 * of_path..1.1 * of_path).contains(&found),
        "{found}, {of_path}: {reported}"
    );
    assert!(regret["early_us"].as_u64().unwrap() > 0 && regret["queue_us"] == 0, "{reported}");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_loss_is_reported_with_its_states() {
    let attachments = Attachments::lock();
    attachments.attach(&AttachOptions::new(find("plain").unwrap().parameters()));
    let watcher = Watcher::start("--json --level round --for 4s");
    let mut queue = bottleneck(1_500_000, 60);
    let wire = Wire::lay(DELAY, move |data: Data| if data.number == 60 { Fate::Drop } else { queue(data) });
    let mut sender = Sender::connect(wire, "onramp_plain");
    sender.deliver(400_000);
    drop(sender);
    let text = watcher.end().ok();
    let rows = rows(&text);
    let loss = rows.iter().position(|row| row["event"] == "loss").expect("a loss");
    let state = rows[loss..].iter().find(|row| row["event"] == "state").expect("a state after it");
    assert_eq!(state["to_state"], "recovery", "{text}");
    let exit = rows.iter().find(|row| row["event"] == "exit").expect("an exit");
    assert_eq!(exit["exit"]["reason"], "loss", "{text}");
    let fields =
        ["verdict_ssthresh_segments", "cwnd_segments", "base_ssthresh_segments", "acknowledged_bytes"];
    assert!(fields.iter().all(|field| rows[loss][field].as_u64().unwrap() > 0), "{}", rows[loss]);
}

#[test]
#[ignore = "in a guest: make test"]
fn every_end_is_clean() {
    let attachments = Attachments::lock();
    let before = traces();
    // The lease process notices the end by itself, a moment later.
    let nothing_left = || eventually(|| traces() == before);
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mut watcher = Watcher::start("");
        watcher.signal(signal);
        assert_eq!(watcher.end().ok(), "");
        assert!(nothing_left(), "{signal}: {:?}, before {before:?}", traces());
    }
    // The reader goes away, without and with events in progress.
    let mut watcher = Watcher::start("");
    drop(watcher.stdout());
    assert_eq!(watcher.end().code, Some(0));
    assert!(nothing_left(), "closed pipe: {:?}, before {before:?}", traces());
    attach(&attachments);
    let mut watcher = Watcher::start("--level ack --json");
    let mut out = watcher.stdout();
    flow(100_000);
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    drop(out);
    flow(300_000);
    let ran = watcher.end();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
}

#[test]
fn what_is_wrong_is_said() {
    for (arguments, said) in [
        ("--level off", "off"),
        ("--sample 0", "0"),
        ("--count 0", "0"),
        ("--for 10", "10"),
        ("dst 10.0.0.0/33", "0 to 32"),
        ("colour red", "not understood"),
    ] {
        let ran = onramp(&format!("watch {arguments}"));
        assert!(ran.code == Some(2) && ran.stderr.contains(said), "{arguments}: {ran:?}");
    }
}
