//! One sentence that says why, and one that says what to do.

use onramp_loader::ExitReason;
use serde::{Serialize, Serializer};

use super::account::Account;
use super::exiting::exiting;
use super::limit::{Limit, Parts};
use super::slow_start::SlowStart;
use crate::units::{show_bytes, show_rate, show_us};

/// A window that was the limit for less has cost too little for a change of this host: by time, and by round trips.
const WORTH_US: u64 = 20_000;
const WORTH_ROUND_TRIPS: u64 = 2;

/// What an account comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Verdict {
    /// The limit that held longest, the phases of the congestion window taken together.
    pub limited: Limit,
    /// Of the observed time.
    pub percent: u64,
    /// Of a congestion window: what made it small, as far as that was observed.
    #[serde(serialize_with = "reason_name")]
    pub cause: Option<ExitReason>,
    pub verdict: String,
    pub remedy: &'static str,
    /// A command for it, or one that shows where it lies.
    pub command: Option<&'static str>,
}

impl Verdict {
    /// Makes it that of a QUIC connection, whose windows and controls are its library's.
    pub fn of_quic(&mut self) {
        self.command = None;
        if self.limited == Limit::ReceiveWindow {
            self.remedy = "At the receiver, raise the library's connection and stream windows (initial_max_data, \
                           initial_max_stream_data).";
        } else if self.limited == Limit::Path {
            self.remedy = "The transfer fills the path: no window or control makes it faster.";
        }
    }
}

/// `None`: no time was observed.
pub(crate) fn verdict(account: &Account, control: &str) -> Option<Verdict> {
    let (limited, held_us) = longest(&account.parts)?;
    let cause = limited.is_congestion_window().then(|| cause(account)).flatten();
    let percent = (100 * held_us + account.observed_us() / 2) / account.observed_us().max(1);
    let why = why(account, limited, cause, control);
    let time = show_us(account.observed_us());
    let verdict = format!("{} was the limit for {percent} % of {time}: {why}.", subject(limited));
    let (remedy, command) = if limited.is_congestion_window() && !is_worth_a_change(account, held_us) {
        ("The transfer is too short for a change to save much.", None)
    } else {
        remedy(account, limited, cause)
    };
    Some(Verdict { limited, percent, cause, verdict, remedy, command })
}

/// The limit that held longest, the phases of the congestion window taken together, and for how long.
pub(super) fn longest(parts: &Parts) -> Option<(Limit, u64)> {
    let window_us = parts.sum(Limit::is_congestion_window);
    let other = parts.by_size().find(|limit| !limit.is_congestion_window());
    let other = other.map(|limit| (limit, parts.of(limit)));
    let window = parts.by_size().find(|limit| limit.is_congestion_window()).map(|limit| (limit, window_us));
    window.into_iter().chain(other).max_by_key(|(_, us)| *us)
}

fn is_worth_a_change(account: &Account, held_us: u64) -> bool {
    held_us >= WORTH_US.max(WORTH_ROUND_TRIPS * u64::from(account.now().info.rtt_us))
}

/// Whether the congestion window was the limit for longer in slow start than after it.
fn is_mostly_slow_start(account: &Account) -> bool {
    let slow_start_us = account.parts.of(Limit::SlowStart);
    slow_start_us > account.parts.of(Limit::CongestionAvoidance) + account.parts.of(Limit::Recovery)
}

/// A loss on a path that was not full, else the exit; neither has made the window small where it was the limit before.
fn cause(account: &Account) -> Option<ExitReason> {
    match account.slow_start() {
        _ if is_mostly_slow_start(account) => None,
        SlowStart::Ended(exit) if exit.reason != ExitReason::Algorithm || account.reductions == 0 => {
            Some(exit.reason)
        }
        _ if account.reductions > 0 => Some(ExitReason::Loss),
        _ => None,
    }
}

fn subject(limited: Limit) -> &'static str {
    match limited {
        Limit::Application => "The application",
        Limit::ReceiveWindow => "The receiver's window",
        Limit::SendBuffer => "The send buffer",
        Limit::SlowStart | Limit::CongestionAvoidance | Limit::Recovery => "The congestion window",
        Limit::Pacing => "Pacing",
        Limit::HostQueue => "A queue of this host",
        Limit::Path => "The path",
    }
}

