//! Pictures of what some algorithms keep: SEARCH's bins and norm, BEST's ACK pairs, HyStart++'s phase.

use serde::Serialize;

use super::model::Flow;
use crate::ack_pairs::rates_bps;
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

/// Of the flow's algorithm, if there is one.
pub(crate) fn picture(flow: &Flow) -> Option<Picture> {
    match flow.name {
        "search" => search(flow),
        "best" => best(flow),
        "hystartpp" => hystartpp(flow),
        _ => None,
    }
}

fn search(flow: &Flow) -> Option<Picture> {
    let norm = flow.value("norm_pct")?;
    let threshold = flow.threshold_pct?;
    let highest = flow.value("norm_max_pct")?;
    let ring = flow.export("acked")?;
    let newest = flow.value("index").filter(|index| *index != u32::MAX);
    let bins = newest.map_or(0, |index| index.min(ring.len() as u32 - 1));
    let at = |bin: u32| ring[bin as usize % ring.len()];
    let newest = newest.unwrap_or(0);
    let bars: Vec<u64> =
        (newest - bins..newest).map(|bin| u64::from(at(bin + 1).wrapping_sub(at(bin)))).collect();
    Some(Picture {
        title: "norm",
        gauge: Some(Gauge {
            value_pct: norm.into(),
            threshold_pct: threshold,
            highest_below_pct: highest.into(),
        }),
        lines: vec![format!("acked per bin, up to {}", show_bytes(bars.iter().copied().max().unwrap_or(0)))],
        bars,
        bars_unit: "bytes",
    })
}

fn best(flow: &Flow) -> Option<Picture> {
    let pairs = flow.export("pairs")?;
    let rates: Vec<u64> = rates_bps(&pairs).collect();
    let estimate = u64::from(flow.value("estimate").unwrap_or(0)) * 8_000;
    let mut lines = vec![format!("by a round {}", show_rate(estimate))];
    lines.push(match (rates.iter().min(), rates.iter().max()) {
        (Some(least), Some(most)) => format!("{} to {}", show_rate(*least), show_rate(*most)),
        _ => "no ACK pair in this round".into(),
    });
    Some(Picture { title: "rates of ACK pairs", gauge: None, lines, bars: rates, bars_unit: "bit/s" })
}

fn hystartpp(flow: &Flow) -> Option<Picture> {
    let phase = match flow.value("phase")? {
        0 if flow.exit.is_some() => "left",
        0 => "slow start",
        _ => "conservative slow start",
    };
    let of = |name: &str| flow.value(name).unwrap_or(0);
    Some(Picture {
        title: "phase",
        gauge: None,
        lines: vec![
            phase.to_uppercase(),
            format!("its rounds {}, entries {}", of("css_rounds"), of("css_entries")),
        ],
        bars: Vec::new(),
        bars_unit: "",
    })
}
