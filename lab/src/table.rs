// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The closing table of an experiment, for people. Scripts read the JSON.

use std::collections::BTreeMap;

use crate::experiment::{Amount, ArmResult, Comparison};
use crate::stats::Summary;

/// One row per arm: mean ± half of the 95 % confidence interval over the valid runs.
pub fn comparison(comparison: &Comparison) -> String {
    let header = [
        "arm",
        "download s",
        "goodput Mb/s",
        "retransmitted",
        "queue drops",
        "exit s",
        "exit/BDP",
        "exit by",
        "early s",
        "max RTT ms",
        "valid",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(comparison.arms.iter().map(|arm| row(arm, comparison.bdp_bytes)));
    let amount = match comparison.amount {
        Amount::Bytes(bytes) => format!("{:.1} MB", bytes as f64 / 1e6),
        Amount::Seconds(seconds) => format!("{seconds} s"),
    };
    let mut out = format!(
        "{}: {amount} over {:.1} Mb/s, base RTT {:.1} ms, BDP {:.2} MB; mean ± 95 %\n",
        comparison.profile,
        comparison.rate_bps as f64 / 1e6,
        comparison.base_rtt_us as f64 / 1e3,
        comparison.bdp_bytes as f64 / 1e6,
    );
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..header.len()).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            // Names to the left, figures to the right.
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out += &shares("competitor kept", comparison, |arm| arm.competitor_share);
    out += &shares("Jain's index of the flows", comparison, |arm| arm.fairness);
    for reason in invalid_reasons(comparison) {
        out.push_str(&reason);
        out.push('\n');
    }
    out
}

/// A line with what only some experiments have: parts of one, in percent; empty where no arm has it.
fn shares(what: &str, comparison: &Comparison, of: impl Fn(&ArmResult) -> Option<Summary>) -> String {
    let arm = |arm: &ArmResult| Some(format!("{} {} %", arm.arm, cell(Some(of(arm)?), 100.0, 0)));
    let arms: Vec<_> = comparison.arms.iter().filter_map(arm).collect();
    if arms.is_empty() { String::new() } else { format!("{what}: {}\n", arms.join(", ")) }
}

fn row(arm: &ArmResult, bdp_bytes: u64) -> Vec<String> {
    let exits =
        arm.runs.iter().filter(|run| run.valid).filter_map(|run| Some(run.exit.as_ref()?.reason.name()));
    let mut by_reason = BTreeMap::<&str, usize>::new();
    exits.for_each(|reason| *by_reason.entry(reason).or_default() += 1);
    let reasons: Vec<_> = by_reason.into_iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    vec![
        arm.arm.clone(),
        cell(arm.seconds, 1.0, 2),
        cell(arm.goodput_bps, 1e-6, 1),
        cell(arm.retransmitted_segments, 1.0, 0),
        cell(arm.queue_drops, 1.0, 0),
        cell(arm.exit_seconds, 1.0, 2),
        cell(arm.exit_window_bytes, 1.0 / bdp_bytes.max(1) as f64, 2),
        if reasons.is_empty() { "-".into() } else { reasons.join(", ") },
        early(arm),
        cell(arm.max_rtt_us, 1e-3, 0),
        format!("{}/{}", arm.valid_runs, arm.runs.len()),
    ]
}

/// Marked where a run never carried the link's rate, so that it lost more.
fn early(arm: &ArmResult) -> String {
    let more = arm.runs.iter().any(|run| run.valid && run.regret.is_some_and(|regret| regret.at_least));
    let mark = if more { "≥ " } else { "" };
    format!("{mark}{}", cell(arm.early_seconds, 1.0, 2))
}

fn cell(summary: Option<Summary>, scale: f64, digits: usize) -> String {
    match summary {
        None => "-".into(),
        Some(Summary { mean, ci95: None, .. }) => format!("{:.digits$}", mean * scale),
        Some(Summary { mean, ci95: Some(half), .. }) => {
            format!("{:.digits$} ± {:.digits$}", mean * scale, half * scale)
        }
    }
}

fn invalid_reasons(comparison: &Comparison) -> Vec<String> {
    let runs = comparison.arms.iter().flat_map(|arm| arm.runs.iter().map(move |run| (arm, run)));
    runs.filter_map(|(arm, run)| {
        Some(format!("not counted: {} seed {}: {}", arm.arm, run.seed, run.invalid_reason.as_ref()?))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::testing;

    #[test]
    fn columns_line_up_and_missing_values_show() {
        let arm = |name: &str, seconds: &[f64]| ArmResult {
            seconds: Summary::of(seconds.iter().copied()),
            ..ArmResult::new(name, name, Vec::new())
        };
        let table = comparison(&testing::comparison(vec![
            arm("cubic", &[25.0, 27.0]),
            ArmResult { competitor_share: Summary::of([0.4]), ..arm("onramp_search", &[10.5]) },
        ]));
        let lines: Vec<_> = table.lines().collect();
        assert!(
            lines[0].starts_with("geo: 80.0 MB over 150.0 Mb/s, base RTT 600.0 ms, BDP 11.25 MB"),
            "{table}"
        );
        assert!(lines[2].starts_with("cubic          26.00 ± 12.71  "), "{table}");
        assert!(lines[3].starts_with("onramp_search          10.50  "), "{table}");
        assert!(lines[2].ends_with("0/0"), "{table}");
        assert_eq!(lines[4..], ["competitor kept: onramp_search 40 %"]);
    }
}
