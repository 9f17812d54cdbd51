//! What rules say of a connection, as `bpf/select.bpf.c` decides it; a test compares both.

use std::cmp::Reverse;
use std::net::IpAddr;

use super::cgroup::Cgroup;
use super::rule::{Rule, Side, Target};
use crate::object::abi::SELECT_CGROUPS_MAX;

/// A connection to ask about.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The peer's address.
    pub peer: IpAddr,
    /// This host's address; `None`: any.
    pub local: Option<IpAddr>,
    /// The interface that the socket is bound to; 0: none.
    pub interface: u32,
    /// The port of the listening side; `None`: no rule of a port matches.
    pub port: Option<u16>,
    /// The number of the socket's cgroup; `None`: rules of cgroups say nothing.
    pub cgroup: Option<u64>,
    /// The side that this host has; both is neither.
    pub side: Side,
}

/// The rule that decides. Of those that agree with the connection in everything that they name: that of the longest prefix;
/// of these, one that names the port; of these, that of the nearest cgroup; of these, one that names the side.
///
/// `shapes` says which rules there may be. `longest` gives the rule of the longest prefix for all bits of a target, else the
/// one without a prefix, with all the rest of the target as it is. `cgroups` are the numbers of the connection's cgroup and of
/// those above it, the nearest first.
pub(crate) fn decide<E>(
    connection: &Connection,
    cgroups: &[u64],
    shapes: u32,
    longest: impl Fn(&Target) -> Result<Option<Rule>, E>,
) -> Result<Option<Rule>, E> {
    let to = Some(connection.peer.into());
    let near = cgroups.iter().take(SELECT_CGROUPS_MAX).map(|id| Some(Cgroup { id: *id, path: None }));
    let mut best = None;
    for (distance, cgroup) in near.chain([None]).enumerate() {
        for port in [connection.port, None] {
            for side in [connection.side, Side::Both] {
                let target = Target { to, port, cgroup: cgroup.clone(), side };
                if shapes & target.shape() == 0 {
                    continue;
                }
                let Some(rule) = longest(&target)? else { continue };
                let rank = (rule.target.bits(), port, Reverse(distance), side != Side::Both);
                if best.as_ref().is_none_or(|(best, _)| rank > *best) {
                    best = Some((rank, rule));
                }
            }
        }
    }
    Ok(best.map(|(_, rule)| rule))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use onramp_net::Prefix;
    use proptest::prelude::*;

    use super::super::Choice;
    use super::*;

    /// What options of a rule look like, and the name of what it gives.
    fn rule(words: &str) -> Rule {
        let mut target = Target { to: None, port: None, cgroup: None, side: Side::Both };
        let mut words = words.split(' ');
        let control = words.next_back().unwrap().to_owned();
        while let Some(word) = words.next() {
            match word {
                "--to" => target.to = words.next().map(|text| text.parse().unwrap()),
                "--port" => target.port = words.next().map(|text| text.parse().unwrap()),
                "--cgroup" => {
                    let id = words.next().unwrap().parse().unwrap();
                    target.cgroup = Some(Cgroup { id, path: None });
                }
                "--accept" => target.side = Side::Accept,
                "--connect" => target.side = Side::Connect,
                _ => panic!("{word}"),
            }
        }
        Rule { target, choice: Choice { control, profile: None, initial_window: None, resume: None } }
    }

    /// What a table of these rules answers.
    fn longest(rules: &[Rule], asked: &Target) -> Result<Option<Rule>, Infallible> {
        let matches = |rule: &&Rule| {
            let prefix = rule.target.to.is_none_or(|prefix| prefix.contains(asked.to.unwrap().address()));
            prefix && Target { to: None, ..rule.target.clone() } == Target { to: None, ..asked.clone() }
        };
        Ok(rules.iter().filter(matches).max_by_key(|rule| rule.target.bits()).cloned())
    }

    fn decided(rules: &[Rule], connection: &Connection, cgroups: &[u64]) -> Option<Rule> {
        let shapes = rules.iter().map(|rule| rule.target.shape()).fold(0, |all, one| all | one);
        let Ok(rule) = decide(connection, cgroups, shapes, |target| longest(rules, target));
        rule
    }

    fn connection(peer: &str, port: Option<u16>, side: Side) -> Connection {
        Connection { peer: peer.parse().unwrap(), local: None, interface: 0, port, cgroup: None, side }
    }

    #[test]
    fn the_longest_prefix_comes_before_a_port_before_the_nearest_cgroup_before_a_side() {
        let rules = [
            "--to 10.0.0.0/8 wide",
            "--to 10.1.0.0/16 --accept narrow",
            "--to 10.0.0.0/8 --connect wide-connect",
            "--to 10.0.0.0/8 --port 22 wide-port",
            "--to 10.0.0.0/8 --cgroup 7 --accept wide-near",
            "--to 10.0.0.0/8 --cgroup 1 --accept wide-root",
            "--to 10.3.0.0/16 --port 80 --cgroup 1 three",
            "--to 2001:db8::/32 six",
            "--port 443 port",
            "--port 443 --connect port-connect",
            "--port 443 --cgroup 9 port-cgroup",
            "--cgroup 7 near",
            "--cgroup 1 root",
            "--cgroup 1 --accept root-accept",
        ]
        .map(rule);
        let asked = |peer: &str, port, cgroups: &[u64], side| {
            let rule = decided(&rules, &connection(peer, port, side), cgroups);
            rule.map_or_else(String::new, |rule| rule.choice.control)
        };
        let (accept, connect) = (Side::Accept, Side::Connect);
        assert_eq!(asked("10.1.2.3", Some(443), &[7, 1], accept), "narrow");
        assert_eq!(asked("10.1.2.3", Some(443), &[7, 1], connect), "wide-connect");
        assert_eq!(asked("10.2.2.3", Some(443), &[7, 1], accept), "wide-near");
        assert_eq!(asked("10.2.2.3", Some(443), &[8, 1], accept), "wide-root");
        assert_eq!(asked("10.2.2.3", Some(443), &[], accept), "wide");
        assert_eq!(asked("10.2.2.3", Some(22), &[7, 1], accept), "wide-port");
        assert_eq!(asked("10.3.2.3", Some(80), &[7, 1], connect), "three");
        assert_eq!(asked("10.3.2.3", Some(81), &[7, 1], connect), "wide-connect");
        assert_eq!(asked("::ffff:10.2.2.3", None, &[], accept), "wide");
        assert_eq!(asked("2001:db8::1", None, &[], connect), "six");
        assert_eq!(asked("192.0.2.1", Some(443), &[7, 1], accept), "port");
        assert_eq!(asked("192.0.2.1", Some(443), &[9, 1], accept), "port-cgroup");
        assert_eq!(asked("192.0.2.1", Some(443), &[9, 1], connect), "port-cgroup");
        assert_eq!(asked("192.0.2.1", Some(443), &[7, 1], connect), "port-connect");
        assert_eq!(asked("192.0.2.1", Some(80), &[7, 1], connect), "near");
        assert_eq!(asked("192.0.2.1", Some(80), &[7, 1], accept), "near");
        assert_eq!(asked("192.0.2.1", None, &[1], accept), "root-accept");
        assert_eq!(asked("192.0.2.1", None, &[1], connect), "root");
        assert_eq!(asked("192.0.2.1", None, &[], connect), "");
        // Beyond what is looked at.
        let deep: Vec<u64> = (100..100 + SELECT_CGROUPS_MAX as u64).collect();
        assert_eq!(asked("192.0.2.1", None, &[&deep[1..], &[7]].concat(), connect), "near");
        assert_eq!(asked("192.0.2.1", None, &[&deep[..], &[7]].concat(), connect), "");
    }

    fn targets() -> impl Strategy<Value = Target> {
        let prefixes = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/0", "::/0", "2001:db8::/32"];
        let prefixes = prefixes.map(|text| text.parse::<Prefix>().unwrap());
        let to = proptest::option::of(proptest::sample::select(prefixes.to_vec()));
        let port = proptest::option::of(1u16..4);
        let cgroup = proptest::option::of((1u64..5).prop_map(|id| Cgroup { id, path: None }));
        let side = proptest::sample::select(vec![Side::Both, Side::Accept, Side::Connect]);
        (to, port, cgroup, side)
            .prop_map(|(to, port, cgroup, side)| Target { to, port, cgroup, side })
            .prop_filter("names something", |one| {
                one.to.is_some() || one.port.is_some() || one.cgroup.is_some()
            })
    }

    proptest! {
        #[test]
        fn of_all_rules_that_agree_the_first_in_the_documented_order_decides(
            targets in proptest::collection::btree_set(targets(), 0..24),
            peer in proptest::sample::select(vec!["10.1.2.3", "10.1.9.9", "::ffff:10.9.9.9", "192.0.2.1", "2001:db8::1"]),
            port in proptest::option::of(1u16..4),
            cgroups in proptest::sample::subsequence(vec![1u64, 2, 3, 4], 0..4),
            side in proptest::sample::select(vec![Side::Accept, Side::Connect]),
        ) {
            let choice = Choice { control: "reno".into(), profile: None, initial_window: None, resume: None };
            let rules: Vec<_> =
                targets.into_iter().map(|target| Rule { target, choice: choice.clone() }).collect();
            let connection = connection(peer, port, side);
            let distance = |rule: &Rule| rule.target.cgroup.as_ref().map(|one| cgroups.iter().position(|id| *id == one.id));
            let agrees = |rule: &&Rule| {
                let Target { to, port: named, side: of, .. } = &rule.target;
                to.is_none_or(|to| to.contains(connection.peer))
                    && named.is_none_or(|named| Some(named) == port)
                    && (*of == Side::Both || *of == side)
                    && distance(rule) != Some(None)
            };
            let order = |rule: &&Rule| {
                let Target { to, port, side, .. } = &rule.target;
                let near = distance(rule).flatten().map(Reverse);
                (to.map(Prefix::length), port.is_some(), near, *side != Side::Both)
            };
            let expected = rules.iter().filter(agrees).max_by_key(order);
            let decided = decided(&rules, &connection, &cgroups);
            prop_assert_eq!(decided.as_ref(), expected);
        }
    }
}
