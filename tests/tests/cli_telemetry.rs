//! Telemetry levels of flows, as the command line sets them: the ceiling of a parameter set, and what a recorder asks the
//! kernel for.

use std::fs;
use std::path::Path;
use std::time::Duration;

use onramp_loader::AttachOptions;
use onramp_loader::abi::flow_flag;
use onramp_loader::algorithm::find;
use onramp_loader::cost::{RunStatistics, callbacks};
use onramp_loader::telemetry::{Level, What};
use onramp_recording::Recording;
use onramp_recording::rows::{AckRow, FlowRow};
use onramp_tests::Attachments;
use onramp_tests::cli::{host_state, json, onramp, verdicts};
use onramp_tests::recorder::Recorder;
use onramp_tests::sender::Sender;
use onramp_tests::telemetry::{events, rest, stream, until_ended};
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{Fate, Wire};
use tempfile::tempdir;

fn connect(control: &str) -> Sender {
    Sender::connect(Wire::lay(Duration::from_millis(10), |_| Fate::Deliver), control)
}

fn ceiling() -> String {
    let tuned = json("tune fixed")["telemetry_max"].clone();
    let status = json("status")["algorithms"][0]["parameter_sets"][0]["telemetry_max"].clone();
    assert_eq!(tuned, status);
    tuned.as_str().unwrap().to_owned()
}

#[test]
#[ignore = "in a guest: make test"]
fn a_ceiling_holds_for_open_flows_and_is_undone_as_printed() {
    let _attachments = Attachments::lock();
    onramp("attach fixed --set exit_window_bytes=1000000000").ok();
    assert_eq!(ceiling(), "ack");
    let mut stream = stream(Level::Ack);
    let mut sender = connect("onramp_fixed");
    sender.deliver(50_000);
    let acks = |items: &[_]| events(items).iter().filter(|event| matches!(event.what, What::Ack(_))).count();
    assert!(acks(&rest(&mut stream)) > 0);

    let said = onramp("tune fixed --telemetry exit").ok();
    let undo = "onramp tune fixed --telemetry ack";
    assert!(said.contains("ack -> exit\n") && said.contains(&format!("undo: {undo}\n")), "{said}");
    assert!(said.contains("generation 0"), "no parameter has changed: {said}");
    assert_eq!(ceiling(), "exit");
    assert_eq!(json("tune fixed")["telemetry_max"], "exit");
    // The ACK after it announces the flow again; from then on nothing is reported.
    sender.deliver(20_000);
    let _ = rest(&mut stream);
    sender.deliver(50_000);
    assert_eq!(rest(&mut stream), []);

    assert!(json("tune fixed --telemetry exit")["telemetry_max_before"].is_null(), "nothing changes");
    onramp(undo.strip_prefix("onramp ").unwrap()).ok();
    assert_eq!(ceiling(), "ack");
    sender.deliver(50_000);
    drop(sender);
    assert!(acks(&until_ended(&mut stream, 1)) > 0);
}

/// A flow whose algorithm need not be asked is asked again with a consumer, and once a deadline is set; what it slept through
/// is counted.
#[test]
#[ignore = "in a guest: make test"]
fn a_flow_that_sleeps_is_woken_by_consumers_and_deadlines() {
    let _attachments = Attachments::lock();
    let plain = find("plain").unwrap();
    onramp("attach plain").ok();
    let counting = RunStatistics::enable("test").unwrap();
    let mut sender = connect("onramp_plain");
    sender.deliver(200_000);
    let mut stream = stream(Level::Ack);
    sender.deliver(20_000);
    let reported = rest(&mut stream);
    assert!(events(&reported).iter().any(|event| matches!(event.what, What::Ack(_))), "{reported:?}");
    drop(stream);
    sender.deliver(200_000);
    let calls = callbacks(plain).unwrap().iter().find(|one| one.name == "pkts_acked").unwrap().calls;
    drop(counting);

    let in_slow_start = |sender: &Sender| sender.flow().header.unwrap().has(flow_flag::SLOW_START);
    assert!(in_slow_start(&sender));
    assert!(onramp_loader::expire_after(plain, Duration::ZERO).unwrap().is_none());
    sender.deliver(20_000);
    assert!(!in_slow_start(&sender));
    drop(sender);
    let counted = || verdicts("plain")["grow"];
    // But for the first ACKs, and for those after the deadline.
    assert!(eventually(|| (calls - 3..=calls).contains(&counted())), "{} of {calls}", counted());
}

#[test]
#[ignore = "in a guest: make test"]
fn parameters_and_ceiling_change_together_or_not_at_all() {
    let _attachments = Attachments::lock();
    onramp("attach fixed --set exit_window_bytes=60000").ok();
    let before = (json("tune fixed"), host_state(&[]));
    let unchanged = |how: &str| assert_eq!((json("tune fixed"), host_state(&[])), before, "{how}");
    for wrong in ["exit_window_bytes=-1", "nonsense=3", "--profile other", "exit_window_bytes"] {
        onramp(&format!("tune fixed --telemetry exit {wrong}")).refused(2);
        unchanged(wrong);
    }
    let ran = onramp("tune fixed --telemetry loud exit_window_bytes=5000");
    assert!(ran.code == Some(2) && ran.stderr.contains("off, exit, round, ack"), "{ran:?}");
    unchanged("loud");
    let plan = json("tune fixed --telemetry off exit_window_bytes=5000 --dry-run");
    assert_eq!((&plan["telemetry_max_before"], &plan["telemetry_max"]), (&"ack".into(), &"off".into()));
    unchanged("--dry-run");

    let report = json("tune fixed --telemetry round exit_window_bytes=5000");
    let undo = "onramp tune fixed --telemetry ack exit_window_bytes=60000";
    assert_eq!((&report["undo"], &report["parameters_generation"]), (&undo.into(), &1.into()));
    assert_eq!(ceiling(), "round");
    onramp(undo.strip_prefix("onramp ").unwrap()).ok();
    let after = json("tune fixed");
    assert_eq!((&after["parameters"], &after["telemetry_max"]), (&before.0["parameters"], &"ack".into()));
}

