//! What an algorithm shows of a flow over time, and the limit at which slow start ends.

use onramp_loader::algorithm::{self, Ack, Reading};
use serde::Serialize;

use super::model::Flow;
use crate::units::show_us;

/// A value of an algorithm, and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Track {
    pub title: &'static str,
    /// `percent`, `us` or `segments`.
    pub unit: &'static str,
    pub limit_title: &'static str,
}

/// That of the flow's algorithm; `None`: it has no single value.
pub(crate) fn track(flow: &Flow) -> Option<Track> {
    let algorithm::Track { title, unit, limit_title } = flow.algorithm.track()?;
    Some(Track { title, unit, limit_title })
}

/// As of what is known of the flow.
pub(super) fn reading(flow: &Flow) -> Reading {
    let ack = Ack { cwnd: flow.now.cwnd, mss: flow.mss, ..Ack::default() };
    flow.parameters.read_track(flow.state_bytes(), &ack)
}

/// A value of a track as text.
pub(crate) fn show(unit: &str, value: u32) -> String {
    match unit {
        "percent" => format!("{value} %"),
        "us" => show_us(value.into()),
        _ => value.to_string(),
    }
}
