// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Recording: rows gather in memory and go to files of their own, whole, every few seconds.
//!
//! A Parquet file is readable only with its footer, so none is ever left open: what has been flushed is readable
//! whatever happens afterwards.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::{O_DIRECTORY, O_NOFOLLOW};
use nix::unistd::geteuid;

use crate::column::{Column, Spec};
use crate::error::Error;
use crate::file;
use crate::manifest::{FileEntry, Manifest};
use crate::table::Row;

/// When rows go to a file.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Rows of one file at most; a table holds no more in memory.
    pub rows: usize,
    /// The longest that a row stays in memory only.
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rows: 1 << 17, age: Duration::from_secs(5) }
    }
}

/// What the owner of a recording may do with its directory; other users may do nothing.
const OWNER_ONLY: u32 = 0o700;

/// Makes a directory that is the caller's alone; one that is there becomes so, if it is the caller's own.
fn make_private(directory: &Path) -> Result<(), Error> {
    // Without a slash at the end, which would have a link followed.
    let directory: PathBuf = directory.components().collect();
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent).map_err(Error::write(parent))?;
    }
    match DirBuilder::new().mode(OWNER_ONLY).create(&directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        other => return other.map_err(Error::write(&directory)),
    }
    let untrusted = |reason: String| Error::Untrusted { path: directory.clone(), reason };
    let opened = OpenOptions::new().read(true).custom_flags(O_DIRECTORY | O_NOFOLLOW).open(&directory);
    let there = opened.map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOTDIR | Errno::ELOOP) => untrusted("it is a link or a file, not a directory".into()),
        _ => Error::read(&directory)(error),
    })?;
    let owner = there.metadata().map_err(Error::read(&directory))?.uid();
    if owner != geteuid().as_raw() {
        return Err(untrusted(format!("it belongs to user {owner}")));
    }
    there.set_permissions(Permissions::from_mode(OWNER_ONLY)).map_err(Error::write(&directory))
}

/// A recording being written.
#[derive(Debug)]
pub struct Writer {
    directory: PathBuf,
    manifest: Manifest,
    limits: Limits,
    tables: Vec<Table>,
    rows: u64,
}

#[derive(Debug)]
struct Table {
    name: &'static str,
    specs: &'static [Spec],
    columns: Vec<Column>,
    /// When the oldest of the rows in memory came.
    since: Option<Instant>,
    files: u32,
}

impl Writer {
    /// Makes the directory, for its owner alone, and writes the manifest. One that is there must be the caller's own and
    /// hold nothing yet.
    ///
    /// # Errors
    /// [`Error::Untrusted`], [`Error::NotEmpty`], [`Error::Write`].
    pub fn create(directory: &Path, manifest: Manifest, limits: Limits) -> Result<Self, Error> {
        make_private(directory)?;
        if fs::read_dir(directory).map_err(Error::read(directory))?.next().is_some() {
            return Err(Error::NotEmpty { path: directory.to_owned() });
        }
        manifest.write(directory)?;
        Ok(Self { directory: directory.to_owned(), manifest, limits, tables: Vec::new(), rows: 0 })
    }

    /// Rows that are safe in files.
    pub fn rows_written(&self) -> u64 {
        self.rows
    }

    /// Adds a row; writes a file when there are enough of them.
    ///
    /// # Errors
    /// [`Error::Write`]; the row is lost then.
    pub fn push<R: Row>(&mut self, row: R) -> Result<(), Error> {
        let index = self.tables.iter().position(|table| table.name == R::TABLE).unwrap_or_else(|| {
            self.tables.push(Table::new(R::TABLE, R::COLUMNS));
            self.tables.len() - 1
        });
        let table = &mut self.tables[index];
        row.push(&mut table.columns);
        // Asking for the time is dear next to storing a row.
        if table.since.is_none() {
            table.since = Some(Instant::now());
        }
        if table.rows() >= self.limits.rows { self.flush(index) } else { Ok(()) }
    }

    /// Writes what is older than the limit; to be called about once a second.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn tick(&mut self) -> Result<(), Error> {
        for index in 0..self.tables.len() {
            if self.tables[index].since.is_some_and(|since| since.elapsed() >= self.limits.age) {
                self.flush(index)?;
            }
        }
        Ok(())
    }

    /// Writes the rest and the manifest that lists all files.
    ///
    /// # Errors
    /// [`Error::Write`]; the recording is readable, but not complete.
    pub fn finish(mut self, ended_us: u64) -> Result<Manifest, Error> {
        for index in 0..self.tables.len() {
            self.flush(index)?;
        }
        self.manifest.ended_us = Some(ended_us);
        self.manifest.complete = true;
        self.manifest.write(&self.directory)?;
        Ok(self.manifest)
    }

    /// Counts events that never became rows.
    pub fn dropped(&mut self, events: u64) {
        self.manifest.dropped_events += events;
    }

    fn flush(&mut self, index: usize) -> Result<(), Error> {
        let table = &mut self.tables[index];
        let rows = table.rows() as u64;
        if rows == 0 {
            return Ok(());
        }
        table.files += 1;
        let name = format!("{}-{:06}.parquet", table.name, table.files);
        let bytes = file::write(&self.directory.join(&name), table.name, table.specs, &table.columns)?;
        table.columns.iter_mut().for_each(Column::clear);
        table.since = None;
        self.rows += rows;
        self.manifest.files.push(FileEntry { name, rows, bytes });
        Ok(())
    }
}

impl Table {
    fn new(name: &'static str, specs: &'static [Spec]) -> Self {
        let columns = specs.iter().map(|spec| Column::new(spec.kind)).collect();
        Self { name, specs, columns, since: None, files: 0 }
    }

    fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }
}
