//! `onramp select test`.

use std::net::{IpAddr, SocketAddr};

use clap::Args;
use onramp_loader::DEFAULT_SYSCTL;
use onramp_loader::select::{self, Cgroup, Connection, Rule, Side, What, decide, missing_controls};
use onramp_net::Namespace;
use serde::Serialize;

use super::{Row, row};
use crate::output::Output;

/// What comes before every rule.
const BEFORE: &str =
    "an application's own setsockopt(TCP_CONGESTION) and a route with `congctl lock` win over rules";

/// Say which rule would decide about a connection, and why
///
/// PORT is that of the side that listens; without it no rule of a port is asked, without --cgroup none of a cgroup.
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
    /// What the connection gets; none: the route's `congctl`, else the default.
    congestion_control: Option<String>,
    /// `prefix`, `port`, `cgroup` or `none`.
    decided_by: &'static str,
    rule: Option<Row>,
    default: String,
    explanation: String,
}

impl Test {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let rules = match select::selection()? {
            Some(selection) if selection.active => selection.rules,
            _ => Vec::new(),
        };
        let missing = missing_controls(&rules)?;
        let cgroups = match &self.cgroup {
            Some(path) => Cgroup::find(path)?.ancestry()?,
            None => Vec::new(),
        };
        let default = Namespace::current()?.sysctl_get(DEFAULT_SYSCTL)?;
        let sides = match (self.accept, self.connect) {
            (true, _) => vec![Side::Accept],
            (_, true) => vec![Side::Connect],
            _ => vec![Side::Accept, Side::Connect],
        };
        let Peer { address, port } = self.peer;
        let answers = sides.into_iter().map(|side| {
            let connection = Connection { peer: address, port, cgroups: cgroups.clone(), side };
            let rule = decide(&rules, &connection);
            answer(rule, rule.is_some_and(|rule| missing.contains(&rule.choice.control)), side, &default)
        });
        let report = Report { address: address.to_canonical().to_string(), port, answers: answers.collect() };
        output.data(&report, || {
            let lines = report.answers.iter().map(|one| format!("{}: {}\n", one.side, one.explanation));
            lines.collect::<String>() + BEFORE + "\n"
        })?;
        Ok(0)
    }
}

fn answer(rule: Option<&Rule>, missing: bool, side: Side, default: &str) -> Answer {
    let otherwise = format!(
        "the route's `congctl` where it has one, else the default of the network namespace, {default}"
    );
    let (decided_by, why) = match rule.map(|rule| &rule.target.what) {
        Some(What::To(_)) => ("prefix", "the longest prefix"),
        Some(What::Port(_)) => ("port", "no prefix, so the port"),
        Some(What::Cgroup(_)) => ("cgroup", "no prefix and no port, so the nearest cgroup"),
        None => ("none", ""),
    };
    let explanation = match rule {
        Some(rule) if missing => {
            format!("{otherwise}: {rule} decides, but {} is not registered", rule.choice.control)
        }
        Some(rule) => format!("{} by {rule} ({why})", rule.choice.control),
        None => format!("{otherwise}: no rule decides"),
    };
    Answer {
        side: side.name(),
        congestion_control: rule.filter(|_| !missing).map(|rule| rule.choice.control.clone()),
        decided_by,
        rule: rule.map(|rule| row(rule, !missing)),
        default: default.to_owned(),
        explanation,
    }
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
