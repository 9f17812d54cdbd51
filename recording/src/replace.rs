// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Files that are there whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Puts a file in its place whole or not at all, and safe from a power cut.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    let written = write_to(&temporary, bytes)
        .and_then(|()| fs::rename(&temporary, path))
        .and_then(|()| sync_directory(path));
    if written.is_err() {
        // No half file; the first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(Error::write(path))
}

/// For its owner alone: it has addresses in it. Nothing that is there is written to, nor what a link there stands for.
fn write_to(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A new name is safe only when its directory is.
fn sync_directory(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}
