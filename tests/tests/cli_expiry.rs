//! `onramp attach --for` and `onramp confirm`.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime, clock_settime};
use nix::unistd::Pid;
use onramp_loader::{ExitReason, Flow, Phase};
use onramp_tests::Attachments;
use onramp_tests::bottleneck::bottleneck;
use onramp_tests::cli::{self, DEFAULT, Names, host_state, json, onramp, state};
use onramp_tests::sender::Sender;
use onramp_tests::traffic::{eventually, namespace};
use onramp_tests::wire::{Fate, Wire};

/// Processes that wait for an algorithm's time to be over.
fn watchers(algorithm: &str) -> Vec<Pid> {
    let command = format!("onramp\0expire\0{algorithm}\0");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| {
            std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line.starts_with(command.as_bytes()))
        })
        .map(|entry| Pid::from_raw(entry.file_name().into_string().unwrap().parse().unwrap()))
        .collect()
}

/// How many of them there are.
fn watches(algorithm: &str) -> usize {
    watchers(algorithm).len()
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_attached_for_a_time_detaches_by_itself() {
    let _attachments = Attachments::lock();
    let inside = namespace();
    inside.sysctl_set(DEFAULT, "reno").unwrap();
    let before = host_state(&[&inside]);
    let said = inside
        .command(cli::binary())
        .args(["attach", "search", "--default", "--for", "2s"])
        .output()
        .unwrap();
    let said = cli::Ran::from(said).ok();
    assert!(said.names(&["2.00 s", "onramp confirm search"]), "{said}");
    let row = &json("status")["algorithms"][0];
    let time = row["expires_at_us"].as_u64().unwrap() - row["attached_at_us"].as_u64().unwrap();
    // By two clocks, read one after the other.
    assert!(time.abs_diff(2_000_000) < 10_000, "{time}");
    assert_eq!(inside.sysctl_get(DEFAULT).unwrap(), "onramp_search");
    assert_eq!(watches("search"), 1);

    assert!(eventually(|| host_state(&[&inside]) == before), "{:?}", onramp("status"));
    assert!(eventually(|| watches("search") == 0));
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_confirmed_stays() {
    let _attachments = Attachments::lock();
    onramp("attach plain --for 2s").ok();
    let confirmed = json("confirm plain");
    assert_eq!(confirmed["confirmed"], true);
    assert_eq!(json("status")["algorithms"][0]["expires_at_us"], serde_json::Value::Null);
    assert!(eventually(|| watches("plain") == 0));
    assert_eq!(state("plain").as_deref(), Some("attached"));
    // Again, and of what never had a limit, is no error.
    assert_eq!(json("confirm plain")["confirmed"], false);
    onramp("detach plain").ok();
    assert!(onramp("confirm plain").refused(1).contains("plain"));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_later_attachment_is_not_detached_by_an_earlier_limit() {
    let _attachments = Attachments::lock();
    onramp("attach plain --for 2s").ok();
    onramp("detach plain").ok();
    onramp("attach plain --for 1h").ok();
    assert!(eventually(|| watches("plain") == 1));
    assert_eq!(state("plain").as_deref(), Some("attached"));
    onramp("detach plain").ok();
    assert!(eventually(|| watches("plain") == 0));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_limit_holds_also_when_the_command_is_killed_right_after_attaching() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let begin = Instant::now();
    onramp("attach plain --for 1s").ok();
    let whole = begin.elapsed();
    onramp("detach plain").ok();
    for round in 0..8 {
        let mut child = cli::command(["attach", "plain", "--for", "1s", "--quiet"]).spawn().unwrap();
        thread::sleep(whole - Duration::from_millis(1) * round);
        let _ = child.kill();
        child.wait().unwrap();
        if state("plain").as_deref() == Some("attached") {
            assert!(eventually(|| host_state(&[]) == before), "{:?}", onramp("status"));
        } else {
            onramp("detach --all").ok();
        }
    }
    assert!(eventually(|| watches("plain") == 0));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_limit_that_cannot_be_kept_attaches_nothing() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    // A user who may attach, but may not start a second process.
    let capabilities = "+bpf,+perfmon,+dac_override";
    let ran = std::process::Command::new("setpriv")
        .args([
            "--reuid",
            "65533",
            "--clear-groups",
            "--inh-caps",
            capabilities,
            "--ambient-caps",
            capabilities,
        ])
        .args(["prlimit", "--nproc=1"])
        .arg(cli::public_copy())
        .args(["attach", "search", "--for", "1s"])
        .output()
        .unwrap();
    let error = cli::Ran::from(ran).refused(1);
    assert!(error.contains("so nothing was attached"), "{error}");
    assert_eq!(host_state(&[]), before);
}

/// A connection over a wire of 20 ms that loses nothing, under this control.
fn connected(control: &str) -> Sender {
    Sender::connect(Wire::lay(Duration::from_millis(10), |_| Fate::Deliver), control)
}

/// Segments in which a window of `fixed` below is reached.
const EXIT_WINDOW: u32 = 60_000 / 1_448;

/// The window has grown past where the algorithm leaves, and still grows by slow start.
fn assert_the_base_alone(flow: &Flow) {
    assert!(flow.info.snd_cwnd > 2 * EXIT_WINDOW, "{:?}", flow.info);
    assert_eq!(flow.info.snd_ssthresh, None, "{:?}", flow.info);
}

fn assert_the_algorithm(flow: &Flow) {
    assert!(matches!(flow.phase(), Phase::Left(ExitReason::Algorithm, _)), "{:?}", flow.phase());
    assert!(flow.info.snd_ssthresh.is_some_and(|segments| segments < 2 * EXIT_WINDOW), "{:?}", flow.info);
}

#[test]
#[ignore = "in a guest: make test"]
fn past_its_time_the_base_runs_alone_whatever_has_become_of_the_watch() {
    let _attachments = Attachments::lock();
    // Reno has no HyStart: on this wire nothing but the algorithm ends slow start.
    onramp("attach fixed --base reno --set exit_window_bytes=60000 --for 20s").ok();
    let mut within = connected("onramp_fixed");
    within.deliver(400_000);
    assert_the_algorithm(&within.flow());
    let mut established = connected("onramp_fixed");
    established.wire.sysctl("net.ipv4.tcp_slow_start_after_idle", "0");
    established.deliver(20_000);
    assert!(matches!(established.flow().phase(), Phase::SlowStart), "{:?}", established.flow().phase());

    kill(watchers("fixed")[0], Signal::SIGKILL).unwrap();
    thread::sleep(Duration::from_secs(21));
    established.deliver(600_000);
    assert_the_base_alone(&established.flow());
    let small = connected("onramp_fixed");
    let mut begun_after = connected("onramp_fixed");
    begun_after.deliver(600_000);
    assert_the_base_alone(&begun_after.flow());
    assert!(begun_after.flow().header.is_none());
    assert_eq!(state("fixed").as_deref(), Some("attached"));
    let said = onramp("status").ok();
    assert!(said.contains("its time was over") && said.contains("the base runs alone"), "{said}");

    // It can still be kept.
    onramp("confirm fixed").ok();
    let mut confirmed = connected("onramp_fixed");
    confirmed.deliver(400_000);
    assert_the_algorithm(&confirmed.flow());
    // So it leaves at once, with the window that it has by now.
    established.deliver(100_000);
    let phase = established.flow().phase();
    assert!(matches!(phase, Phase::Left(ExitReason::Algorithm, _)), "{phase:?}");

    let counted = || {
        let row = &json("status")["algorithms"][0];
        ["flows_started", "flows_ended", "flows_without_state"].map(|name| row[name].as_u64().unwrap())
    };
    assert_eq!(counted(), [5, 0, 0]);
    drop((within, established, begun_after, confirmed, small));
    assert!(eventually(|| counted() == [5, 5, 2]), "{:?}", counted());
}

#[test]
#[ignore = "in a guest: make test"]
fn a_step_of_the_wall_clock_neither_ends_an_attachment_nor_prolongs_it() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let step = |seconds: i64| {
        let now = clock_gettime(ClockId::CLOCK_REALTIME).unwrap();
        clock_settime(ClockId::CLOCK_REALTIME, now + TimeSpec::new(seconds, 0)).unwrap();
    };
    onramp("attach plain --for 60s").ok();
    step(3_600);
    // A look of the watch, which comes every ten seconds.
    thread::sleep(Duration::from_secs(15));
    assert_eq!(state("plain").as_deref(), Some("attached"));
    step(-7_200);
    thread::sleep(Duration::from_secs(46));
    let ended = eventually(|| host_state(&[]) == before);
    step(3_600);
    assert!(ended);
}

#[test]
#[ignore = "in a guest: make test"]
fn past_its_time_the_kernels_own_hystart_looks_at_a_slow_start_in_progress() {
    let _attachments = Attachments::lock();
    // It leaves at a loss only, and a queue this deep loses nothing.
    onramp("attach plain --base cubic --for 20s").ok();
    let connected = || {
        let sender = Sender::connect(
            Wire::lay(Duration::from_millis(10), bottleneck(2_500_000, 4_000)),
            "onramp_plain",
        );
        sender.wire.sysctl("net.ipv4.tcp_slow_start_after_idle", "0");
        sender
    };
    let mut within = connected();
    within.deliver(1_000_000);
    assert_eq!(within.flow().info.snd_ssthresh, None, "{:?}", within.flow().info);
    let mut established = connected();
    established.deliver(20_000);
    // Else it would move the flow to another control.
    kill(watchers("plain")[0], Signal::SIGKILL).unwrap();
    thread::sleep(Duration::from_secs(21));
    established.deliver(1_000_000);
    let info = established.flow().info;
    assert!(info.snd_ssthresh.is_some() && info.retrans_total == 0, "{info:?}");
}

/// How long an algorithm has left, seconds; `None`: it stays.
fn left(algorithm: &str) -> Option<u64> {
    let row = cli::status(algorithm).unwrap();
    let now = clock_gettime(ClockId::CLOCK_REALTIME).unwrap();
    let seconds = |at: u64| (at / 1_000_000).saturating_sub(now.tv_sec() as u64);
    row["expires_at_us"].as_u64().map(seconds)
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_attached_is_given_a_time_limit_or_another_one_and_the_undo_restores_the_previous() {
    let _attachments = Attachments::lock();
    let inside = namespace();
    inside.sysctl_set(DEFAULT, "cubic").unwrap();
    let adjusted = |arguments: &str| -> serde_json::Value {
        serde_json::from_str(&cli::inside(&inside, &format!("--json attach {arguments}")).ok()).unwrap()
    };
    onramp("attach ramp").ok();
    let generation = cli::status("ramp").unwrap()["generation"].clone();
    let planned = onramp("attach ramp --for 1h --dry-run").ok();
    assert!(planned.contains("onramp confirm ramp"), "{planned}");
    assert_eq!((left("ramp"), watches("ramp")), (None, 0));

    let report = adjusted("--default --for 10m");
    assert_eq!(report["undo"], format!("onramp confirm ramp; sysctl -w {DEFAULT}=cubic"));
    assert!(report["expires_at_us"].is_u64());
    assert_eq!(inside.sysctl_get(DEFAULT).unwrap(), "onramp_ramp");
    assert!(left("ramp").is_some_and(|left| (590..=600).contains(&left)), "{:?}", left("ramp"));
    assert!(eventually(|| watches("ramp") == 1));
    // Later or sooner, and one process watches.
    for seconds in [3_600, 300] {
        let undo = adjusted(&format!("ramp --for {seconds}s"))["undo"].clone();
        assert!(undo.as_str().unwrap().starts_with("onramp attach ramp --for "), "{undo}");
        let is = left("ramp").unwrap();
        assert!((seconds - 10..=seconds).contains(&is), "{is}");
        assert!(eventually(|| watches("ramp") == 1), "{}", watches("ramp"));
    }
    let undo = json("confirm ramp")["undo"].as_str().unwrap().to_owned();
    assert_eq!(left("ramp"), None);
    onramp(undo.strip_prefix("onramp ").unwrap()).ok();
    assert!(left("ramp").is_some_and(|left| (280..=300).contains(&left)));
    assert_eq!(cli::status("ramp").unwrap()["generation"], generation);
    // What it is asked for besides is refused, and changes nothing.
    for other in ["--observe", "--set target_ms=1", "--guard goodput=-10%", "--base reno"] {
        let arguments = format!("attach ramp --for 1s {other}");
        let ran = onramp(&arguments);
        assert!(ran.code != Some(0) && ran.stdout.is_empty(), "{ran:?}");
    }
    assert!(left("ramp").is_some_and(|left| left > 200));

    adjusted("ramp --for 3s");
    assert!(eventually(|| state("ramp").is_none()), "{:?}", onramp("status"));
    assert_eq!(inside.sysctl_get(DEFAULT).unwrap(), "cubic");
    assert!(eventually(|| watches("ramp") == 0));
}

#[test]
#[ignore = "in a guest: make test"]
fn ages_count_from_boot_whatever_the_wall_clock_says() {
    let _attachments = Attachments::lock();
    onramp("attach plain --for 3h").ok();
    thread::sleep(Duration::from_secs(150));
    let before = clock_gettime(ClockId::CLOCK_REALTIME).unwrap();
    let begin = clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap();
    // 1970 and 2099.
    for year in [1_000, 4_070_908_800] {
        clock_settime(ClockId::CLOCK_REALTIME, TimeSpec::new(year, 0)).unwrap();
        let said = onramp("status").ok();
        assert!(said.contains("2 min 3"), "{said}");
        assert!(said.contains("2 h 57 min"), "{said}");
        let row = cli::status("plain").unwrap();
        let now = clock_gettime(ClockId::CLOCK_REALTIME).unwrap().tv_sec() as u64;
        let at = row["attached_at_us"].as_u64().unwrap() / 1_000_000;
        assert!((145..=165).contains(&(now - at)), "{now} {at}");
    }
    let passed = clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap() - begin;
    clock_settime(ClockId::CLOCK_REALTIME, before + passed).unwrap();
}
