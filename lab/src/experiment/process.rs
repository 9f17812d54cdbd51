// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! iperf3's processes.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onramp_net::sock_diag::SockDiagError;
use serde_json::Value;
use thiserror::Error;

use super::transfer::POLL;

/// What can go wrong with a download.
#[derive(Debug, Error)]
pub enum Iperf3Error {
    /// There is no iperf3.
    #[error("cannot find {0}: install iperf3 (3.12 is known to work)")]
    Missing(PathBuf),
    /// It could not be started or waited for.
    #[error("cannot run the iperf3 {role}: {source}")]
    Run {
        /// `client` or `server`.
        role: &'static str,
        /// Reason.
        source: io::Error,
    },
    /// The server did not accept connections.
    #[error("the iperf3 server did not listen: {message}")]
    NotListening {
        /// Exit status and output.
        message: String,
    },
    /// The kernel's list of sockets could not be read while waiting for the server.
    #[error(transparent)]
    SockDiag(#[from] SockDiagError),
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] onramp_net::NamespaceError),
    /// It ended with an error.
    #[error("the iperf3 {role} failed: {message}")]
    Failed {
        /// `client` or `server`.
        role: &'static str,
        /// Its own message.
        message: String,
    },
    /// It took too long.
    #[error("the iperf3 client did not finish within {seconds} s and was killed")]
    Timeout {
        /// The limit.
        seconds: u64,
    },
    /// The link ended under it.
    #[error("the transfer was given up because the link failed")]
    Interrupted,
    /// Its report lacks something.
    #[error("iperf3's report has no {field}")]
    Report {
        /// What is missing.
        field: &'static str,
    },
}

pub(super) fn start_error(program: &Path, role: &'static str, source: io::Error) -> Iperf3Error {
    if source.kind() == io::ErrorKind::NotFound {
        Iperf3Error::Missing(program.into())
    } else {
        Iperf3Error::Run { role, source }
    }
}

/// A child whose output is collected; killed by its own pid when dropped.
pub(super) struct Running {
    role: &'static str,
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Running {
    pub fn start(role: &'static str, program: &Path, command: &mut Command) -> Result<Self, Iperf3Error> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| start_error(program, role, source))?;
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        Ok(Self { role, child, stdout, stderr })
    }

    pub fn has_ended(&mut self) -> Result<bool, Iperf3Error> {
        let status = self.child.try_wait();
        status.map(|status| status.is_some()).map_err(|source| Iperf3Error::Run { role: self.role, source })
    }

    pub fn ends_within(&mut self, limit: Duration) -> Result<bool, Iperf3Error> {
        let begin = Instant::now();
        while !self.has_ended()? {
            if begin.elapsed() > limit {
                return Ok(false);
            }
            std::thread::sleep(POLL);
        }
        Ok(true)
    }

    pub fn succeeded(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(status)) if status.success())
    }

    /// What it printed; it has ended.
    pub fn output(&mut self) -> String {
        self.stdout.take().map(|reader| reader.join().unwrap_or_default()).unwrap_or_default()
    }

    pub fn kill_and_read(&mut self) -> String {
        self.kill();
        self.output()
    }

    pub fn kill(&mut self) {
        // Fails only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// An error with everything it said.
    pub fn failure(&mut self) -> Iperf3Error {
        self.kill();
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let stderr = self.stderr.take().map(|reader| reader.join().unwrap_or_default()).unwrap_or_default();
        let stdout = self.output();
        let report: Value = serde_json::from_str(&stdout).unwrap_or_default();
        let said = report["error"].as_str().unwrap_or(stderr.trim()).to_owned();
        let message = if said.is_empty() { status } else { format!("{said} ({status})") };
        Iperf3Error::Failed { role: self.role, message }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still worth showing.
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
