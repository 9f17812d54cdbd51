// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A sweep's directory: what it is, and its runs, ten paths in a file. Files are written whole, and each depends on the sweep
//! alone, so that a sweep that was broken off goes on where it was, and the parts of several machines are one directory.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use onramp_files::bounded;
use onramp_recording::{read_rows, write_rows};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::RunRow;
use crate::digest::hex;
use crate::experiment::Shard;
use crate::sim::{SimError, workers};

/// Paths of a file.
const PATHS_OF_A_FILE: u64 = 10;
/// Says what the directory holds.
const DEFINITION: &str = "sweep.json";

/// What a sweep is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Digest of the program: another one may simulate differently.
    pub program: String,
    /// Text of the population.
    pub population: String,
    /// Seed of the population.
    pub seed: u64,
    /// Paths, 1 to 10 000 000.
    pub paths: u64,
    /// Arms as they are written, in order.
    pub arms: Vec<String>,
    /// Kernel whose TCP makes the runs, of those paths that a guest keeps up with; none: they are simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Time after which a transfer is given up, seconds; none: each path's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Bytes of every transfer, in one piece; none: as the population has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Bytes of a transfer before each that counts; none: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_bytes: Option<u64>,
}

/// What can go wrong with a sweep.
#[derive(Debug, Error)]
pub enum SweepError {
    /// A file or directory could not be used.
    #[error("cannot use {path}: {source}")]
    File {
        /// Which one.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// The directory holds something else.
    #[error(
        "{path} holds another sweep: its {what} differs; give another directory, or what it was made with"
    )]
    Other {
        /// The directory.
        path: PathBuf,
        /// In what.
        what: &'static str,
    },
    /// The directory holds no sweep.
    #[error("{path} is not empty and holds no {DEFINITION}: give a directory of its own")]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// No directory.
    #[error("{path} is a file: give a directory that is empty or to be made")]
    NoDirectory {
        /// What was given.
        path: PathBuf,
    },
    /// A table could not be written or read.
    #[error(transparent)]
    Table(#[from] onramp_recording::Error),
    /// A simulation is not possible.
    #[error(transparent)]
    Sim(#[from] SimError),
}

impl SweepError {
    /// Whether it was asked for wrongly.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Other { .. } | Self::NotEmpty { .. } | Self::NoDirectory { .. } => true,
            Self::Sim(error) => error.is_usage(),
            Self::File { .. } | Self::Table(_) => false,
        }
    }
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> SweepError + '_ {
    |source| SweepError::File { path: path.to_owned(), source }
}

/// SHA-256 of what simulates, a program or a library, with the objects that it has read of algorithms from outside the tree.
///
/// # Errors
/// [`SweepError::File`].
pub fn program(path: &Path) -> Result<String, SweepError> {
    let bytes = fs::read(path).map_err(file(path))?;
    let mut digest = Sha256::new_with_prefix(&bytes);
    for outside in onramp_algorithm::all().filter_map(|algorithm| algorithm.outside()) {
        digest.update(outside.whole());
    }
    Ok(format!("sha256:{}", hex(&digest.finalize())))
}

/// A sweep's directory.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    files: usize,
}

impl Store {
    /// Whether a directory holds a sweep.
    pub fn is_at(directory: &Path) -> bool {
        directory.join(DEFINITION).exists()
    }

