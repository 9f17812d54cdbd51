// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What can go wrong with a guest.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::source::SourceError;

/// What can go wrong with a guest, seen from the host.
#[derive(Debug, Error)]
pub enum GuestError {
    /// There is no such kernel.
    #[error(
        "there is no kernel {asked:?}: give one of {known}, or the path of a directory with vmlinuz and modules/"
    )]
    UnknownKernel {
        /// As given.
        asked: String,
        /// What there is, with commas.
        known: String,
    },
    /// The kernel is not in the cache.
    #[error("kernel {series} is not in {cache}: fetch it with `onramp lab kernel fetch {series}`")]
    NotFetched {
        /// Its series.
        series: String,
        /// Where it was looked for.
        cache: PathBuf,
    },
    /// The kernel could not be fetched.
    #[error("kernel {series} cannot be fetched: {message}")]
    Fetch {
        /// Its series.
        series: String,
        /// What was said.
        message: String,
    },
    /// A source of it is not what it should be.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The suite has gone on to another series.
    #[error(
        "kernel {series} is no longer in Debian's {suite}, which has {release}: give a directory with vmlinuz and \
         modules/ of this series"
    )]
    Superseded {
        /// Its series.
        series: String,
        /// The suite.
        suite: String,
        /// What `uname -r` says in the kernel that the suite has.
        release: String,
    },
    /// A directory given as a kernel lacks something.
    #[error(
        "{directory} is not a kernel: it has no {missing}; a kernel is a directory with vmlinuz and modules/"
    )]
    Incomplete {
        /// The directory.
        directory: PathBuf,
        /// What is missing.
        missing: &'static str,
    },
    /// The kernel has no such module.
    #[error("kernel {release} has no module {name}, neither built in nor to load: give another kernel")]
    Module {
        /// Its release.
        release: String,
        /// Name of the module.
        name: String,
    },
    /// The kernel's image has no HPET driver that is known.
    #[error(
        "the speed of the processor cannot be set for kernel {release}: its HPET driver (CONFIG_HPET_TIMER) is not there, or \
         does not divide by 10^15 as Linux 6.1 to 7.2 do; give another kernel"
    )]
    Clock {
        /// Its release.
        release: String,
    },
    /// A program that the host needs is missing.
    #[error("{program} is missing: install {}", installed(.package))]
    Missing {
        /// The program.
        program: String,
        /// The Debian package that has it, if that is known.
        package: Option<&'static str>,
    },
    /// There is nowhere to keep kernels.
    #[error("there is no place for kernels: set ONRAMP_CACHE, XDG_CACHE_HOME or HOME")]
    NoCache,
    /// Guests run on this architecture only.
    #[error("guests are x86-64 machines that run the programs of this one, which is {0}")]
    Architecture(&'static str),
    /// A file could not be read or written.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// What was to be done: `read`, `write`, …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// A program could not be run.
    #[error("cannot run {program}: {message}")]
    Run {
        /// The program.
        program: String,
        /// What it said.
        message: String,
    },
    /// The guest took too long.
    #[error("the guest was not done after {seconds} s and was ended; its console's last lines: {console}")]
    Deadline {
        /// The limit, seconds of the host.
        seconds: u64,
        /// What its console said last.
        console: String,
    },
    /// The guest ended without a result.
    #[error("the guest broke off ({how}); its console's last lines: {console}")]
    BrokeOff {
        /// How QEMU ended, and what was missing.
        how: String,
        /// What its console said last.
        console: String,
    },
}

impl GuestError {
    /// Whether what was asked for is what there is not.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Source(error) => error.is_usage(),
            other => matches!(other, Self::UnknownKernel { .. } | Self::Incomplete { .. }),
        }
    }

    /// A failure at a file.
    pub(super) fn file(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::File { action, path, source }
    }
}

fn installed(package: &Option<&str>) -> String {
    match package {
        Some(package) => format!("it, on Debian with `apt-get install {package}`"),
        None => "the package that has it".to_owned(),
    }
}
