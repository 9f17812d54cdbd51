//! Algorithms from outside the tree in the kernel; `tests/guests.sh` builds their objects.

use std::fs;
use std::time::Duration;

use onramp_loader::abi::ABI_VERSION;
use onramp_tests::cli::{DEFAULT, host_state, inside, json, onramp};
use onramp_tests::sender::Sender;
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{Fate, Wire};
use onramp_tests::{Attachments, pinned};
use serde_json::Value;
use tempfile::tempdir;

/// What `onramp-lab new` writes.
const MINE: &str = "/objects/mine.o";

#[test]
#[ignore = "in a guest: make test"]
fn an_object_is_attached_by_its_path_and_known_by_its_name_to_every_command_until_it_is_detached() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    onramp(&format!("attach {MINE} --set rise_pct=30 --dry-run")).ok();
    assert_eq!(host_state(&[]), before);
    onramp(&format!("attach {MINE} --set rise_pct=30")).ok();
    let row = &json("status")["algorithms"][0];
    assert_eq!((row["algorithm"].as_str(), row["state"].as_str()), (Some("mine"), Some("attached")), "{row}");
    assert_eq!(row["parameter_sets"][0]["parameters"]["rise_pct"], 30);
    onramp("tune mine rise_pct=40").ok();
    assert_eq!(json("status")["algorithms"][0]["parameter_sets"][0]["parameters"]["rise_pct"], 40);
    let refused = onramp("tune mine rise_pct=0").refused(2);
    assert!(refused.contains("1..1000"), "{refused}");
    let listed = json("list mine");
    assert_eq!(listed["algorithms"][0]["attached"], true, "{listed}");
    // The same again, and another algorithm next to it.
    assert!(onramp(&format!("attach {MINE}")).refused(1).contains("attached already"));
    onramp("attach /objects/other.o").ok();
    onramp("upgrade mine --base reno").ok();
    let status = json("status");
    assert_eq!(status["algorithms"][0]["base"], "reno", "{status}");
    assert_eq!(status["algorithms"].as_array().map(Vec::len), Some(2));
    onramp("detach other").ok();
    onramp("detach mine").ok();
    assert_eq!(host_state(&[]), before);
    assert!(onramp("tune mine").refused(2).contains("\"mine\""));
}

#[test]
#[ignore = "in a guest: make test"]
fn flows_of_an_object_are_listed_with_what_it_exports() {
    let _attachments = Attachments::lock();
    onramp(&format!("attach {MINE} --set rise_pct=1000")).ok();
    let wire = Wire::lay(Duration::from_millis(10), |_| Fate::Deliver);
    wire.near.sysctl_set(DEFAULT, "onramp_mine").unwrap();
    let mut sender = Sender::connect_by_default(wire);
    sender.send(400_000);
    let flow = || {
        let text = inside(&sender.wire.near, "flows --json").ok();
        let listed: Value = serde_json::from_str(&text).unwrap();
        listed["flows"][0].clone()
    };
    assert!(eventually(|| flow()["outstanding_segments"] == 0));
    let flow = flow();
    assert_eq!(flow["algorithm"], "mine", "{flow}");
    let rtt_us = flow["exports"]["round_rtt_us"].as_u64();
    assert!(rtt_us.is_some_and(|rtt_us| (20_000..40_000).contains(&rtt_us)), "{flow}");
}

#[test]
#[ignore = "in a guest: make test"]
fn a_command_runs_with_an_object_and_nothing_remains() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let said = onramp(&format!("run {MINE} -- cat /proc/sys/net/ipv4/tcp_available_congestion_control")).ok();
    assert!(said.contains("onramp_mine"), "{said}");
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn another_object_of_the_name_that_is_attached_is_refused_with_both_places() {
    let _attachments = Attachments::lock();
    onramp(&format!("attach {MINE}")).ok();
    let home = tempdir().unwrap();
    let changed = home.path().join("mine.o");
    let mut bytes = fs::read(MINE).unwrap();
    // What no part reads.
    bytes.push(0);
    fs::write(&changed, bytes).unwrap();
    let error = onramp(&format!("attach {}", changed.display())).refused(1);
    assert!(error.contains("attached already"), "{error}");
}

/// As after an update of onramp to another ABI: nothing of the object can be read but its name.
#[test]
#[ignore = "in a guest: make test"]
fn an_object_that_is_attached_for_another_abi_is_explained_refused_and_detached_by_its_name() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    for detach in ["detach mine", "detach --all"] {
        onramp(&format!("attach {MINE}")).ok();
        let other = ABI_VERSION + 1;
        pinned::of_abi("mine", other);
        pinned::object_of_abi("mine", other);
        let row = &json("status")["algorithms"][0];
        assert_eq!(
            (row["algorithm"].as_str(), row["state"].as_str()),
            (Some("mine"), Some("other_build")),
            "{row}"
        );
        for refused in ["tune mine rise_pct=40", "tune mine", "confirm mine"] {
            let error = onramp(refused).refused(1);
            assert!(error.contains("another onramp") && error.contains("onramp detach mine"), "{error}");
        }
        onramp(&format!("attach {MINE}")).refused(1);
        onramp(detach).ok();
        assert_eq!(host_state(&[]), before, "{detach}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn what_the_verifier_refuses_is_refused_with_its_words_and_leaves_nothing() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let ran = onramp("attach /objects/wild.o");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("memory access"), "{ran:?}");
    assert_eq!(host_state(&[]), before);
}

/// Those of lab/examples.
#[test]
#[ignore = "in a guest: make test"]
fn the_verifier_takes_every_published_start() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let objects: Vec<_> =
        fs::read_dir("/objects/published").unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(objects.len() >= 4, "{objects:?}");
    for object in objects {
        onramp(&format!("attach {}", object.display())).ok();
        onramp("detach --all").ok();
        assert_eq!(host_state(&[]), before, "{object:?}");
    }
}
