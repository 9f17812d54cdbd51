//! An attachment on the kernel that runs, which is not the test's alone.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::cli::{onramp, status};
use crate::skip;
use crate::traffic::eventually;

/// What this kernel cannot, and what a privilege is missing for.
const CANNOT: [Option<i32>; 2] = [Some(3), Some(4)];

/// How long it stays where the test was killed, seconds. No other process sleeps for this time, so it shows whose it is.
const LIMIT: u64 = 907;

/// `fixed`, attached on this kernel, which never exits slow start by itself: parameters are read with the ACKs of slow
/// start. Detached when dropped, also where the test panics. What a killed test has left detaches by itself after
/// a quarter of an hour, or goes with the next one.
pub struct Fixed {
    /// One test at a time has it. The kernel frees the name, however the test ends.
    lock: Option<UnixDatagram>,
}

impl Fixed {
    /// Attaches it. `None`: it cannot be here, which has been said ([`skip`]).
    ///
    /// # Panics
    /// If it can be and fails.
    #[track_caller]
    pub fn attach() -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            skip("attaching on this kernel needs root");
            return None;
        }
        let name = SocketAddr::from_abstract_name("onramp tests: fixed").unwrap();
        let mut lock = None;
        let free = eventually(|| {
            lock = UnixDatagram::bind_addr(&name).ok();
            lock.is_some()
        });
        assert!(free, "another test has had it for long");
        match limit() {
            Some(Some(LIMIT)) => drop(onramp("detach fixed")),
            Some(_) => {
                skip("fixed is attached on this machine, which is not this test's to detach");
                return None;
            }
            None => (),
        }
        let attached = onramp(&format!("attach fixed --base cubic --set exit_window_bytes=0 --for {LIMIT}s"));
        if CANNOT.contains(&attached.code) {
            skip(attached.stderr.trim());
            return None;
        }
        let fixed = Self { lock };
        attached.ok();
        Some(fixed)
    }

    /// As a killed process does: releases the lock and detaches nothing.
    pub fn leave(mut self) {
        self.lock = None;
        std::mem::forget(self);
    }
}

impl Drop for Fixed {
    fn drop(&mut self) {
        if limit().is_some() {
            onramp("detach fixed");
        }
    }
}

/// Whether `fixed` is attached, and for how many seconds, if for a time.
fn limit() -> Option<Option<u64>> {
    let row = status("fixed")?;
    let seconds = |expires: u64| Some((expires - row["attached_at_us"].as_u64()? + 500_000) / 1_000_000);
    Some(row["expires_at_us"].as_u64().and_then(seconds))
}
