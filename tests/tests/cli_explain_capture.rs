//! `onramp explain` of a packet capture: flows that are known to wait for one thing, and what their packets show of it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_net::Namespace;
use onramp_tests::bottleneck::{bottleneck, long_wire_that_misleads_hystart, wire_that_loses_one};
use onramp_tests::cli::onramp;
use onramp_tests::connection::Connection;
use onramp_tests::guest;
use onramp_tests::sender::Sender;
use onramp_tests::wire::{Data, Fate, Wire};
use serde_json::Value;

const CONTROLS: [&str; 2] = ["cubic", "reno"];
const DELAY: Duration = Duration::from_millis(25);

/// tcpdump at an end of a wire.
struct Dump {
    child: Child,
    file: PathBuf,
}

impl Dump {
    fn start(place: &Namespace, file: PathBuf) -> Self {
        let mut command = place.command("tcpdump");
        let command = command
            .args(["-i", "wire0", "-s", "128", "--immediate-mode", "-Z", "root", "-U", "-w"])
            .arg(&file);
        let mut child = command.args(["tcp"]).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stderr.as_mut().unwrap());
        while !line.contains("listening") {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "tcpdump does not listen");
        }
        Self { child, file }
    }

    fn stop(mut self) -> PathBuf {
        // What it has not read yet would be lost.
        std::thread::sleep(Duration::from_secs(2));
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).unwrap();
        self.child.wait().unwrap();
        self.file
    }
}

/// What packets show of a flow, and what its socket knows.
struct Seen {
    flow: Value,
    retransmitted: u32,
    acknowledged: u64,
    near: PathBuf,
    far: PathBuf,
    _directory: tempfile::TempDir,
}

fn seen(wire: Wire, kind: &Connection, control: &str, send: impl FnOnce(&mut Sender)) -> Seen {
    let directory = tempfile::tempdir().unwrap();
    let near = Dump::start(&wire.near, directory.path().join("near.pcap"));
    let far = Dump::start(&wire.far, directory.path().join("far.pcap"));
    // The connection is this process's, and the default is the namespace's.
    wire.near.sysctl_set("net.ipv4.tcp_congestion_control", control).unwrap();
    let mut sender = Sender::connect_as(wire, kind);
    send(&mut sender);
    let info = sender.info();
    let (near, far) = (near.stop(), far.stop());
    let mut report = explained(&near);
    assert_eq!(report["source"], "capture");
    let flows = report["flows"].as_array_mut().unwrap();
    assert_eq!(flows.len(), 1, "{report}");
    let flow = flows.remove(0);
    let parts = flow["limited_by"].as_object().unwrap();
    let sum: u64 = parts.values().map(|us| us.as_u64().unwrap()).sum();
    assert_eq!(sum, flow["observed_us"].as_u64().unwrap(), "{flow}");
    let (retransmitted, acknowledged) = (info.retrans_total, info.bytes_acked);
    Seen { flow, retransmitted, acknowledged, near, far, _directory: directory }
}

fn explained(file: &Path) -> Value {
    serde_json::from_str(&onramp(&format!("--json explain {}", file.display())).ok()).unwrap()
}

#[track_caller]
fn is_limited(seen: &Seen, by: &str, cause: Option<&str>) {
    let verdict = &seen.flow["verdict"];
    let found = (verdict["limited"].as_str(), verdict["cause"].as_str());
    assert_eq!(found, (Some(by), cause), "{:#}", seen.flow);
    assert_eq!(seen.flow["retransmitted_segments"], seen.retransmitted, "{:#}", seen.flow);
    // The SYN counts as a byte.
    assert_eq!(seen.flow["acknowledged_bytes"].as_u64().unwrap() + 1, seen.acknowledged, "{:#}", seen.flow);
}

fn wire(fate: impl FnMut(Data) -> Fate + Send + 'static) -> Wire {
    Wire::lay(DELAY, fate)
}

#[test]
#[ignore = "in a guest: make test"]
fn what_limited_a_flow_shows_in_its_packets() {
    guest::required();
    for control in CONTROLS {
        let small = Connection { receive_buffer: Some(20_000), ..Connection::default() };
        let seen_small = seen(wire(|_| Fate::Deliver), &small, control, |sender| sender.deliver(700_000));
        is_limited(&seen_small, "receive_window", None);
        let portions = seen(wire(|_| Fate::Deliver), &Connection::default(), control, |sender| {
            for _ in 0..20 {
                sender.deliver(10_000);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        is_limited(&portions, "application", None);
        let full = seen(wire(bottleneck(500_000, 100)), &Connection::default(), control, |sender| {
            sender.deliver(1_500_000);
        });
        is_limited(&full, "path", None);
        let rate = full.flow["given"]["rate_bytes_per_second"].as_u64().unwrap();
        assert!((400_000..600_000).contains(&rate), "{:#}", full.flow);
        // The path shows in the same packets, whether or not it holds for every control.
        let fitted = onramp(&format!("--json sim path {} --control {control}", full.near.display()));
        assert!(matches!(fitted.code, Some(0 | 5)), "{fitted:?}");
        let fitted: Value = serde_json::from_str(&fitted.stdout).unwrap();
        let rate = fitted["rate_bps"].as_u64().unwrap();
        assert!((3_600_000..4_800_000).contains(&rate), "{fitted:#}");
        assert!(fitted["base_rtt_us"].as_u64().unwrap().abs_diff(50_000) < 5_000, "{fitted:#}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn the_end_of_slow_start_and_its_reason_show_in_packets_and_algorithms_can_be_run_over_them() {
    guest::required();
    let long = long_wire_that_misleads_hystart();
    let early = seen(long, &Connection::default(), "cubic", |sender| sender.deliver(6_000_000));
    is_limited(&early, "congestion_avoidance", Some("algorithm"));
    let exit = &early.flow["slow_start"]["exit"];
    assert!((30..=80).contains(&exit["cwnd_segments"].as_u64().unwrap()), "{exit}");
    assert!(exit["lost_us"].as_u64().unwrap() > 0, "{exit}");
    assert_eq!(early.flow["would_have"]["slow_start"], "gone_on");
    let replayed =
        onramp(&format!("--json replay {} --algorithm hystart --beyond", early.near.display())).ok();
    let replayed: Value = serde_json::from_str(&replayed).unwrap();
    let of_hystart = &replayed["flows"][0]["findings"][0]["exit"];
    let window = of_hystart["cwnd_segments"].as_u64().unwrap_or_else(|| panic!("{replayed:#}"));
    assert!((20..=80).contains(&window), "{of_hystart}");
    // At the other end nothing says what the sender waited for.
    onramp(&format!("explain {}", early.far.display())).refused(2);
    for control in CONTROLS {
        let lost =
            seen(wire_that_loses_one(), &Connection::default(), control, |sender| sender.deliver(4_000_000));
        is_limited(&lost, "congestion_avoidance", Some("loss"));
        assert_eq!(lost.retransmitted, 1);
    }
}
