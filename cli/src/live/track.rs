//! What an algorithm shows of a flow over time, and the limit at which slow start ends.

use onramp_loader::algorithm;
use serde::Serialize;

use super::flow::Flow;

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
