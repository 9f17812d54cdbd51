//! What is said of flows, as JSON.

use onramp_loader::ExitReason;
use onramp_recording::Origin;
use onramp_recording::replay::PathEstimate;
use serde::Serialize;

use super::watched::{Watched, WatchedFlow};
use super::would_have::WouldHave;
use crate::limits::{Account, FromMemory, Limit, Parts, SlowStart, Verdict, algorithm_of, verdict};
use crate::output::Named;
use crate::verb::ends::{Ends, canonical};

/// By what each figure of sockets is known: `sampled`, to the time between two samples; `both`: part of it, mostly all, is counted by the
/// kernel, to a jiffy. Moments and windows of exits are sampled.
const KNOWN_BY: [(&str, &str); Limit::ALL.len()] = [
    ("application_us", "both"),
    ("receive_window_us", "both"),
    ("send_buffer_us", "both"),
    ("slow_start_us", "sampled"),
    ("congestion_avoidance_us", "sampled"),
    ("recovery_us", "sampled"),
    ("pacing_us", "sampled"),
    ("host_queue_us", "sampled"),
    ("path_us", "sampled"),
];

/// Where the flows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    /// Sockets, sampled.
    SockDiag,
    /// What the kernel reported at each ACK.
    Recording,
    /// Packets at the sender.
    Capture,
    /// What a sender of TCP logged.
    Qlog,
    /// What one of QUIC logged.
    #[serde(rename = "qlog")]
    QlogOfQuic,
}

impl From<Origin> for Source {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Recorder => Self::Recording,
            Origin::Capture => Self::Capture,
            Origin::Qlog { is_tcp: true } => Self::Qlog,
            Origin::Qlog { is_tcp: false } => Self::QlogOfQuic,
        }
    }
}

