//! `onramp explain`: flows that are known to wait for one thing, under the kernel's controls, and what it says of them.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{setsockopt, sockopt::SndBuf};
use nix::unistd::Pid;
use onramp_net::Namespace;
use onramp_tests::bottleneck::{bottleneck, long_wire_that_misleads_hystart, wire_that_loses_one};
use onramp_tests::cli::{Ran, as_nobody, binary, inside};
use onramp_tests::connection::Connection;
use onramp_tests::guest;
use onramp_tests::sender::Sender;
use onramp_tests::traffic::{Transfer, namespace};
use onramp_tests::wire::{Data, Fate, Wire};
use serde_json::Value;

const CONTROLS: [&str; 3] = ["cubic", "reno", "bbr"];
/// One way.
const DELAY: Duration = Duration::from_millis(25);

/// What it says while `work` is done in this namespace.
fn explained<T>(place: &Namespace, arguments: &str, work: impl FnOnce() -> T) -> Value {
    let mut command = place.command(binary());
    let command = command.args(["--json", "explain"]).args(arguments.split_whitespace());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("sampling"), "{line}");
    work();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The flow of a sender while it sends; the parts add up.
fn flow(mut sender: Sender, send: impl FnOnce(&mut Sender)) -> Value {
    let place = sender.wire.near.clone();
    let filter = format!("--for 10m src {}", sender.stream.local_addr().unwrap());
    let mut report = explained(&place, &filter, || send(&mut sender));
    let flows = report["flows"].as_array_mut().unwrap();
    assert_eq!(flows.len(), 1, "{report}");
    let flow = flows.remove(0);
    let parts = flow["limited_by"].as_object().unwrap();
    let sum: u64 = parts.values().map(|us| us.as_u64().unwrap()).sum();
    assert_eq!(sum, flow["observed_us"].as_u64().unwrap(), "{flow}");
    assert!(parts.keys().eq(report["known_by"].as_object().unwrap().keys()), "{report}");
    flow
}

#[track_caller]
fn is_limited(flow: &Value, by: &str, cause: Option<&str>) {
    let verdict = &flow["verdict"];
    let found = (verdict["limited"].as_str(), verdict["cause"].as_str());
    assert_eq!(found, (Some(by), cause), "{flow:#}");
    assert_eq!(flow["limited"], by);
    assert!(verdict["percent"].as_u64().unwrap() >= 50, "{flow:#}");
}

fn wire(fate: impl FnMut(Data) -> Fate + Send + 'static) -> Wire {
    Wire::lay(DELAY, fate)
}

