//! `onramp record`: the verdicts of a live flow are those of replay, and no fault loses what was written.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use onramp_loader::AttachOptions;
use onramp_loader::algorithm::{Algorithm, Parameters, all, find};
use onramp_recording::rows::{AckRow, FlowRow};
use onramp_recording::{Manifest, Recording};
use onramp_tests::Attachments;
use onramp_tests::bottleneck::bottleneck;
use onramp_tests::cli::{json, onramp};
use onramp_tests::recorder::Recorder;
use onramp_tests::sender::Sender;
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{Data, FAR, Fate, Wire};
use serde_json::Value;
use tempfile::tempdir;

/// One way; the RTT is twice this and the queue.
const DELAY: Duration = Duration::from_millis(15);

/// A slow start into a queue that overflows, an idle time after which slow start begins anew, and more data.
fn traffic(control: &str, between: impl FnOnce()) {
    traffic_over(wire(), control, between);
}

fn wire() -> Wire {
    let mut queue = bottleneck(1_500_000, 60);
    Wire::lay(DELAY, move |data: Data| if data.number == 1_500 { Fate::Drop } else { queue(data) })
}

fn traffic_over(wire: Wire, control: &str, between: impl FnOnce()) {
    let mut sender = Sender::connect(wire, control);
    sender.send(300_000);
    between();
    sender.deliver(1_500_000);
    std::thread::sleep(Duration::from_millis(900));
    sender.deliver(600_000);
}

fn replayed(directory: &Path, algorithm: Algorithm) -> Value {
    json(&format!("replay {} --continue --algorithm {}", directory.display(), algorithm.name()))
}

fn parameters(algorithm: Algorithm) -> Parameters {
    let mut parameters = algorithm.parameters();
    if algorithm.name() == "fixed" {
        parameters.set("exit_window_bytes", "60000").unwrap();
    }
    parameters
}

/// Asserts that replay finds the recorded verdicts and exit; why the flow left slow start.
fn replays_as_recorded(directory: &Path, algorithm: Algorithm) -> Value {
    let manifest = Manifest::read(directory).unwrap();
    assert!(manifest.complete && manifest.dropped_events == 0, "{manifest:?}");
    assert_eq!(manifest.algorithms[0].algorithm, algorithm.name());
    let report = replayed(directory, algorithm);
    let flow = &report["flows"][0];
    let finding = &flow["findings"][0];
    let compared = finding["recorded"]["compared"].as_u64().unwrap();
    assert!(compared > 30, "{algorithm:?}: {flow}");
    assert_eq!(finding["recorded"]["different"], 0, "{algorithm:?}: {flow}");
    assert_eq!(flow["from_start"], true);
    // The exit that the kernel recorded is the one that replay finds.
    let recorded = &flow["recorded_exit"];
    if recorded["reason"] == "algorithm" {
        for field in [
            "since_start_us",
            "acknowledged_bytes",
            "cwnd_segments",
            "window_bytes",
            "in_flight_segments",
            "rtt_us",
            "min_rtt_us",
        ] {
            assert_eq!(recorded[field], finding["exit"][field], "{algorithm:?}, {field}: {flow}");
        }
    }
    recorded["reason"].clone()
}

