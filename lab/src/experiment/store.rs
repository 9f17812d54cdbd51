// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Where runs in virtual time are kept, so that none is made twice: a directory for each, named by the identity of its
//! guest, which is a digest of all that decides what the run yields.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{ExperimentError, files};
use crate::guest::{Outcome, kernel};

/// What is said of the guest itself; its files are next to it.
const GUEST: &str = "guest.json";
const FILES: &str = "files";

#[derive(Serialize, Deserialize)]
struct Kept {
    guest_seconds: f64,
    host_cpu_seconds: f64,
}

fn directory(identity: &str) -> Result<PathBuf, ExperimentError> {
    Ok(kernel::cache()?.join("runs").join(identity))
}

/// What a guest of this identity has yielded before.
pub(super) fn get(identity: &str) -> Result<Option<Outcome>, ExperimentError> {
    read(&directory(identity)?)
}

fn read(directory: &Path) -> Result<Option<Outcome>, ExperimentError> {
    let path = directory.join(GUEST);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(ExperimentError::File { path, source }),
    };
    let kept: Kept =
        serde_json::from_str(&text).map_err(|error| ExperimentError::File { path, source: error.into() })?;
    let mut found = BTreeMap::new();
    collect(&directory.join(FILES), "", &mut found)?;
    let Kept { guest_seconds, host_cpu_seconds } = kept;
    Ok(Some(Outcome { status: 0, files: found, guest_seconds, host_cpu_seconds }))
}

/// All files below a directory, by their paths in it.
fn collect(
    directory: &Path,
    prefix: &str,
    found: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), ExperimentError> {
    let failed = |source| ExperimentError::File { path: directory.into(), source };
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().map_err(failed)?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), found)?;
        } else {
            found.insert(name, fs::read(entry.path()).map_err(failed)?);
        }
    }
    Ok(())
}

/// Keeps what a guest has yielded: all of it, or nothing.
pub(super) fn put(identity: &str, outcome: &Outcome) -> Result<(), ExperimentError> {
    write(&directory(identity)?, outcome)
}

fn write(directory: &Path, outcome: &Outcome) -> Result<(), ExperimentError> {
    let new = directory.with_extension(format!("new-{}", std::process::id()));
    let made = fill(&new, outcome).and_then(|()| {
        // Where another process was faster it has the same in it.
        match fs::rename(&new, directory) {
            Err(error) if directory.exists() => drop((error, fs::remove_dir_all(&new))),
            Err(source) => return Err(ExperimentError::File { path: directory.into(), source }),
            Ok(()) => {}
        }
        Ok(())
    });
    if made.is_err() {
        // The error that is reported is the first.
        let _ = fs::remove_dir_all(&new);
    }
    made
}

fn fill(directory: &Path, outcome: &Outcome) -> Result<(), ExperimentError> {
    let into = directory.join(FILES);
    files::create(&into)?;
    for (name, content) in &outcome.files {
        files::write(into.join(name), content)?;
    }
    let Outcome { guest_seconds, host_cpu_seconds, .. } = *outcome;
    files::write_json(directory.join(GUEST), &Kept { guest_seconds, host_cpu_seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back_and_half_of_it_does_not() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("abc");
        assert_eq!(read(&directory).unwrap(), None);
        let files = ["flow.csv", "recording/manifest.json"];
        let files: BTreeMap<_, _> = files.map(|name| (name.to_owned(), b"1,2\n".to_vec())).into();
        let outcome = Outcome { status: 0, files, guest_seconds: 12.5, host_cpu_seconds: 30.0 };
        write(&directory, &outcome).unwrap();
        // Once more changes nothing and leaves nothing next to it.
        write(&directory, &outcome).unwrap();
        assert_eq!(read(&directory).unwrap(), Some(outcome));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
        fs::remove_file(directory.join(GUEST)).unwrap();
        assert_eq!(read(&directory).unwrap(), None);
    }
}
