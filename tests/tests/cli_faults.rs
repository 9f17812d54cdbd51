//! What another process does to what is attached: pins removed by hand, the BPF file system unmounted, a namespace deleted.
//! `status` explains each, and one command clears it.

use std::fs;
use std::path::Path;
use std::process::Command;

use onramp_loader::ROOT;
use onramp_net::Namespace;
use onramp_tests::cli::{self, DEFAULT, host_state, inside, onramp, state};
use onramp_tests::traffic::{Server, Transfer, namespace};
use onramp_tests::{Attachments, guest};
use serde_json::Value;

/// Makes plain the default of a namespace that has reno.
fn attach_as_default(inside_it: &Namespace) {
    inside_it.sysctl_set(DEFAULT, "reno").unwrap();
    inside(inside_it, "attach plain --default").ok();
}

#[test]
#[ignore = "in a guest: make test"]
fn pins_that_are_removed_by_hand_are_missed_and_the_rest_is_cleared() {
    let _attachments = Attachments::lock();
    let here = namespace();
    here.sysctl_set(DEFAULT, "reno").unwrap();
    let before = host_state(&[&here]);
    let mut pins =
        vec!["plain/flows", "plain/params", "plain/counters", "plain/attachment", "plain/defaults"];
    pins.extend(["telemetry/rings", "telemetry/telemetry"]);
    if guest::has_links() {
        // Before there were links, the map is the registration, and can be distinguished from a stranger's only by its pin.
        pins.extend(["plain/link", "plain/operations"]);
    }
    for pin in pins {
        attach_as_default(&here);
        let transfer = Transfer::start(&here, 1_000_000);
        fs::remove_file(Path::new(ROOT).join(pin)).unwrap();
        let said = onramp("status").ok();
        if pin.starts_with("plain") {
            assert_eq!(state("plain").as_deref(), Some("interrupted"), "without {pin}");
            let error = onramp("tune plain --telemetry exit").refused(1);
            assert!(error.contains("onramp detach plain"), "without {pin}: {error}");
            assert!(onramp("attach plain").refused(1).contains("onramp detach plain"), "without {pin}");
        }
        if pin.starts_with("telemetry") {
            assert!(said.contains("of telemetry was removed") && said.contains(pin), "without {pin}: {said}");
            assert_eq!(state("plain").as_deref(), Some("attached"), "without {pin}");
            // New maps would not be filled.
            for verb in ["watch", "attach search"] {
                assert!(onramp(verb).refused(1).contains("then attach it anew"), "{verb} without {pin}");
            }
        }
        onramp("detach --all").ok();
        let default = here.sysctl_get(DEFAULT).unwrap();
        if pin == "plain/defaults" {
            // What it was is not known any more.
            assert!(["cubic", "reno"].contains(&default.as_str()), "{default}");
            here.sysctl_set(DEFAULT, "reno").unwrap();
        }
        assert_eq!(host_state(&[&here]), before, "without {pin}");
        assert!(transfer.goes_on(), "without {pin}");
    }
}

