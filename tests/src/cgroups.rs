//! Cgroups to be in.

use std::fs;
use std::path::PathBuf;

use onramp_net::mounts;

use crate::traffic::eventually;

/// Where cgroup v2 is mounted.
///
/// # Panics
/// If it is not.
pub fn cgroups() -> PathBuf {
    let mounts = mounts::of_process(None).expect("mounts");
    mounts.into_iter().find(|mount| mount.kind == "cgroup2").expect("cgroup v2").point
}

/// A cgroup `onramp-test-select` with one below it, `inner`; removed on drop, with this process in the root.
pub struct Nested(PathBuf);

impl Nested {
    /// Makes both.
    ///
    /// # Panics
    /// Without root.
    #[expect(clippy::new_without_default, reason = "it makes directories")]
    pub fn new() -> Self {
        let outer = cgroups().join("onramp-test-select");
        fs::create_dir_all(outer.join("inner")).expect("cgroups");
        Self(outer)
    }

    /// Moves this process into the outer one (empty), the inner one (`inner`) or the root (`..`).
    ///
    /// # Panics
    /// Without root.
    pub fn enter(&self, inner: &str) {
        fs::write(self.0.join(inner).join("cgroup.procs"), "0").expect("the cgroup can be entered");
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        fs::write(cgroups().join("cgroup.procs"), "0").expect("the root can be entered");
        for directory in [self.0.join("inner"), self.0.clone()] {
            assert!(eventually(|| !directory.exists() || fs::remove_dir(&directory).is_ok()));
        }
    }
}
