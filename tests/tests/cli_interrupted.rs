//! Commands that are killed, or get an error, at each of their steps, and commands at once: what is left is explained
//! and can be cleared.

use std::collections::HashMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, DEFAULT, host_state, json, onramp, state};
use onramp_tests::faults::{self, Call, Disturbed, Traced};
use onramp_tests::traffic::{Server, Transfer, namespace};

/// A namespace with a default of its own, and plain attached and detached once: the kernel does some things
/// at the first time only.
fn place() -> Namespace {
    let place = namespace();
    place.sysctl_set(DEFAULT, "reno").unwrap();
    cli::inside(&place, "attach plain --default").ok();
    onramp("detach --all").ok();
    place
}

#[test]
#[ignore = "in a guest: make test"]
fn an_attach_that_is_killed_at_any_step_is_cleared_and_one_that_is_given_an_error_leaves_all_as_it_was() {
    attach_disturbed(Disturbed::ByTurns);
}

fn attach_disturbed(how: Disturbed) {
    let _attachments = Attachments::lock();
    let place = place();
    let before = host_state(&[&place]);
    let attach = Traced { namespace: &place, arguments: "attach plain --default".into() };
    let steps = attach.steps();
    onramp("detach --all").ok();
    for (number, (call, error)) in steps.enumerate() {
        for killed in how.kills(number) {
            if killed {
                attach.killed_before(&call);
                assert_explained(&call);
            } else {
                let ran = attach.fail(&call, error);
                println!("{error:?} at {call}: {:?} {}", ran.code, ran.stderr.trim());
                if ran.code == Some(0) {
                    // What is in no other's way may stay.
                    assert_eq!(state("plain").as_deref(), Some("attached"), "{error:?} at {call}");
                } else {
                    let expected = if error == Errno::EPERM { 4 } else { 1 };
                    assert_eq!(ran.code, Some(expected), "{error:?} at {call}");
                    assert!(ran.stderr.starts_with("error: "), "{error:?} at {call}: {ran:?}");
                    assert_eq!(host_state(&[&place]), before, "{error:?} at {call}");
                }
            }
            onramp("detach --all").ok();
            assert_eq!(host_state(&[&place]), before, "{call}");
        }
    }
    onramp("attach plain").ok();
    assert_eq!(state("plain").as_deref(), Some("attached"));
}

