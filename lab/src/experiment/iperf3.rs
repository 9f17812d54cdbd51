// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Downloads with iperf3, each with processes of its own: server where the data come from, client (`-R`) where they go
//! to, so that the clock is the receiver's and stops with the last byte it receives. (The other way round, `-n` stops
//! the clock when the last byte is in the sender's socket buffer, on a long path seconds early.)

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use onramp_net::Namespace;
use onramp_net::sock_diag::{SockDiag, States};
use serde_json::Value;

use super::plan::Amount;
use super::process::{Iperf3Error, Running, start_error};
use super::transfer::{Download, Iperf3Report, POLL, Request};
use crate::host::SENDER;

/// How long the server may take until it accepts connections.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server may take to end after the client.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Version line, for the manifest.
pub(super) fn version(program: &Path) -> Result<String, Iperf3Error> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .map_err(|source| start_error(program, "client", source))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
}

/// Largest block up to 32 KiB that divides `bytes`. iperf3 counts in blocks: the sender stops after the block with
/// which it has sent `bytes`, which is exact unless the socket took a block in parts. Small blocks keep the surplus
/// small.
fn block_bytes(bytes: u64) -> u64 {
    const LARGEST: u64 = 32 * 1024;
    (4 * 1024..=LARGEST).rev().find(|block| bytes.is_multiple_of(*block)).unwrap_or(LARGEST)
}

impl Request {
    fn server(&self, program: &Path, sender: &Namespace) -> Result<Running, Iperf3Error> {
        let (address, port) = (SENDER.to_string(), self.port.to_string());
        let mut command = sender.command(program);
        command.args(["-s", "-1", "-J", "-B", &address, "-p", &port]);
        Running::start("server", program, &mut command)
    }

    fn client(
        &self,
        program: &Path,
        receiver: &Namespace,
        options: &[String],
    ) -> Result<Running, Iperf3Error> {
        let (address, port) = (SENDER.to_string(), self.port.to_string());
        let mut command = receiver.command(program);
        command.args(["-c", &address, "-p", &port, "-R", "-J", "--connect-timeout", "30000"]);
        command.args(["-C", &self.congestion_control]).args(options);
        match self.amount {
            Amount::Bytes(bytes) => {
                command.args(["-n", &bytes.to_string(), "-l", &block_bytes(bytes).to_string()])
            }
            Amount::Seconds(seconds) => command.args(["-t", &seconds.to_string()]),
        };
        Running::start("client", program, &mut command)
    }
}

/// A transfer in progress.
struct Pair {
    server: Running,
    client: Option<Running>,
    ended: bool,
}

impl Pair {
    /// Looks after it; true once it is over.
    fn tend(&mut self, timeout: Duration, since_start: Duration) -> Result<bool, Iperf3Error> {
        let Some(client) = &mut self.client else { return Ok(false) };
        if self.ended || client.has_ended()? {
            self.ended = true;
            return Ok(true);
        }
        if since_start > timeout {
            return Err(Iperf3Error::Timeout { seconds: timeout.as_secs() });
        }
        // The client can wait for ever for a server that has gone.
        if self.server.has_ended()? && since_start > POLL && !client.ends_within(END_TIMEOUT)? {
            return Err(self.server.failure());
        }
        Ok(false)
    }

    fn download(mut self) -> Result<Option<Download>, Iperf3Error> {
        let Some(mut client) = self.client else { return Ok(None) };
        let client_json = client.output();
        let report: Value = serde_json::from_str(&client_json).unwrap_or_default();
        if let Some(message) = report["error"].as_str() {
            return Err(Iperf3Error::Failed { role: "client", message: message.to_owned() });
        }
        if !client.succeeded() {
            return Err(client.failure());
        }
        self.server.ends_within(END_TIMEOUT)?;
        let end = &report["end"];
        Ok(Some(Download {
            seconds: end["sum_received"]["seconds"]
                .as_f64()
                .filter(|seconds| *seconds > 0.0)
                .ok_or(Iperf3Error::Report { field: "end.sum_received.seconds" })?,
            bytes: end["sum_received"]["bytes"]
                .as_u64()
                .ok_or(Iperf3Error::Report { field: "end.sum_received.bytes" })?,
            iperf3: Some(Iperf3Report {
                retransmits: end["sum_sent"]["retransmits"].as_u64(),
                client_json,
                server_json: self.server.kill_and_read(),
            }),
        }))
    }
}

/// Downloads from `sender` to `receiver`, all requests at their times. `meanwhile` is called every few milliseconds
/// with the time since the beginning and says whether to go on; `options` are further ones of the clients. Returns the downloads of the requests that report, in
/// order.
pub(super) fn download(
    program: &Path,
    sender: &Namespace,
    receiver: &Namespace,
    requests: &[Request],
    options: &[String],
    timeout: Duration,
    mut meanwhile: impl FnMut(Duration) -> bool,
) -> Result<Vec<Download>, Iperf3Error> {
    let mut pairs = Vec::new();
    for request in requests {
        pairs.push(Pair { server: request.server(program, sender)?, client: None, ended: false });
    }
    wait_until_listening(sender, requests, &mut pairs)?;
    let begin = Instant::now();
    loop {
        let elapsed = begin.elapsed();
        let mut over = true;
        for (request, pair) in requests.iter().zip(&mut pairs) {
            if pair.client.is_none() && elapsed >= request.start {
                pair.client = Some(request.client(program, receiver, options)?);
            }
            let ended = pair.tend(timeout, elapsed.saturating_sub(request.start))?;
            over &= ended || request.accompanies;
        }
        if over {
            break;
        }
        if !meanwhile(elapsed) {
            return Err(Iperf3Error::Interrupted);
        }
        std::thread::sleep(POLL);
    }
    let (reporting, accompanying): (Vec<_>, Vec<_>) =
        requests.iter().zip(pairs).partition(|(request, _)| !request.accompanies);
    drop(accompanying);
    let downloads = reporting.into_iter().map(|(_, pair)| pair.download());
    downloads.filter_map(Result::transpose).collect()
}

fn wait_until_listening(
    sender: &Namespace,
    requests: &[Request],
    pairs: &mut [Pair],
) -> Result<(), Iperf3Error> {
    let mut diag = sender.run(SockDiag::open)??;
    let begin = Instant::now();
    loop {
        let mut listening = Vec::new();
        diag.dump(States::LISTEN, &[], |socket| listening.push(socket.local.port()))?;
        if requests.iter().all(|request| listening.contains(&request.port)) {
            return Ok(());
        }
        for Pair { server, .. } in &mut *pairs {
            if server.has_ended()? || begin.elapsed() > LISTEN_TIMEOUT {
                let message = server.failure().to_string();
                return Err(Iperf3Error::NotListening { message });
            }
        }
        std::thread::sleep(POLL);
    }
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
