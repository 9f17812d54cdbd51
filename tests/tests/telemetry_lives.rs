//! Consumers that are stopped or killed, in a process of their own.

use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_tests::telemetry::{Consumer, attached, lease_processes, rings};
use onramp_tests::traffic::{Transfer, eventually};

/// What [`Consumer`] runs.
mod child {
    #[test]
    #[ignore = "run by other tests, as a process to kill"]
    fn consumer_process() {
        onramp_tests::telemetry::Consumer::serve();
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn a_killed_consumer_leaves_neither_ring_nor_slot() {
    let (_attached, _) = attached();
    let (rings_before, leases_before) = (rings(), lease_processes());
    let consumer = Consumer::start();
    assert_eq!(onramp_loader::consumers().unwrap()[0].pid, consumer.pid());
    let added = |one: &[u32]| rings().iter().filter(|ring| !one.contains(ring)).count();
    assert_eq!(added(&rings_before), 1);
    assert!(eventually(|| lease_processes().len() == leases_before.len() + 1));
    consumer.signal(Signal::SIGKILL);
    assert!(eventually(|| added(&rings_before) == 0), "its lease process frees the ring");
    assert!(eventually(|| lease_processes() == leases_before), "and ends");
    assert_eq!(onramp_loader::consumers().unwrap(), []);
}

#[test]
#[ignore = "in a guest: make test"]
fn a_consumer_killed_together_with_its_lease_process_is_cleared_by_the_next_command() {
    let (_attached, _) = attached();
    let (rings_before, leases_before) = (rings(), lease_processes());
    let consumer = Consumer::start();
    assert!(eventually(|| lease_processes().len() == leases_before.len() + 1));
    for lease_process in lease_processes().into_iter().filter(|pid| !leases_before.contains(pid)) {
        kill(Pid::from_raw(lease_process), Signal::SIGKILL).unwrap();
    }
    consumer.signal(Signal::SIGKILL);
    // Its lease of five seconds runs out.
    assert!(eventually(|| onramp_loader::consumers().unwrap().is_empty()));
    assert!(eventually(|| rings().iter().all(|ring| rings_before.contains(ring))));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_stopped_consumer_sees_what_was_dropped_when_it_goes_on() {
    let (_attached, inside) = attached();
    let mut consumer = Consumer::start();
    consumer.signal(Signal::SIGSTOP);
    let transfer = Transfer::start(&inside, 2_000_000);
    // Longer than its lease: its lease process goes on.
    sleep(Duration::from_secs(6));
    assert!(transfer.goes_on());
    drop(transfer);
    let lost = onramp_loader::consumers().unwrap()[0].lost;
    assert!(lost > 0, "it has a ring of one page");
    consumer.signal(Signal::SIGCONT);
    let report = consumer.line("lost");
    let (events, unobserved) = report.split_once(' ').unwrap();
    assert!(events.parse::<u64>().unwrap() > 0, "{report}");
    assert_eq!(unobserved, "0", "all that was lost was counted");
}

#[test]
#[ignore = "in a guest: make test"]
fn without_its_lease_process_a_stream_ends_with_an_error() {
    let (_attached, _) = attached();
    let before = lease_processes();
    let mut stream = onramp_tests::telemetry::stream(onramp_loader::telemetry::Level::Exit);
    assert!(eventually(|| lease_processes().len() == before.len() + 1));
    for lease_process in lease_processes().into_iter().filter(|pid| !before.contains(pid)) {
        kill(Pid::from_raw(lease_process), Signal::SIGKILL).unwrap();
    }
    let mut error = None;
    eventually(|| {
        error = stream.next_within(Duration::from_millis(10)).err();
        error.is_some()
    });
    assert!(error.unwrap().to_string().contains("onramp-lease"));
}
