//! Flows of other controls, where nothing is attached.

use onramp_loader::algorithm::find_control;
use onramp_net::sock_diag::{SockDiag, Socket, States};
use serde::Serialize;

use super::ends::{Ends, canonical};
use crate::filter::Filter;
use crate::limits::{Limit, Sample, of_life};
use crate::output::Output;
use crate::table::Table;
use crate::units::{show_bytes, show_us};

/// A flow.
#[derive(Serialize)]
pub(super) struct Other {
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(flatten)]
    ends: Ends,
    tcp_state: &'static str,
    cookie: u64,
    congestion_control: String,
    /// The limit that held longest, as far as the kernel counts, and the rest as it is now.
    limited: Option<Limit>,
    cwnd_segments: u32,
    ssthresh_segments: Option<u32>,
    smoothed_rtt_us: u32,
    min_rtt_us: Option<u32>,
    acknowledged_bytes: u64,
    retransmitted_segments: u32,
    #[serde(skip)]
    shown: [String; 2],
}

/// Those of the current network namespace.
pub(super) fn list(namespace: Option<&str>, filter: &Filter) -> anyhow::Result<Vec<Other>> {
    let mut found = Vec::new();
    SockDiag::open()?.dump(States::CONNECTED, &[], |socket| {
        if filter.matches(socket.local, socket.remote) {
            found.extend(other(namespace, socket));
        }
    })?;
    found.sort_by(|one, other| one.shown.cmp(&other.shown));
    Ok(found)
}

/// `None`: it has no control, or one of onramp.
fn other(namespace: Option<&str>, socket: Socket) -> Option<Other> {
    let sample = Sample::new(0, &socket).filter(|_| !is_ours(&socket))?;
    let info = sample.info;
    Some(Other {
        namespace: namespace.map(str::to_owned),
        ends: Ends::new(socket.local, socket.remote),
        tcp_state: socket.state.name(),
        cookie: socket.cookie,
        shown: [canonical(socket.remote), canonical(socket.local)],
        congestion_control: socket.congestion_control?,
        limited: of_life(sample, 0),
        cwnd_segments: info.snd_cwnd,
        ssthresh_segments: info.snd_ssthresh,
        smoothed_rtt_us: info.rtt_us,
        min_rtt_us: info.min_rtt_us,
        acknowledged_bytes: info.bytes_acked,
        retransmitted_segments: info.retrans_total,
    })
}

/// Of an algorithm that has been detached.
fn is_ours(socket: &Socket) -> bool {
    socket.congestion_control.as_deref().is_some_and(|control| find_control(control).is_some())
}

/// A table, and what it is of.
pub(super) fn text(others: &[Other], output: &Output) -> String {
    let dash = || "-".to_owned();
    let mut table = Table::new([
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
    ]);
    for flow in others {
        let [remote, local] = &flow.shown;
        table.push([
            local.clone(),
            remote.clone(),
            flow.congestion_control.clone(),
            flow.limited.map_or_else(dash, Limit::title),
            flow.cwnd_segments.to_string(),
            flow.ssthresh_segments.map_or_else(dash, |segments| segments.to_string()),
            show_us(flow.smoothed_rtt_us.into()),
            flow.min_rtt_us.map_or_else(dash, |us| show_us(us.into())),
            show_bytes(flow.acknowledged_bytes),
            flow.retransmitted_segments.to_string(),
        ]);
    }
    format!(
        "Nothing is attached. These are the flows of all controls; `onramp explain` says what they wait for.\n{}",
        table.render(output)
    )
}