#[test]
#[ignore = "in a guest: make test"]
fn attach_sets_the_ceiling_from_the_beginning_and_detach_says_so() {
    let _attachments = Attachments::lock();
    assert!(onramp("attach fixed --telemetry exit --dry-run").ok().contains("level exit"));
    let mut stream = stream(Level::Ack);
    assert_eq!(json("attach fixed --telemetry exit")["telemetry_max"], "exit");
    assert_eq!(ceiling(), "exit");
    let mut sender = connect("onramp_fixed");
    sender.deliver(50_000);
    drop(sender);
    let reported = until_ended(&mut stream, 1);
    let more =
        |what: &What| matches!(what, What::Ack(_) | What::Round(_) | What::State(_) | What::Restart(_));
    assert!(!events(&reported).iter().any(|event| more(&event.what)), "{reported:?}");
    // A run uses what is attached as it is.
    assert!(onramp("run fixed --telemetry ack -- true").refused(2).contains("--telemetry"));
    assert!(onramp("detach fixed").ok().ends_with("  undo: onramp attach fixed --telemetry exit\n"));

    let home = tempdir().unwrap();
    let path = home.path().join("quiet.toml");
    let text = include_str!("../../profiles/geo.toml");
    let with = |level: &str| {
        let line = format!("telemetry = \"{level}\"\nalgorithm = ");
        fs::write(&path, text.replacen("algorithm = ", &line, 1)).unwrap();
    };
    let attach = format!("attach search --profile {}", path.display());
    with("loud");
    let error = onramp(&attach).refused(2);
    assert!(error.contains("\"loud\"") && error.contains("off, exit, round, ack"), "{error}");
    with("off");
    assert_eq!(json(&attach)["telemetry_max"], "off");
    onramp("detach search").ok();
    // The command line comes on top of the profile.
    assert_eq!(json(&format!("{attach} --telemetry round"))["telemetry_max"], "round");
}

#[test]
#[ignore = "in a guest: make test"]
fn what_a_recorder_does_not_want_is_not_written_by_the_kernel() {
    let attachments = Attachments::lock();
    attachments.attach(&AttachOptions::new(find("plain").unwrap().parameters()));
    let home = tempdir().unwrap();
    for (filter, wanted) in [("dst 198.51.100.0/24", false), ("dst 192.0.2.0/24", true)] {
        let directory = home.path().join(wanted.to_string());
        let recorder = Recorder::start(&directory, filter);
        let mut sender = connect("onramp_plain");
        sender.deliver(100_000);
        // A later consumer sees whether the flow was reported to any consumer before.
        let mut stream = stream(Level::Exit);
        sender.deliver(20_000);
        drop(sender);
        let reported = until_ended(&mut stream, 1);
        let What::Flow(first) = &events(&reported)[0].what else { panic!("{reported:?}") };
        assert_eq!(first.again, wanted, "{filter}");
        drop(stream);
        recorder.end().ok();
        assert_eq!(Recording::open(&directory).unwrap().rows::<AckRow>().is_empty(), !wanted, "{filter}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_recorder_samples_whole_flows_in_the_kernel() {
    let attachments = Attachments::lock();
    attachments.attach(&AttachOptions::new(find("plain").unwrap().parameters()));
    let home = tempdir().unwrap();
    let (all, half) = (home.path().join("all"), home.path().join("half"));
    let recorders = [Recorder::start(&all, ""), Recorder::start(&half, "--sample 2 dst 192.0.2.0/24")];
    let sampling: Vec<u32> = onramp_loader::consumers().unwrap().iter().map(|one| one.sampling).collect();
    assert_eq!(sampling, [1, 2]);
    // They stay, so that both recorders have got the same when they end.
    let mut senders: Vec<Sender> = (0..4).map(|_| connect("onramp_plain")).collect();
    senders.iter_mut().for_each(|sender| sender.deliver(20_000));
    for recorder in recorders {
        recorder.end().ok();
    }
    let rows = |directory: &Path| {
        let mut recording = Recording::open(directory).unwrap();
        let flows: Vec<u64> = recording.rows::<FlowRow>().iter().map(|row| row.flow).collect();
        let acks: Vec<(u64, u32)> =
            recording.rows::<AckRow>().iter().map(|row| (row.flow, row.sequence)).collect();
        (flows, acks)
    };
    let ((all_flows, all_acks), (flows, acks)) = (rows(&all), rows(&half));
    assert_eq!((flows.len(), all_flows.len()), (2, 4), "one flow in two: {flows:?} of {all_flows:?}");
    assert_eq!(flows, all_flows.into_iter().filter(|flow| flow % 2 == 0).collect::<Vec<_>>());
    assert_eq!(acks, all_acks.into_iter().filter(|(flow, _)| flow % 2 == 0).collect::<Vec<_>>());
    assert!(acks.len() > 2, "{acks:?}");
    // What cannot be is refused before anything is made.
    let directory = home.path().join("none");
    let ran = onramp(&format!("record -o {} --sample 0", directory.display()));
    assert!(ran.code == Some(2) && !directory.exists(), "{ran:?}");
}