    /// Makes the directory, or takes it as it is if it holds this very sweep.
    ///
    /// # Errors
    /// [`SweepError::Other`], [`SweepError::NotEmpty`], [`SweepError::File`].
    pub fn open(directory: &Path, definition: &Definition) -> Result<Self, SweepError> {
        fs::create_dir_all(directory).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => SweepError::NoDirectory { path: directory.to_owned() },
            _ => file(directory)(error),
        })?;
        let path = directory.join(DEFINITION);
        match bounded::read(&path, bounded::TEXT_BYTES) {
            Ok(bytes) => check(directory, &bytes, definition)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::read_dir(directory).map_err(file(directory))?.next().is_some() {
                    return Err(SweepError::NotEmpty { path: directory.to_owned() });
                }
                let text = serde_json::to_vec_pretty(definition).map_err(io::Error::other);
                text.and_then(|text| fs::write(&path, text)).map_err(file(&path))?;
            }
            Err(error) => return Err(file(&path)(error)),
        }
        let files = definition.paths.div_ceil(PATHS_OF_A_FILE) as usize;
        Ok(Self { directory: directory.to_owned(), files })
    }

    /// A directory as it is, with what it says that it holds.
    ///
    /// # Errors
    /// [`SweepError::Other`], [`SweepError::File`].
    pub fn read(directory: &Path) -> Result<(Self, Definition), SweepError> {
        let path = directory.join(DEFINITION);
        let bytes = bounded::read(&path, bounded::TEXT_BYTES).map_err(file(&path))?;
        let other = |_| SweepError::Other { path: directory.to_owned(), what: "form" };
        let definition: Definition = serde_json::from_slice(&bytes).map_err(other)?;
        Ok((Self::open(directory, &definition)?, definition))
    }

    fn path(&self, number: usize) -> PathBuf {
        self.directory.join(format!("runs-{number:06}.parquet"))
    }

    /// How many paths of a shard are missing.
    pub fn missing(&self, definition: &Definition, shard: Shard) -> u64 {
        let paths = |number: usize| paths_of(definition, number);
        self.missing_files(shard).map(paths).map(|paths| paths.end - paths.start).sum()
    }

    fn missing_files(&self, shard: Shard) -> impl Iterator<Item = usize> {
        (0..self.files).filter(move |number| shard.has(*number) && !self.path(*number).exists())
    }

    /// Makes what is missing of a shard, `jobs` files at once. `make` simulates a path.
    ///
    /// # Errors
    /// The first of `make`'s, or of writing; what was written before stays.
    pub fn fill<E: From<SweepError> + Send>(
        &self,
        definition: &Definition,
        shard: Shard,
        jobs: NonZeroUsize,
        make: impl Fn(u64) -> Result<Vec<RunRow>, E> + Sync,
    ) -> Result<(), E> {
        let missing: Vec<_> = self.missing_files(shard).collect();
        workers::make(jobs, missing.len(), |at| -> Result<(), E> {
            let number = missing[at];
            let mut rows = Vec::new();
            for path in paths_of(definition, number) {
                rows.extend(make(path)?);
            }
            write_rows(&self.path(number), rows).map_err(SweepError::from)?;
            Ok(())
        })?;
        Ok(())
    }

    /// The runs of all paths that are there, in their order, and whether that is all of them.
    ///
    /// # Errors
    /// [`SweepError::Table`] for a file that is damaged.
    pub fn rows(&self) -> Result<(Vec<RunRow>, bool), SweepError> {
        let there: Vec<_> =
            (0..self.files).map(|number| self.path(number)).filter(|path| path.exists()).collect();
        let mut rows = Vec::new();
        for path in &there {
            rows.extend(read_rows::<RunRow>(path)?);
        }
        Ok((rows, there.len() == self.files))
    }

    /// Where a file of this name is.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// The paths of a file.
fn paths_of(definition: &Definition, number: usize) -> std::ops::Range<u64> {
    let first = number as u64 * PATHS_OF_A_FILE;
    first..definition.paths.min(first + PATHS_OF_A_FILE)
}

