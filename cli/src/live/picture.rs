//! Pictures of what algorithms keep of a flow: gauge, bars, phase.

use onramp_loader::algorithm::Bars;
use serde::Serialize;

use super::flow::Flow;
use crate::units::{show_bytes, show_rate};

/// A value against its threshold, lines of text, and bars below them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Picture {
    pub title: &'static str,
    pub gauge: Option<Gauge>,
    pub lines: Vec<String>,
    /// From the oldest, or the first.
    pub bars: Vec<u64>,
    pub bars_unit: &'static str,
}

/// In percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Gauge {
    pub value_pct: u64,
    pub threshold_pct: u64,
    /// The highest so far that was below the threshold.
    pub highest_below_pct: u64,
}

/// That of the flow's algorithm, if there is one.
pub(crate) fn picture(flow: &Flow) -> Option<Picture> {
    let picture = flow.algorithm.picture(flow.state_bytes())?;
    let (gauge, phase) = (picture.gauge, picture.phase);
    let titles =
        [gauge.map(|one| one.title), picture.bars.as_ref().map(|one| one.title), phase.map(|one| one.title)];
    let title = titles.into_iter().flatten().next()?;
    let mut lines: Vec<String> = Vec::new();
    lines.extend(phase.map(|phase| match phase.number {
        0 if flow.exit.is_some() => "LEFT".to_owned(),
        _ => phase.name.to_uppercase(),
    }));
    lines.extend(picture.bars.as_ref().map(|bars| range(bars, title)));
    let now = flow.reading();
    Some(Picture {
        title,
        gauge: gauge.zip(now.value.zip(now.limit)).map(|(gauge, (value, limit))| Gauge {
            value_pct: value.into(),
            threshold_pct: limit.into(),
            highest_below_pct: gauge.highest_below_pct.into(),
        }),
        lines,
        bars_unit: picture.bars.as_ref().map_or("", |bars| bars.unit),
        bars: picture.bars.map_or_else(Vec::new, |bars| bars.values),
    })
}

/// How high bars are, with their title unless the picture has it.
fn range(bars: &Bars, title: &str) -> String {
    let show = |value: u64| if bars.unit == "bytes" { show_bytes(value) } else { show_rate(value) };
    match (bars.values.iter().min(), bars.values.iter().max()) {
        (Some(least), Some(most)) if bars.title == title => format!("{} to {}", show(*least), show(*most)),
        (_, Some(most)) => format!("{}, up to {}", bars.title, show(*most)),
        _ => "none yet".to_owned(),
    }
}
