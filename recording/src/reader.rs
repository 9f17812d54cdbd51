// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Reading a recording: what is whole is used, what is not is named.

use std::collections::HashSet;
use std::fs;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::batch::Batch;
use crate::budget::Budget;
use crate::column::{Column, Spec};
use crate::error::Error;
use crate::file::Part;
use crate::manifest::{self, Manifest};
use crate::rows::{AckRow, FlowRow};
use crate::table::Row;

/// What a directory of the lab has in place of a recording's tables.
const RESULT: &str = "result.json";

/// Where rows are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A recorder: what the kernel reported.
    Recorder,
    /// A packet capture: windows and limits are inferred from it.
    Capture,
    /// qlog: what a transport logged.
    Qlog {
        /// All of its flows are of TCP.
        is_tcp: bool,
    },
}

/// A recording, or a single file of one.
#[derive(Debug)]
pub struct Recording {
    /// Its manifest; none: it is missing or damaged, or this is a single file.
    pub manifest: Option<Manifest>,
    /// What was found wrong so far, each naming its file.
    pub problems: Vec<Error>,
    /// How it is read where it does not say; nothing is wrong with it.
    pub notes: Vec<String>,
    /// What reading may take.
    pub budget: Budget,
    /// Where its rows are from.
    pub origin: Origin,
    files: Vec<Source>,
}

/// A table, or a part of one.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    held: Held,
}

/// Where its rows are.
#[derive(Debug)]
enum Held {
    /// In the file.
    File,
    /// In memory.
    Memory(Bytes),
    /// In memory, decoded: columns of this table.
    Rows(&'static str, Vec<Column>),
}

impl Source {
    fn at(path: PathBuf) -> Self {
        Self { path, held: Held::File }
    }

    /// By its name, so that other tables' files are not opened; a single file may have been renamed.
    fn may_hold(&self, table: &str) -> bool {
        if let Held::Rows(held, _) = &self.held {
            return *held == table;
        }
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let known = crate::rows::TABLES.iter().find(|(known, _)| name.starts_with(&format!("{known}-")));
        known.is_none_or(|(known, _)| *known == table)
    }

    fn part(&self) -> Result<Part, Error> {
        match &self.held {
            Held::Memory(bytes) => Part::new(&self.path, bytes.clone()),
            Held::File | Held::Rows(..) => Part::open(&self.path),
        }
    }

    /// Its table, and how many rows it says that it has.
    fn stated_rows(&self) -> Result<(String, usize), Error> {
        if let Held::Rows(table, columns) = &self.held {
            return Ok(((*table).to_owned(), columns.first().map_or(0, Column::len)));
        }
        self.part().map(|part| (part.table, part.rows))
    }

    /// The columns wanted of a table, the others empty; `None`: it holds another one.
    fn decode(
        &self,
        table: &str,
        specs: &[Spec],
        wanted: &[&str],
        budget: &Budget,
    ) -> Result<Option<Vec<Column>>, Error> {
        budget.wanted(&self.path)?;
        if let Held::Rows(held, columns) = &self.held {
            return Ok((*held == table).then(|| columns.clone()));
        }
        let part = self.part()?;
        if part.table != table {
            return Ok(None);
        }
        let wants = |spec: &Spec| wanted.is_empty() || wanted.contains(&spec.name);
        part.columns(specs, wants, budget).map(Some)
    }
}

/// Rows that become a recording.
pub(crate) struct Rows {
    path: PathBuf,
    files: Vec<Source>,
}

impl Rows {
    /// Rows that are handed out at once.
    const CHUNK: usize = 1 << 16;

    pub fn add<R: Row>(&mut self, rows: Vec<R>) {
        let new = || -> Vec<Column> { R::COLUMNS.iter().map(|spec| Column::new(spec.kind)).collect() };
        let mut columns = new();
        for (at, row) in rows.into_iter().enumerate() {
            if at > 0 && at % Self::CHUNK == 0 {
                self.keep(R::TABLE, std::mem::replace(&mut columns, new()));
            }
            row.push(&mut columns);
        }
        self.keep(R::TABLE, columns);
    }

    fn keep(&mut self, table: &'static str, columns: Vec<Column>) {
        self.files.push(Source { path: self.path.clone(), held: Held::Rows(table, columns) });
    }
}

impl Recording {
    pub(crate) fn of_file(path: &Path) -> Self {
        Self {
            manifest: None,
            problems: Vec::new(),
            notes: Vec::new(),
            budget: Budget::default(),
            origin: Origin::Recorder,
            files: vec![Source::at(path.to_owned())],
        }
    }

    pub(crate) fn of_directory(path: &Path) -> Result<Self, Error> {
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(Error::read(path))? {
            let file = entry.map_err(Error::read(path))?.path();
            if file.extension().is_some_and(|extension| extension == "parquet") {
                files.push(file);
            }
        }
        files.sort();
        let files: Vec<Source> = files.into_iter().map(Source::at).collect();
        if files.is_empty() && path.join(RESULT).exists() {
            let reason =
                "it is a result of `onramp lab`: `onramp lab verify` and the page of `onramp serve` open it";
            return Err(Error::NotARecording { path: path.to_owned(), reason: reason.to_owned() });
        }
        if files.is_empty() && !path.join(manifest::FILE).exists() {
            let reason = format!("it holds neither {} nor a .parquet file", manifest::FILE);
            return Err(Error::NotARecording { path: path.to_owned(), reason });
        }
        let mut recording = Self {
            manifest: None,
            problems: Vec::new(),
            notes: Vec::new(),
            budget: Budget::default(),
            origin: Origin::Recorder,
            files,
        };
        match Manifest::read(path) {
            Ok(manifest) => {
                recording.look_for_listed(path, &manifest);
                recording.manifest = Some(manifest);
            }
            Err(error) => recording.problems.push(error),
        }
        Ok(recording)
    }

