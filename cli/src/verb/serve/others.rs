//! Flows of other controls, where nothing is attached: those that have acknowledged most.

use std::cmp::Reverse;
use std::net::SocketAddr;
use std::time::Instant;

use anyhow::Context;
use onramp_net::sock_diag::SockDiag;
use serde::Serialize;

use super::row::shown;
use crate::verb::ends::Ends;
use crate::verb::others::{self, OtherFlow};

/// Flows that are shown.
const FLOWS_MAX: usize = 200;
/// A look that took long is followed by so many times that without one: it takes a fiftieth of a processor at most.
const PAUSE: u32 = 50;

/// Looks for them by a socket that was opened before this process gave up the right to open one.
pub(super) struct Watch {
    sockets: SockDiag,
    mask: bool,
    /// When to look again.
    next: Instant,
    /// The last look has failed, which is logged once.
    failed: bool,
    /// Those of the last look; `None`: something is attached, or it could not be looked.
    pub found: Option<Others>,
}

/// Those that have acknowledged most.
#[derive(Debug, Serialize)]
pub(super) struct Others {
    /// With those that are not shown.
    total: usize,
    flows: Vec<OtherFlow>,
}

impl Watch {
    /// Of the current network namespace. `mask`: networks are shown in place of addresses.
    pub fn open(mask: bool) -> anyhow::Result<Self> {
        let sockets = SockDiag::open().context("cannot look for flows of other controls")?;
        Ok(Self { sockets, mask, next: Instant::now(), failed: false, found: None })
    }

    /// Looks again, unless that is too soon.
    pub fn look(&mut self) {
        let begin = Instant::now();
        if begin < self.next {
            return;
        }
        let listed = others::list(&mut self.sockets, None, |_, _| true);
        if let Err(error) = &listed
            && !self.failed
        {
            tracing::warn!("flows of other controls cannot be listed: {error:#}");
        }
        self.next = begin + begin.elapsed() * PAUSE;
        self.failed = listed.is_err();
        self.found = listed.ok().flatten().map(|flows| Others::new(flows, self.mask));
    }
}

impl Others {
    pub fn new(mut flows: Vec<OtherFlow>, mask: bool) -> Self {
        let total = flows.len();
        flows.sort_by_key(|flow| Reverse(flow.acknowledged_bytes));
        flows.truncate(FLOWS_MAX);
        for flow in &mut flows {
            let [local, remote] =
                [flow.local, flow.remote].map(|end| SocketAddr::new(shown(end.ip(), mask), end.port()));
            flow.ends = Ends::new(local, remote);
        }
        Self { total, flows }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn example(number: u64) -> OtherFlow {
        let remote = format!("[2001:db8:1:2::{number:x}]:443");
        OtherFlow::example("[::ffff:198.51.100.77]:5201", &remote, "cubic", number * 1_000)
    }

    #[test]
    fn those_that_have_acknowledged_most_are_shown_and_all_are_counted() {
        let others = Others::new((1..=300).map(example).collect(), false);
        let shown: Vec<u64> = others.flows.iter().map(|flow| flow.acknowledged_bytes).collect();
        assert_eq!(shown, (101..=300).rev().map(|number| number * 1_000).collect::<Vec<_>>());
        assert_eq!(others.total, 300);
    }

    #[test]
    fn they_are_masked_as_flows_of_attached_algorithms_are() {
        let of = |mask| -> Value {
            let mut others = serde_json::to_value(Others::new(vec![example(7)], mask)).unwrap();
            others["flows"][0].take()
        };
        let whole = of(false);
        assert_eq!(
            (&whole["local_address"], &whole["remote_address"]),
            (&json!("198.51.100.77"), &json!("2001:db8:1:2::7"))
        );
        let masked = of(true);
        assert_eq!(
            (&masked["local_address"], &masked["remote_address"]),
            (&json!("198.51.100.0"), &json!("2001:db8:1::"))
        );
        for name in
            ["local_port", "remote_port", "congestion_control", "limited", "delivery_rate_bytes_per_s"]
        {
            assert_eq!(masked[name], whole[name], "{name}");
        }
        let text = masked.to_string();
        assert!(!text.contains("100.77") && !text.contains(":2::7"), "{text}");
    }
}
