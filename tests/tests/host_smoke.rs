//! The main job on the running kernel, as root: attached, used by a connection in a namespace of its own, tuned under
//! it, and detached. Nothing is said of times; all else is tested in guests.

use std::path::Path;

use onramp_tests::cli::{DEFAULT, json, onramp};
use onramp_tests::host::Fixed;
use onramp_tests::traffic::{Transfer, eventually, namespace};
use serde_json::Value;

#[test]
fn what_a_killed_test_has_left_is_taken_away_by_the_next() {
    let Some(fixed) = Fixed::attach() else { return };
    fixed.leave();
    let Some(fixed) = Fixed::attach() else { panic!("it was taken for another's") };
    assert_eq!(json("tune fixed")["parameters"]["exit_window_bytes"], 0);
    drop(fixed);
}

#[test]
fn a_control_is_attached_used_tuned_and_detached_on_this_kernel() {
    let Some(_fixed) = Fixed::attach() else { return };
    let registered = || onramp_loader::kernel::registered().unwrap().contains(&"onramp_fixed".to_owned());
    assert!(registered());

    let inside = namespace();
    inside.sysctl_set(DEFAULT, "onramp_fixed").unwrap();
    let transfer = Transfer::start(&inside, 1_000_000);
    assert!(transfer.goes_on());
    let flow = || {
        let flows = inside.run(|| onramp_loader::flows(|socket| socket.local == transfer.local));
        flows.unwrap().unwrap().pop()
    };
    assert_eq!(flow().unwrap().algorithm.name(), "fixed");

    onramp("tune fixed exit_window_bytes=1000000000").ok();
    assert_eq!(json("tune fixed")["parameters"]["exit_window_bytes"], 1_000_000_000);
    assert!(eventually(|| flow().unwrap().header.is_some_and(|header| header.generation == 1)));

    // A sandbox may keep even root from looking into others' processes: that is said, and all that can be seen is done.
    let detached = onramp("--json detach fixed");
    let report: Value = serde_json::from_str(&detached.stdout).unwrap();
    let row = &report["detached"][0];
    assert_eq!(row["stragglers"].as_array().map(Vec::len), Some(0), "{row}");
    // When the kernel frees the code is its own affair.
    let all_done = row["unseen"].as_array().is_some_and(Vec::is_empty) && row["still_loaded"] == 0;
    assert_eq!(detached.code, Some(if all_done { 0 } else { 5 }), "{detached:?}");
    assert!(!registered());
    assert!(!Path::new(onramp_loader::ROOT).join("fixed").exists());
    assert!(flow().is_none(), "the connection is no longer on it");
    assert!(transfer.goes_on(), "and lives");
}