/// Standard output as JSON, of a command that has done its work in part.
fn partly(arguments: &str) -> Value {
    let ran = onramp(&format!("--json {arguments}"));
    assert_eq!(ran.code, Some(5), "{arguments}: {ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

/// The state of an algorithm, and whether it is explained.
fn standing<'a>(status: &'a Value, algorithm: &str) -> (&'a str, bool) {
    let rows = status["algorithms"].as_array().unwrap();
    let row = rows.iter().find(|row| row["algorithm"] == algorithm).unwrap();
    (row["state"].as_str().unwrap(), row["explanation"].is_string())
}

#[test]
#[ignore = "in a guest: make test"]
fn a_pin_of_another_kind_is_named_and_hides_no_other_algorithm() {
    let _attachments = Attachments::lock();
    let here = namespace();
    let before = host_state(&[&here]);
    for (pin, other) in [
        ("params", "flows"),
        ("counters", "defaults"),
        ("attachment", "flows"),
        ("flows", "params"),
        ("flow_telemetry", "counters"),
    ] {
        inside(&here, "attach plain").ok();
        inside(&here, "attach fixed --default").ok();
        let transfer = Transfer::start(&here, 1_000_000);
        let path = |name: &str| Path::new(ROOT).join("plain").join(name);
        fs::remove_file(path(pin)).unwrap();
        fs::hard_link(path(other), path(pin)).unwrap();
        let status = partly("status");
        assert_eq!(standing(&status, "plain"), ("unreadable", true), "{pin}: {status}");
        assert_eq!(standing(&status, "fixed"), ("attached", false), "{pin}: {status}");
        let ran = inside(&here, "--json flows");
        let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(listed["flows"][0]["algorithm"], "fixed", "{pin}: {listed}");
        // What is counted of all flows is nothing to a list of them.
        if pin != "counters" {
            assert_eq!(
                (ran.code, &listed["unreadable"][0]["algorithm"]),
                (Some(5), &"plain".into()),
                "{pin}"
            );
            let row = cli::row(&cli::doctor(&here, ""), "pins");
            assert_eq!(row["verdict"], "missing", "{pin}: {row}");
            assert!(row["advice"].as_str().unwrap().contains("onramp detach plain"), "{pin}: {row}");
        }
        onramp("detach --all").ok();
        assert!(transfer.goes_on(), "with another {pin}");
        drop(transfer);
        assert_eq!(host_state(&[&here]), before, "with another {pin}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn on_a_read_only_bpf_file_system_everything_is_named_and_nothing_half_done() {
    let _attachments = Attachments::lock();
    let here = namespace();
    attach_as_default(&here);
    let before = host_state(&[&here]);
    let remount = |options: &str| {
        assert!(Command::new("mount").args(["-o", options, "/sys/fs/bpf"]).status().unwrap().success());
    };
    remount("remount,ro");
    let status = partly("status");
    assert_eq!(standing(&status, "plain"), ("unreadable", true), "{status}");
    assert!(status["algorithms"][0]["explanation"].as_str().unwrap().contains("remount,rw"), "{status}");
    let home = tempfile::tempdir().unwrap();
    let record = format!("record -o {}", home.path().join("made").display());
    for verb in
        ["detach plain", "attach search", "tune plain --telemetry exit", "confirm plain", "watch", &record]
    {
        let error = onramp(verb).refused(1);
        assert!(error.contains("read-only") && error.contains("remount,rw"), "{verb}: {error}");
    }
    for verb in ["detach --all", "undo"] {
        let ran = onramp(verb);
        assert!(
            [Some(1), Some(5)].contains(&ran.code) && ran.stderr.contains("remount,rw"),
            "{verb}: {ran:?}"
        );
    }
    remount("remount,rw");
    assert_eq!(host_state(&[&here]), before);
    assert_eq!(state("plain").as_deref(), Some("attached"));
    onramp("detach plain").ok();
}

#[test]
#[ignore = "in a guest: make test"]
fn pins_that_change_places_are_cleared_and_servers_follow_the_default() {
    let _attachments = Attachments::lock();
    let here = namespace();
    here.sysctl_set(DEFAULT, "cubic").unwrap();
    let before = host_state(&[&here]);
    for (one, other) in [
        ("plain/link", "plain/params"),
        ("plain/operations", "plain/flows"),
        ("plain/defaults", "plain/counters"),
        ("plain/attachment", "fixed/attachment"),
        ("plain/link", "fixed/link"),
        ("plain/params", "telemetry/rings"),
    ] {
        onramp("attach fixed").ok();
        inside(&here, "attach plain --default").ok();
        let server = Server::begin(&here, None);
        let [one_path, other_path, between] =
            [one, other, "plain/between"].map(|pin| Path::new(ROOT).join(pin));
        fs::rename(&one_path, &between).unwrap();
        fs::rename(&other_path, &one_path).unwrap();
        fs::rename(&between, &other_path).unwrap();
        for verb in ["status", "flows", "tune plain --telemetry exit", "attach plain", "upgrade plain"] {
            let ran = onramp(verb);
            // 101 is the code of a panic.
            assert!(ran.code.is_some_and(|code| code <= 5), "{one} and {other}: {verb}: {ran:?}");
        }
        onramp("detach --all").ok();
        assert_eq!(host_state(&[&here]), before, "{one} and {other}");
        assert_eq!(server.next(), "cubic", "{one} and {other}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_bpf_file_system_that_is_unmounted_beneath_leaves_nothing_that_detach_cannot_clear() {
    let _attachments = Attachments::lock();
    if !guest::has_links() {
        // The registration is there for ever without its pin: `status` says so, and bpftool removes it.
        return;
    }
    let here = namespace();
    attach_as_default(&here);
    let transfer = Transfer::start(&here, 1_000_000);
    assert!(Command::new("umount").arg("/sys/fs/bpf").status().unwrap().success());
    assert_eq!(state("plain").as_deref(), Some("lingering"));
    assert!(onramp("status").ok().contains("onramp detach plain"));
    onramp("detach --all").ok();
    assert!(["cubic", "reno"].contains(&here.sysctl_get(DEFAULT).unwrap().as_str()));
    assert_eq!(state("plain"), None);
    assert!(transfer.goes_on());
    onramp("attach plain").ok();
    assert_eq!(state("plain").as_deref(), Some("attached"));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_namespace_that_is_deleted_takes_its_default_with_it() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let here = namespace();
    attach_as_default(&here);
    drop(here);
    assert_eq!(state("plain").as_deref(), Some("attached"));
    let detached = cli::json("detach plain");
    assert_eq!(detached["detached"][0]["defaults_restored"].as_array().unwrap().len(), 0, "{detached}");
    assert_eq!(host_state(&[]), before);
}
