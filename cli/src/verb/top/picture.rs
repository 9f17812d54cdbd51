//! Pictures of what some algorithms keep: SEARCH's bins and norm, BEST's ACK pairs, HyStart++'s phase.

use super::model::Flow;
use crate::ack_pairs::rates_bps;
use crate::units::{show_bytes, show_rate};

/// Lines of text, and bars below them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Picture {
    pub title: String,
    pub lines: Vec<String>,
    pub bars: Vec<u64>,
}

/// Cells of a bar of 100 percent.
const BAR: u32 = 25;
/// Thresholds of the two forms where none is set (Chung et al. 2024).
const SEARCH_SENT_PCT: u64 = 26;
const SEARCH_DELIVERED_PCT: u64 = 35;

/// Of the flow's algorithm, if there is one.
pub(super) fn picture(flow: &Flow) -> Option<Picture> {
    match flow.algorithm.name() {
        "search" => search(flow),
        "best" => best(flow),
        "hystartpp" => hystartpp(flow),
        _ => None,
    }
}

fn search(flow: &Flow) -> Option<Picture> {
    let norm = flow.value("norm_pct")?;
    let threshold = match flow.parameters.get("threshold_pct").ok()? {
        // 0: what the form's source says; form=sent is 1.
        0 if flow.parameters.get("form").ok()? == 1 => SEARCH_SENT_PCT,
        0 => SEARCH_DELIVERED_PCT,
        set => set,
    };
    let ring = flow.export("acked")?;
    let newest = flow.value("index").filter(|index| *index != u32::MAX);
    let bins = newest.map_or(0, |index| index.min(ring.len() as u32 - 1));
    let at = |bin: u32| ring[bin as usize % ring.len()];
    let newest = newest.unwrap_or(0);
    let bars: Vec<u64> =
        (newest - bins..newest).map(|bin| u64::from(at(bin + 1).wrapping_sub(at(bin)))).collect();
    Some(Picture {
        title: "norm".into(),
        lines: vec![
            format!("{norm} %, threshold {threshold} %"),
            bar(norm.into(), threshold),
            format!("acked per bin, up to {}", show_bytes(bars.iter().copied().max().unwrap_or(0))),
        ],
        bars,
    })
}

/// A norm against its threshold.
fn bar(norm: u64, threshold: u64) -> String {
    let cell = |percent: u64| (percent.min(100) as u32 * BAR / 100).min(BAR - 1);
    (0..BAR)
        .map(|column| match column {
            _ if column == cell(threshold) => '|',
            _ if column < cell(norm) || norm >= 100 => '█',
            _ => '░',
        })
        .collect()
}

fn best(flow: &Flow) -> Option<Picture> {
    let pairs = flow.export("pairs")?;
    let rates: Vec<u64> = rates_bps(pairs).collect();
    let estimate = u64::from(flow.value("estimate").unwrap_or(0)) * 8_000;
    let mut lines = vec![format!("by a round {}", show_rate(estimate))];
    lines.push(match (rates.iter().min(), rates.iter().max()) {
        (Some(least), Some(most)) => format!("{} to {}", show_rate(*least), show_rate(*most)),
        _ => "no ACK pair in this round".into(),
    });
    Some(Picture { title: "rates of ACK pairs".into(), lines, bars: rates })
}

fn hystartpp(flow: &Flow) -> Option<Picture> {
    let phase = match flow.value("phase")? {
        0 if flow.exit.is_some() => "left",
        0 => "slow start",
        _ => "conservative slow start",
    };
    let of = |name: &str| flow.value(name).unwrap_or(0);
    Some(Picture {
        title: "phase".into(),
        lines: vec![
            phase.to_uppercase(),
            format!("its rounds {}, entries {}", of("css_rounds"), of("css_entries")),
        ],
        bars: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_norm_is_drawn_against_its_threshold() {
        assert_eq!(bar(0, 26), "░░░░░░|░░░░░░░░░░░░░░░░░░");
        assert_eq!(bar(20, 26), "█████░|░░░░░░░░░░░░░░░░░░");
        assert_eq!(bar(40, 26), "██████|███░░░░░░░░░░░░░░░");
        assert_eq!(bar(400, 100), "████████████████████████|");
    }
}
