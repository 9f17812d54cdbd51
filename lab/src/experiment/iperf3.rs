// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One download with iperf3: server where the data come from, client (`-R`) where they go to, so that the clock is the
//! receiver's and stops with the last byte it receives. (The other way round, `-n` stops the clock when the last byte
//! is in the sender's socket buffer, on a long path seconds early.)

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onramp_net::Namespace;
use onramp_net::sock_diag::{SockDiag, SockDiagError, States};
use serde_json::Value;
use thiserror::Error;

use crate::host::SENDER;

/// Port of the server; each run has its own namespace.
pub(super) const PORT: u16 = 5201;

/// How long the server may take to listen.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server may take to end after the client.
const END_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

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
        /// Why.
        source: io::Error,
    },
    /// The server did not begin to listen.
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
    /// Its report lacks something.
    #[error("iperf3's report has no {field}")]
    Report {
        /// What is missing.
        field: &'static str,
    },
}

/// What iperf3 reported.
#[derive(Clone, Debug)]
pub(super) struct Download {
    /// Receiver's time, from the start of the test to the last byte received.
    pub seconds: f64,
    /// Bytes the receiver got.
    pub bytes: u64,
    /// Segments the sender retransmitted, as iperf3 counted.
    pub retransmits: Option<u64>,
    /// The reports themselves.
    pub client_json: String,
    pub server_json: String,
}

/// Version line, for the manifest.
pub(super) fn version(program: &Path) -> Result<String, Iperf3Error> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .map_err(|source| start_error(program, "client", source))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
}

/// Largest block up to 32 KiB that divides `bytes`. iperf3 counts in blocks: the sender stops after the block with which
/// it has sent `bytes`, which is exact unless the socket took a block in parts. Small blocks keep the surplus small.
fn block_bytes(bytes: u64) -> u64 {
    const LARGEST: u64 = 32 * 1024;
    (4 * 1024..=LARGEST).rev().find(|block| bytes.is_multiple_of(*block)).unwrap_or(LARGEST)
}

/// Downloads `bytes` from `sender` to `receiver` under a congestion control.
pub(super) fn download(
    program: &Path,
    sender: &Namespace,
    receiver: &Namespace,
    congestion_control: &str,
    bytes: u64,
    timeout: Duration,
) -> Result<Download, Iperf3Error> {
    let address = SENDER.to_string();
    let port = PORT.to_string();
    let mut server = Running::start(
        "server",
        program,
        sender.command(program).args(["-s", "-1", "-J", "-B", &address, "-p", &port]),
    )?;
    wait_until_listening(sender, &mut server)?;
    let (count, block) = (bytes.to_string(), block_bytes(bytes).to_string());
    let mut client = Running::start(
        "client",
        program,
        receiver
            .command(program)
            .args(["-c", &address, "-p", &port, "-R", "-J", "--connect-timeout", "30000"])
            .args(["-n", &count, "-l", &block, "-C", congestion_control]),
    )?;
    let begin = Instant::now();
    while !client.has_ended()? {
        if begin.elapsed() > timeout {
            return Err(Iperf3Error::Timeout { seconds: timeout.as_secs() });
        }
        // The client can wait for ever for a server that has gone.
        if server.has_ended()? && begin.elapsed() > POLL && !client.ends_within(END_TIMEOUT)? {
            return Err(server.failure());
        }
        std::thread::sleep(POLL);
    }
    let client_json = client.output();
    let report: Value = serde_json::from_str(&client_json).unwrap_or_default();
    if let Some(message) = report["error"].as_str() {
        return Err(Iperf3Error::Failed { role: "client", message: message.to_owned() });
    }
    if !client.succeeded() {
        return Err(client.failure());
    }
    server.ends_within(END_TIMEOUT)?;
    let end = &report["end"];
    Ok(Download {
        seconds: end["sum_received"]["seconds"]
            .as_f64()
            .filter(|seconds| *seconds > 0.0)
            .ok_or(Iperf3Error::Report { field: "end.sum_received.seconds" })?,
        bytes: end["sum_received"]["bytes"]
            .as_u64()
            .ok_or(Iperf3Error::Report { field: "end.sum_received.bytes" })?,
        retransmits: end["sum_sent"]["retransmits"].as_u64(),
        client_json,
        server_json: server.kill_and_read(),
    })
}

fn wait_until_listening(sender: &Namespace, server: &mut Running) -> Result<(), Iperf3Error> {
    let mut diag = sender.run(SockDiag::open)??;
    let begin = Instant::now();
    loop {
        let mut listening = false;
        diag.dump(States::LISTEN, &[], |socket| listening |= socket.local.port() == PORT)?;
        if listening {
            return Ok(());
        }
        if server.has_ended()? || begin.elapsed() > LISTEN_TIMEOUT {
            let message = server.failure().to_string();
            return Err(Iperf3Error::NotListening { message });
        }
        std::thread::sleep(POLL);
    }
}

fn start_error(program: &Path, role: &'static str, source: io::Error) -> Iperf3Error {
    if source.kind() == io::ErrorKind::NotFound {
        Iperf3Error::Missing(program.into())
    } else {
        Iperf3Error::Run { role, source }
    }
}

/// A child whose output is collected; killed by its own pid when dropped.
struct Running {
    role: &'static str,
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Running {
    fn start(role: &'static str, program: &Path, command: &mut Command) -> Result<Self, Iperf3Error> {
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

    fn has_ended(&mut self) -> Result<bool, Iperf3Error> {
        let status = self.child.try_wait();
        status.map(|status| status.is_some()).map_err(|source| Iperf3Error::Run { role: self.role, source })
    }

    fn ends_within(&mut self, limit: Duration) -> Result<bool, Iperf3Error> {
        let begin = Instant::now();
        while !self.has_ended()? {
            if begin.elapsed() > limit {
                return Ok(false);
            }
            std::thread::sleep(POLL);
        }
        Ok(true)
    }

    fn succeeded(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(status)) if status.success())
    }

    /// What it printed; it has ended.
    fn output(&mut self) -> String {
        self.stdout.take().map(|reader| reader.join().unwrap_or_default()).unwrap_or_default()
    }

    fn kill_and_read(&mut self) -> String {
        self.kill();
        self.output()
    }

    fn kill(&mut self) {
        // Fails only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// An error with everything it said.
    fn failure(&mut self) -> Iperf3Error {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_divide_the_size() {
        assert_eq!(block_bytes(80_000_000), 32_000);
        assert_eq!(block_bytes(80 * 1024 * 1024), 32_768);
        assert_eq!(block_bytes(5_000), 5_000);
        // A prime, and something tiny: nothing divides well.
        assert_eq!(block_bytes(15_485_863), 32_768);
        assert_eq!(block_bytes(1), 32_768);
    }
}