impl Source {
    /// By what a figure is known, where sockets would know it by this.
    fn known_by(self, sampled: &'static str) -> &'static str {
        match self {
            Self::SockDiag => sampled,
            Self::Recording => "recorded",
            Self::Capture => "inferred",
            Self::Qlog | Self::QlogOfQuic => "logged",
        }
    }
}

/// Of all flows.
#[derive(Serialize)]
pub(super) struct Report {
    pub source: Source,
    pub known_by: Named<&'static str>,
    pub duration_us: u64,
    /// On average between two samples.
    pub sample_interval_us: u64,
    /// Those that sent, the largest first.
    pub flows: Vec<FlowRow>,
    /// Flows that received only: their senders can explain them.
    pub received_only: usize,
    /// Flows without data.
    pub without_data: usize,
    /// Flows beyond those that are kept.
    pub skipped_too_many: usize,
    /// Flows of a file that the filter leaves out; of sockets they are not counted.
    pub filtered_out: usize,
}

/// Of a flow. Times are since its first sample.
#[derive(Serialize)]
pub(super) struct FlowRow {
    #[serde(flatten)]
    pub ends: Ends,
    /// In text.
    #[serde(skip)]
    pub title: String,
    pub cookie: u64,
    /// None: a packet capture does not say.
    pub congestion_control: Option<String>,
    pub ended: bool,
    /// Its begin was seen.
    pub from_begin: bool,
    pub observed_us: u64,
    pub samples: u64,
    /// While it was observed, as the next.
    pub acknowledged_bytes: u64,
    pub retransmitted_segments: u32,
    pub smoothed_rtt_us: u32,
    pub min_rtt_us: Option<u32>,
    pub cwnd_segments: u32,
    pub ssthresh_segments: Option<u32>,
    pub receive_window_bytes: u32,
    /// The limit that held longest; none: it was seen in one sample alone.
    pub limited: Option<Limit>,
    /// The parts add up to `observed_us`.
    pub limited_by: Parts,
    pub over_time: OverTime,
    pub slow_start: SlowStartRow,
    /// What the default algorithm would have done; none: the flow ran it, or no ACKs of it were recorded.
    pub would_have: Option<WouldHave>,
    /// What a start from memory would have done; none: the flow's begin was not seen, or what the path gave is not known.
    pub from_memory: Option<FromMemory>,
    /// What the path gave.
    pub given: Option<PathEstimate>,
    pub verdict: Option<Verdict>,
}

/// The limit of each slice of time; none: no sample.
#[derive(Serialize)]
pub(super) struct OverTime {
    pub slice_us: u64,
    pub limited: Vec<Option<Limit>>,
}

#[derive(Serialize)]
pub(super) struct SlowStartRow {
    /// `before` it was observed, `lasts`, `ended`.
    pub state: &'static str,
    pub exit: Option<ExitRow>,
}

/// The end of the first slow start.
#[derive(Serialize)]
pub(super) struct ExitRow {
    pub reason: &'static str,
    /// The algorithm that exited, where the reason is one and the control has one of a name.
    pub algorithm: Option<&'static str>,
    pub at_us: u64,
    /// It was at most so long before.
    pub resolution_us: u64,
    pub cwnd_segments: u32,
    pub window_bytes: u64,
    /// Below 1 is early; with `given.at_least`, an upper bound.
    pub window_to_bdp: Option<f64>,
    /// Time that the exit cost, as `regret.early_us` of `onramp flows` where that is known.
    pub lost_us: Option<u64>,
    /// The window has not carried the path's rate since: it is the time in which the control or the path was the limit, less
    /// what the bytes delivered in it take at the rate of `given`, so far.
    pub lost_at_least: bool,
    /// Queueing delay that a late exit has left.
    pub queue_us: Option<u64>,
}

impl Report {
    /// Of so many dumps of sockets; of a file, of one for each of the flows' ACKs.
    pub fn new(source: Source, duration_us: u64, dumps: u64, watched: Watched) -> Self {
        let (kept, skipped_too_many) = watched.finish();
        let received = |account: &Account| !account.has_sent() && account.received_bytes() > 0;
        let received_only = kept.iter().filter(|(flow, _)| received(&flow.account)).count();
        let mut flows: Vec<_> = kept
            .iter()
            .filter(|(flow, _)| flow.account.has_sent())
            .map(|(flow, ended)| FlowRow::new(flow, *ended))
            .collect();
        flows.sort_by_key(|row| std::cmp::Reverse(row.acknowledged_bytes));
        if source == Source::QlogOfQuic {
            flows.iter_mut().filter_map(|row| row.verdict.as_mut()).for_each(Verdict::of_quic);
        }
        Self {
            source,
            known_by: Named(KNOWN_BY.map(|(name, sampled)| (name, source.known_by(sampled))).to_vec()),
            duration_us,
            sample_interval_us: duration_us / dumps.max(1),
            without_data: kept.len() - flows.len() - received_only,
            flows,
            received_only,
            skipped_too_many,
            filtered_out: 0,
        }
    }
}

impl FlowRow {
    pub fn new(flow: &WatchedFlow, ended: bool) -> Self {
        let account = &flow.account;
        let info = &account.now().info;
        let verdict = verdict(account, &flow.congestion_control);
        Self {
            ends: Ends::new(flow.local, flow.remote),
            title: {
                let ends = format!("{} to {}", canonical(flow.local), canonical(flow.remote));
                match &flow.congestion_control {
                    control if control.is_empty() => ends,
                    control => format!("{ends}, {control}"),
                }
            },
            cookie: flow.cookie,
            congestion_control: Some(flow.congestion_control.clone()).filter(|name| !name.is_empty()),
            ended,
            from_begin: account.is_from_begin(),
            observed_us: account.observed_us(),
            samples: account.samples,
            acknowledged_bytes: account.acknowledged_bytes(),
            retransmitted_segments: account.retransmitted_segments(),
            smoothed_rtt_us: info.rtt_us,
            min_rtt_us: info.min_rtt_us,
            cwnd_segments: info.snd_cwnd,
            ssthresh_segments: info.snd_ssthresh,
            receive_window_bytes: info.snd_wnd_bytes,
            limited: verdict.as_ref().map(|verdict| verdict.limited),
            limited_by: account.parts,
            over_time: OverTime {
                slice_us: account.over_time.width_us(),
                limited: account.over_time.limits().collect(),
            },
            slow_start: SlowStartRow::new(account, &flow.congestion_control),
            would_have: flow.would_have.clone(),
            from_memory: account.remembering(),
            given: account.given(),
            verdict,
        }
    }
}

impl SlowStartRow {
    fn new(account: &Account, control: &str) -> Self {
        let (state, exit) = match account.slow_start() {
            SlowStart::Before => ("before", None),
            SlowStart::Lasts => ("lasts", None),
            SlowStart::Ended(exit) => ("ended", Some(exit)),
        };
        let regret = account.regret();
        let exit = exit.map(|exit| ExitRow {
            reason: exit.reason.name(),
            algorithm: if exit.reason == ExitReason::Algorithm { algorithm_of(control) } else { None },
            at_us: exit.at_us,
            resolution_us: exit.resolution_us,
            cwnd_segments: exit.window_segments,
            window_bytes: exit.window_bytes,
            window_to_bdp: account
                .given()
                .map(|given| exit.window_bytes as f64 / given.window_bytes.max(1) as f64),
            lost_us: regret.map(|regret| regret.early_us).or_else(|| account.lost_at_least_us()),
            lost_at_least: regret.is_none(),
            queue_us: regret.and_then(|regret| regret.queue_us),
        });
        Self { state, exit }
    }
}
