// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Downloads over the emulator with the kernel's own controls, and what happens when something breaks.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use onramp_lab::emulator::Way;
use onramp_lab::experiment::{Amount, Arm, Competitor, LinkChange, Plan, Tool, compare, run_once};
use onramp_lab::link::Change;
use onramp_profiles::Profile;
use onramp_profiles::host::HostSpec;

/// 50 Mb/s, 40 ms, a queue of one BDP.
fn plan(directory: Option<PathBuf>) -> Plan {
    let profile = Profile {
        version: 1,
        name: "test".into(),
        about: "a short path".into(),
        algorithm: "plain".into(),
        telemetry: None,
        params: Default::default(),
        link: common::link(50_000_000, 20_000, 170),
        host: common::host(),
    };
    Plan { amount: Amount::Bytes(5_000_000), repetitions: 2, directory, ..Plan::new(profile) }
}

/// A directory of this test's own, gone at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onramp-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn script(scratch: &Scratch, text: &str) -> PathBuf {
    let path = scratch.0.join("iperf3");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
#[ignore = "in a guest: make test"]
fn a_download_takes_what_the_link_allows_and_its_numbers_agree() {
    let run = run_once(&plan(None), &Arm::stock("cubic"), 1).unwrap();
    let ideal = 5e6 * 8.0 / 50e6;
    assert!(run.seconds > ideal * 0.95 && run.seconds < ideal * 4.0, "{run:?}");
    // The emulator saw the same transfer.
    let link_seconds = run.link_seconds.unwrap();
    assert!((run.seconds - link_seconds).abs() < 0.1 * run.seconds + 0.05, "{run:?}");
    assert!(run.received_bytes >= 5_000_000);
    assert!(run.min_rtt_us.unwrap() >= 40_000 && run.max_rtt_us >= 40_000, "{run:?}");
    // Nothing is lost but by the queue.
    assert!(run.retransmitted_segments >= run.queue_drops.min(1), "{run:?}");
    let health = run.health.unwrap();
    assert_eq!((health.tun_drops, health.write_failures), (0, 0));
}

