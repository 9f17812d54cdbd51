//! `onramp-lab bench load`: what it counts is what it made, and nothing is left of it.

use onramp_tests::cli::{host_state, json, onramp};
use onramp_tests::{Attachments, guest};
use serde_json::Value;

#[test]
#[ignore = "in a guest: make test"]
fn every_connection_arrives_and_is_counted_by_its_follower() {
    guest::required();
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let report = json("lab bench load search --flows 50 --rate 100 --pairs 2 --turn 1s --cycles 2");
    let number = |value: &Value| value.as_u64().unwrap();
    for (arm, name) in [(0, "cubic"), (1, "search")] {
        let arm = &report["arms"][arm];
        assert_eq!((&arm["arm"], number(&arm["connections"])), (&name.into(), 200), "{report}");
        let bytes: u64 = arm["turns"].as_array().unwrap().iter().map(|turn| number(&turn["bytes"])).sum();
        assert_eq!(bytes, 200 * 9 / 10 * 5_000 + 200 / 10 * 100_000);
    }
    let consumers = &report["consumers"];
    for consumer in ["first", "second"] {
        let of = |name: &str| number(&consumers[consumer][name]);
        assert_eq!((of("lost"), of("missing"), of("unannounced")), (0, 0, 0), "{report}");
    }
    // What is held, and every tenth of 100 connections a second for 22 and 11 seconds: the others have no state.
    assert_eq!(number(&consumers["first"]["flows"]), 50 + 220);
    let received = number(&consumers["second"]["flows"]);
    assert!((50 + 110..=50 + 110 + 4).contains(&received), "{received}: those that were in progress as well");
    // Both ends.
    assert_eq!(number(&report["shadow"]["connections"]), 100);
    assert_eq!(number(&report["shadow"]["followed"]), 200);
    assert_eq!(number(&report["shadow"]["dropped"]), 0);
    assert!(number(&report["detach"]["sockets"]) >= 50, "{report}");
    assert_eq!(number(&report["cycles"]["cycles"]), 2);
    assert_eq!(host_state(&[]), before);
}

#[test]
fn a_load_out_of_range_is_refused_before_anything_is_attached() {
    for (arguments, said) in [
        ("serach", "there is no algorithm"),
        ("--flows 0", "1 to 50000"),
        ("--rate 0", "1 to 100000"),
        ("--pairs 1001", "1 to 1000"),
        ("--cycles 0", "1 to 10000"),
        ("--turn 900ms", "1s to 600s"),
    ] {
        let ran = onramp(&format!("lab bench load {arguments}"));
        assert!(ran.code == Some(2) && ran.stderr.contains(said), "{arguments}: {ran:?}");
    }
}
