//! `onramp select test`.

use std::net::{IpAddr, SocketAddr};

use clap::Args;
use onramp_loader::select::{Cgroup, Connection, Deciders, Decision, Side};
use serde::Serialize;

use super::{Missing, Row, row};
use crate::output::Output;
use crate::verb::why;

/// What cannot be asked.
const BEFORE: &str =
    "an application's own setsockopt(TCP_CONGESTION) wins over all but a route with `congctl lock`";

/// Say what a connection would get that is established now, and why: by which rule, route or default
///
/// PORT is that of the side that listens; without it no rule of a port is asked, without --cgroup none of a cgroup. The
/// route and the default are those of this network namespace.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp select test 203.0.113.9:443
  onramp select test '[2001:db8::9]:443' --accept
  onramp select test 203.0.113.9 --cgroup /system.slice/nginx.service")]
pub(super) struct Test {
    /// The peer; IPv6 with a port in brackets
    #[arg(value_name = "ADDR[:PORT]", value_parser = peer)]
    peer: Peer,
    /// The cgroup that the socket was made in
    #[arg(long, value_name = "PATH")]
    cgroup: Option<String>,
    /// Only where this host accepts [default: both]
    #[arg(long, conflicts_with = "connect")]
    accept: bool,
    /// Only where this host connects
    #[arg(long)]
    connect: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Peer {
    address: IpAddr,
    port: Option<u16>,
}

#[derive(Serialize)]
struct Report {
    address: String,
    port: Option<u16>,
    answers: Vec<Answer>,
}

#[derive(Serialize)]
struct Answer {
    side: &'static str,
    /// What the connection gets.
    congestion_control: String,
    /// With which parameters, where a rule says so.
    profile: Option<String>,
    /// `prefix`, `port`, `cgroup`, `route`, `run` or `default`.
    decided_by: &'static str,
    /// The rule that decides, or would if its control were registered.
    rule: Option<Row>,
    explanation: String,
}

impl Test {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let mut deciders = Deciders::here()?;
        let cgroup = self.cgroup.as_deref().map(Cgroup::find).transpose()?.map(|cgroup| cgroup.id);
        let sides = match (self.accept, self.connect) {
            (true, _) => vec![Side::Accept],
            (_, true) => vec![Side::Connect],
            _ => vec![Side::Accept, Side::Connect],
        };
        let Peer { address, port } = self.peer;
        let mut answers = Vec::new();
        for side in sides {
            let connection = Connection { peer: address, local: None, interface: 0, port, cgroup, side };
            answers.push(answer(deciders.decide(&connection)?, side)?);
        }
        let report = Report { address: address.to_canonical().to_string(), port, answers };
        output.data(&report, || {
            let lines = report.answers.iter().map(|one| format!("{}: {}\n", one.side, one.explanation));
            lines.collect::<String>() + BEFORE + "\n"
        })?;
        Ok(0)
    }
}

fn answer(decision: Decision, side: Side) -> anyhow::Result<Answer> {
    let explanation = format!("{} by {}", why::gets(&decision), why::text(&decision));
    let named = decision.rule().map(std::slice::from_ref).unwrap_or_default();
    let missing = Missing::of(named)?;
    let rule = decision.rule().map(|rule| row(rule, &missing));
    Ok(Answer {
        side: side.name(),
        decided_by: why::word(&decision.by),
        congestion_control: decision.control,
        profile: decision.profile,
        rule,
        explanation,
    })
}

fn peer(text: &str) -> Result<Peer, String> {
    if let Ok(address) = text.parse() {
        return Ok(Peer { address, port: None });
    }
    match text.parse::<SocketAddr>() {
        Ok(peer) if peer.port() != 0 => Ok(Peer { address: peer.ip(), port: Some(peer.port()) }),
        _ => Err("write an address with or without a port from 1 to 65535, such as 203.0.113.9:443 or [2001:db8::9]:443".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_an_address_with_or_without_a_port() {
        let read = |text: &str| peer(text).map(|peer| (peer.address.to_string(), peer.port));
        assert_eq!(read("203.0.113.9"), Ok(("203.0.113.9".into(), None)));
        assert_eq!(read("203.0.113.9:443"), Ok(("203.0.113.9".into(), Some(443))));
        assert_eq!(read("2001:db8::9"), Ok(("2001:db8::9".into(), None)));
        assert_eq!(read("[2001:db8::9]:443"), Ok(("2001:db8::9".into(), Some(443))));
        for wrong in ["203.0.113.9:0", "203.0.113.9:x", "example.org", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
