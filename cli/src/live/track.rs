//! What an algorithm watches over time, and where it would leave.

use onramp_loader::algorithm::{Parameters, SEARCH_DELIVERED_THRESHOLD, SEARCH_SENT_THRESHOLD};
use serde::Serialize;

use super::model::Flow;

/// A quantity of an algorithm, and the limit at which it leaves slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Track {
    pub title: &'static str,
    /// `percent`, `us` or `segments`.
    pub unit: &'static str,
    pub limit_title: &'static str,
    #[serde(skip)]
    pub value: Option<u32>,
    #[serde(skip)]
    pub limit: Option<u32>,
}

/// Of the flow's algorithm; `None`: it watches nothing that is one number.
pub(crate) fn track(flow: &Flow) -> Option<Track> {
    let told = |name: &str| flow.value(name).filter(|value| *value != 0);
    let window = |limit_title, limit: Option<u32>| {
        let value = Some(flow.now.cwnd).filter(|_| limit.is_some());
        Track { title: "window", unit: "segments", limit_title, value, limit }
    };
    match flow.name {
        "search" => Some(Track {
            title: "norm",
            unit: "percent",
            limit_title: "threshold",
            value: flow.value("norm_pct"),
            limit: flow.threshold_pct.and_then(|threshold| threshold.try_into().ok()),
        }),
        "hystart" => Some(Track {
            title: "minimum RTT of the round",
            unit: "us",
            limit_title: "threshold",
            value: told("round_min_us"),
            limit: told("delay_min_us")
                .zip(told("threshold_us"))
                .map(|(least, more)| least.saturating_add(more)),
        }),
        "hystartpp" => Some(Track {
            title: "minimum RTT of the round",
            unit: "us",
            limit_title: "that of the round before",
            value: told("round_min_us"),
            limit: told("last_round_min_us"),
        }),
        "inflight" => Some(window("bound", told("bound"))),
        "best" | "ramp" | "spacing" => Some(window("where it leaves", told("target"))),
        _ => None,
    }
}

/// SEARCH's threshold in percent; 0 stands for what the source of its form says. `None`: another algorithm's parameters.
pub(super) fn search_threshold(parameters: &Parameters) -> Option<u64> {
    Some(match parameters.get("threshold_pct").ok()? {
        // form=sent is 1.
        0 if parameters.get("form").ok()? == 1 => SEARCH_SENT_THRESHOLD.into(),
        0 => SEARCH_DELIVERED_THRESHOLD.into(),
        set => set,
    })
}