fn check(directory: &Path, bytes: &[u8], wanted: &Definition) -> Result<(), SweepError> {
    let other = |what| SweepError::Other { path: directory.to_owned(), what };
    let Ok(found) = serde_json::from_slice::<Definition>(bytes) else { return Err(other("form")) };
    for (same, what) in [
        (found.population == wanted.population, "population"),
        (found.seed == wanted.seed, "seed"),
        (found.paths == wanted.paths, "number of paths"),
        (found.arms == wanted.arms, "list of arms"),
        (found.kernel == wanted.kernel, "kernel"),
        (found.timeout_seconds == wanted.timeout_seconds, "timeout"),
        (found.bytes == wanted.bytes, "size of transfers"),
        (found.warm_bytes == wanted.warm_bytes, "transfer before each"),
        (found.program == wanted.program, "program, or the object of an arm,"),
    ] {
        if !same {
            return Err(other(what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::summary::tests::row;
    use super::*;

    fn definition() -> Definition {
        Definition {
            program: "p".into(),
            population: "text".into(),
            seed: 1,
            paths: 35,
            arms: vec!["plain".into()],
            kernel: None,
            timeout_seconds: None,
            bytes: None,
            warm_bytes: None,
        }
    }

    fn fill(store: &Store, shard: Shard, jobs: usize) -> u64 {
        let made = Mutex::new(0);
        let make = |path| {
            *made.lock().unwrap() += 1;
            Ok::<_, SweepError>(vec![row(path, "plain", 1_000 + path, path)])
        };
        store.fill(&definition(), shard, jobs.try_into().unwrap(), make).unwrap();
        made.into_inner().unwrap()
    }

    #[test]
    fn shards_and_jobs_leave_the_same_files_and_nothing_is_made_twice() {
        let [one, other] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let whole = Store::open(one.path(), &definition()).unwrap();
        assert_eq!(whole.missing(&definition(), Shard { index: 1, count: 2 }), 15);
        assert_eq!(fill(&whole, Shard::WHOLE, 3), 35);
        assert_eq!(whole.missing(&definition(), Shard::WHOLE), 0);
        assert_eq!(fill(&whole, Shard::WHOLE, 1), 0);
        let parts = Store::open(other.path(), &definition()).unwrap();
        assert_eq!(fill(&parts, Shard { index: 1, count: 2 }, 1), 15);
        let (rows, complete) = parts.rows().unwrap();
        assert!(rows.len() == 15 && rows[0].path == 10 && !complete);
        assert_eq!(fill(&parts, Shard { index: 0, count: 2 }, 1), 20);
        let (rows, complete) = parts.rows().unwrap();
        assert!(complete && rows.iter().map(|row| row.path).eq(0..35));
        for number in 0..4 {
            assert_eq!(fs::read(whole.path(number)).unwrap(), fs::read(parts.path(number)).unwrap());
        }
    }

    #[test]
    fn a_failure_is_reported_and_what_is_there_stays() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), &definition()).unwrap();
        let make = |path| {
            if path == 25 {
                return Err(SweepError::Sim(SimError::Control { name: "vegas".into() }));
            }
            Ok(vec![row(path, "plain", 1_000, 0)])
        };
        let one = NonZeroUsize::MIN;
        let error = store.fill(&definition(), Shard::WHOLE, one, make).unwrap_err().to_string();
        assert!(error.contains("vegas"), "{error}");
        assert_eq!(store.rows().unwrap().0.len(), 20);
        assert_eq!(fill(&store, Shard::WHOLE, 1), 15);
    }

    #[test]
    fn a_directory_of_another_sweep_is_refused_by_what_differs() {
        let directory = tempfile::tempdir().unwrap();
        Store::open(directory.path(), &definition()).unwrap();
        let says = |definition| Store::open(directory.path(), &definition).unwrap_err().to_string();
        assert!(says(Definition { seed: 2, ..definition() }).contains("its seed differs"));
        assert!(says(Definition { paths: 40, ..definition() }).contains("its number of paths differs"));
        let kernel = Some("6.12".to_owned());
        assert!(says(Definition { kernel, ..definition() }).contains("its kernel differs"));
        assert!(
            says(Definition { timeout_seconds: Some(9), ..definition() }).contains("its timeout differs")
        );
        assert!(
            says(Definition { bytes: Some(9), ..definition() }).contains("its size of transfers differs")
        );
        let warm = says(Definition { warm_bytes: Some(9), ..definition() });
        assert!(warm.contains("its transfer before each differs"), "{warm}");
        assert!(says(Definition { program: "q".into(), ..definition() }).contains("its program"));
        fs::remove_file(directory.path().join(DEFINITION)).unwrap();
        fs::write(directory.path().join("notes"), "mine").unwrap();
        assert!(says(definition()).contains("give a directory of its own"));
    }
}
