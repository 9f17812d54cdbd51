// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The closing table of an experiment, for people. Scripts read the JSON.

use std::collections::BTreeMap;

use onramp_terminal::table::Table;

use crate::experiment::{Amount, ArmResult, Comparison, Paired};
use crate::stats::{Bound, Summary};

/// One row per arm: mean ± half of the 95 % confidence interval over the runs that count; ≥ where a run was cut off.
pub fn comparison(comparison: &Comparison) -> String {
    let table = arms(comparison);
    let amount = match comparison.amount {
        Amount::Bytes(bytes) => format!("{:.1} MB", bytes as f64 / 1e6),
        Amount::Seconds(seconds) => format!("{seconds} s"),
    };
    let mut out = format!(
        "{}: {amount} over {:.1} Mb/s, base RTT {:.1} ms, BDP {:.2} MB{}; mean ± 95 %\n",
        comparison.profile,
        comparison.rate_bps as f64 / 1e6,
        comparison.base_rtt_us as f64 / 1e3,
        comparison.bdp_bytes as f64 / 1e6,
        warm(comparison),
    );
    out += &table.text();
    out += &shares("competitor kept", comparison, |arm| arm.competitor_share);
    out += &shares("Jain's index of the flows", comparison, |arm| arm.fairness);
    out += &shares("time at the receiver's window", comparison, at_receiver_window);
    if let Some(paired) = &comparison.paired {
        out += &over_the_same_seeds(paired, comparison);
    }
    out + &missing(comparison)
}

/// The same rows for a paper, as LaTeX.
pub fn latex(comparison: &Comparison) -> String {
    arms(comparison).latex()
}

fn arms(comparison: &Comparison) -> Table<11> {
    let mut table = Table::new([
        "arm",
        ">download s",
        ">goodput Mb/s",
        ">retransmitted",
        ">queue drops",
        ">exit s",
        ">exit/BDP",
        ">exit by",
        ">early s",
        ">max RTT ms",
        ">valid",
    ]);
    comparison.arms.iter().for_each(|arm| table.push(row(arm, comparison.bdp_bytes)));
    table
}

/// What came before each run.
fn warm(comparison: &Comparison) -> String {
    let bytes = comparison.plan.as_ref().and_then(|plan| plan.warm_bytes);
    bytes.map_or_else(String::new, |bytes| format!(", after {:.1} MB", bytes as f64 / 1e6))
}

/// The arms over the seeds that all of them finished.
fn over_the_same_seeds(paired: &Paired, comparison: &Comparison) -> String {
    let seeds = format!("{} of {} seeds were finished under every arm", paired.seeds.len(), paired.of);
    let arm = |arm: &ArmResult| {
        let seconds = paired.seconds.get(&arm.arm)?;
        Some(format!("{} {} s", arm.arm, cell(Some(*seconds), 1.0, 2)))
    };
    let arms: Vec<_> = comparison.arms.iter().filter_map(arm).collect();
    if arms.is_empty() {
        return format!("{seeds}: the arms cannot be compared\n");
    }
    format!("{seeds}; over these: {}\n", arms.join(", "))
}

/// A line with what only some experiments have: parts of one, in percent; empty where no arm has it.
fn shares(what: &str, comparison: &Comparison, of: impl Fn(&ArmResult) -> Option<Summary>) -> String {
    let arm = |arm: &ArmResult| Some(format!("{} {} %", arm.arm, cell(Some(of(arm)?), 100.0, 0)));
    let arms: Vec<_> = comparison.arms.iter().filter_map(arm).collect();
    if arms.is_empty() { String::new() } else { format!("{what}: {}\n", arms.join(", ")) }
}

/// The part of its time in which an arm was bound by its receiver: where that is a twentieth or more.
fn at_receiver_window(arm: &ArmResult) -> Option<Summary> {
    let counted = arm.runs.iter().filter(|run| run.counts());
    let share = Summary::new(counted.map(|run| run.receive_window_limited_seconds / run.seconds.max(1e-9)));
    share.filter(|share| share.mean >= 0.05)
}

