//! What rules say of a connection, as `bpf/select.bpf.c` decides it; a test compares both.

use std::cmp::Reverse;
use std::net::IpAddr;

use super::rule::{Rule, Side, What};

/// A connection to ask about.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The peer's address.
    pub peer: IpAddr,
    /// The port of the side that listens; `None`: rules of ports say nothing.
    pub port: Option<u16>,
    /// The numbers of the socket's cgroup and of those above it, the nearest first; empty: rules of cgroups say nothing.
    pub cgroups: Vec<u64>,
    /// The side that this host has; both is neither.
    pub side: Side,
}

/// The rule that decides: of the longest prefix, else of the port, else of the nearest cgroup; of two for the same, the
/// one that names the side.
pub fn decide<'a>(rules: &'a [Rule], connection: &Connection) -> Option<&'a Rule> {
    let rank = |rule: &&Rule| {
        let Rule { target, .. } = rule;
        if target.side != Side::Both && target.side != connection.side {
            return None;
        }
        let nearness = match &target.what {
            What::To(prefix) => {
                prefix.contains(connection.peer).then_some((2, Reverse(128 - prefix.length())))
            }
            What::Port(port) => (Some(*port) == connection.port).then_some((1, Reverse(0))),
            What::Cgroup(cgroup) => {
                let above = connection.cgroups.iter().position(|id| *id == cgroup.id)?;
                Some((0, Reverse(above as u32)))
            }
        };
        nearness.map(|nearness| (nearness, target.side != Side::Both))
    };
    rules.iter().filter(|rule| rank(rule).is_some()).max_by_key(rank)
}

#[cfg(test)]
mod tests {
    use super::super::{Cgroup, Choice, Target};
    use super::*;

    fn rule(what: What, side: Side, control: &str) -> Rule {
        let choice = Choice { control: control.into(), initial_window: None };
        Rule { target: Target { what, side }, choice }
    }

    fn to(prefix: &str) -> What {
        What::To(prefix.parse().unwrap())
    }

    fn cgroup(id: u64) -> What {
        What::Cgroup(Cgroup { id, path: None })
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
            let connection =
                Connection { peer: peer.parse().unwrap(), port, cgroups: cgroups.to_vec(), side };
            decide(&rules, &connection).map(|rule| rule.choice.control.as_str())
        };
        let (accept, connect) = (Side::Accept, Side::Connect);
        assert_eq!(asked("10.1.2.3", Some(443), &[7, 1], accept), Some("narrow"));
        assert_eq!(asked("10.1.2.3", Some(443), &[7, 1], connect), Some("wide-connect"));
        assert_eq!(asked("10.2.2.3", Some(443), &[7, 1], accept), Some("wide"));
        assert_eq!(asked("::ffff:10.2.2.3", None, &[], accept), Some("wide"));
        assert_eq!(asked("2001:db8::1", None, &[], connect), Some("six"));
        assert_eq!(asked("192.0.2.1", Some(443), &[7, 1], accept), Some("port"));
        assert_eq!(asked("192.0.2.1", Some(443), &[7, 1], connect), Some("port-connect"));
        assert_eq!(asked("192.0.2.1", Some(80), &[7, 1], connect), Some("near"));
        assert_eq!(asked("192.0.2.1", Some(80), &[7, 1], accept), Some("near"));
        assert_eq!(asked("192.0.2.1", None, &[1], accept), Some("root-accept"));
        assert_eq!(asked("192.0.2.1", None, &[1], connect), Some("root"));
        assert_eq!(asked("192.0.2.1", None, &[], connect), None);
        assert_eq!(
            decide(
                &[],
                &Connection { peer: [10, 0, 0, 1].into(), port: None, cgroups: vec![], side: accept }
            ),
            None
        );
    }
}