/// With either tool: the receiver's time, from the start of the test to the last byte, and what was lost meanwhile.
#[test]
#[ignore = "in a guest: make test"]
fn both_tools_give_the_same_result() {
    // A queue that loses some packets, and one that loses none.
    for (control, amount, queue) in [
        ("reno", Amount::Bytes(5_000_000), 170),
        ("reno", Amount::Bytes(5_000_000), 10_000),
        ("reno", Amount::Seconds(2), 170),
    ] {
        let run = |tool| {
            let mut plan = Plan { tool, amount, ..plan(None) };
            plan.profile.link = common::link(50_000_000, 20_000, queue);
            run_once(&plan, &Arm::stock(control), 1).unwrap()
        };
        let (own, other) = (run(Tool::Builtin), run(Tool::Iperf3));
        assert!(own.valid && other.valid, "{:?} {:?}", own.invalid_reason, other.invalid_reason);
        let close = |one: f64, other: f64| (one - other).abs() <= 0.01 * one.max(other);
        assert!(close(own.seconds, other.seconds), "{own:?}\n{other:?}");
        assert!(close(own.goodput_bps, other.goodput_bps), "{own:?}\n{other:?}");
        let (lost, others) = (own.retransmitted_segments, other.retransmitted_segments);
        assert!(lost.abs_diff(others) <= 10 + others / 20, "{own:?}\n{other:?}");
        // The queue at the end: as large, so the receive buffer has grown as much.
        assert!(own.max_rtt_us.abs_diff(other.max_rtt_us) <= other.max_rtt_us / 20, "{own:?}\n{other:?}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_transfer_that_does_not_end_is_given_up() {
    let plan = Plan {
        amount: Amount::Bytes(1_000_000_000_000),
        timeout: Some(Duration::from_secs(1)),
        ..plan(None)
    };
    let run = run_once(&plan, &Arm::stock("reno"), 1).unwrap();
    assert_eq!((run.valid, run.cut_off), (false, true), "{run:?}");
    // The limit counts from the opening, the time from the first data.
    assert!(run.seconds > 0.5 && run.seconds <= 1.0, "{run:?}");
    assert_eq!(
        run.goodput_bps,
        run.received_bytes as f64 * 8.0 / run.seconds,
        "what has arrived, not what was planned"
    );
}

#[test]
#[ignore = "in a guest: make test"]
fn a_comparison_leaves_files_that_describe_it() {
    let scratch = Scratch::new("compare");
    let arms = [Arm::stock("cubic"), Arm::stock("reno")];
    let mut finished = 0;
    let comparison = compare(&plan(Some(scratch.0.clone())), &arms, |progress| {
        finished += u32::from(matches!(progress, onramp_lab::experiment::Progress::Finished { .. }));
    })
    .unwrap();
    assert!(finished >= 4);
    assert_eq!(comparison.arms.len(), 2);
    let json = |path: &str| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(scratch.0.join(path)).unwrap()).unwrap()
    };
    let manifest = json("manifest.json");
    assert_eq!(manifest["seed"], 1);
    assert!(manifest["made_in"]["kernel"].is_string());
    assert_eq!(
        (&manifest["tool"], &manifest["iperf3_version"]),
        (&"builtin".into(), &serde_json::Value::Null)
    );
    let result = json("result.json");
    assert_eq!(
        (&result["schema"], &result["profile"], &result["bytes"]),
        (&1.into(), &"test".into(), &5_000_000.into())
    );
    let run = &result["arms"][0]["runs"][0];
    for key in
        ["valid", "seconds", "goodput_bps", "retransmitted_segments", "queue_drops", "max_rtt_us", "exit"]
    {
        assert!(!run[key].is_null() || key == "exit", "{key}: {run}");
    }
    for file in ["plot.svg", "000-cubic/flow.csv", "000-cubic/link.csv"] {
        assert!(fs::metadata(scratch.0.join(file)).unwrap().len() > 500, "{file}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn runs_at_once_yield_what_runs_in_turn_do_and_end_together_on_an_error() {
    let scratch = Scratch::new("jobs");
    let arms = [Arm::stock("cubic"), Arm::stock("reno")];
    let plan = Plan { jobs: 3, ..plan(Some(scratch.0.clone())) };
    let (mut running, mut most) = (0, 0);
    let comparison = compare(&plan, &arms, |progress| {
        running += if matches!(progress, onramp_lab::experiment::Progress::Started { .. }) { 1 } else { -1 };
        most = most.max(running);
    })
    .unwrap();
    assert_eq!((running, most), (0, 3), "runs in progress at the end, and at most");
    for arm in &comparison.arms {
        assert!(arm.valid_runs > 0, "{arm:?}");
        assert!(arm.runs.is_sorted_by_key(|run| run.seed), "runs are in order: {arm:?}");
        assert!(arm.runs.iter().all(|run| run.machine_cpu_seconds.is_none()), "{arm:?}");
    }
    let unknown = [Arm::stock("cubic"), Arm::stock("no_such_cc")];
    let error = compare(&plan, &unknown, |_| {}).unwrap_err().to_string();
    assert!(error.contains("no_such_cc"), "{error}");
}

#[test]
#[ignore = "in a guest: make test"]
fn an_unknown_control_and_a_missing_iperf3_are_clear_errors() {
    let error = run_once(&plan(None), &Arm::stock("no_such_cc"), 1).unwrap_err().to_string();
    assert!(error.contains("no_such_cc") && error.contains("reno"), "{error}");
    let plan = Plan { tool: Tool::Iperf3, iperf3: "/no/such/iperf3".into(), ..plan(None) };
    let error = run_once(&plan, &Arm::stock("cubic"), 1).unwrap_err().to_string();
    assert_eq!(error, "cannot find /no/such/iperf3: install iperf3 (3.12 is known to work)");
}

#[test]
#[ignore = "in a guest: make test"]
fn an_iperf3_that_dies_in_mid_run_is_reported_and_the_others_go_on() {
    let scratch = Scratch::new("dying");
    // The server is killed by the script that stands for it; the client then has no peer.
    let text =
        "#!/bin/sh\ncase \"$*\" in *-s*) timeout -s KILL 0.6 iperf3 \"$@\";; *) exec iperf3 \"$@\";; esac\n";
    let program = script(&scratch, text);
    let plan = Plan {
        tool: Tool::Iperf3,
        iperf3: program,
        amount: Amount::Bytes(50_000_000),
        repetitions: 2,
        ..plan(Some(scratch.0.join("runs")))
    };
    let comparison = compare(&plan, &[Arm::stock("cubic")], |_| {}).unwrap();
    let runs = &comparison.arms[0].runs;
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert!(!run.valid, "{run:?}");
        let reason = run.invalid_reason.as_ref().unwrap();
        assert!(reason.contains("iperf3"), "{reason}");
    }
    assert!(onramp_lab::table::comparison(&comparison).contains("(cubic seed 1"));
}

#[test]
#[ignore = "in a guest: make test"]
fn an_iperf3_that_does_not_begin_or_does_not_end_is_reported() {
    let scratch = Scratch::new("hanging");
    let run = |text| {
        let plan = Plan {
            tool: Tool::Iperf3,
            iperf3: script(&scratch, text),
            timeout: Some(Duration::from_secs(1)),
            ..plan(None)
        };
        run_once(&plan, &Arm::stock("cubic"), 1)
    };
    let error = run("#!/bin/sh\necho no luck >&2; exit 1\n").unwrap_err().to_string();
    assert!(error.contains("did not listen") && error.contains("no luck"), "{error}");
    let run = run("#!/bin/sh\ncase \"$*\" in *-s*) exec iperf3 \"$@\";; *) exec sleep 60;; esac\n").unwrap();
    assert_eq!((run.valid, run.cut_off, run.seconds), (false, true, 1.0), "{run:?}");
}

#[test]
#[ignore = "in a guest: make test"]
fn several_flows_share_the_link_and_a_competitor_keeps_something() {
    let competitor = Some(Competitor { congestion_control: "reno".into(), lead_seconds: 1 });
    let stagger = Duration::from_millis(500);
    let amount = Amount::Seconds(3);
    let plan = Plan { amount, flows: 3, stagger, competitor, objects: vec![100_000, u64::MAX], ..plan(None) };
    let run = run_once(&plan, &Arm::stock("cubic"), 1).unwrap();
    assert_eq!(run.flows.len(), 3);
    let sum: u64 = run.flows.iter().map(|flow| (flow.goodput_bps * flow.seconds / 8.0) as u64).sum();
    assert!(sum.abs_diff(run.received_bytes) <= 3, "{run:?}");
    // The last one begins a second after the first.
    assert!(run.seconds >= 3.9 && run.seconds < 6.0, "{run:?}");
    let fairness = run.fairness.unwrap();
    assert!(fairness > 1.0 / 3.0 && fairness <= 1.0, "{fairness}");
    let kept = run.competitor.unwrap();
    assert!(
        kept.share > 0.02 && kept.share < 0.98 && kept.goodput_before_bps > kept.goodput_bps / 10.0,
        "{kept:?}"
    );
    assert!(run.goodput_bps + kept.goodput_bps < 55e6, "{run:?}");
    let objects: Vec<_> = run.measures.objects.iter().map(|object| object.seconds).collect();
    assert!(objects[0].unwrap() < 3.0 && objects[1].is_none(), "{objects:?}");
    let health = run.health.unwrap();
    assert!(run.machine_cpu_seconds.unwrap() > 0.0 && health.cpu_seconds > 0.0, "{health:?}");
}

#[test]
#[ignore = "in a guest: make test"]
fn the_hosts_of_an_arm_are_its_own_and_the_link_changes_when_asked() {
    let bytes = |arm: &Arm, changes: Vec<LinkChange>| {
        let plan = Plan { amount: Amount::Seconds(3), changes, ..plan(None) };
        run_once(&plan, arm, 1).unwrap().received_bytes as f64
    };
    let plain = bytes(&Arm::stock("cubic"), Vec::new());
    // A window of 8 KiB over 40 ms is 1.6 Mb/s.
    let small = HostSpec {
        tcp_moderate_rcvbuf: false,
        ..HostSpec::new([4_096, 16_384, 16_384], [4_096, 16_384, 16_384])
    };
    let limited = bytes(&Arm { host: Some(small), ..Arm::stock("cubic") }, Vec::new());
    assert!(limited < plain / 4.0, "{limited} {plain}");
    let change = Change { rate_bps: Some(5_000_000), ..Change::default() };
    let slow = LinkChange { at: Duration::from_millis(500), way: Way::Forward, change };
    let slowed = bytes(&Arm::stock("cubic"), vec![slow]);
    assert!(slowed < plain / 2.0, "{slowed} {plain}");
}

mod child {
    use super::{common, fs};

    /// What [`super::nothing_is_left_behind_a_killed_process`] kills: hosts with a child, waiting for ever.
    #[test]
    #[ignore = "run by another test, as a process to kill"]
    fn victim() {
        let hosts = onramp_lab::host::Hosts::set_up(&common::host(), &common::link(1_000_000, 1, 10), 1, 0);
        let hosts = hosts.unwrap();
        let mut child = hosts.sender().command("sleep").arg("600").spawn().unwrap();
        let cookie = hosts.sender().cookie().unwrap();
        let report = std::env::var("ONRAMP_TEST_REPORT").unwrap();
        fs::write(report, format!("{} {cookie}", child.id())).unwrap();
        child.wait().unwrap();
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn nothing_is_left_behind_a_killed_process() {
    let scratch = Scratch::new("victim");
    let report = scratch.0.join("report");
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "child::victim"])
        .env("ONRAMP_TEST_REPORT", &report)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let until = |condition: &dyn Fn() -> bool| {
        (0..500).any(|_| {
            condition() || {
                std::thread::sleep(Duration::from_millis(20));
                false
            }
        })
    };
    assert!(until(&|| fs::read_to_string(&report).is_ok_and(|text| text.contains(' '))));
    let text = fs::read_to_string(&report).unwrap();
    let (pid, cookie) = text.split_once(' ').unwrap();
    let cookie: u64 = cookie.parse().unwrap();
    let namespace_exists =
        || onramp_net::Namespace::all().unwrap().iter().any(|found| found.cookie().ok() == Some(cookie));
    assert!(namespace_exists());
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    victim.kill().unwrap();
    victim.wait().unwrap();
    // The orphan is reaped by init, whenever it gets to it: a zombie has no namespace either.
    let gone = || fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "));
    assert!(until(&gone), "the child survives");
    assert!(until(&|| !namespace_exists()), "the namespace survives");
}
