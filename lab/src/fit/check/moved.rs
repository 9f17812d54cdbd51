// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Paths that a recording does not distinguish from the fitted one: with more of what the flow did not reach, and with figures
//! moved by as much as they are not known.

use std::fmt;

use serde::Serialize;

use super::super::{Fitted, Known};
use crate::link::spec::{DelayStep, RateStep};

/// Share by which the queue is not known: its longest wait is that of a packet that was acknowledged.
const QUEUE: u64 = 10;
/// Part of a transfer that is a round trip's chance.
const BYTES: u64 = 12;
/// Share by which times may change with the amount of data, and with what the flow did not reach.
const TIME: f64 = 0.1;
/// The same with what it did reach, which is known better.
const KNOWN_TIME: f64 = 0.05;

/// What is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moved {
    /// Twice the rate, which the flow did not reach.
    MoreRate,
    /// A much larger queue, which the flow did not fill.
    MoreQueue,
    /// A transfer that is a twelfth smaller: where it ends in a round trip is chance.
    FewerBytes,
    /// The same larger.
    MoreBytes,
    /// A tenth less of the queue.
    SmallerQueue,
    /// A tenth more of it.
    LargerQueue,
    /// The rate changes half a round trip earlier.
    RateEarlier,
    /// The same later.
    RateLater,
    /// The delay changes half a round trip earlier.
    DelayEarlier,
    /// The same later.
    DelayLater,
}

impl Moved {
    /// Bytes in place of these.
    pub(super) fn bytes(self, bytes: u64) -> u64 {
        match self {
            Self::FewerBytes => bytes - bytes / BYTES,
            Self::MoreBytes => bytes + bytes / BYTES,
            _ => bytes,
        }
    }

    /// Share by which times may change with it.
    pub(super) fn margin(self) -> f64 {
        match self {
            Self::MoreRate | Self::MoreQueue | Self::FewerBytes | Self::MoreBytes => TIME,
            _ => KNOWN_TIME,
        }
    }

    /// What the flow did not reach; none: it did, but not that exactly.
    pub(super) fn open(self) -> Option<&'static str> {
        match self {
            Self::MoreRate => Some("rate"),
            Self::MoreQueue => Some("queue"),
            _ => None,
        }
    }
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MoreRate => "twice the rate, which the flow did not reach,",
            Self::MoreQueue => "a larger queue, which the flow did not fill,",
            Self::FewerBytes => "a twelfth less of data",
            Self::MoreBytes => "a twelfth more of data",
            Self::SmallerQueue => "a tenth less of the queue",
            Self::LargerQueue => "a tenth more of the queue",
            Self::RateEarlier => "a rate that changes half a round trip earlier",
            Self::RateLater => "a rate that changes half a round trip later",
            Self::DelayEarlier => "a delay that changes half a round trip earlier",
            Self::DelayLater => "a delay that changes half a round trip later",
        })
    }
}

/// With more of what was not reached.
pub(super) fn open(fitted: &Fitted) -> Vec<(Moved, Fitted)> {
    let mut paths = Vec::new();
    if fitted.rate_known == Known::AtLeast {
        paths.push((Moved::MoreRate, Fitted { rate_bps: fitted.rate_bps * 2, ..fitted.clone() }));
    }
    if fitted.queue_known == Known::AtLeast {
        let queue_bytes = fitted.roomy_queue_bytes();
        paths.push((Moved::MoreQueue, Fitted { queue_bytes, ..fitted.clone() }));
    }
    paths
}

/// With what is known, moved. A change shows in acknowledgments up to a round trip after it.
pub(super) fn moved(fitted: &Fitted) -> Vec<(Moved, Fitted)> {
    let part = fitted.queue_bytes / QUEUE;
    let queue = |queue_bytes| Fitted { queue_bytes, ..fitted.clone() };
    let mut paths = vec![
        (Moved::FewerBytes, fitted.clone()),
        (Moved::MoreBytes, fitted.clone()),
        (Moved::SmallerQueue, queue(fitted.queue_bytes - part)),
        (Moved::LargerQueue, queue(fitted.queue_bytes + part)),
    ];
    let half = i64::try_from(fitted.base_rtt_us / 2).unwrap_or(i64::MAX);
    for (rate, delay, by_us) in
        [(Moved::RateEarlier, Moved::DelayEarlier, -half), (Moved::RateLater, Moved::DelayLater, half)]
    {
        if !fitted.rate_steps.is_empty() {
            let steps = shifted(fitted.rate_steps.iter().map(|step| (step.at_us, step.rate_bps)), by_us);
            let step = |(at_us, rate_bps)| RateStep { at_us, rate_bps };
            paths
                .push((rate, Fitted { rate_steps: steps.into_iter().map(step).collect(), ..fitted.clone() }));
        }
        if !fitted.variation.is_empty() {
            let steps = shifted(fitted.variation.iter().map(|step| (step.at_us, step.extra_us)), by_us);
            let step = |(at_us, extra_us)| DelayStep { at_us, extra_us };
            paths
                .push((delay, Fitted { variation: steps.into_iter().map(step).collect(), ..fitted.clone() }));
        }
    }
    paths
}

/// Values from times on, moved; the first is from the begin on. Of those that would begin earlier the last counts.
fn shifted(steps: impl Iterator<Item = (u64, u64)>, by_us: i64) -> Vec<(u64, u64)> {
    let mut moved = Vec::<(u64, u64)>::new();
    for (at_us, value) in steps {
        let at_us = if at_us == 0 { 0 } else { at_us.saturating_add_signed(by_us) };
        match moved.last_mut() {
            Some(last) if at_us <= last.0 => last.1 = value,
            _ => moved.push((at_us, value)),
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reached_may_change_times_by_less_than_what_was_not() {
        assert!(Moved::DelayLater.margin() < Moved::MoreQueue.margin());
        assert_eq!(Moved::SmallerQueue.margin(), Moved::RateEarlier.margin());
        assert_eq!(Moved::FewerBytes.margin(), Moved::MoreRate.margin());
    }

    #[test]
    fn steps_move_and_the_first_stays_at_the_begin() {
        let steps = [(0, 1), (30, 2), (50, 3), (200, 4)];
        assert_eq!(shifted(steps.into_iter(), 20), [(0, 1), (50, 2), (70, 3), (220, 4)]);
        assert_eq!(shifted(steps.into_iter(), -60), [(0, 3), (140, 4)]);
        assert_eq!(shifted([].into_iter(), 20), []);
    }
}
