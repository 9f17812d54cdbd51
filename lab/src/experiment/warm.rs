// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The transfer before a run: what an arm learns of its path, it has learned then.
//!
//! Hosts stay, and with them what is remembered; the link begins anew, so that all arms meet the same one. Where several
//! flows follow, one transfer has come before them all.

use std::time::{Duration, Instant};

use onramp_net::Namespace;
use onramp_net::sock_diag::{SockDiag, States};

use super::plan::Amount;
use super::result::WarmRun;
use super::transfer::{POLL, PORT, Request};
use super::{Arm, ExperimentError, Plan, builtin};
use crate::emulator::{Health, Wiring};
use crate::host::Hosts;

/// Port of its source, next to those of the flows that count.
const WARM_PORT: u16 = PORT - 1;
/// A control that every kernel has, for connections that are not to be remembered.
pub(super) const UNREMEMBERED: &str = "reno";
/// Round trips that its connections have to close in.
const RTTS_TO_CLOSE: u32 = 20;

/// Makes the transfer over a link whose log has a line every `period_us`. The hosts that have learned, over a new link, what came of
/// it, and how the emulator kept up.
pub(super) fn up(
    plan: &Plan,
    arm: &Arm,
    (hosts, wiring, seed, period_us): (Hosts, Wiring<'_>, u64, u64),
    bytes: u64,
) -> Result<(Hosts, WarmRun, Health), ExperimentError> {
    let request = Request {
        port: WARM_PORT,
        other_control: Some(UNREMEMBERED),
        ..Request::new(&arm.congestion_control, Amount::Bytes(bytes))
    };
    let meanwhile = |_| !hosts.has_failed();
    let downloads =
        builtin::download(hosts.sender(), hosts.receiver(), &[request], plan.warm_timeout(bytes), meanwhile);
    if hosts.has_failed() {
        hosts.stop()?;
        return Err(ExperimentError::NoFlow);
    }
    let seconds = downloads?.first().map_or(0.0, |download| download.seconds);
    let rtt = Duration::from_micros(plan.profile.link.base_rtt_us());
    wait_until_closed(hosts.sender(), Duration::from_secs(2) + RTTS_TO_CLOSE * rtt)?;
    let host = arm.host.as_ref().unwrap_or(&plan.profile.host);
    let (hosts, link) = hosts.over_another_link(host, wiring, seed, period_us)?;
    Ok((hosts, WarmRun { seconds, digest: link.digest }, link.health))
}

/// A connection has learned once it is closed. Those that are open after `limit` are ended with the hosts.
fn wait_until_closed(sender: &Namespace, limit: Duration) -> Result<(), ExperimentError> {
    let mut diag = sender.run(SockDiag::open)??;
    let begin = Instant::now();
    while begin.elapsed() < limit {
        let mut open = false;
        diag.dump(States::CONNECTED, &[], |_| open = true)?;
        if !open {
            break;
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