#[test]
#[ignore = "in a guest: make test"]
fn a_small_receive_buffer_is_named() {
    guest::required();
    for control in CONTROLS {
        let kind = Connection { receive_buffer: Some(20_000), ..Connection::default() };
        let sender = Sender::connect_as(wire(|_| Fate::Deliver), &kind);
        sender.choose(control);
        let flow = flow(sender, |sender| sender.deliver(700_000));
        is_limited(&flow, "receive_window", None);
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_small_send_buffer_is_named() {
    guest::required();
    for control in CONTROLS {
        let sender = Sender::connect(wire(|_| Fate::Deliver), control);
        setsockopt(&sender.stream, SndBuf, &10_000).unwrap();
        is_limited(&flow(sender, |sender| sender.deliver(1_500_000)), "send_buffer", None);
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn an_application_that_writes_in_portions_is_named() {
    guest::required();
    for control in CONTROLS {
        let flow = flow(Sender::connect(wire(|_| Fate::Deliver), control), |sender| {
            for _ in 0..20 {
                sender.send(10_000);
                thread::sleep(Duration::from_millis(100));
            }
        });
        is_limited(&flow, "application", None);
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_rate_that_the_application_has_set_is_named() {
    guest::required();
    for control in CONTROLS {
        let sender = Sender::connect(wire(|_| Fate::Deliver), control);
        sender.pace(100_000);
        is_limited(&flow(sender, |sender| sender.deliver(200_000)), "pacing", None);
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_path_that_is_full_is_named() {
    guest::required();
    for control in CONTROLS {
        let flow = flow(Sender::connect(wire(bottleneck(500_000, 100)), control), |sender| {
            sender.deliver(1_500_000);
        });
        is_limited(&flow, "path", None);
        let rate = flow["given"]["rate_bytes_per_second"].as_u64().unwrap();
        assert!((400_000..600_000).contains(&rate), "{flow}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_slow_start_that_hystart_ends_early_on_a_long_path_is_named_with_its_window_and_cost() {
    guest::required();
    let long = long_wire_that_misleads_hystart();
    let flow = flow(Sender::connect(long, "cubic"), |sender| sender.deliver(6_000_000));
    is_limited(&flow, "congestion_avoidance", Some("algorithm"));
    let exit = &flow["slow_start"]["exit"];
    assert_eq!((&exit["reason"], &exit["algorithm"]), (&"algorithm".into(), &"hystart".into()), "{exit}");
    let window = exit["cwnd_segments"].as_u64().unwrap();
    assert!((30..=80).contains(&window), "{exit}");
    assert!(exit["window_to_bdp"].as_f64().unwrap() < 0.9, "{exit}");
    assert!(exit["lost_us"].as_u64().unwrap() > 0, "{exit}");
    let resolution = exit["resolution_us"].as_u64().unwrap();
    assert!(resolution > 0 && resolution < exit["at_us"].as_u64().unwrap(), "{exit}");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_loss_is_named_where_the_control_reduces_its_window_for_it() {
    guest::required();
    for control in ["cubic", "reno"] {
        let flow = flow(Sender::connect(wire_that_loses_one(), control), |sender| sender.deliver(4_000_000));
        is_limited(&flow, "congestion_avoidance", Some("loss"));
        assert_eq!(flow["slow_start"]["exit"]["reason"], "loss", "{flow}");
        assert_eq!(flow["retransmitted_segments"], 1);
    }
    let mut at_rate = bottleneck(500_000, 100);
    let fate = move |data: Data| if data.number == 300 { Fate::Drop } else { at_rate(data) };
    let flow = flow(Sender::connect(wire(fate), "bbr"), |sender| sender.deliver(1_500_000));
    is_limited(&flow, "path", None);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_threshold_of_an_earlier_connection_is_named() {
    guest::required();
    for control in ["cubic", "reno"] {
        let long =
            Wire::lay(
                Duration::from_millis(50),
                |data| {
                    if data.number == 60 { Fate::Drop } else { Fate::Deliver }
                },
            );
        long.sysctl("net.ipv4.tcp_no_metrics_save", "0");
        long.sysctl("net.ipv4.tcp_no_ssthresh_metrics_save", "0");
        let mut first = Sender::connect(long, control);
        first.deliver(300_000);
        let Sender { wire, stream, .. } = first;
        drop(stream);
        thread::sleep(DELAY * 20);
        let flow = flow(Sender::connect(wire, control), |sender| sender.deliver(2_000_000));
        is_limited(&flow, "congestion_avoidance", Some("cached_ssthresh"));
        assert_eq!((&flow["from_begin"], &flow["retransmitted_segments"]), (&true.into(), &0.into()));
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn flows_of_a_process_and_its_children_are_explained_where_it_runs_and_others_are_refused() {
    guest::required();
    let place = namespace();
    let start = |script: &str| place.command("bash").args(["-c", script]).spawn().unwrap();
    let mut server = start("exec socat -u TCP-LISTEN:9000,fork OPEN:/dev/null");
    let mut client = start(
        "for i in $(seq 60); do head -c 10000 /dev/zero; sleep 0.1; done | socat -u STDIN TCP:127.0.0.1:9000,retry=50,interval=0.1",
    );
    let mut other = place.command("sleep").arg("1000").spawn().unwrap();
    let here = Namespace::current().unwrap();
    let of = |pid: u32| explained(&here, &format!("--pid {pid}"), || thread::sleep(Duration::from_secs(3)));
    let report = of(client.id());
    let [flow] = &report["flows"].as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!((&flow["remote_port"], &flow["limited"]), (&9000.into(), &"application".into()), "{report}");
    assert_eq!((&report["received_only"], &flow["ended"]), (&0.into(), &false.into()), "{report}");
    assert_eq!(of(other.id())["flows"], Value::Array(Vec::new()));
    assert!(client.wait().unwrap().success());
    for child in [&mut server, &mut other] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(inside(&place, &format!("explain --pid {}", other.id())).refused(2).contains("--pid"));
    assert_eq!(inside(&place, "explain --for never").code, Some(2));
    inside(&place, "explain cwnd > 10").refused(2);
    let as_nobody = |arguments: &[&str]| Ran::from(as_nobody("").args(arguments).output().unwrap());
    assert!(as_nobody(&["explain", "--for", "1s"]).ok().contains("sampled every"));
    as_nobody(&["explain", "--pid", "1"]).refused(4);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_commands_connections_are_explained_and_its_exit_code_is_kept() {
    guest::required();
    let wire = Wire::lay(DELAY, |_| Fate::Deliver);
    let mut listener = wire.far.command("socat");
    let mut listener = listener.args(["-u", "TCP-LISTEN:9000,fork", "OPEN:/dev/null"]).spawn().unwrap();
    let script = "for i in $(seq 50); do head -c 300000 /dev/zero | socat -u STDIN TCP:192.0.2.2:9000 && exit 7; sleep 0.1; done";
    let mut command = wire.near.command(binary());
    let ran = command.args(["--json", "explain", "--", "bash", "-c", script]).output().unwrap();
    listener.kill().unwrap();
    listener.wait().unwrap();
    assert_eq!(ran.status.code(), Some(7), "{ran:?}");
    let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let flow = &report["flows"][0];
    assert_eq!((&flow["remote_port"], &flow["from_begin"]), (&9000.into(), &true.into()), "{report}");
    assert_eq!(inside(&wire.near, "explain -- /nonexistent").code, Some(127));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_flow_that_is_followed_is_printed_when_it_ends() {
    guest::required();
    let place = namespace();
    let mut command = place.command(binary());
    let mut child = command
        .args(["--json", "explain", "--follow"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..2 {
        let transfer = Transfer::start(&place, 100_000);
        thread::sleep(Duration::from_secs(1));
        drop(transfer);
        line.clear();
        out.read_line(&mut line).unwrap();
        let flow: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&flow["schema"], &flow["ended"]), (&1.into(), &true.into()), "{flow}");
        assert_eq!(flow["limited"], "application", "{flow}");
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    assert!(child.wait().unwrap().success());
}
