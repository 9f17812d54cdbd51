//! Consumers whose whole control group is frozen, their lease processes with them.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cgroups::cgroups;
use onramp_tests::telemetry::{Consumer, attached, lease_processes, rings};
use onramp_tests::traffic::{TIMEOUT, Transfer, eventually};

/// What [`Consumer`] runs.
mod child {
    #[test]
    #[ignore = "run by other tests, as a process to freeze"]
    fn consumer_process() {
        onramp_tests::telemetry::Consumer::serve();
    }
}

/// A control group of some processes. They go on, outside, when it is dropped, and it is removed.
struct Cgroup {
    path: PathBuf,
    root: PathBuf,
}

impl Cgroup {
    fn create() -> Self {
        let root = cgroups();
        let path = root.join(format!("onramp-test-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self { path, root }
    }

    fn hold(&self, pid: u32) {
        fs::write(self.path.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    fn freeze(&self) {
        fs::write(self.path.join("cgroup.freeze"), "1").unwrap();
        let frozen = || fs::read_to_string(self.path.join("cgroup.events")).unwrap().contains("frozen 1");
        assert!(eventually(frozen), "it does not freeze");
    }

    fn thaw(&self) {
        fs::write(self.path.join("cgroup.freeze"), "0").unwrap();
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::write(self.path.join("cgroup.freeze"), "0");
        let removed = eventually(|| {
            let pids = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
            for pid in pids.lines() {
                // It may have ended meanwhile.
                let _ = fs::write(self.root.join("cgroup.procs"), pid);
            }
            fs::remove_dir(&self.path).is_ok()
        });
        if !removed {
            eprintln!("cannot remove {}", self.path.display());
        }
    }
}

/// A transfer, and a consumer that can be frozen with its lease process. Fields are dropped in this order.
struct Scene {
    transfer: Transfer,
    cgroup: Cgroup,
    consumer: Consumer,
    inside: Namespace,
    _attachments: Attachments,
}

impl Scene {
    fn set() -> Self {
        let (attachments, inside) = attached();
        let before = lease_processes();
        let consumer = Consumer::start();
        let cgroup = Cgroup::create();
        cgroup.hold(consumer.pid());
        let mut lease_process = Vec::new();
        assert!(eventually(|| {
            lease_process = lease_processes();
            lease_process.retain(|pid| !before.contains(pid));
            lease_process.len() == 1
        }));
        cgroup.hold(lease_process[0] as u32);
        let transfer = Transfer::start(&inside, 2_000_000);
        Self { transfer, cgroup, consumer, inside, _attachments: attachments }
    }

    /// The number of events that were written or, as far as there was a consumer, had no room. Clears nothing.
    fn numbered(&self) -> u64 {
        let flows = self.inside.run(|| onramp_loader::flows(|_| true)).unwrap().unwrap();
        flows.iter().filter_map(|flow| flow.telemetry).map(|kept| u64::from(kept.sequence)).sum()
    }

    /// Whether no events are emitted any more while the transfer goes on.
    fn is_quiet(&self) -> bool {
        let before = self.numbered();
        (0..5).all(|_| self.transfer.goes_on()) && self.numbered() == before
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn nothing_is_written_for_a_frozen_consumer_and_it_is_reported_for_how_long() {
    let mut scene = Scene::set();
    let before = Instant::now();
    scene.cgroup.freeze();
    let at = scene.numbered();
    assert!(eventually(|| scene.numbered() > at), "its lease has not run out yet");
    assert!(eventually(|| scene.is_quiet()), "its lease runs out");
    assert!(scene.is_quiet(), "and stays so");

    let quiet = scene.numbered();
    scene.cgroup.thaw();
    let thawed = Instant::now();
    // Consumer and lease process go on in any order: what had no room may be reported before what was not written.
    let mut unobserved = 0;
    while unobserved == 0 {
        assert!(thawed.elapsed() < TIMEOUT, "it is never reported");
        unobserved = scene.consumer.line("lost").split_once(' ').unwrap().1.parse().unwrap();
    }
    assert!(Duration::from_micros(unobserved) < before.elapsed(), "{unobserved} us");
    assert!(eventually(|| scene.numbered() > quiet), "it is reported again");
    let consumers = onramp_loader::consumers().unwrap();
    assert_eq!(consumers.iter().map(|one| one.pid).collect::<Vec<_>>(), [scene.consumer.pid()]);
    assert_eq!(consumers[0].unobserved.as_micros(), u128::from(unobserved));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_frozen_consumer_whose_slot_was_cleared_ends_with_an_error() {
    let mut scene = Scene::set();
    let leases_before = lease_processes().len();
    let rings_before = rings().len();
    scene.cgroup.freeze();
    // Asking clears it, but not before its lease has run out.
    assert_eq!(onramp_loader::consumers().unwrap().len(), 1);
    assert!(eventually(|| onramp_loader::consumers().unwrap().is_empty()));
    assert!(scene.transfer.goes_on());
    scene.cgroup.thaw();
    assert!(scene.consumer.line("ended").contains("onramp-lease"));
    assert!(
        eventually(|| lease_processes().len() == leases_before - 1),
        "the lease process has nothing left to keep"
    );
    assert!(eventually(|| rings().len() == rings_before - 1), "its ring has gone with it");
    assert_eq!(onramp_loader::consumers().unwrap(), []);
}