/// What an attach has left that was killed before this call is there whole, or is named with what clears it.
fn assert_explained(call: &Call) {
    let found = state("plain");
    println!("killed before {call}: {}", found.as_deref().unwrap_or("nothing"));
    match found.as_deref() {
        None => {}
        Some("attached") => {
            onramp("tune plain --telemetry exit").ok();
        }
        Some("interrupted") => {
            let refused = onramp("attach plain").refused(1);
            assert!(refused.contains("onramp detach plain"), "{refused}");
            onramp("tune plain --telemetry exit").refused(1);
        }
        Some(other) => panic!("{other} before {call:?}"),
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_detach_that_is_killed_or_given_an_error_at_any_step_can_be_continued() {
    detach_disturbed(Disturbed::ByTurns);
}

mod minutes {
    use super::*;

    #[test]
    #[ignore = "for minutes: tests/guests.sh --minutes cli_interrupted"]
    fn an_attach_that_is_killed_and_given_an_error_at_each_step_leaves_nothing_that_is_not_explained() {
        attach_disturbed(Disturbed::BothWays);
    }

    #[test]
    #[ignore = "for minutes: tests/guests.sh --minutes cli_interrupted"]
    fn a_detach_that_is_killed_and_given_an_error_at_each_step_can_be_continued() {
        detach_disturbed(Disturbed::BothWays);
    }
}

fn detach_disturbed(how: Disturbed) {
    let _attachments = Attachments::lock();
    let place = place();
    let before = host_state(&[&place]);
    let detach = Traced { namespace: &place, arguments: "detach plain".into() };
    cli::inside(&place, "attach plain --default").ok();
    let transfer = Transfer::start(&place, 1_000_000);
    let steps = detach.steps();
    drop(transfer);
    assert_eq!(host_state(&[&place]), before);
    for (number, (call, error)) in steps.enumerate() {
        for killed in how.kills(number) {
            onramp("detach --all").ok();
            cli::inside(&place, "attach plain --default").ok();
            let transfer = Transfer::start(&place, 1_000_000);
            let server = Server::begin(&place, None);
            let how = if killed {
                detach.killed_before(&call);
                "killed".to_owned()
            } else {
                let ran = detach.fail(&call, error);
                format!("{error:?}: {:?} {}", ran.code, ran.stderr.trim())
            };
            let found = state("plain");
            println!("{how} at {call}: {}", found.as_deref().unwrap_or("nothing"));
            // It never says that all is done when something is left.
            assert!(!how.contains("Some(0)") || host_state(&[&place]) == before, "{how} at {call}");
            if let Some(state) = &found {
                assert!(["attached", "interrupted", "lingering"].contains(&state.as_str()), "{state}");
            }
            onramp("detach --all").ok();
            assert_eq!(host_state(&[&place]), before, "{how} at {call}");
            assert!(transfer.goes_on(), "{how} at {call}");
            assert_eq!(server.next(), "reno", "{how} at {call}");
        }
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_tune_that_is_killed_or_given_an_error_at_any_step_leaves_the_previous_values_or_the_new() {
    let _attachments = Attachments::lock();
    let place = place();
    onramp("attach search --set missed_bins_rtts=10 --set threshold_pct=10").ok();
    let tune = |value: u32| Traced {
        namespace: &place,
        arguments: format!("tune search missed_bins_rtts={value} threshold_pct={value}"),
    };
    let values = || {
        let now = json("tune search");
        let value = |name: &str| now["parameters"][name].as_u64().unwrap();
        assert_eq!(value("missed_bins_rtts"), value("threshold_pct"), "{now}");
        value("missed_bins_rtts")
    };
    tune(20).changes();
    let steps = tune(10).steps();
    for (call, error) in steps {
        onramp("tune search missed_bins_rtts=10 threshold_pct=10").ok();
        tune(20).killed_before(&call);
        let found = values();
        println!("killed before {call}: {found}");
        assert!([10, 20].contains(&found), "{call}");

        onramp("tune search missed_bins_rtts=10 threshold_pct=10").ok();
        let ran = tune(20).fail(&call, error);
        println!("{error:?} at {call}: {:?} {}", ran.code, ran.stderr.trim());
        assert_eq!(values(), if ran.code == Some(0) { 20 } else { 10 }, "{error:?} at {call}: {ran:?}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_set_is_filled_only_once_no_flow_reads_it_and_each_generation_has_one_set_of_values() {
    let _attachments = Attachments::lock();
    let place = place();
    onramp("attach search --set threshold_pct=10").ok();
    let tune =
        |value: u32| Traced { namespace: &place, arguments: format!("tune search threshold_pct={value}") };
    let calls: Vec<_> = tune(11).changes().iter().map(ToString::to_string).collect();
    let first = |kind: &str| calls.iter().position(|call| call == kind);
    let (wait, filled) = (first(faults::WAIT), first("BPF_MAP_UPDATE_ELEM"));
    // Who switched last may have been killed before anything else.
    assert!(wait.is_some() && wait < filled, "{calls:?}");
    let mut values = HashMap::new();
    let mut noted = || {
        let now = json("tune search");
        let value = now["parameters"]["threshold_pct"].clone();
        let generation = now["parameters_generation"].as_u64().unwrap();
        assert_eq!(*values.entry(generation).or_insert(value.clone()), value, "{now}");
    };
    for (number, call) in tune(12).changes().iter().enumerate() {
        for value in [20, 40] {
            let tune = tune(value + number as u32);
            tune.killed_before(call);
            noted();
        }
        onramp(&format!("tune search threshold_pct={}", 30 + number)).ok();
        noted();
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn commands_at_once_leave_a_consistent_state() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let storm = |verbs: &'static [&'static str], rounds: usize| {
        thread::spawn(move || {
            let mut codes = Vec::new();
            for round in 0..rounds {
                let ran = onramp(verbs[round % verbs.len()]);
                // Refused by what another has done, never broken.
                let expected = ran.code == Some(0)
                    || (ran.code == Some(1)
                        && (ran.stderr.contains("is attached already")
                            || ran.stderr.contains("is not attached")));
                assert!(expected, "{ran:?}");
                codes.push(ran.code);
            }
            codes
        })
    };
    let storms = [
        storm(&["attach fixed", "detach fixed"], 12),
        storm(&["attach fixed", "tune fixed exit_window_bytes=60000", "detach fixed"], 12),
        storm(&["tune fixed exit_window_bytes=90000", "status", "attach plain", "detach plain"], 12),
        storm(&["status --json", "flows", "list", "detach --all"], 12),
    ];
    for storm in storms {
        let codes = storm.join().unwrap();
        assert!(codes.contains(&Some(0)), "{codes:?}");
    }
    onramp("detach --all").ok();
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_command_that_needs_an_attachment_waits_for_a_command_in_progress() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let (root, half) = (Path::new("/sys/fs/bpf/onramp"), Path::new("/sys/fs/bpf/onramp/fixed"));
    for (asked, refused) in [
        ("tune fixed", true),
        ("confirm fixed", true),
        ("select add --to 10.0.0.0/8 --use fixed", true),
        ("detach fixed --dry-run", true),
        ("attach fixed --dry-run", false),
    ] {
        // As an attach has it that has just begun.
        let file_system = File::open("/sys/fs/bpf").unwrap();
        let lock = Flock::lock(file_system, FlockArg::LockExclusive).map_err(|(_, errno)| errno).unwrap();
        fs::create_dir(root).unwrap();
        fs::set_permissions(root, Permissions::from_mode(0o700)).unwrap();
        fs::create_dir(half).unwrap();
        let asking = thread::spawn(move || onramp(asked));
        thread::sleep(Duration::from_secs(2));
        fs::remove_dir(half).unwrap();
        fs::remove_dir(root).unwrap();
        drop(lock);
        let ran = asking.join().unwrap();
        if refused {
            let said = ran.refused(1);
            assert!(said.contains("fixed"), "{asked}: {said}");
        } else {
            assert!(ran.ok().contains("load onramp_fixed"), "{asked}");
        }
    }
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn settings_made_at_once_are_never_mixed() {
    let _attachments = Attachments::lock();
    onramp("attach search --set missed_bins_rtts=10 --set threshold_pct=10").ok();
    let storms: Vec<_> = [20, 30, 40]
        .map(|value| {
            thread::spawn(move || {
                for _ in 0..8 {
                    onramp(&format!("tune search missed_bins_rtts={value} threshold_pct={value}")).ok();
                }
            })
        })
        .into();
    let mut generation = 0;
    while storms.iter().any(|storm| !storm.is_finished()) {
        let now = json("tune search");
        assert_eq!(now["parameters"]["missed_bins_rtts"], now["parameters"]["threshold_pct"], "{now}");
        let next = now["parameters_generation"].as_u64().unwrap();
        assert!(next >= generation, "{next} after {generation}");
        generation = next;
    }
    for storm in storms {
        storm.join().unwrap();
    }
}
