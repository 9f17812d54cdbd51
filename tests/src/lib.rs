//! What tests that cross crates share. Tests that take a kernel run in guests ([`guest`]); one that is left out for
//! another reason says so ([`skip`]).
//!
//! * [`Attachments`]: the right to attach. Names of congestion controls are the host's, so tests take turns.
//! * [`bottleneck`]: a queue on such a wire.
//! * [`capture`]: packets of a namespace, with their times.
//! * [`cgroups`]: cgroups to be in.
//! * [`cli`]: the `onramp` binary, run and looked at.
//! * [`clients`]: clients of web servers, over an emulated link.
//! * [`connection`]: kinds of connections over such a wire, and who reads.
//! * [`containers`]: containers of an OCI runtime.
//! * [`counted`]: what a control and the kernel have counted.
//! * [`crowd`]: many connections, each byte looked at.
//! * [`faults`]: a command that is cut off, or gets an error, at a step.
//! * [`guest`]: the kernel that tests need for themselves.
//! * [`host`]: an attachment on the kernel that runs.
//! * [`pinned`]: what is pinned, and as another build would have left it.
//! * [`recorder`]: `onramp record` in progress.
//! * [`recordings`]: recordings of flows that no kernel had.
//! * [`sender`]: a connection over such a wire.
//! * [`servers`]: servers of other projects.
//! * [`telemetry`]: consumers of telemetry.
//! * [`traffic`]: connections to look at.
//! * [`wire`]: two namespaces with scripted packet fates between them.

pub mod bottleneck;
pub mod capture;
pub mod cgroups;
pub mod cli;
pub mod clients;
pub mod connection;
pub mod containers;
pub mod counted;
pub mod crowd;
pub mod faults;
pub mod guest;
pub mod host;
pub mod pinned;
pub mod recorder;
pub mod recordings;
pub mod sender;
pub mod servers;
pub mod telemetry;
pub mod traffic;
pub mod wire;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use onramp_loader::{AttachOptions, Attached};

/// Held by the test that attaches on this machine, in any process.
const LOCK: &str = "/tmp/onramp-test.lock";

/// The kernel frees in its own time what is not held any more, and the watch of a time limit looks every ten seconds.
const SETTLING: Duration = Duration::from_secs(15);

/// Says that a test is left out, and why: a line `SKIP: FILE:LINE: REASON`, which `make test` counts.
///
/// # Panics
/// With `ONRAMP_REQUIRE=1` in the environment: nothing is to be left out then.
#[track_caller]
pub fn skip(reason: &str) {
    let place = std::panic::Location::caller();
    assert!(
        std::env::var_os("ONRAMP_REQUIRE").is_none_or(|value| value != "1"),
        "left out, and ONRAMP_REQUIRE=1: {reason}"
    );
    // Past the harness, which keeps what a test prints that passes.
    let line = format!("SKIP: {}:{}: {reason}\n", place.file(), place.line());
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// The right to attach, of one test at a time on this machine. Nothing is attached when it begins, and nothing when it
/// ends, also where the test panics. Of all that onramp may change on a host, BPF objects and processes included,
/// nothing new may be left then.
pub struct Attachments {
    _lock: Flock<File>,
    before: Vec<String>,
}

impl Attachments {
    /// Waits for its turn.
    ///
    /// # Panics
    /// Outside of a guest ([`guest::required`]), and if the lock file cannot be locked.
    pub fn lock() -> Self {
        guest::required();
        let path = Path::new(LOCK);
        let file = OpenOptions::new().create(true).append(true).open(path).expect("lock file");
        let lock = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| errno).expect("lock");
        detach_all();
        Self { _lock: lock, before: everything() }
    }

    /// Waits for its turn, and attaches these algorithms with their defaults.
    ///
    /// # Panics
    /// As [`Attachments::lock`], and if one is refused.
    pub fn new(algorithms: &[&str]) -> Self {
        let attachments = Self::lock();
        for name in algorithms {
            let algorithm = onramp_loader::find(name).unwrap_or_else(|error| panic!("{error}"));
            attachments.attach(&AttachOptions::new(algorithm.parameters()));
        }
        attachments
    }

    /// Attaches.
    ///
    /// # Panics
    /// If it is refused.
    pub fn attach(&self, options: &AttachOptions) -> Attached {
        onramp_loader::attach(options).unwrap_or_else(|error| panic!("attach: {error}"))
    }
}

impl Drop for Attachments {
    /// What the test itself holds has been dropped before, for this was made first.
    fn drop(&mut self) {
        detach_all();
        let left = || everything().into_iter().filter(|one| !self.before.contains(one)).collect::<Vec<_>>();
        let deadline = Instant::now() + SETTLING;
        while !thread::panicking() && !left().is_empty() {
            assert!(Instant::now() < deadline, "left behind: {:?}", left());
            thread::sleep(Duration::from_millis(200));
        }
    }
}

/// All that a test may not leave changed; what is changed reads differently.
fn everything() -> Vec<String> {
    [cli::host_state(&[]), cli::bpf_objects(), cli::processes()].concat()
}

/// What `onramp detach --all` does, without the binary.
fn detach_all() {
    if let Err(error) = onramp_loader::select::clear() {
        eprintln!("{error}");
    }
    for algorithm in onramp_loader::pinned().unwrap() {
        if let Err(error) = onramp_loader::detach(algorithm, false) {
            eprintln!("{error}");
        }
    }
    if let Err(error) = onramp_loader::clear_leftovers() {
        eprintln!("{error}");
    }
}
