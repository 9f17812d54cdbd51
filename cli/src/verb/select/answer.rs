//! `onramp select test`.

use std::net::IpAddr;

use clap::Args;
use onramp_loader::select::{Cgroup, Connection, Side};
use onramp_loader::{Deciders, Decision};
use serde::Serialize;

use super::{Missing, RuleRow, row};
use crate::filter::{interface, zoned};
use crate::output::{Output, escape_line};
use crate::verb::why;

/// What cannot be asked.
const BEFORE: &str =
    "an application's own setsockopt(TCP_CONGESTION) wins over all but a route with `congctl lock`";

/// Say which control a connection would get that is established now, and why: by which rule, route or default
///
/// PORT is that of the listening side; without it no rule of a port is evaluated, without --cgroup none of a cgroup. The
/// route and the default are those of this network namespace.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp select test 203.0.113.9:443
  onramp select test '[2001:db8::9]:443' --accept
  onramp select test 203.0.113.9 --cgroup /system.slice/nginx.service")]
pub(super) struct Test {
    /// The peer; IPv6 with a port in brackets, link-local ones with their interface: fe80::9%eth0
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
    /// Index of the interface behind which it is; 0: any.
    interface: u32,
    port: Option<u16>,
}

#[derive(Serialize)]
struct AnswerReport {
    address: String,
    port: Option<u16>,
    /// The cgroup, not the root, whose connections alone are given what rules say.
    rules_hold_in: Option<String>,
    answers: Vec<Answer>,
}

#[derive(Serialize)]
struct Answer {
    side: &'static str,
    /// What the connection gets.
    congestion_control: String,
    /// With which parameters, where a rule says so.
    profile: Option<String>,
    /// `application`, `prefix`, `port`, `cgroup`, `route`, `run` or `default`.
    decided_by: &'static str,
    /// The rule that decides, or would if its control were registered.
    rule: Option<RuleRow>,
    explanation: String,
}

impl Test {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let mut deciders = Deciders::here()?;
        let cgroup = self.cgroup.as_deref().map(Cgroup::find_living).transpose()?.map(|cgroup| cgroup.id);
        let sides = match (self.accept, self.connect) {
            (true, _) => vec![Side::Accept],
            (_, true) => vec![Side::Connect],
            _ => vec![Side::Accept, Side::Connect],
        };
        let Peer { address, interface, port } = self.peer;
        let mut answers = Vec::new();
        for side in sides {
            let connection = Connection { peer: address, local: None, interface, port, cgroup, side };
            answers.push(answer(deciders.decide(&connection)?, side)?);
        }
        let rules_hold_in = deciders.holds_in().map(|cgroup| cgroup.to_string());
        let address = address.to_canonical().to_string();
        let report = AnswerReport { address, port, rules_hold_in, answers };
        output.data(&report, || {
            let lines = report.answers.iter().map(|one| format!("{}: {}\n", one.side, one.explanation));
            let place = report.rules_hold_in.as_ref().map_or_else(String::new, |cgroup| {
                format!(
                    "rules hold in cgroup {} and below it alone, where their program sits\n",
                    escape_line(cgroup)
                )
            });
            lines.collect::<String>() + &place + BEFORE + "\n"
        })?;
        Ok(0)
    }
}

fn answer(decision: Decision, side: Side) -> anyhow::Result<Answer> {
    let explanation = format!("{} by {}", why::gets(&decision), why::text(&decision));
    let named = decision.rule().map(std::slice::from_ref).unwrap_or_default();
    let missing = Missing::new(named)?;
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
    let refuse = || {
        "write an address with or without a port from 1 to 65535, such as 203.0.113.9:443 or [2001:db8::9]:443".to_owned()
    };
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, behind)) => {
            let (zone, port) =
                behind.split_once(':').map_or((behind, None), |(zone, port)| (zone, Some(port)));
            if !zone.is_empty() && !zone.starts_with('%') {
                return Err(refuse());
            }
            (format!("{address}{zone}"), port)
        }
        None => match text.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host.to_owned(), Some(port)),
            _ => (text.to_owned(), None),
        },
    };
    let (address, zone) = zoned(&host)?;
    let port = match port {
        None => None,
        Some(port) if port.bytes().all(|digit| digit.is_ascii_digit()) => {
            Some(port.parse().ok().filter(|port| *port != 0).ok_or_else(refuse)?)
        }
        Some(_) => return Err(refuse()),
    };
    let interface = zone.map(interface).transpose()?.flatten().unwrap_or(0);
    Ok(Peer { address: address.parse().map_err(|_| refuse())?, interface, port })
}

#[cfg(test)]
mod tests {
    use nix::net::if_::if_nametoindex;

    use super::*;

    #[test]
    fn a_peer_is_an_address_with_or_without_a_port() {
        let read = |text: &str| peer(text).map(|peer| (peer.address.to_string(), peer.port));
        assert_eq!(read("203.0.113.9"), Ok(("203.0.113.9".into(), None)));
        assert_eq!(read("203.0.113.9:443"), Ok(("203.0.113.9".into(), Some(443))));
        assert_eq!(read("2001:db8::9"), Ok(("2001:db8::9".into(), None)));
        assert_eq!(read("[2001:db8::9]:443"), Ok(("2001:db8::9".into(), Some(443))));
        let lo = peer("[fe80::9%lo]:443").unwrap();
        assert_eq!((lo.interface, lo.port), (if_nametoindex("lo").unwrap(), Some(443)));
        assert_eq!(peer("fe80::9%lo").unwrap().interface, lo.interface);
        assert_eq!(peer("[fe80::9]%lo:443"), Ok(lo));
        assert_eq!(peer(&format!("fe80::9%{}", lo.interface)).unwrap().interface, lo.interface);
        assert!(peer("fe80::9%nowhere").unwrap_err().contains("\"nowhere\""));
        for wrong in [
            "203.0.113.9:0",
            "203.0.113.9:+443",
            "203.0.113.9%lo",
            "[::1]443",
            "203.0.113.9:x",
            "example.org",
            "",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
