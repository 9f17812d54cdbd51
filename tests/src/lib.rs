//! What tests that cross crates share. Tests run as root where they touch the kernel; without it they say `SKIP:` with
//! the reason and pass.
//!
//! * [`Attachments`]: the right to attach. Names of congestion controls are the host's, so tests take turns.
//! * [`bottleneck`]: a queue on such a wire.
//! * [`capture`]: packets of a namespace, with their times.
//! * [`cli`]: the `onramp` binary, run and looked at.
//! * [`recorder`]: `onramp record` under way.
//! * [`sender`]: a connection over such a wire.
//! * [`telemetry`]: consumers of telemetry.
//! * [`traffic`]: connections to look at.
//! * [`wire`]: two namespaces with scripted packet fates between them.

pub mod bottleneck;
pub mod capture;
pub mod cli;
pub mod recorder;
pub mod sender;
pub mod telemetry;
pub mod traffic;
pub mod wire;

use std::fs::{File, OpenOptions};
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};
use onramp_loader::{AttachOptions, Attached};

/// Held by whoever attaches on this machine, in whichever process.
const LOCK: &str = "/tmp/onramp-test.lock";

/// Whether this is root; says `SKIP:` with the test's name if not.
pub fn root_or_skip(test: &str) -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        println!("SKIP: {test}: needs root");
    }
    root
}

/// The right to attach, of one test at a time on this machine. Nothing is attached when it begins, and nothing
/// when it ends, also where the test panics.
pub struct Attachments {
    _lock: Flock<File>,
}

impl Attachments {
    /// Waits for its turn.
    ///
    /// # Panics
    /// If the lock file cannot be locked.
    pub fn lock() -> Self {
        let path = Path::new(LOCK);
        let file = OpenOptions::new().create(true).append(true).open(path).expect("lock file");
        let lock = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| errno).expect("lock");
        detach_all();
        Self { _lock: lock }
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
    fn drop(&mut self) {
        detach_all();
    }
}

/// What `onramp detach --all` does, without the binary.
fn detach_all() {
    for algorithm in onramp_loader::pinned() {
        if let Err(error) = onramp_loader::detach(algorithm, false) {
            eprintln!("{error}");
        }
    }
    if let Err(error) = onramp_loader::clear_leftovers() {
        eprintln!("{error}");
    }
}