fn why(account: &Account, limited: Limit, cause: Option<ExitReason>, control: &str) -> String {
    let info = &account.now().info;
    let rtt = show_us(info.rtt_us.into());
    match limited {
        Limit::Application => "it had given nothing more to send".into(),
        Limit::ReceiveWindow => per_rtt("the receiver takes", info.snd_wnd_bytes.into(), info.rtt_us),
        Limit::SendBuffer => {
            let memory = account.now().memory.send_buffer_bytes;
            format!("it has {} of memory, at an RTT of {rtt}", show_bytes(memory.into()))
        }
        Limit::SlowStart | Limit::CongestionAvoidance | Limit::Recovery => window(account, cause, control),
        Limit::Pacing => {
            let rate = info.pacing_rate_bytes_per_s.unwrap_or(0).saturating_mul(8);
            format!("segments leave at {}", show_rate(rate))
        }
        Limit::HostQueue => {
            format!("{} wait in it", show_bytes(account.now().memory.in_host_queue_bytes.into()))
        }
        Limit::Path => {
            let rate = account.given().map_or(0, |given| given.rate_bytes_per_second).saturating_mul(8);
            let min = show_us(info.min_rtt_us.unwrap_or(0).into());
            format!("it gave {}, with an RTT of {rtt} over a minimum of {min}", show_rate(rate))
        }
    }
}

/// `the receiver takes 65.5 kB in an RTT of 50.1 ms, at most 10.5 Mbit/s`.
fn per_rtt(what: &str, bytes: u64, rtt_us: u32) -> String {
    let rate = u128::from(bytes) * 8_000_000 / u128::from(rtt_us.max(1));
    let rate = show_rate(rate.try_into().unwrap_or(u64::MAX));
    format!("{what} {} in an RTT of {}, at most {rate}", show_bytes(bytes), show_us(rtt_us.into()))
}

fn window(account: &Account, cause: Option<ExitReason>, control: &str) -> String {
    let size = match account.slow_start() {
        SlowStart::Ended(exit) => format!(" at {}", show_bytes(exit.window_bytes)),
        _ => String::new(),
    };
    match cause {
        Some(ExitReason::Algorithm) => format!("{} ended slow start{size}", exiting(control)),
        Some(ExitReason::CachedSsthresh) => {
            format!("an ssthresh of an earlier connection ended slow start{size}")
        }
        Some(ExitReason::Loss) if account.reductions > 1 => {
            format!("it was reduced {} times", account.reductions)
        }
        Some(reason) => format!("it was reduced after {}", after(reason)),
        None if account.slow_start() == SlowStart::Lasts => {
            format!("slow start had brought it to {} by the end", show_bytes(account.now().info.cwnd_bytes()))
        }
        None if is_mostly_slow_start(account) => format!("slow start took most of that, and ended{size}"),
        None => "its slow start was over before".into(),
    }
}

fn after(reason: ExitReason) -> &'static str {
    match reason {
        ExitReason::Loss => "a loss",
        ExitReason::Timeout => "a timeout",
        ExitReason::Ecn => "an ECN mark",
        _ => "congestion of this host",
    }
}

fn remedy(
    account: &Account,
    limited: Limit,
    cause: Option<ExitReason>,
) -> (&'static str, Option<&'static str>) {
    match (limited, cause) {
        (Limit::Application, _) => {
            ("Look at the application: how fast it reads its data, how much it writes at once.", None)
        }
        (Limit::ReceiveWindow, _) => (
            "At the receiver, raise the application's SO_RCVBUF or the third value of tcp_rmem, or have the application read faster.",
            Some("sysctl net.ipv4.tcp_rmem"),
        ),
        (Limit::SendBuffer, _) => (
            "On this host, raise the application's SO_SNDBUF or the third value of tcp_wmem.",
            Some("sysctl net.ipv4.tcp_wmem"),
        ),
        (Limit::Pacing, _) => (
            "Look for a rate limit: SO_MAX_PACING_RATE of the application, or maxrate of the fq qdisc.",
            Some("tc -s qdisc show"),
        ),
        (Limit::HostQueue, _) => (
            "Look at the qdisc and the device: a shaper, a slow link, or others that share it.",
            Some("tc -s qdisc show"),
        ),
        (Limit::Path, _) => ("TCP fills the path: no window or control makes this transfer faster.", None),
        (_, Some(ExitReason::CachedSsthresh)) => (
            "Forget cached thresholds, and keep no new ones.",
            Some("ip tcp_metrics flush && sysctl -w net.ipv4.tcp_no_ssthresh_metrics_save=1"),
        ),
        (_, Some(ExitReason::Algorithm)) => (
            "Use an algorithm that exits slow start when the path is full.",
            Some("onramp attach ramp --default"),
        ),
        (_, Some(_)) => (
            "Find where the path drops; BBR does not reduce its window for single losses.",
            Some("onramp attach ramp --base bbr --default"),
        ),
        (_, None) if account.slow_start() == SlowStart::Lasts || is_mostly_slow_start(account) => (
            "Start from what is known of the path, as most of this transfer was slow start.",
            Some("onramp attach ramp --start resume+window+suss --default"),
        ),
        (_, None) => ("Explain a connection from its begin.", Some("onramp explain --follow")),
    }
}

fn reason_name<S: Serializer>(reason: &Option<ExitReason>, serializer: S) -> Result<S::Ok, S::Error> {
    reason.map(ExitReason::name).serialize(serializer)
}
