//! The first slow start, as far as samples show it.

use onramp_loader::ExitReason;
use onramp_net::sock_diag::{TcpInfo, ca_state};

use super::limit::{Limit, Parts};
use super::sample::Sample;

/// Segments that a flow has acknowledged at most where its begin was seen: HyStart exits at no smaller window
/// (`hystart_low_window`, net/ipv4/tcp_cubic.c), so an ssthresh by then is older than the connection.
const BEGIN_SEGMENTS: u64 = 16;

/// Where the first slow start is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SlowStart {
    /// It had ended before the first sample.
    Before,
    /// It lasts.
    Lasts,
    /// It has ended.
    Ended(Exit),
}

/// The end of a slow start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Exit {
    pub reason: ExitReason,
    /// Since the first sample, the sample that shows it.
    pub at_us: u64,
    /// Time since the sample before: it was then or later.
    pub resolution_us: u64,
    /// The larger of the window of the sample before and the new ssthresh: HyStart sets that to the window.
    pub window_segments: u32,
    pub window_bytes: u64,
}

/// Follows it, and what came after.
#[derive(Clone, Debug)]
pub(super) struct Tracker {
    first_us: u64,
    is_from_begin: bool,
    /// The first sample had an ssthresh of an earlier connection, or of the route.
    is_cached: bool,
    state: SlowStart,
    /// How it ended, where that was recorded: then samples do not count for it.
    recorded: Option<Exit>,
    /// Time after the exit in which the control or the path was the limit, and bytes delivered in it.
    after_us: u64,
    after_bytes: u64,
}

impl Tracker {
    pub fn new(first: &Sample) -> Self {
        let info = &first.info;
        let is_from_begin =
            info.retrans_total == 0 && info.bytes_acked <= BEGIN_SEGMENTS * u64::from(info.snd_mss);
        let is_cached = is_from_begin && !first.models_path && info.snd_ssthresh.is_some();
        let state = if is_cached && !first.in_slow_start() {
            SlowStart::Ended(Exit::new(ExitReason::CachedSsthresh, 0, 0, info, info))
        } else if is_cached || info.snd_ssthresh.is_none() {
            SlowStart::Lasts
        } else {
            SlowStart::Before
        };
        let first_us = first.at_us;
        Self { first_us, is_from_begin, is_cached, state, recorded: None, after_us: 0, after_bytes: 0 }
    }

    /// How it ended was recorded.
    pub fn recorded(&mut self, exit: Exit) {
        self.recorded = Some(exit);
        self.state = SlowStart::Lasts;
    }

    pub fn state(&self) -> SlowStart {
        self.state
    }

    pub fn is_from_begin(&self) -> bool {
        self.is_from_begin
    }

    /// From one sample to the next, with the parts of that time and the bytes delivered in it.
    pub fn step(&mut self, before: &Sample, after: &Sample, parts: &Parts, bytes: u64) {
        match (self.state, self.recorded) {
            (SlowStart::Before, _) => {}
            (SlowStart::Lasts, Some(exit)) => {
                if after.at_us.saturating_sub(self.first_us) >= exit.at_us {
                    self.state = SlowStart::Ended(exit);
                }
            }
            (SlowStart::Lasts, None) => {
                if let Some(reason) = self.reason(before, after) {
                    let at_us = after.at_us.saturating_sub(self.first_us);
                    let resolution_us = after.at_us.saturating_sub(before.at_us);
                    let exit = Exit::new(reason, at_us, resolution_us, &before.info, &after.info);
                    self.state = SlowStart::Ended(exit);
                }
            }
            // The loss was none, and the kernel has restored the threshold.
            (SlowStart::Ended(_), None) if !self.is_cached && after.info.snd_ssthresh.is_none() => {
                self.state = SlowStart::Lasts;
                (self.after_us, self.after_bytes) = (0, 0);
            }
            (SlowStart::Ended(_), _) => {
                let (bound_us, total_us) = (parts.sum(Limit::is_of_control), parts.total());
                self.after_us += bound_us;
                self.after_bytes += u128::from(bytes)
                    .saturating_mul(bound_us.into())
                    .checked_div(total_us.into())
                    .unwrap_or(0) as u64;
            }
        }
    }

    /// `None`: it lasts.
    fn reason(&self, before: &Sample, after: &Sample) -> Option<ExitReason> {
        let (then, now) = (&before.info, &after.info);
        let reduced = reduced(then, now);
        if self.is_cached {
            let lower = now.snd_ssthresh < then.snd_ssthresh;
            return if lower && reduced.is_some() {
                reduced
            } else {
                (!after.in_slow_start()).then_some(ExitReason::CachedSsthresh)
            };
        }
        now.snd_ssthresh.map(|_| reduced.unwrap_or(ExitReason::Algorithm))
    }

    /// What the exit cost at least, microseconds: the time after it in which the control or the path was the limit, less what the
    /// bytes delivered in that time would have taken at `rate`, the highest rate that the flow kept. `None`: no exit was seen.
    pub fn lost_us(&self, rate_bytes_per_second: u64) -> Option<u64> {
        let SlowStart::Ended(_) = self.state else { return None };
        let full_us = u128::from(self.after_bytes) * 1_000_000 / u128::from(rate_bytes_per_second.max(1));
        Some(self.after_us.saturating_sub(full_us.try_into().unwrap_or(u64::MAX)))
    }
}

/// Why the window was reduced between two samples; `None`: it was not.
fn reduced(then: &TcpInfo, now: &TcpInfo) -> Option<ExitReason> {
    if now.total_rto > then.total_rto || now.ca_state == ca_state::LOSS {
        Some(ExitReason::Timeout)
    } else if now.retrans_total > then.retrans_total || now.lost > 0 || now.ca_state == ca_state::RECOVERY {
        Some(ExitReason::Loss)
    } else if now.delivered_ce > then.delivered_ce {
        Some(ExitReason::Ecn)
    } else {
        (now.ca_state == ca_state::CWR).then_some(ExitReason::LocalCongestion)
    }
}

impl Exit {
    fn new(reason: ExitReason, at_us: u64, resolution_us: u64, then: &TcpInfo, now: &TcpInfo) -> Self {
        let window_segments = then.snd_cwnd.max(now.snd_ssthresh.unwrap_or(0));
        let window_bytes = u64::from(window_segments) * u64::from(now.snd_mss);
        Self { reason, at_us, resolution_us, window_segments, window_bytes }
    }
}
