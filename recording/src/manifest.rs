// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a recording is of: `manifest.json`, next to its tables.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::error::Error;
use crate::replace::replace;

/// Version of the manifest and of the tables; raised when a field or column changes its name or meaning, or goes. No other
/// version is read.
pub const SCHEMA: u32 = 1;
/// Name of the manifest's file.
pub(crate) const FILE: &str = "manifest.json";

/// What a recording is of. Written when it begins, and again when it ends.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of the onramp that wrote it.
    pub onramp: String,
    /// The command line.
    pub command: Vec<String>,
    /// Telemetry level: `exit`, `round` or `ack`.
    pub level: String,
    /// Seed of what was recorded, where it had one.
    pub seed: Option<u64>,
    /// Wall clock at the start, microseconds since 1970.
    pub started_us: u64,
    /// The monotonic clock of the tables at that moment, microseconds.
    pub started_monotonic_us: u64,
    /// Wall clock at the end; none: it was not ended properly, or is in progress.
    pub ended_us: Option<u64>,
    /// Whether it ended properly and lists its files.
    pub complete: bool,
    /// Release of the kernel.
    pub kernel: String,
    /// Facts of the host: queueing discipline, default congestion control, sysctls.
    pub host: BTreeMap<String, String>,
    /// Algorithms attached at the start, with the parameters of each profile.
    pub algorithms: Vec<Attached>,
    /// The tables' files with their rows, when complete.
    pub files: Vec<FileEntry>,
    /// Events that the recorder was too slow for, when complete.
    pub dropped_events: u64,
}

/// An algorithm that was attached.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Attached {
    /// Algorithm.
    pub algorithm: String,
    /// Profile, by the name that the attachment gives it.
    pub profile: String,
    /// Base.
    pub base: String,
    /// Options of the base after slow start; none also in recordings made before there were any.
    #[serde(default)]
    pub after_exit: Vec<String>,
    /// Generation of the parameters.
    pub generation: u32,
    /// Values by name, as they are typed: the name of a choice, else the number.
    pub parameters: BTreeMap<String, String>,
}

/// A table's file.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Name in the recording's directory.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Size.
    pub bytes: u64,
}

impl Manifest {
    /// Puts it into the directory, in the place of the last one.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(FILE);
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::write(&path)(std::io::Error::other(error)))?;
        text.push('\n');
        replace(&path, text.as_bytes())
    }

    /// Reads a recording's manifest.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Damaged`] or [`Error::Schema`], naming the file.
    pub fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(FILE);
        Self::parse(&path, &bounded::read_text(&path).map_err(Error::read(&path))?)
    }

    /// Of what was read from there.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Versioned {
            schema: u32,
        }
        let damaged = |error: serde_json::Error| Error::damaged(path, error);
        let Versioned { schema } = serde_json::from_str(text).map_err(damaged)?;
        if schema != SCHEMA {
            return Err(Error::Schema { path: path.to_owned(), found: schema, known: SCHEMA });
        }
        serde_json::from_str(text).map_err(damaged)
    }

    /// Wall clock of a time of the tables, microseconds since 1970.
    pub fn wall_us(&self, monotonic_us: u64) -> u64 {
        self.started_us.wrapping_add(monotonic_us).wrapping_sub(self.started_monotonic_us)
    }
}
