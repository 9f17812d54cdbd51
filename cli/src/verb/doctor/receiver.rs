//! `onramp doctor --receiver`.

use onramp_loader::receiver::{self, Measured, Receiver};
use onramp_loader::{Path, Wanted};
use serde::Serialize;

use super::PathReport;
use crate::output::Output;
use crate::units;

/// Without a path: chosen, as a home's line far from the server.
pub(super) const PATH: Path = Path { rate_bps: 100_000_000, rtt_us: 100_000 };

#[derive(Serialize)]
struct ReceiverReport {
    path: PathReport,
    now: MeasuredReport,
    /// None: the initial buffer holds the path's BDP already.
    raised: Option<MeasuredReport>,
    /// Whether the first window is larger with it.
    opens_first_window: Option<bool>,
    memory: MemoryReport,
    /// None: nothing to gain.
    advice: Option<String>,
}

#[derive(Serialize)]
struct MeasuredReport {
    tcp_rmem: String,
    syn_window_bytes: u64,
    first_window_bytes: u64,
    /// Round trips after which the buffer is larger than at first; none: it never was.
    autotuned_after_rtts: Option<usize>,
    rounds: Vec<RoundReport>,
    transfers: Vec<TransferReport>,
}

#[derive(Serialize)]
struct RoundReport {
    window_bytes: u64,
    read_bytes: u64,
    buffer_bytes: u64,
}

#[derive(Serialize)]
struct TransferReport {
    bytes: u64,
    /// None: longer than was measured.
    seconds: Option<f64>,
    /// If the receiver were not the limit.
    line_seconds: f64,
    cost_seconds: Option<f64>,
}

#[derive(Serialize)]
struct MemoryReport {
    under_pressure: bool,
    used_bytes: u64,
    pressure_bytes: Option<u64>,
    /// That fill their initial buffers before there is pressure: as it is, and raised.
    connections: Option<u64>,
    connections_raised: Option<u64>,
}

impl MeasuredReport {
    fn new(measured: &Measured) -> Self {
        let offered = &measured.offered;
        let first = measured.initial_bytes();
        let rounds = offered.rounds.iter().map(|round| RoundReport {
            window_bytes: round.window_bytes,
            read_bytes: round.read_bytes,
            buffer_bytes: round.buffer_bytes,
        });
        let transfers = measured.transfers.iter().map(|transfer| {
            let (seconds, line) =
                (transfer.takes.map(|time| time.as_secs_f64()), transfer.line.as_secs_f64());
            TransferReport {
                bytes: transfer.bytes,
                seconds,
                line_seconds: line,
                cost_seconds: seconds.map(|seconds| (seconds - line).max(0.0)),
            }
        });
        Self {
            tcp_rmem: measured.tcp_rmem.clone(),
            syn_window_bytes: offered.syn_window_bytes,
            first_window_bytes: offered.first_window_bytes,
            autotuned_after_rtts: offered.rounds.iter().position(|round| round.buffer_bytes > first),
            rounds: rounds.collect(),
            transfers: transfers.collect(),
        }
    }

    fn text(&self) -> String {
        let windows: Vec<_> =
            self.rounds.iter().map(|round| units::show_bytes(round.window_bytes)).take(8).collect();
        let mut text = format!(
            "tcp_rmem {}\n  window: {} in the SYN, {} after the handshake, then by round trip {}\n",
            self.tcp_rmem,
            units::show_bytes(self.syn_window_bytes),
            units::show_bytes(self.first_window_bytes),
            windows.join(", "),
        );
        for transfer in &self.transfers {
            let bytes = units::show_bytes(transfer.bytes);
            text += &match (transfer.seconds, transfer.cost_seconds) {
                (Some(seconds), Some(cost)) => {
                    format!("  {bytes}: {seconds:.2} s at best, of which the window costs {cost:.2} s\n")
                }
                _ => format!("  {bytes}: longer than was measured\n"),
            };
        }
        text
    }
}

impl ReceiverReport {
    fn new(path: Path, receiver: &Receiver) -> Self {
        let memory = receiver.memory;
        let connections = |measured: &Measured| memory.connections(measured.initial_bytes());
        Self {
            path: path.into(),
            now: MeasuredReport::new(&receiver.now),
            raised: receiver.raised.as_ref().map(MeasuredReport::new),
            opens_first_window: receiver.opens_first_window(),
            memory: MemoryReport {
                under_pressure: memory.is_under_pressure(),
                used_bytes: memory.used_bytes,
                pressure_bytes: memory.pressure_bytes,
                connections: connections(&receiver.now),
                connections_raised: receiver.raised.as_ref().and_then(connections),
            },
            advice: receiver.wanted().and_then(|wanted| wanted.to).map(|to| {
                format!("sysctl -w net.ipv4.tcp_rmem=\"{to}\", or `onramp doctor --receiver … --fix`")
            }),
        }
    }

    fn text(&self) -> String {
        let path = &self.path;
        let mut text = format!(
            "measured over {} and {}, by a sender that only the window holds back\n",
            units::show_rate(path.rate_bps),
            units::show_us(path.rtt_us)
        );
        text += &self.now.text();
        if let Some(raised) = &self.raised {
            text += &format!("with {}", raised.text());
            if self.opens_first_window == Some(false) {
                text += "  this kernel does not open its first window by it\n";
            }
        }
        let memory = &self.memory;
        if memory.under_pressure {
            text += "memory of TCP is under pressure (net.ipv4.tcp_mem): windows are held down\n";
        } else if let Some(most) = memory.pressure_bytes {
            text += &format!(
                "memory of TCP: {} of {} until windows are held down (net.ipv4.tcp_mem)",
                units::show_bytes(memory.used_bytes),
                units::show_bytes(most)
            );
            if let Some(connections) = memory.connections_raised {
                text += &format!(", room for {connections} connections that fill the larger buffer");
            }
            text.push('\n');
        }
        match &self.advice {
            Some(advice) => text + &format!("-> {advice}\n"),
            None => text + "nothing to gain from a larger initial buffer\n",
        }
    }
}

/// Reports.
pub(super) fn report(path: Path, output: &Output) -> anyhow::Result<u8> {
    let report = ReceiverReport::new(path, &measure(path, output)?);
    output.data(&report, || report.text())?;
    Ok(0)
}

/// What `--fix` sets.
pub(super) fn wanted(path: Path, output: &Output) -> anyhow::Result<Vec<Wanted>> {
    Ok(measure(path, output)?.wanted().into_iter().collect())
}

fn measure(path: Path, output: &Output) -> anyhow::Result<Receiver> {
    output.progress("measuring what this host offers as a receiver");
    Ok(receiver::measure(path)?)
}
