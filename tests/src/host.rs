//! An attachment on the kernel that runs, which is not the test's alone.

use crate::cli::{onramp, state};
use crate::skip;

/// What this kernel cannot, and what a privilege is missing for.
const CANNOT: [Option<i32>; 2] = [Some(3), Some(4)];

/// `fixed`, attached on this kernel, which never leaves slow start by itself: parameters are read with the ACKs of slow
/// start. Detached when dropped, also where the test panics.
pub struct Fixed(());

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
        if state("fixed").is_some() {
            skip("fixed is attached on this machine, which is not this test's to detach");
            return None;
        }
        let attached = onramp("attach fixed --set exit_window_bytes=0");
        if CANNOT.contains(&attached.code) {
            skip(attached.stderr.trim());
            return None;
        }
        let fixed = Self(());
        attached.ok();
        Some(fixed)
    }
}

impl Drop for Fixed {
    fn drop(&mut self) {
        if state("fixed").is_some() {
            onramp("detach fixed");
        }
    }
}