fn row(arm: &ArmResult, bdp_bytes: u64) -> [String; 11] {
    let exits =
        arm.runs.iter().filter(|run| run.counts()).filter_map(|run| Some(run.exit.as_ref()?.reason.name()));
    let mut by_reason = BTreeMap::<&str, usize>::new();
    exits.for_each(|reason| *by_reason.entry(reason).or_default() += 1);
    let reasons: Vec<_> = by_reason.into_iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    [
        arm.arm.clone(),
        with_median(arm.seconds, 1.0, 2),
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
    let more = arm.runs.iter().any(|run| run.counts() && run.regret.is_some_and(|regret| regret.at_least));
    let mark = if more { "≥ " } else { "" };
    format!("{mark}{}", cell(arm.early_seconds, 1.0, 2))
}

fn cell(summary: Option<Summary>, scale: f64, digits: usize) -> String {
    let Some(Summary { mean, ci95, bound, .. }) = summary else { return "-".into() };
    let sign = bound.map_or("", Bound::sign);
    let spread = ci95.map_or(String::new(), |half| format!(" ± {:.digits$}", half * scale));
    format!("{sign}{:.digits$}{spread}", mean * scale)
}

/// Where the mean is only bounded, the median, if that is known.
fn with_median(summary: Option<Summary>, scale: f64, digits: usize) -> String {
    let known = summary.filter(|summary| summary.bound.is_some()).and_then(|summary| summary.median);
    let median = known.map_or(String::new(), |median| format!(", median {:.digits$}", median * scale));
    cell(summary, scale, digits) + &median
}

/// Seeds that are named for each arm and reason.
const NAMED: usize = 5;

/// What was not measured in full: each reason once, with the runs that it is of.
fn missing(comparison: &Comparison) -> String {
    let mut reasons = BTreeMap::<(bool, &str), Vec<(&str, Vec<u64>)>>::new();
    for arm in &comparison.arms {
        for run in &arm.runs {
            let Some(reason) = &run.invalid_reason else { continue };
            let arms = reasons.entry((!run.cut_off, reason)).or_default();
            match arms.last_mut().filter(|(name, _)| *name == arm.arm) {
                Some((_, seeds)) => seeds.push(run.seed),
                None => arms.push((&arm.arm, vec![run.seed])),
            }
        }
    }
    let line = |uncounted: bool, reason: &str, arms: &[(&str, Vec<u64>)]| {
        let count: usize = arms.iter().map(|(_, seeds)| seeds.len()).sum();
        let arms: Vec<_> = arms.iter().map(|(name, seeds)| runs_of(name, seeds)).collect();
        let what = if uncounted { "not counted" } else { "counted as ≥" };
        let runs = if count == 1 { "run" } else { "runs" };
        format!("{count} {runs} {what} ({}): {reason}\n", arms.join("; "))
    };
    reasons.iter().map(|((uncounted, reason), arms)| line(*uncounted, reason, arms)).collect()
}

fn runs_of(arm: &str, seeds: &[u64]) -> String {
    let named: Vec<_> = seeds.iter().take(NAMED).map(u64::to_string).collect();
    let more = seeds.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{arm} seed {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::experiment::Run;
    use crate::question::testing;

    #[test]
    fn what_was_cut_off_is_a_bound_and_an_equal_reason_stands_once() {
        let over = |seed| Run::cut_off(seed, Duration::from_secs(387));
        let mut runs = vec![testing::run(51.34, 7), testing::run(40.0, 7)];
        runs.extend((2..9).map(over));
        let slow = ArmResult::new("cubic", "cubic", runs);
        let table =
            comparison(&testing::comparison(vec![slow, ArmResult::new("plain", "plain", vec![over(2)])]));
        let lines: Vec<_> = table.lines().collect();
        assert!(lines[2].starts_with("cubic  ≥ 3") && !lines[2].contains('≤'), "{table}");
        assert!(lines[3].starts_with("plain"), "{table}");
        assert_eq!(lines.len(), 5, "{table}");
        assert!(
            lines[4].starts_with("8 runs counted as ≥ (cubic seed 2, 3, 4, 5, 6 and 2 more; plain seed 2): ")
        );
        let known = [testing::run(5.0, 7), testing::run(6.0, 7), over(3)].to_vec();
        let table = comparison(&testing::comparison(vec![ArmResult::new("cubic", "cubic", known)]));
        assert!(table.contains(", median 6.00"), "{table}");
    }

    #[test]
    fn columns_line_up_and_missing_values_show() {
        let arm = |name: &str, seconds: &[f64]| ArmResult {
            seconds: Summary::new(seconds.iter().copied()),
            ..ArmResult::new(name, name, Vec::new())
        };
        let table = comparison(&testing::comparison(vec![
            arm("cubic", &[25.0, 27.0]),
            ArmResult { competitor_share: Summary::new([0.4]), ..arm("onramp_search", &[10.5]) },
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
