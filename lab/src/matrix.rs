// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Every arm on every profile: one row each, means over the valid runs.

use onramp_terminal::table::Table;
use serde::{Deserialize, Serialize};

use crate::experiment::{ArmResult, Comparison};
use crate::stats::Summary;

/// One arm on one profile, alone and against a competitor. Figures are none where no run yielded one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MatrixRow {
    /// Name of the profile.
    pub profile: String,
    /// Name of the arm.
    pub arm: String,
    /// Runs that were measured in full, alone.
    pub valid_runs: usize,
    /// Runs that were given up at the limit, alone and against the competitor: with one of them times, losses and RTTs are
    /// lower bounds, and goodput is an upper one.
    #[serde(default)]
    pub cut_off_runs: usize,
    /// Runs alone, repeated ones included.
    pub runs: usize,
    /// Download time, seconds.
    pub seconds: Option<f64>,
    /// Half the width of its 95 % confidence interval.
    pub seconds_ci95: Option<f64>,
    /// Goodput, bit/s.
    pub goodput_bps: Option<f64>,
    /// Segments retransmitted.
    pub retransmitted_segments: Option<f64>,
    /// Time at which slow start was left, seconds.
    pub exit_seconds: Option<f64>,
    /// Window at that time over the bandwidth-delay product.
    pub exit_to_bdp: Option<f64>,
    /// Largest smoothed round-trip time, microseconds.
    pub max_rtt_us: Option<f64>,
    /// Mean smoothed round-trip time, microseconds.
    pub mean_rtt_us: Option<f64>,
    /// Share that a flow of stock CUBIC kept which was there before, 0 to 1; 0.5 is an equal one.
    pub competitor_share: Option<f64>,
}

/// Rows of one profile, from the runs alone and those against the competitor, which have the same arms.
pub fn rows(alone: &Comparison, against: &Comparison) -> Vec<MatrixRow> {
    let of_row = |arm: &ArmResult| {
        let same = against.arms.iter().find(|other| other.arm == arm.arm);
        let cut_off = same.map_or(0, |same| same.cut_off_runs);
        let row = row(alone, arm, same.and_then(|same| mean(same.competitor_share)));
        MatrixRow { cut_off_runs: row.cut_off_runs + cut_off, ..row }
    };
    alone.arms.iter().map(of_row).collect()
}

fn mean(summary: Option<Summary>) -> Option<f64> {
    summary.map(|summary| summary.mean)
}

fn row(comparison: &Comparison, arm: &ArmResult, competitor_share: Option<f64>) -> MatrixRow {
    MatrixRow {
        profile: comparison.profile.clone(),
        arm: arm.arm.clone(),
        valid_runs: arm.valid_runs,
        cut_off_runs: arm.cut_off_runs,
        runs: arm.runs.len(),
        seconds: mean(arm.seconds),
        seconds_ci95: arm.seconds.and_then(|summary| summary.ci95),
        goodput_bps: mean(arm.goodput_bps),
        retransmitted_segments: mean(arm.retransmitted_segments),
        exit_seconds: mean(arm.exit_seconds),
        exit_to_bdp: mean(arm.exit_window_bytes).map(|bytes| bytes / comparison.bdp_bytes.max(1) as f64),
        max_rtt_us: mean(arm.max_rtt_us),
        mean_rtt_us: mean(arm.mean_rtt_us),
        competitor_share,
    }
}

/// Figures stand to the right.
const HEADER: [&str; 11] = [
    "profile",
    "arm",
    ">download s",
    ">goodput Mb/s",
    ">retransmitted",
    ">exit s",
    ">exit/BDP",
    ">mean RTT ms",
    ">max RTT ms",
    ">CUBIC keeps %",
    ">valid",
];

fn cells(row: &MatrixRow) -> [String; 11] {
    let number = |value: Option<f64>, scale: f64, digits: usize| {
        value.map_or_else(|| "-".into(), |value| format!("{:.digits$}", value * scale))
    };
    let at_least =
        |cell: String| if row.cut_off_runs > 0 && cell != "-" { format!("≥ {cell}") } else { cell };
    let spread = row.seconds_ci95.map_or_else(String::new, |half| format!(" ± {half:.2}"));
    [
        row.profile.clone(),
        row.arm.clone(),
        at_least(number(row.seconds, 1.0, 2) + &spread),
        number(row.goodput_bps, 1e-6, 1),
        at_least(number(row.retransmitted_segments, 1.0, 0)),
        number(row.exit_seconds, 1.0, 2),
        number(row.exit_to_bdp, 1.0, 2),
        number(row.mean_rtt_us, 1e-3, 0),
        number(row.max_rtt_us, 1e-3, 0),
        number(row.competitor_share, 100.0, 0),
        format!("{}/{}", row.valid_runs, row.runs),
    ]
}

/// As aligned text.
pub fn text(rows: &[MatrixRow]) -> String {
    let mut table = Table::new(HEADER);
    rows.iter().for_each(|row| table.push(cells(row)));
    table.text()
}

/// As a table in Markdown.
pub fn markdown(rows: &[MatrixRow]) -> String {
    let line = |cells: &[String; 11]| format!("| {} |\n", cells.join(" | "));
    let rule = "| --- | --- |".to_owned() + &" ---: |".repeat(9) + "\n";
    line(&HEADER.map(|title| title.trim_start_matches('>').to_owned()))
        + &rule
        + &rows.iter().map(|row| line(&cells(row))).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{CompetitorRun, Run};
    use crate::question::testing;

    fn comparison(runs: Vec<Run>) -> Comparison {
        testing::comparison(vec![ArmResult::new("search", "onramp_search", runs)])
    }

    #[test]
    fn a_row_joins_both_experiments_and_survives_json() {
        let run = Run { valid: true, invalid_reason: None, seconds: 10.0, ..Run::failed(1, String::new()) };
        let competitor = CompetitorRun {
            goodput_bps: 1.0,
            goodput_before_bps: 1.0,
            share: 0.4,
            retransmitted_segments: 0,
            base_rtt_us: None,
        };
        let met = Run { competitor: Some(competitor), ..run.clone() };
        let rows = rows(&comparison(vec![run]), &comparison(vec![met]));
        assert_eq!(
            (rows[0].seconds, rows[0].competitor_share, rows[0].exit_seconds),
            (Some(10.0), Some(0.4), None)
        );
        let text = serde_json::to_string(&rows).unwrap();
        assert_eq!(serde_json::from_str::<Vec<MatrixRow>>(&text).unwrap(), rows);
    }

    #[test]
    fn both_tables_have_a_line_for_each_row_and_every_column() {
        let rows = [MatrixRow {
            profile: "geo".into(),
            arm: "search".into(),
            seconds: Some(9.5),
            ..MatrixRow::default()
        }];
        let aligned = text(&rows);
        assert_eq!(aligned.lines().count(), 2);
        assert!(aligned.lines().nth(1).unwrap().starts_with("geo      search        9.50"), "{aligned}");
        let marked = markdown(&rows);
        assert_eq!(marked.lines().count(), 3);
        assert!(marked.lines().all(|line| line.matches('|').count() == 12), "{marked}");
    }
}
