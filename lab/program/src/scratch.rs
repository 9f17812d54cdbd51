//! Directories for as long as a command lasts: gone when they are dropped, and when a signal ends the process.

use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use anyhow::Context;
use tempfile::TempDir;

use crate::progress;

/// Those that there are.
static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Attempts to remove one into which other threads write meanwhile.
const ATTEMPTS: u32 = 1_000;

/// See the module.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    /// A new one, empty; from here on SIGINT and SIGTERM end the process by [`progress::ended_by`].
    pub fn make() -> anyhow::Result<Self> {
        static SIGNALS: Once = Once::new();
        SIGNALS.call_once(|| {
            progress::before_end(remove_all);
            progress::interruptible();
        });
        let mut live = live();
        let directory = tempfile::tempdir().context("cannot make a temporary directory")?;
        live.push(directory.path().to_owned());
        Ok(Self(directory))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        live().retain(|path| path != self.0.path());
    }
}

fn live() -> MutexGuard<'static, Vec<PathBuf>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all, as the process is about to end: no other is made.
fn remove_all() {
    let live = live();
    live.iter().for_each(|path| remove(path));
    mem::forget(live);
}

fn remove(path: &Path) {
    for _ in 0..ATTEMPTS {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_after_a_drop_nor_after_a_signal() {
        let dropped = Scratch(tempfile::tempdir().unwrap());
        let path = dropped.path().to_owned();
        drop(dropped);
        assert!(!path.exists());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        fs::create_dir_all(path.join("runs/1")).unwrap();
        fs::write(path.join("runs/1/link"), "x").unwrap();
        remove(&path);
        assert!(!path.exists());
    }
}
