// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A kernel in a directory tree: found by the names of its files, wherever they are, and copied to where it is kept.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::error::SourceError;
use crate::digest::hex;
use crate::guest::GuestError;

/// Most entries of a tree: more is not that of a kernel.
const MOST_ENTRIES: usize = 200_000;
/// In every directory of modules.
const BUILT_IN: &str = "modules.builtin";
/// Links to the one in use where the cache keeps several.
const CURRENT: &str = "current";

/// `vmlinuz` or `vmlinuz-RELEASE`.
pub(super) fn is_kernel(name: &str) -> bool {
    name.strip_prefix("vmlinuz").is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// `modules.builtin`, …; `tcp_bbr.ko`, `tcp_bbr.ko.xz`, ….
pub(super) fn is_of_modules(name: &str) -> bool {
    name.starts_with("modules.") || name.split('.').skip(1).any(|part| part == "ko")
}

/// Where a kernel and its modules are.
#[derive(Debug)]
pub(super) struct Tree {
    kernel: PathBuf,
    modules: PathBuf,
}

impl Tree {
    /// The only one below a directory, or below its `current`. Symbolic links are not followed.
    ///
    /// # Errors
    /// [`SourceError`] where there is none, or more than one; `at` names the source.
    pub fn find(directory: &Path, at: &str) -> Result<Self, GuestError> {
        let current = directory.join(CURRENT);
        let directory = if current.is_dir() { &current } else { directory };
        let files = files(directory, at)?;
        let named = |file: &&PathBuf, is: fn(&str) -> bool| {
            file.file_name().and_then(|name| name.to_str()).is_some_and(is)
        };
        let kernels: Vec<_> = files.iter().filter(|file| named(file, is_kernel)).collect();
        let lists: Vec<_> = files.iter().filter(|file| named(file, |name| name == BUILT_IN)).collect();
        let inner = |path: &&PathBuf| path.strip_prefix(directory).unwrap_or(path).to_owned();
        let several = |what, found: &[&PathBuf]| SourceError::Several {
            at: at.to_owned(),
            what,
            found: found.iter().map(inner).collect(),
        };
        let kernel = match kernels.as_slice() {
            [] => return Err(SourceError::NoKernel { at: at.to_owned() }.into()),
            [kernel] => *kernel,
            // Some distributions install the same file twice.
            [kernel, others @ ..] if are_copies(kernel, others)? => *kernel,
            found => return Err(several("kernels", found).into()),
        };
        let modules = match lists.as_slice() {
            [] => return Err(SourceError::NoModules { at: at.to_owned() }.into()),
            [list] => list.parent().unwrap_or(directory),
            found => return Err(several("directories of modules", found).into()),
        };
        Ok(Self { kernel: kernel.clone(), modules: modules.to_owned() })
    }

    /// The kernel's path below a directory that it was found in.
    pub fn kernel_in(&self, directory: &Path) -> String {
        self.kernel.strip_prefix(directory).unwrap_or(&self.kernel).display().to_string()
    }

    /// Copies it as `vmlinuz` and `modules/`; the digest of all of it.
    ///
    /// # Errors
    /// [`GuestError::File`].
    pub fn copy(&self, to: &Path, at: &str) -> Result<String, GuestError> {
        let mut digest = Sha256::new();
        let mut copy = |from: &Path, name: PathBuf| -> Result<(), GuestError> {
            let content = fs::read(from).map_err(GuestError::file("read", from))?;
            let length = content.len() as u64;
            digest.update(name.to_string_lossy().as_bytes());
            digest.update([0]);
            digest.update(length.to_le_bytes());
            digest.update(&content);
            let path = to.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(GuestError::file("create", parent))?;
            }
            fs::write(&path, content).map_err(GuestError::file("write", &path))
        };
        copy(&self.kernel, "vmlinuz".into())?;
        for file in files(&self.modules, at)? {
            let name = file.strip_prefix(&self.modules).unwrap_or(&file);
            if name.file_name().and_then(|name| name.to_str()).is_some_and(is_of_modules) {
                copy(&file, Path::new("modules").join(name))?;
            }
        }
        Ok(hex(&digest.finalize()))
    }
}

/// The regular files below a directory, in order.
fn files(directory: &Path, at: &str) -> Result<Vec<PathBuf>, GuestError> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    let mut entries = 0;
    while let Some(directory) = left.pop() {
        let failed = || GuestError::file("read", &directory);
        for entry in fs::read_dir(&directory).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let kind = entry.file_type().map_err(failed())?;
            entries += 1;
            if entries > MOST_ENTRIES {
                let message =
                    format!("it has more than {MOST_ENTRIES} files: give the kernel's own directory");
                return Err(SourceError::Damaged { at: at.to_owned(), message }.into());
            }
            if kind.is_dir() {
                left.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn are_copies(one: &Path, others: &[&PathBuf]) -> Result<bool, GuestError> {
    let read = |path: &Path| fs::read(path).map_err(GuestError::file("read", path));
    let content = read(one)?;
    for other in others {
        if read(other)? != content {
            return Ok(false);
        }
    }
    Ok(true)
}