#[test]
#[ignore = "in a guest: make test"]
fn replay_decides_as_the_kernel_did_on_the_same_acknowledgment_for_every_algorithm() {
    let attachments = Attachments::lock();
    for algorithm in all() {
        let home = tempdir().unwrap();
        let directory = home.path().join("recording");
        attachments.attach(&AttachOptions::new(parameters(algorithm)));
        let recorder = Recorder::start(&directory, "--level ack");
        traffic(&algorithm.congestion_control(), || ());
        recorder.end().ok();
        onramp_loader::detach(algorithm, false).unwrap();

        let reason = replays_as_recorded(&directory, algorithm);
        // And the test can fail: another parameter gives other verdicts.
        if algorithm.name() == "fixed" {
            assert_eq!(reason, "algorithm");
            let other = json(&format!(
                "replay {} --continue --algorithm fixed --set exit_window_bytes=90000",
                directory.display()
            ));
            assert_ne!(other["flows"][0]["findings"][0]["recorded"]["different"], 0);
        }
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_flow_with_a_start_of_its_own_is_replayed_to_the_same_exit() {
    let _attachments = Attachments::lock();
    let mut reasons = Vec::new();
    for start in ["fast", "suss", "resume+window", "resume+fast"] {
        for name in ["ramp", "hystart", "fixed", "plain"] {
            let algorithm = find(name).unwrap();
            let home = tempdir().unwrap();
            let (directory, known) = (home.path().join("recording"), home.path().join("paths"));
            onramp(&format!("attach {name} --base cubic --start {start}")).ok();
            let wire = wire();
            if start.contains("resume") {
                // Twice what it is.
                fs::write(&known, format!("{FAR} 24mbit,30ms 0s\n")).unwrap();
                wire.near.run(|| onramp(&format!("paths import {}", known.display())).ok()).unwrap();
            }
            let recorder = Recorder::start(&directory, "--level ack");
            traffic_over(wire, &algorithm.congestion_control(), || ());
            recorder.end().ok();
            onramp(&format!("detach {name}")).ok();
            reasons.push(replays_as_recorded(&directory, algorithm));
            let acks = Recording::open(&directory).unwrap().rows::<AckRow>();
            let phases = acks.iter().any(|ack| !ack.start_phase.is_empty());
            assert_eq!(phases, start.contains("resume"), "{name} {start}");
        }
    }
    assert!(reasons.contains(&"algorithm".into()) && reasons.contains(&"loss".into()), "{reasons:?}");
}

#[test]
#[ignore = "in a guest: make test"]
fn replay_follows_a_change_of_parameters_under_a_flow() {
    let attachments = Attachments::lock();
    let fixed = find("fixed").unwrap();
    attachments.attach(&AttachOptions::new(fixed.parameters()));
    let home = tempdir().unwrap();
    let directory = home.path().join("recording");
    let recorder = Recorder::start(&directory, "");
    traffic(&fixed.congestion_control(), || {
        onramp("tune fixed exit_window_bytes=30000").ok();
    });
    recorder.signal(Signal::SIGTERM);
    recorder.wait().ok();
    let report = replayed(&directory, fixed);
    let flow = &report["flows"][0];
    assert_eq!(flow["findings"][0]["recorded"]["different"], 0, "{flow}");
    assert_eq!(flow["findings"][0]["unknown_generations"], serde_json::json!([]), "{flow}");
    assert_eq!(flow["recorded_exit"]["reason"], "algorithm", "{flow}");
    let generations = Recording::open(&directory).unwrap().rows::<AckRow>();
    assert!(generations.iter().any(|row| row.parameters_generation != generations[0].parameters_generation));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_recorder_that_comes_late_goes_on_from_the_state_of_the_flow() {
    let attachments = Attachments::lock();
    for algorithm in all() {
        let home = tempdir().unwrap();
        let directory = home.path().join("recording");
        attachments.attach(&AttachOptions::new(algorithm.parameters()));
        let mut recorder = None;
        traffic(&algorithm.congestion_control(), || recorder = Some(Recorder::start(&directory, "")));
        let recorder = recorder.unwrap();
        recorder.end().ok();
        onramp_loader::detach(algorithm, false).unwrap();
        let report = replayed(&directory, algorithm);
        let flow = &report["flows"][0];
        assert_eq!(flow["from_start"], false, "{algorithm:?}: {flow}");
        assert_eq!(flow["findings"][0]["recorded"]["different"], 0, "{algorithm:?}: {flow}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_killed_recorder_leaves_what_was_flushed_and_nothing_in_the_kernel() {
    let attachments = Attachments::lock();
    let plain = find("plain").unwrap();
    attachments.attach(&AttachOptions::new(plain.parameters()));
    let home = tempdir().unwrap();
    let directory = home.path().join("recording");
    let recorder = Recorder::start(&directory, "");
    let wire = Wire::lay(DELAY, |_| Fate::Deliver);
    let mut sender = Sender::connect(wire, &plain.congestion_control());
    let flushed =
        || directory.join("acks-000001.parquet").exists() && directory.join("flows-000001.parquet").exists();
    assert!(eventually(|| {
        sender.send(50_000);
        flushed()
    }));
    recorder.signal(Signal::SIGKILL);
    assert_eq!(recorder.wait().code, None);
    let mut recording = Recording::open(&directory).unwrap();
    assert!(recording.rows::<AckRow>().len() > 10);
    assert_eq!(recording.rows::<FlowRow>()[0].algorithm, "plain");
    assert!(recording.problems.is_empty(), "{:?}", recording.problems);
    assert!(!recording.manifest.as_ref().unwrap().complete);
    let report = replayed(&directory, plain);
    assert_eq!(report["complete"], false);
    assert_eq!(report["flows"][0]["findings"][0]["recorded"]["different"], 0);
    // The flow goes on, and the next recorder gets it again.
    let next = home.path().join("next");
    let recorder = Recorder::start(&next, "--for 1s");
    assert!(eventually(|| {
        sender.send(50_000);
        Manifest::read(&next).is_ok_and(|manifest| manifest.complete)
    }));
    recorder.wait().ok();
    let again = Recording::open(&next).unwrap().rows::<FlowRow>();
    assert_eq!(again[0].event, "again");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_full_disk_ends_the_recording_with_what_was_written() {
    let attachments = Attachments::lock();
    let plain = find("plain").unwrap();
    attachments.attach(&AttachOptions::new(plain.parameters()));
    let home = tempdir().unwrap();
    let small = home.path().join("small");
    fs::create_dir(&small).unwrap();
    let _mount = Mount::tmpfs(&small, "200k");
    let directory = small.join("recording");
    let mut recorder = Recorder::start(&directory, "");
    // Slow enough for several files to fit.
    let wire = Wire::lay(DELAY, bottleneck(800_000, 60));
    let mut sender = Sender::connect(wire, &plain.congestion_control());
    assert!(eventually(|| {
        sender.send(20_000);
        recorder.has_ended()
    }));
    let ran = recorder.wait();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let said = ran.stderr.lines().last().unwrap();
    assert!(said.starts_with("error: the recording ends here; the "), "{said}");
    assert!(said.contains("No space left on device") && said.contains("are readable in"), "{said}");
    let mut recording = Recording::open(&directory).unwrap();
    assert!(!recording.rows::<AckRow>().is_empty());
    assert!(recording.problems.is_empty(), "{:?}", recording.problems);
    assert!(
        !fs::read_dir(&directory)
            .unwrap()
            .any(|entry| { entry.unwrap().path().extension().is_some_and(|extension| extension == "tmp") })
    );
}

#[test]
#[ignore = "in a guest: make test"]
fn whatever_signal_ends_a_recording_its_files_are_whole() {
    let attachments = Attachments::lock();
    let plain = find("plain").unwrap();
    attachments.attach(&AttachOptions::new(plain.parameters()));
    for signal in [Signal::SIGHUP, Signal::SIGTERM, Signal::SIGINT] {
        let home = tempdir().unwrap();
        let directory = home.path().join("recording");
        let recorder = Recorder::start(&directory, "");
        let mut sender = Sender::connect(Wire::lay(DELAY, |_| Fate::Deliver), &plain.congestion_control());
        sender.deliver(200_000);
        recorder.signal(signal);
        assert_eq!(recorder.wait().code, Some(0), "{signal}");
        let mut recording = Recording::open(&directory).unwrap();
        assert!(!recording.rows::<AckRow>().is_empty(), "{signal}");
        assert!(recording.problems.is_empty(), "{signal}: {:?}", recording.problems);
        let names = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
        assert!(names.filter(|path| path.extension().is_some_and(|of| of == "tmp")).count() == 0, "{signal}");
    }
}

/// A file system of limited size; unmounted when dropped.
struct Mount(PathBuf);

impl Mount {
    fn tmpfs(path: &Path, size: &str) -> Self {
        let options = format!("size={size}");
        let none = nix::mount::MsFlags::empty();
        nix::mount::mount(Some("tmpfs"), path, Some("tmpfs"), none, Some(options.as_str())).unwrap();
        Self(path.to_owned())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH);
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn only_flows_that_pass_the_filter_are_recorded_and_a_used_directory_is_refused() {
    let attachments = Attachments::lock();
    let plain = find("plain").unwrap();
    attachments.attach(&AttachOptions::new(plain.parameters()));
    let home = tempdir().unwrap();
    let (elsewhere, there) = (home.path().join("elsewhere"), home.path().join("there"));
    let recorders = [
        Recorder::start(&elsewhere, "dst 198.51.100.0/24"),
        Recorder::start(&there, "--level exit dst 192.0.2.0/24"),
    ];
    let wire = Wire::lay(DELAY, |_| Fate::Deliver);
    let mut sender = Sender::connect(wire, &plain.congestion_control());
    sender.deliver(300_000);
    for recorder in recorders {
        recorder.end().ok();
    }
    assert_eq!(Manifest::read(&elsewhere).unwrap().files, []);
    let mut recording = Recording::open(&there).unwrap();
    assert_eq!(recording.rows::<FlowRow>().len(), 1);
    assert_eq!(recording.rows::<AckRow>(), []);
    let refused = onramp(&format!("record -o {}", there.display()));
    assert!(refused.stderr.contains("is not empty") && refused.code == Some(1), "{refused:?}");
    assert_eq!(onramp(&format!("record -o {} colour red", home.path().join("x").display())).code, Some(2));
}
