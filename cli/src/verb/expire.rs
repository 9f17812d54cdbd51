//! The process behind `attach --for`: waits in the background and detaches once the time is over. That the base runs alone
//! from then on is the kernel's doing, so nothing depends on this but how soon it is tidy.
//!
//! It is started before the attachment is made. The end of its standard input says that it has been made, or
//! that its parent has died. What to watch it reads from the kernel, so it is right in both cases.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use clap::Args;
use nix::sched::{CloneFlags, setns};
use nix::unistd::{chdir, dup2_stdin, dup2_stdout, setsid};
use onramp_loader::Expiry;
use onramp_loader::algorithm::Algorithm;
use onramp_net::namespace::Namespace;

/// Longest sleep between two looks: a suspended host and a confirmation are noticed within it.
const LOOK: Duration = Duration::from_secs(10);
/// Looks or detaches that may fail.
const TIMEOUT: u32 = 60;

/// Detach an algorithm when its time is over (started by `attach --for`)
#[derive(Args, Debug)]
pub(crate) struct Expire {
    algorithm: String,
}

impl Expire {
    pub fn run(self) -> anyhow::Result<u8> {
        let algorithm = onramp_loader::find(&self.algorithm)?;
        leave_home()?;
        io::stdout().write_all(b"ready")?;
        io::stdout().flush()?;
        io::stdin().read_to_end(&mut Vec::new())?;
        let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&null)?;
        dup2_stdout(&null)?;

        let Some(watched) = onramp_loader::expiry(algorithm)? else { return Ok(0) };
        // One process for each attachment, however often its time limit is changed.
        let mut watching = onramp_loader::watch(algorithm)?;
        let mut failures = 0;
        while watching.is_some() {
            match look(algorithm, watched) {
                Ok(Some(left)) => thread::sleep(left.min(LOOK)),
                Ok(None) => {
                    // A time limit that is set meanwhile finds it watched, or is found here.
                    drop(watching.take());
                    if look(algorithm, watched)?.is_some() {
                        watching = onramp_loader::watch(algorithm)?;
                    }
                }
                // What failed once may succeed later, and no other process will detach.
                Err(error) if failures == TIMEOUT => return Err(error.into()),
                Err(_) => {
                    failures += 1;
                    thread::sleep(LOOK);
                }
            }
        }
        Ok(0)
    }
}

/// How long to wait yet; `None`: there is nothing to wait for, or no longer.
fn look(algorithm: Algorithm, watched: Expiry) -> Result<Option<Duration>, onramp_loader::Error> {
    let now = onramp_loader::expiry(algorithm)?.filter(|now| now.generation == watched.generation);
    let Some(expiry) = now else { return Ok(None) };
    if expiry.left.is_zero() {
        onramp_loader::detach_expired(algorithm, watched.generation)?;
        return Ok(None);
    }
    Ok(Some(expiry.left))
}

/// A session of its own; and neither a directory nor a namespace is held for as long as it waits.
fn leave_home() -> anyhow::Result<()> {
    setsid()?;
    if let Some(pid) = onramp_loader::kernel::host_process() {
        // What is pinned is found through an ancestor, who may be gone when the time is over.
        setns(File::open(format!("/proc/{pid}/ns/mnt"))?, CloneFlags::CLONE_NEWNS)?;
    }
    chdir("/")?;
    // Where the first process is; without permission to look it stays where it is.
    if let Ok(first) = Namespace::open("/proc/1/ns/net") {
        first.enter()?;
    }
    Ok(())
}

/// The waiting process, seen from the one that attaches.
pub(super) struct Watch {
    go: ChildStdin,
}

impl Watch {
    /// Starts it and waits until it is ready.
    pub fn start(algorithm: Algorithm) -> io::Result<Self> {
        let mut child = Command::new("/proc/self/exe")
            .arg0("onramp")
            .args(["expire", algorithm.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut answer = [0; 5];
        child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?.read_exact(&mut answer)?;
        Ok(Self { go: child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)? })
    }

    /// The attachment is made: begin to wait.
    pub fn begin(self) {
        drop(self.go);
    }
}
