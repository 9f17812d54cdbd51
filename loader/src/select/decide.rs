//! What rules say of a connection, as `bpf/select.bpf.c` decides it; a test compares both.

use std::net::IpAddr;

use onramp_net::Prefix;

use super::cgroup::Cgroup;
use super::rule::{Rule, Side, Target, What};

/// A connection to ask about.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The peer's address.
    pub peer: IpAddr,
    /// This host's address; `None`: any.
    pub local: Option<IpAddr>,
    /// The interface that the socket is bound to; 0: none.
    pub interface: u32,
    /// The port of the side that listens; `None`: rules of ports say nothing.
    pub port: Option<u16>,
    /// The number of the socket's cgroup; `None`: rules of cgroups say nothing.
    pub cgroup: Option<u64>,
    /// The side that this host has; both is neither.
    pub side: Side,
}

/// The rule that decides: of the longest prefix, else of the port, else of the nearest cgroup; of two for the same, the
/// one that names the side. `longest` gives the rule of the longest prefix for all bits of a target, with its side as
/// it is; `cgroups` are the numbers of the connection's cgroup and of those above it, the nearest first.
pub(super) fn decide<E>(
    connection: &Connection,
    cgroups: &[u64],
    longest: impl Fn(&Target) -> Result<Option<Rule>, E>,
) -> Result<Option<Rule>, E> {
    let peer = connection.peer.to_canonical();
    let peer = Prefix::new(peer, if peer.is_ipv4() { 32 } else { 128 }).map(What::To);
    let cgroups = cgroups.iter().map(|id| What::Cgroup(Cgroup { id: *id, path: None }));
    for what in peer.into_iter().chain(connection.port.map(What::Port)).chain(cgroups) {
        let own = longest(&Target { what: what.clone(), side: connection.side })?;
        let both = longest(&Target { what, side: Side::Both })?;
        let both_is_longer = matches!((&own, &both), (Some(own), Some(both)) if bits(both) > bits(own));
        let found = if both_is_longer { both } else { own.or(both) };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// How long its prefix is; what is no prefix has one length.
fn bits(rule: &Rule) -> u32 {
    match &rule.target.what {
        What::To(prefix) => prefix.length(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::super::Choice;
    use super::*;

    fn rule(what: What, side: Side, control: &str) -> Rule {
        let choice = Choice { control: control.into(), profile: None, initial_window: None };
        Rule { target: Target { what, side }, choice }
    }

    fn to(prefix: &str) -> What {
        What::To(prefix.parse().unwrap())
    }

    fn cgroup(id: u64) -> What {
        What::Cgroup(Cgroup { id, path: None })
    }

    fn longest(rules: &[Rule], asked: &Target) -> Result<Option<Rule>, Infallible> {
        let matches = |rule: &&Rule| {
            let What::To(peer) = &asked.what else { return rule.target == *asked };
            let prefix = match &rule.target.what {
                What::To(prefix) => prefix.contains(peer.address()),
                _ => false,
            };
            prefix && rule.target.side == asked.side
        };
        Ok(rules.iter().filter(matches).max_by_key(|rule| bits(rule)).cloned())
    }

    #[test]
    fn the_longest_prefix_comes_before_a_port_before_the_nearest_cgroup() {
        let rules = [
            rule(to("10.0.0.0/8"), Side::Both, "wide"),
            rule(to("10.1.0.0/16"), Side::Accept, "narrow"),
            rule(to("10.0.0.0/8"), Side::Connect, "wide-connect"),
            rule(to("2001:db8::/32"), Side::Both, "six"),
            rule(What::Port(443), Side::Both, "port"),
            rule(What::Port(443), Side::Connect, "port-connect"),
            rule(cgroup(7), Side::Both, "near"),
            rule(cgroup(1), Side::Both, "root"),
            rule(cgroup(1), Side::Accept, "root-accept"),
        ];
        let asked = |peer: &str, port, cgroups: &[u64], side| {
            let connection = Connection {
                peer: peer.parse().unwrap(),
                local: None,
                interface: 0,
                port,
                cgroup: cgroups.first().copied(),
                side,
            };
            let Ok(rule) = decide(&connection, cgroups, |target| longest(&rules, target));
            rule.map(|rule| rule.choice.control)
        };
        let asked =
            |peer: &str, port, cgroups: &[u64], side| asked(peer, port, cgroups, side).unwrap_or_default();
        let (accept, connect) = (Side::Accept, Side::Connect);
        assert_eq!(asked("10.1.2.3", Some(443), &[7, 1], accept), "narrow");
        assert_eq!(asked("10.1.2.3", Some(443), &[7, 1], connect), "wide-connect");
        assert_eq!(asked("10.2.2.3", Some(443), &[7, 1], accept), "wide");
        assert_eq!(asked("::ffff:10.2.2.3", None, &[], accept), "wide");
        assert_eq!(asked("2001:db8::1", None, &[], connect), "six");
        assert_eq!(asked("192.0.2.1", Some(443), &[7, 1], accept), "port");
        assert_eq!(asked("192.0.2.1", Some(443), &[7, 1], connect), "port-connect");
        assert_eq!(asked("192.0.2.1", Some(80), &[7, 1], connect), "near");
        assert_eq!(asked("192.0.2.1", Some(80), &[7, 1], accept), "near");
        assert_eq!(asked("192.0.2.1", None, &[1], accept), "root-accept");
        assert_eq!(asked("192.0.2.1", None, &[1], connect), "root");
        assert_eq!(asked("192.0.2.1", None, &[], connect), "");
    }
}