    /// A recording whose files are in memory, by their names: Parquet and the manifest. Any other is a problem.
    pub fn of_files(files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) -> Self {
        let mut recording = Self {
            manifest: None,
            problems: Vec::new(),
            notes: Vec::new(),
            budget: Budget::default(),
            origin: Origin::Recorder,
            files: Vec::new(),
        };
        for (path, bytes) in files {
            if path.file_name().is_some_and(|name| name == manifest::FILE) {
                match Manifest::parse(&path, &String::from_utf8_lossy(&bytes)) {
                    Ok(manifest) => recording.manifest = Some(manifest),
                    Err(error) => recording.problems.push(error),
                }
            } else {
                recording.files.push(Source { path, held: Held::Memory(bytes.into()) });
            }
        }
        recording.files.sort_by(|one, other| one.path.cmp(&other.path));
        recording
    }

    /// A recording of rows that were read from a file of another kind.
    pub(crate) fn of_rows(path: &Path, origin: Origin, add: impl FnOnce(&mut Rows)) -> Self {
        let mut rows = Rows { path: path.to_owned(), files: Vec::new() };
        add(&mut rows);
        Self {
            manifest: None,
            problems: Vec::new(),
            notes: Vec::new(),
            budget: Budget::default(),
            origin,
            files: rows.files,
        }
    }

    /// How many flows began or were met; more than `most` are not counted.
    pub fn flows(&mut self, most: usize) -> usize {
        let mut flows = HashSet::new();
        self.read::<FlowRow>(&["flow"], |batch| {
            for flow in batch.column("flow").map_or(&[][..], Column::longs) {
                if flows.len() <= most {
                    flows.insert(*flow);
                }
            }
        });
        flows.len()
    }

    /// Whether it has acknowledgments, of one flow or of any.
    pub fn has_acks(&mut self, flow: Option<u64>) -> bool {
        let mut has = false;
        self.read::<AckRow>(&["flow"], |batch| {
            let mut flows = batch.column("flow").map_or(&[][..], Column::longs).iter();
            has |= flows.any(|found| flow.is_none_or(|wanted| wanted == *found as u64));
        });
        has
    }

    /// The table of each of its files, and how many rows it states. Those that cannot be read become problems.
    pub fn stated_rows(&mut self) -> Vec<(String, usize)> {
        let mut rows = Vec::new();
        let problems = &mut self.problems;
        self.files.retain(|file| match file.stated_rows() {
            Ok(stated) => {
                rows.push(stated);
                true
            }
            Err(error) => {
                problems.push(error);
                false
            }
        });
        rows
    }

    fn look_for_listed(&mut self, directory: &Path, manifest: &Manifest) {
        for entry in &manifest.files {
            let path = directory.join(&entry.name);
            match fs::metadata(&path) {
                Err(error) => self.problems.push(Error::read(&path)(error)),
                Ok(found) if found.len() != entry.bytes => {
                    let reason = format!("it has {} bytes, the manifest says {}", found.len(), entry.bytes);
                    self.problems.push(Error::damaged(&path, reason));
                    self.files.retain(|file| file.path != path);
                }
                Ok(_) => {}
            }
        }
    }

    /// Goes through a table, a file at a time; `columns` names those wanted, none: all. Files that cannot be read
    /// become problems.
    pub fn read<R: Row>(&mut self, columns: &[&str], mut each: impl FnMut(Batch<R>)) {
        self.visit(R::TABLE, R::COLUMNS, columns, |columns| each(Batch { columns, row: PhantomData }));
    }

    /// The same of all columns; files that `check` refuses become problems, too.
    pub(crate) fn read_checked<R: Row>(
        &mut self,
        check: impl Fn(&Batch<R>) -> Result<(), String>,
        mut each: impl FnMut(Batch<R>),
    ) {
        self.try_visit(R::TABLE, R::COLUMNS, &[], |columns| {
            let batch = Batch { columns, row: PhantomData };
            check(&batch)?;
            each(batch);
            Ok(())
        });
    }

    /// Goes through a table row by row.
    pub fn each_row<R: Row>(&mut self, each: impl FnMut(R)) {
        let mut each = each;
        self.read::<R>(&[], |batch| batch.rows().for_each(&mut each));
    }

    /// All rows of a table, which must be a small one.
    pub fn rows<R: Row>(&mut self) -> Vec<R> {
        let mut rows = Vec::new();
        self.each_row(|row| rows.push(row));
        rows
    }

    /// As [`Recording::read`], for a table by its name.
    pub fn visit(&mut self, table: &str, specs: &[Spec], wanted: &[&str], mut each: impl FnMut(Vec<Column>)) {
        self.try_visit(table, specs, wanted, |columns| {
            each(columns);
            Ok(())
        });
    }

    fn try_visit(
        &mut self,
        table: &str,
        specs: &[Spec],
        wanted: &[&str],
        mut each: impl FnMut(Vec<Column>) -> Result<(), String>,
    ) {
        let mut files = std::mem::take(&mut self.files);
        files.retain(|file| {
            let path = &file.path;
            if !file.may_hold(table) {
                return true;
            }
            let visited = file.decode(table, specs, wanted, &self.budget).and_then(|columns| {
                columns.map_or(Ok(()), |columns| each(columns).map_err(|reason| Error::damaged(path, reason)))
            });
            if let Err(error) = visited {
                self.problems.push(error);
                return false;
            }
            true
        });
        self.files = files;
    }
}
