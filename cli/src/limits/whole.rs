//! What limited a flow, without samples: by one look at it, or by its rounds.

use super::account::Account;
use super::limit::{Limit, Parts};
use super::sample::Sample;
use super::verdict::longest;

/// The limit that held longest in the life of a flow: by the kernel's counters as far as they go, the rest as it is now.
/// `None`: it has sent nothing.
pub(crate) fn of_life(now: Sample, idle_us: u64) -> Option<Limit> {
    let mut account = Account::new(Sample::default());
    account.add(Sample { at_us: now.info.busy_time_us.saturating_add(idle_us), ..now });
    longest(&account.parts).map(|(limit, _)| limit)
}

/// A round in so many microseconds, of which the congestion window was the limit in so many; `end`: as it was at its end.
pub(crate) fn of_round(end: &Sample, duration_us: u64, cwnd_limited_us: u64) -> Parts {
    let mut parts = Parts::default();
    let window_us = cwnd_limited_us.min(duration_us);
    parts.add(end.of_window(), window_us);
    let other = if end.fills_receive_window() {
        Limit::ReceiveWindow
    } else if end.uses_pacing_rate() {
        Limit::Pacing
    } else {
        Limit::Application
    };
    parts.add(other, duration_us - window_us);
    parts
}

/// The limit that held longest, the phases of the congestion window taken together.
pub(crate) fn held_longest(parts: &Parts) -> Option<Limit> {
    longest(parts).map(|(limit, _)| limit)
}
