//! What the controls of onramp and the kernel have counted.

use std::collections::BTreeMap;
use std::fs;

use onramp_loader::{ExitReason, FlowStorage};
use onramp_net::Namespace;

use crate::traffic::eventually;

/// A counter of a namespace, such as `TCPSACKReneging` of the group `TcpExt`.
///
/// # Panics
/// If the kernel does not have it.
pub fn by_kernel(namespace: &Namespace, group: &str, name: &str) -> u64 {
    let read = || fs::read_to_string("/proc/thread-self/net/netstat").expect("netstat");
    let text = namespace.run(read).expect("namespace");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let at = names.split_whitespace().position(|other| other == name).expect("a counter");
    values.split_whitespace().nth(at).expect("its value").parse().expect("a number")
}

/// How the flows of an algorithm have ended since it was attached, once none is left: by the reason of their exit, "slow
/// start" where there was none, "no state" where they needed none.
///
/// # Panics
/// If one does not end, or had no memory for its state.
#[track_caller]
pub fn ends(algorithm: &str) -> BTreeMap<&'static str, u64> {
    let algorithm = onramp_loader::find(algorithm).expect("an algorithm");
    let storage = FlowStorage::open(algorithm).expect("attached");
    let counters = || storage.counters().expect("counters");
    let left = || {
        let now = counters();
        now.flows.started - now.flows.without_state - now.exits.iter().sum::<u64>()
    };
    assert!(eventually(|| left() == 0), "{} flows of {} have not ended", left(), algorithm.name());
    let now = counters();
    assert_eq!(now.flows.state_failures, 0);
    let reasons = (0..).zip(now.exits).map(|(number, flows)| {
        (ExitReason::from_number(number).map_or("slow start", ExitReason::name), flows)
    });
    reasons.chain([("no state", now.flows.without_state)]).filter(|(_, flows)| *flows > 0).collect()
}
