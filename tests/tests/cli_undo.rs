//! `onramp doctor --fix` and `--undo`, and `onramp undo`: what was changed is restored exactly, and what another process has
//! changed since is left alone.

use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::process::Command;

use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, DEFAULT, Names, Ran, host_state, inside, onramp, state};
use onramp_tests::faults::Traced;
use onramp_tests::traffic::namespace;
use serde_json::{Value, json};

/// The sysctls that a path may want otherwise.
const SYSCTLS: [&str; 4] = [
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_no_ssthresh_metrics_save",
];

/// What every CUBIC flow of the host has.
const HYSTART: &str = "/sys/module/tcp_cubic/parameters/hystart";

/// What `status` says of a setting that was changed: its value before, and the one that was set.
fn recorded(name: &str) -> [Value; 2] {
    let status = cli::json("status");
    let row = status["settings"].as_array().unwrap().iter().find(|row| is_called(row, name)).unwrap();
    [row["before"].clone(), row["set"].clone()]
}

/// Undoes settings, of which this one alone must be left as it is; its value.
fn left(name: &str) -> Value {
    let ran = onramp("--json undo settings");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let undone: Value = serde_json::from_str(&ran.stdout).unwrap();
    let left = undone["left"].as_array().unwrap();
    assert!(left.len() == 1 && is_called(&left[0], name), "{undone}");
    left[0]["now"].clone()
}

fn is_called(row: &Value, name: &str) -> bool {
    row["setting"].as_str().unwrap().ends_with(name)
}

/// A namespace with buffers and a metrics cache that GEO wants otherwise.
fn place() -> Namespace {
    let place = namespace();
    place.sysctl_set(SYSCTLS[0], "4096 131072 6291456").unwrap();
    place.sysctl_set(SYSCTLS[1], "4096 16384 4194304").unwrap();
    place.sysctl_set(SYSCTLS[2], "1").unwrap();
    place.sysctl_set(SYSCTLS[3], "0").unwrap();
    place
}

fn settings(place: &Namespace) -> Vec<String> {
    SYSCTLS.map(|name| place.sysctl_get(name).unwrap()).into()
}

fn hystart() -> String {
    fs::read_to_string(HYSTART).unwrap().trim().to_owned()
}

