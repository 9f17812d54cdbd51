// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What can go wrong with a recording; every error names the file.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::bounded;

/// Why a recording could not be written or read.
#[derive(Debug, Error)]
pub enum Error {
    /// The directory to record into holds something already.
    #[error("{path} is not empty: a recording needs a directory of its own")]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// Another user could change what is recorded there, or have it written elsewhere.
    #[error(
        "{path} is not safe to record into: {reason}; give a directory of your own, or one that is to be made"
    )]
    Untrusted {
        /// The directory.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The system refused to write. What was written before stays readable.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused to read.
    #[error("cannot read {}: {source}", bounded::name(path))]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not what was written: cut off or changed.
    #[error("{} is damaged: {reason}", bounded::name(path))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What shows it.
        reason: String,
    },
    /// It would take more memory than reading may.
    #[error("{path} is too large to be read: {reason}")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How large, and the limit.
        reason: String,
    },
    /// It was not wanted any more.
    #[error("{path} was not read to its end: reading was cancelled")]
    Cancelled {
        /// The file.
        path: PathBuf,
    },
    /// There is no recording here, nor a table of one.
    #[error("{} is no recording: {reason}", bounded::name(path))]
    NotARecording {
        /// What was given.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// There is nothing to replay.
    #[error("{} holds no acknowledgments{} that {}", bounded::name(path), of_flow(*flow), missing(*purpose))]
    NoAcks {
        /// What was given.
        path: PathBuf,
        /// The flow that was asked for; none: any.
        flow: Option<u64>,
        /// What was to become of them; `None`: they may be there, and cannot be read.
        purpose: Option<&'static str>,
    },
    /// A capture that can be used in part.
    #[error("{}: {reason}", bounded::name(path))]
    Capture {
        /// The file.
        path: PathBuf,
        /// What cannot be used, and how much.
        reason: String,
    },
    /// Written by another version of onramp in a form that this one does not know.
    #[error(
        "{path} has schema {found}, and this build of onramp reads schema {known}: use the build that wrote it"
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The schema that is read here.
        known: u32,
    },
}

fn of_flow(flow: Option<u64>) -> String {
    flow.map_or_else(String::new, |flow| format!(" of flow {flow}"))
}

impl Error {
    /// Whether what was named is not there, or is something else.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Read { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::NotARecording { .. } | Self::Schema { .. } => true,
            _ => false,
        }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Write { path: path.to_owned(), source }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, reason: impl ToString) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// How acknowledgments come into a recording.
pub const ACKS_ARE_RECORDED: &str =
    "with --level ack, of flows whose telemetry is not limited (`onramp tune ALG --telemetry ack`)";

fn missing(purpose: Option<&str>) -> String {
    match purpose {
        Some(purpose) => format!("could be {purpose}: they are recorded {ACKS_ARE_RECORDED}"),
        None => "can be read".into(),
    }
}

/// How many there are and what they are, for a problem; `None`: there is none.
pub(crate) fn counted(number: u64, one: &str, several: &str) -> Option<String> {
    (number > 0).then(|| format!("{number} {}", if number == 1 { one } else { several }))
}
