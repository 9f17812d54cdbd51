//! A flow in a listing, with the names of `onramp flows` and `onramp watch`.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;

use onramp_loader::algorithm;
use onramp_net::Prefix;
use onramp_recording::replay::{PathEstimate, Regret};
use onramp_recording::rows::ExitRecordRow;
use serde::{Deserialize, Deserializer, Serialize};

use crate::live;

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FlowSummary {
    pub flow: u64,
    pub netns: u32,
    pub local_address: IpAddr,
    pub local_port: u16,
    pub remote_address: IpAddr,
    pub remote_port: u16,
    #[serde(deserialize_with = "word")]
    pub algorithm: Cow<'static, str>,
    /// Number of its parameter set.
    pub parameter_set: u32,
    pub parameters_generation: u32,
    /// As in `onramp flows`, and `ended`.
    #[serde(deserialize_with = "word")]
    pub state: Cow<'static, str>,
    /// It has nothing in flight, and there was no event for a second.
    pub idle: bool,
    /// Monotonic clock: first data, else the first event.
    pub started_us: u64,
    /// Monotonic clock: the newest event.
    pub at_us: u64,
    pub cwnd_segments: u32,
    pub ssthresh_segments: Option<u32>,
    pub in_flight_segments: u32,
    pub mss_bytes: u32,
    pub rtt_us: Option<u32>,
    pub min_rtt_us: Option<u32>,
    pub rate_bps: Option<u64>,
    /// Highest of its rounds.
    pub rate_max_bps: Option<u64>,
    /// Highest rate of a round times minimum RTT.
    pub bdp_bytes: Option<u64>,
    /// This is a lower bound: the flow did not keep that rate for four rounds.
    pub bdp_at_least: bool,
    pub acknowledged_bytes: u64,
    pub sent_bytes: Option<u64>,
    pub retransmitted_bytes: u64,
    /// Window before the first loss after the exit.
    pub loss_cwnd_segments: Option<u32>,
    pub exit: Option<ExitRecordRow>,
    /// What the exit has cost so far.
    pub regret: Option<Regret>,
    /// What limited the newest round, of a flow that has ended all of its life: as in `onramp explain`; none: not known.
    pub limited: Option<String>,
}

impl FlowSummary {
    /// Of a flow as it is now.
    pub fn new(flow: &live::Flow, mask: bool) -> Self {
        let address = |end: SocketAddr| shown(end.ip(), mask);
        let row = Self {
            flow: flow.id,
            netns: flow.netns,
            local_address: address(flow.local),
            local_port: flow.local.port(),
            remote_address: address(flow.remote),
            remote_port: flow.remote.port(),
            algorithm: flow.name.into(),
            parameter_set: flow.profile,
            parameters_generation: flow.generation,
            state: state(flow).into(),
            idle: flow.idle,
            started_us: flow.start_us,
            at_us: flow.now.at_us,
            cwnd_segments: flow.now.cwnd,
            ssthresh_segments: flow.now.ssthresh,
            in_flight_segments: flow.now.in_flight,
            mss_bytes: flow.mss,
            rtt_us: flow.now.rtt_us,
            min_rtt_us: flow.min_rtt_us,
            rate_bps: flow.now.rate_bps,
            rate_max_bps: None,
            bdp_bytes: None,
            bdp_at_least: false,
            acknowledged_bytes: flow.acknowledged_bytes(),
            sent_bytes: flow.sent_bytes,
            retransmitted_bytes: flow.retransmitted_bytes,
            loss_cwnd_segments: flow.loss_window,
            exit: flow.exit.map(|exit| ExitRecordRow::new(&exit.record)),
            regret: flow.regret(),
            limited: flow.limited.now().map(|limit| limit.name().to_owned()),
        };
        row.over(flow.given())
    }

    /// Of a flow whose path gave this.
    pub fn over(self, given: Option<PathEstimate>) -> Self {
        Self {
            rate_max_bps: given.map(|given| given.rate_bytes_per_second.saturating_mul(8)),
            bdp_bytes: given.map(|given| given.window_bytes),
            bdp_at_least: given.is_some_and(|given| given.at_least),
            ..self
        }
    }

    /// Local end.
    pub fn local(&self) -> SocketAddr {
        SocketAddr::new(self.local_address, self.local_port)
    }

    /// Remote end.
    pub fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.remote_address, self.remote_port)
    }

    /// Window at the exit, in thousandths of the BDP; `None`: no exit, or no rate yet.
    pub fn exit_permille_of_bdp(&self) -> Option<u64> {
        let exit = self.exit.as_ref()?;
        exit.window_bytes.saturating_mul(1000).checked_div(self.bdp_bytes?)
    }

    /// Whether it is over.
    pub fn ended(&self) -> bool {
        self.state == "ended"
    }

    /// Why it exited slow start; of one that has not, where it stands.
    pub fn reason(&self) -> &str {
        self.exit.as_ref().map_or(&self.state, |exit| &exit.reason)
    }
}

/// An address, or the first of its network in its place.
pub(in crate::verb) fn shown(address: IpAddr, mask: bool) -> IpAddr {
    if mask { network(address).address() } else { address.to_canonical() }
}

/// The network of an address: 24 bits of IPv4, 48 of IPv6.
pub(super) fn network(address: IpAddr) -> Prefix {
    let address = address.to_canonical();
    let prefix: Prefix = address.into();
    prefix.shortened(if address.is_ipv4() { 24 } else { 48 }).network()
}

/// A word that is sent with every flow, which need not be kept with every flow.
fn word<'de, D: Deserializer<'de>>(from: D) -> Result<Cow<'static, str>, D::Error> {
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| algorithm::all().map(|one| one.name()).collect());
    let text = <&str>::deserialize(from)?;
    let known = STATES.iter().chain(NAMES.iter()).find(|known| **known == text);
    Ok(known.map_or_else(|| text.to_owned().into(), |known| Cow::Borrowed(*known)))
}

const STATES: [&str; 6] = ["left", "slow_start", "ended", "no_slow_start", "adopted", "draining"];

fn state(flow: &live::Flow) -> &'static str {
    match flow.exit {
        _ if flow.ended => "ended",
        Some(exit) if exit.record.window_after == 0 => "draining",
        Some(_) => "left",
        None if flow.adopted => "adopted",
        None if flow.slow_start => "slow_start",
        None => "no_slow_start",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_said_without_its_hosts() {
        for (address, expected) in [
            ("198.51.100.77", "198.51.100.0/24"),
            ("::ffff:198.51.100.77", "198.51.100.0/24"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"),
        ] {
            assert_eq!(network(address.parse().unwrap()).to_string(), expected);
        }
    }
}