#[test]
#[ignore = "in a guest: make test"]
fn what_a_path_wants_is_set_here_alone_and_restored_exactly() {
    let _attachments = Attachments::lock();
    let (place, other) = (place(), place());
    let (before, state) = (settings(&place), host_state(&[]));
    let planned = inside(&place, "doctor --profile geo --fix --dry-run").ok();
    assert_eq!(planned.lines().count(), SYSCTLS.len(), "{planned}");
    assert_eq!((settings(&place), host_state(&[])), (before.clone(), state.clone()));

    let said = inside(&place, "doctor --profile geo --fix").ok();
    for word in ["26214400 (was 4096 131072 6291456)", "source: ", "effect: ", "undo: onramp undo settings"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert_eq!(settings(&place), ["4096\t131072\t26214400", "4096\t16384\t26214400", "0", "1"]);
    assert_eq!(settings(&other), before);
    assert_eq!(recorded("tcp_slow_start_after_idle"), ["1", "0"]);
    assert_eq!(cli::json("status")["settings"].as_array().unwrap().len(), SYSCTLS.len());
    assert!(inside(&place, "doctor --profile geo --fix").ok().contains("nothing to change"));

    // From any namespace, as detach does.
    let planned = onramp("undo settings --dry-run").ok();
    assert_eq!(planned.lines().count(), SYSCTLS.len(), "{planned}");
    assert!(onramp("undo settings").ok().contains("tcp_rmem = 4096 131072 6291456"));
    assert_eq!((settings(&place), host_state(&[])), (before, state));
    assert_eq!(cli::json("undo settings")["restored"], json!([]));
}

#[test]
#[ignore = "in a guest: make test"]
fn fixing_for_another_path_keeps_what_was_before_the_first() {
    let _attachments = Attachments::lock();
    let place = place();
    let before = settings(&place);
    inside(&place, "doctor --rate 100mbit --rtt 600ms --fix").ok();
    assert_eq!(settings(&place)[0], "4096\t131072\t15728640");
    inside(&place, "doctor --rate 150mbit --rtt 600ms --fix").ok();
    assert_eq!(settings(&place)[0], "4096\t131072\t26214400");
    onramp("undo settings").ok();
    assert_eq!(settings(&place), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn what_all_the_host_has_is_set_where_it_is_named_and_restored_from_anywhere() {
    let _attachments = Attachments::lock();
    let state = host_state(&[]);
    let other = namespace();
    {
        let place = place();
        inside(&place, "doctor --profile geo --fix").ok();
        assert_eq!(hystart(), "1");
        let planned = inside(&place, "doctor --profile geo --fix --also hystart --dry-run").ok();
        assert!(planned.contains("tcp_cubic.hystart to 0"), "{planned}");
        assert_eq!(hystart(), "1");
        let said = inside(&place, "doctor --profile geo --fix --also hystart --also hystart").ok();
        assert_eq!(said.matches("tcp_cubic.hystart = 0 (was 1)").count(), 1, "{said}");
        assert_eq!(hystart(), "0");
        assert_eq!(recorded("tcp_cubic.hystart"), ["1", "0"]);
        let again = inside(&place, "doctor --profile geo --fix --also hystart").ok();
        assert!(again.contains("nothing to change"), "{again}");
    }
    // The namespace that it was set from has gone; the setting has not.
    let planned = onramp("undo settings --dry-run").ok();
    assert!(planned.contains("/sys/module/tcp_cubic/parameters/hystart"), "{planned}");
    let undone = inside(&other, "undo settings").ok();
    assert!(undone.contains("tcp_cubic.hystart = 1"), "{undone}");
    assert_eq!((hystart(), host_state(&[])), ("1".to_owned(), state.clone()));

    inside(&other, "doctor --rate 1mbit --rtt 1ms --fix --also hystart").ok();
    fs::write(HYSTART, "2").unwrap();
    assert_eq!(left("tcp_cubic.hystart"), "2");
    fs::write(HYSTART, "1").unwrap();
    assert_eq!(host_state(&[]), state);
}

#[test]
#[ignore = "in a guest: make test"]
fn whose_a_setting_is_shows_before_and_after_a_change_and_each_undo_goes_there() {
    let _attachments = Attachments::lock();
    let (one, other) = (place(), place());
    let (before, state) = (settings(&one), host_state(&[]));
    let parsed = |ran: Ran| -> Value { serde_json::from_str(&ran.ok()).unwrap() };
    for (place, host_network) in [(&Namespace::current().unwrap(), true), (&one, false)] {
        let doctor = cli::doctor(place, "--profile geo");
        assert_eq!(doctor["host_network"], host_network, "{doctor}");
        let scope = |name: &str| cli::row(&doctor, name)["scope"].clone();
        for name in ["BPF JIT", "lockdown", "the kernel's HyStart", "default queueing discipline"] {
            assert_eq!(scope(name), "host", "{name}");
        }
        for name in SYSCTLS.into_iter().chain(["default congestion control"]) {
            assert_eq!(scope(name), "network-namespace", "{name}");
        }
        assert_eq!(scope("kernel"), Value::Null);
    }

    let fixed = parsed(inside(&one, "--json doctor --profile geo --fix --also hystart"));
    let changed: Vec<_> = fixed["changed"].as_array().unwrap().iter().map(|row| &row["scope"]).collect();
    assert_eq!(changed.iter().filter(|scope| **scope == "host").count(), 1, "{fixed}");
    assert_eq!(changed.len(), SYSCTLS.len() + 1);
    inside(&other, "doctor --profile geo --fix").ok();
    let status = cli::json("status");
    let mut namespaces: Vec<_> =
        status["settings"].as_array().unwrap().iter().map(|row| row["namespace"].to_string()).collect();
    namespaces.sort();
    namespaces.dedup();
    assert_eq!(namespaces.len(), 3, "the host's, and those of two network namespaces: {status}");

    let set = [settings(&one), settings(&other)];
    let planned = cli::json("undo settings --dry-run");
    onramp("undo settings").ok();
    assert_eq!([settings(&one), settings(&other)], [before.clone(), before.clone()]);
    for action in planned["actions"].as_array().unwrap() {
        let undo = action["undo"].as_str().unwrap();
        assert!(Command::new("sh").args(["-c", undo]).status().unwrap().success(), "{undo}");
    }
    assert_eq!(([settings(&one), settings(&other)], hystart()), (set, "0".to_owned()));
    fs::write(HYSTART, "1").unwrap();
    assert_eq!(host_state(&[]), state);
}

#[test]
#[ignore = "in a guest: make test"]
fn where_sysctls_are_read_only_nothing_is_changed_and_the_way_out_is_named() {
    let _attachments = Attachments::lock();
    let state = host_state(&[]);
    let binary = cli::binary().display();
    let script = format!(
        "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && {binary} doctor --profile geo --fix --also hystart"
    );
    let ran: Ran = Command::new("unshare").args(["-n", "-m", "sh", "-c", &script]).output().unwrap().into();
    assert!(ran.refused(1).names(&["nsenter", "/proc/sys"]));
    assert_eq!((hystart(), host_state(&[])), ("1".to_owned(), state));
}

#[test]
#[ignore = "in a guest: make test"]
fn the_default_queueing_discipline_is_set_in_the_hosts_own_namespace_alone() {
    let _attachments = Attachments::lock();
    let discipline = || fs::read_to_string("/proc/sys/net/core/default_qdisc").unwrap();
    let (place, before, state) = (place(), discipline(), host_state(&[]));
    let ran = inside(&place, "doctor --profile geo --fix --also qdisc");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("net.core.default_qdisc") && ran.stderr.contains("nsenter"), "{ran:?}");
    assert_eq!(settings(&place)[2], "1", "nothing is half applied");
    onramp("doctor --rate 1mbit --rtt 1ms --fix --also qdisc").ok();
    assert_eq!(discipline(), "fq\n");
    onramp("undo settings").ok();
    assert_eq!((discipline(), host_state(&[])), (before, state));
    assert_eq!(onramp("doctor --also qdisc").code, Some(2), "nothing is changed unless --fix says so");
}

#[test]
#[ignore = "in a guest: make test"]
fn what_another_has_set_since_is_left_alone_and_said() {
    let _attachments = Attachments::lock();
    let (place, state) = (place(), host_state(&[]));
    let before = settings(&place);
    inside(&place, "doctor --rate 100mbit --rtt 600ms --fix").ok();
    place.sysctl_set(SYSCTLS[0], "4096 131072 9999999").unwrap();
    assert_eq!(left("tcp_rmem"), "4096 131072 9999999");
    assert_eq!(settings(&place)[0], "4096\t131072\t9999999");
    assert_eq!(settings(&place)[1..], before[1..]);
    assert_eq!(host_state(&[]), state, "what was left is recorded no more");

    // Fixed once more, it is what was before.
    inside(&place, "doctor --rate 100mbit --rtt 600ms --fix").ok();
    place.sysctl_set(SYSCTLS[0], "4096 131072 8888888").unwrap();
    inside(&place, "doctor --rate 100mbit --rtt 600ms --fix").ok();
    onramp("undo settings").ok();
    assert_eq!(settings(&place)[0], "4096\t131072\t8888888");
}

#[test]
#[ignore = "in a guest: make test"]
fn settings_of_a_namespace_that_has_gone_are_forgotten() {
    let _attachments = Attachments::lock();
    let state = host_state(&[]);
    {
        let place = place();
        inside(&place, "doctor --profile geo --fix").ok();
    }
    onramp("undo settings").ok();
    assert_eq!(host_state(&[]), state);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_fix_that_is_killed_or_given_an_error_at_any_step_is_undone_by_one_command() {
    let _attachments = Attachments::lock();
    let (place, state) = (place(), host_state(&[]));
    let before = settings(&place);
    let arguments = "doctor --rate 100mbit --rtt 600ms --fix --also hystart".into();
    let fix = Traced { namespace: &place, arguments };
    let undone = |call: &dyn Display| {
        onramp("undo settings").ok();
        assert_eq!((settings(&place), host_state(&[])), (before.clone(), state.clone()), "{call}");
        assert_eq!(hystart(), "1", "{call}");
    };
    // As the first, and after one for another path.
    for first in [None, Some("doctor --rate 50mbit --rtt 600ms --fix")] {
        let begin = || first.map(|first| inside(&place, first).ok());
        begin();
        let steps = fix.steps();
        undone(&"all steps");
        for (call, error) in steps {
            begin();
            let found = settings(&place);
            let ran = fix.fail(&call, error);
            println!("{error:?} at {call}: {:?} {}", ran.code, ran.stderr.trim());
            assert!(ran.code == Some(0) || settings(&place) == found, "{error:?} at {call}: {ran:?}");
            undone(&call);
            begin();
            fix.killed_before(&call);
            println!("killed before {call}: {:?}", settings(&place));
            undone(&call);
        }
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn an_undo_that_is_killed_at_any_step_is_continued_by_the_next() {
    let _attachments = Attachments::lock();
    let (place, state) = (place(), host_state(&[]));
    let before = settings(&place);
    let again = || inside(&place, "doctor --profile geo --fix").ok();
    again();
    let undo = Traced { namespace: &place, arguments: "undo settings".into() };
    let steps = undo.changes();
    for call in steps {
        again();
        undo.killed_before(&call);
        println!("killed before {call}: {:?}", settings(&place));
        onramp("undo settings").ok();
        assert_eq!((settings(&place), host_state(&[])), (before.clone(), state.clone()), "{call}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn undo_takes_back_all_that_onramp_has_changed() {
    let _attachments = Attachments::lock();
    let (one, other) = (place(), place());
    one.sysctl_set(DEFAULT, "reno").unwrap();
    other.sysctl_set(DEFAULT, "cubic").unwrap();
    let places = [&one, &other];
    let all = || (places.map(settings), host_state(&places));
    let before = all();
    inside(&one, "attach search --default").ok();
    inside(&other, "attach search --default").ok();
    inside(&other, "attach plain --default").ok();
    onramp("select add --port 8443 --use search").ok();
    inside(&one, "doctor --profile geo --fix").ok();
    inside(&other, "doctor --profile leo --fix").ok();
    let changed = all();
    let planned = onramp("undo --dry-run").ok();
    for word in ["unregister onramp_search", "unregister onramp_plain", "rules of onramp select", "tcp_rmem"]
    {
        assert!(planned.contains(word), "{word}: {planned}");
    }
    assert_eq!(all(), changed);

    let undone = onramp("undo").ok();
    for word in
        ["detached search", "detached plain", "removed the selection of 1 rule", "again in network namespace"]
    {
        assert!(undone.contains(word), "{word}: {undone}");
    }
    assert_eq!(all(), before);
    let nothing = cli::json("undo");
    assert_eq!((&nothing["detached"], &nothing["settings"]["restored"]), (&json!([]), &json!([])));
}

/// What an undo is to bring back: all but times, generations and counts.
fn kept(places: &[&Namespace]) -> Value {
    let mut status = cli::json("status");
    for row in status["algorithms"].as_array_mut().unwrap() {
        let kept = [
            "algorithm",
            "state",
            "base",
            "after_exit",
            "start",
            "observe",
            "default_in",
            "telemetry_max",
            "applied",
        ];
        let mut sets = row["parameter_sets"].clone();
        for set in sets.as_array_mut().into_iter().flatten() {
            set["parameters_generation"].take();
        }
        let of_row = kept.map(|name| row[name].clone());
        *row = json!([of_row, sets, row["expires_at_us"].is_null(), row["guard"].is_null()]);
    }
    let rules = cli::json("select list")["rules"].clone();
    let defaults = places.iter().map(|place| place.sysctl_get(DEFAULT).unwrap()).collect::<Vec<_>>();
    let settings = places.iter().map(|place| settings(place)).collect::<Vec<_>>();
    json!([status["algorithms"], status["settings"], rules, defaults, settings])
}

/// All undos that a report has, in the order of its text.
fn undos(report: &Value) -> Vec<String> {
    let rows = [&report["detached"], &report["upgraded"]].into_iter().flat_map(|rows| rows.as_array());
    let rows = rows.flatten().map(|row| &row["undo"]);
    let all = rows.chain([&report["selection_undo"], &report["undo"]]);
    all.filter_map(|undo| Some(undo.as_str()?.to_owned())).collect()
}

#[test]
#[ignore = "in a guest: make test"]
fn the_undo_that_a_verb_prints_is_a_command_that_runs_and_brings_all_back() {
    let _attachments = Attachments::lock();
    let (one, other) = (place(), place());
    one.sysctl_set(DEFAULT, "reno").unwrap();
    other.sysctl_set(DEFAULT, "bbr").unwrap();
    let here = Namespace::current().unwrap();
    let places = [&one, &other, &here];
    let path = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(cli::binary(), path.path().join("onramp")).unwrap();
    let path = format!("{}:{}", path.path().display(), std::env::var("PATH").unwrap());
    // Each in the first namespace, but what begins with `other`.
    for (before, verb) in [
        (vec![], "attach plain --default"),
        (vec![], "attach plain --default=all --for 1h"),
        (vec!["attach plain"], "attach plain --default"),
        (vec!["attach plain --default"], "attach plain --default=all"),
        (vec!["attach search --profile geo --default"], "tune search threshold_pct=33 --telemetry exit"),
        (vec!["attach plain --default=all --telemetry exit --for 1h"], "detach plain"),
        (vec!["attach plain --default", "other attach plain --default"], "detach plain"),
        (
            vec!["attach plain --default", "other attach fixed --default", "attach fixed --default"],
            "detach --all",
        ),
        (
            vec!["attach fixed", "other attach plain --default", "select add --port 7001 --use plain"],
            "detach --all",
        ),
        (vec!["attach plain"], "select add --port 7001 --use plain --initial-window 20"),
        (vec!["attach plain", "select add --port 7001 --use plain"], "select del --port 7001"),
        (vec!["attach plain --default=all", "select add --to 10.0.0.0/8 --use cubic"], "undo"),
        (vec!["attach ramp --base reno --after-exit none --start double"], "upgrade ramp --base bbr"),
        (vec!["attach ramp --base cubic"], "upgrade ramp --start resume --after-exit plateau"),
        (vec![], "doctor --profile geo --fix"),
    ] {
        for command in before {
            match command.strip_prefix("other ") {
                Some(command) => inside(&other, command).ok(),
                None => inside(&one, command).ok(),
            };
        }
        let had = kept(&places);
        let report: Value = serde_json::from_str(&inside(&one, &format!("--json {verb}")).ok()).unwrap();
        assert_ne!(kept(&places), had, "{verb}");
        let undos = undos(&report);
        assert!(!undos.is_empty(), "{report}");
        for undo in &undos {
            let ran = one.command("sh").args(["-c", undo]).env("PATH", &path).output().unwrap();
            assert!(ran.status.success(), "{verb}: {undo}: {ran:?}");
        }
        assert_eq!(kept(&places), had, "{verb}: {undos:?}");
        onramp("undo").ok();
    }
    // A set that was tuned, which its name does not bring back.
    for command in [
        "attach ramp",
        "select add --port 7001 --use ramp --profile geo",
        "tune ramp --profile geo exit_pct=200",
    ] {
        inside(&one, command).ok();
    }
    let report: Value = serde_json::from_str(&inside(&one, "--json detach --all").ok()).unwrap();
    assert_eq!(report["selection_undo"], Value::Null, "{report}");
    assert_eq!(report["selection_undo_leaves_out"].as_array().map(Vec::len), Some(1), "{report}");
}

#[test]
#[ignore = "in a guest: make test"]
fn undo_says_what_it_has_detached_when_settings_cannot_be_restored() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    onramp("attach fixed").ok();
    // What is no record of settings, where it should be.
    let root = Path::new("/sys/fs/bpf/onramp");
    fs::hard_link(root.join("fixed/params"), root.join("settings")).unwrap();
    let ran = onramp("undo");
    fs::remove_file(root.join("settings")).unwrap();
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stdout.contains("detached fixed"), "{ran:?}");
    assert!(ran.stderr.contains("settings"), "{ran:?}");
    assert_eq!(state("fixed"), None);
    assert_eq!(cli::json("undo")["settings"]["restored"], json!([]));
    assert_eq!(host_state(&[]), before);
}
