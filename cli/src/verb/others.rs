//! Flows of other controls, where nothing is attached.

use std::net::SocketAddr;

use onramp_loader::algorithm::find_control;
use onramp_net::sock_diag::{SockDiag, Socket, States};
use serde::Serialize;

use super::ends::{Ends, canonical};
use crate::limits::{Limit, Sample, of_life};
use crate::output::Output;
use crate::table::Table;
use crate::units::{show_bytes, show_us};

/// A flow.
#[derive(Debug, Serialize)]
pub(super) struct OtherFlow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(flatten)]
    pub ends: Ends,
    pub tcp_state: &'static str,
    pub cookie: u64,
    pub congestion_control: String,
    /// The limit that held longest, as far as the kernel counts, and the rest as it is now.
    pub limited: Option<Limit>,
    pub cwnd_segments: u32,
    pub ssthresh_segments: Option<u32>,
    pub smoothed_rtt_us: u32,
    pub min_rtt_us: Option<u32>,
    pub acknowledged_bytes: u64,
    pub retransmitted_segments: u32,
    /// As the kernel measured it last; of one that had nothing to send, what it sent.
    pub delivery_rate_bytes_per_s: u64,
    pub delivery_rate_app_limited: bool,
    #[serde(skip)]
    pub local: SocketAddr,
    #[serde(skip)]
    pub remote: SocketAddr,
}

/// Columns of the table, `>` before those of numbers.
pub(super) const TITLES: [&str; 10] = [
    "LOCAL",
    "REMOTE",
    "CONTROL",
    "LIMITED BY",
    ">CWND",
    ">SSTHRESH",
    ">RTT",
    ">MIN RTT",
    ">ACKED",
    ">RETRANSMITTED",
];

impl OtherFlow {
    /// As the titles have it.
    pub fn cells(&self) -> [String; TITLES.len()] {
        let dash = || "-".to_owned();
        [
            canonical(self.local),
            canonical(self.remote),
            self.congestion_control.clone(),
            self.limited.map_or_else(dash, Limit::title),
            self.cwnd_segments.to_string(),
            self.ssthresh_segments.map_or_else(dash, |segments| segments.to_string()),
            show_us(self.smoothed_rtt_us.into()),
            self.min_rtt_us.map_or_else(dash, |us| show_us(us.into())),
            show_bytes(self.acknowledged_bytes),
            self.retransmitted_segments.to_string(),
        ]
    }
}

/// Those of the network namespace of `sockets` with these ends, local and remote; `None`: something is attached.
pub(super) fn list(
    sockets: &mut SockDiag,
    namespace: Option<&str>,
    wanted: impl Fn(SocketAddr, SocketAddr) -> bool,
) -> anyhow::Result<Option<Vec<OtherFlow>>> {
    if !onramp_loader::pinned()?.is_empty() {
        return Ok(None);
    }
    let mut found = Vec::new();
    sockets.dump(States::CONNECTED, &[], |socket| {
        if wanted(socket.local, socket.remote) {
            found.extend(other(namespace, socket));
        }
    })?;
    found.sort_by_key(|flow| (flow.remote, flow.local));
    Ok(Some(found))
}

/// `None`: it has no control, or one of onramp.
fn other(namespace: Option<&str>, socket: Socket) -> Option<OtherFlow> {
    let sample = Sample::new(0, &socket).filter(|_| !is_ours(&socket))?;
    let info = sample.info;
    Some(OtherFlow {
        namespace: namespace.map(str::to_owned),
        ends: Ends::new(socket.local, socket.remote),
        tcp_state: socket.state.name(),
        cookie: socket.cookie,
        congestion_control: socket.congestion_control?,
        limited: of_life(sample, 0),
        cwnd_segments: info.snd_cwnd,
        ssthresh_segments: info.snd_ssthresh,
        smoothed_rtt_us: info.rtt_us,
        min_rtt_us: info.min_rtt_us,
        acknowledged_bytes: info.bytes_acked,
        retransmitted_segments: info.retrans_total,
        delivery_rate_bytes_per_s: info.delivery_rate_bytes_per_s,
        delivery_rate_app_limited: info.delivery_rate_app_limited,
        local: socket.local,
        remote: socket.remote,
    })
}

/// Of an algorithm that has been detached.
fn is_ours(socket: &Socket) -> bool {
    socket.congestion_control.as_deref().is_some_and(|control| find_control(control).is_some())
}

/// What they are.
pub(super) const WHAT: &str =
    "Nothing is attached. These are the flows of all controls; `onramp explain` says what they wait for.";

/// A table, and what it is of.
pub(super) fn text(others: &[OtherFlow], output: &Output) -> String {
    let mut table = Table::new(TITLES);
    for flow in others {
        table.push(flow.cells());
    }
    format!("{WHAT}\n{}", table.render(output))
}

#[cfg(test)]
impl OtherFlow {
    /// One from this end to that, whose receiver has acknowledged so much.
    pub fn example(local: &str, remote: &str, congestion_control: &str, acknowledged_bytes: u64) -> Self {
        let (local, remote) = (local.parse().unwrap(), remote.parse().unwrap());
        Self {
            namespace: None,
            ends: Ends::new(local, remote),
            tcp_state: "established",
            cookie: 1,
            congestion_control: congestion_control.to_owned(),
            limited: Some(Limit::ReceiveWindow),
            cwnd_segments: 117,
            ssthresh_segments: Some(94),
            smoothed_rtt_us: 52_300,
            min_rtt_us: None,
            acknowledged_bytes,
            retransmitted_segments: 3,
            delivery_rate_bytes_per_s: 1_250_000,
            delivery_rate_app_limited: false,
            local,
            remote,
        }
    }
}
