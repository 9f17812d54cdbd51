//! What is said of flows, as text.

use super::row::{ExitRow, FlowRow, Report, Source};
use super::would_have::WouldHave;
use crate::limits::{FromMemory, Limit, exited_by};
use crate::output::Output;
use crate::units::{count, show_bytes, show_us};

/// Flows that are shown; JSON has all.
const SHOWN: usize = 20;

/// All flows, and what was left out.
pub(super) fn report(report: &Report, output: &Output) -> String {
    let mut parts: Vec<_> = report.flows.iter().take(SHOWN).map(|row| flow(row, output)).collect();
    if parts.is_empty() {
        parts.push(nothing(report));
    }
    parts.push(left_out(report, SHOWN));
    parts.join("\n")
}

/// Where there is no flow to explain.
pub(super) fn nothing(report: &Report) -> String {
    if report.filtered_out > 0 && report.received_only + report.without_data == 0 {
        return "no flow matches the filter\n".into();
    }
    format!("no flow sent data in {}\n", show_us(report.duration_us))
}

/// What is not shown where so many flows are, and how what is said is known.
pub(super) fn left_out(report: &Report, shown: usize) -> String {
    let mut left_out = String::new();
    for (number, what) in [
        (report.flows.len().saturating_sub(shown), "more: a filter shows them, and so does --json"),
        (report.received_only, "received only; where they are sent they can be explained"),
        (report.without_data, "had no data"),
        (report.skipped_too_many, "more than are kept"),
        (report.filtered_out, "left out by the filter"),
    ] {
        if number > 0 {
            left_out += &format!("{} {what}\n", count(number, "flow"));
        }
    }
    left_out += &match report.source {
        Source::SockDiag => format!(
            "sampled every {}: moments are known to that, idle time, receive window and send buffer by the kernel's counters\n",
            show_us(report.sample_interval_us)
        ),
        Source::Recording => String::new(),
        Source::Qlog | Source::QlogOfQuic => "from qlog: pacing and a full send buffer show as the application\n".into(),
        Source::Capture => "from packets: the congestion window is what was in flight; a full send buffer shows as the application\n".into(),
    };
    left_out
}

/// One flow.
pub(super) fn flow(row: &FlowRow, output: &Output) -> String {
    let mut text = format!("{}\n  {}\n", output.bold(&row.title), transferred(row));
    let Some(verdict) = &row.verdict else { return text + "  seen in one sample only\n" };
    text += &format!("  {}\n  {}\n", limits(row), over_time(row));
    text.extend(of_slow_start(row).map(|line| format!("  {line}\n")));
    text += &format!("  {}\n  {}", output.bold(&verdict.verdict), verdict.remedy);
    if let Some(command) = verdict.command {
        text += &format!("\n    {command}");
    }
    text + "\n"
}

/// What is said of a flow besides its verdict and its limits.
pub(super) fn facts(row: &FlowRow) -> Vec<String> {
    let mut facts = vec![transferred(row)];
    if row.verdict.is_some() {
        facts.extend(of_slow_start(row));
    } else {
        facts.push("seen in one sample only".into());
    }
    facts
}

/// How it ended, how it would have under another algorithm, and what memory would have spared.
fn of_slow_start(row: &FlowRow) -> impl Iterator<Item = String> {
    let saves = row.from_memory.as_ref().filter(|start| start.saves());
    [slow_start(row)]
        .into_iter()
        .chain(row.would_have.as_ref().map(WouldHave::text))
        .chain(saves.map(from_memory))
}

fn from_memory(start: &FromMemory) -> String {
    let without = start.without_us.map_or_else(|| "never".to_owned(), |us| format!("after {}", show_us(us)));
    format!(
        "half of the path, {}, was in flight {without}; with the path remembered it would be after {}",
        show_bytes(start.window_bytes),
        show_us(start.at_us)
    )
}

fn transferred(row: &FlowRow) -> String {
    format!(
        "{} acknowledged in {}, {} retransmitted, RTT {} (min {})",
        show_bytes(row.acknowledged_bytes),
        show_us(row.observed_us),
        count(row.retransmitted_segments as usize, "segment"),
        show_us(row.smoothed_rtt_us.into()),
        row.min_rtt_us.map_or_else(|| "-".into(), |us| show_us(us.into())),
    )
}

/// `receive window 9.83 s (99 %), application 120 ms (1 %)`; what is below a hundredth is left out.
fn limits(row: &FlowRow) -> String {
    let one = |limit: Limit| {
        let us = row.limited_by.of(limit);
        format!("{} {} ({} %)", limit.title(), show_us(us), 100 * us / row.observed_us.max(1))
    };
    let counts = |limit: &Limit| 100 * row.limited_by.of(*limit) >= row.observed_us;
    row.limited_by.by_size().filter(counts).map(one).collect::<Vec<_>>().join(", ")
}

/// A letter for each slice of time, and what they stand for.
fn over_time(row: &FlowRow) -> String {
    let slices = &row.over_time.limited;
    let line: String = slices.iter().map(|limit| limit.map_or('.', Limit::letter)).collect();
    let legend = Limit::ALL.into_iter().filter(|limit| slices.contains(&Some(*limit)));
    let legend: Vec<_> = legend.map(|limit| format!("{} {}", limit.letter(), limit.title())).collect();
    format!("{line}  ({} each; {})", show_us(row.over_time.slice_us), legend.join(", "))
}

fn slow_start(row: &FlowRow) -> String {
    match (&row.slow_start.exit, row.slow_start.state) {
        (Some(exit), _) => ended(exit, row),
        (None, "before") => "slow start had ended before it was sampled".into(),
        (None, _) => format!("slow start lasts: cwnd {}, no ssthresh", row.cwnd_segments),
    }
}

fn ended(exit: &ExitRow, row: &FlowRow) -> String {
    let who = exited_by(exit.reason, row.congestion_control.as_deref().unwrap_or_default());
    let at_least = row.given.is_some_and(|given| given.at_least);
    let mut text =
        format!("slow start ended by {who} at {}, {}", show_us(exit.at_us), show_bytes(exit.window_bytes));
    if let Some(ratio) = exit.window_to_bdp {
        text += &format!(" ({}{ratio:.2} BDP)", if at_least { "≤ " } else { "" });
    }
    if let Some(us) = exit.lost_us.filter(|us| *us > row.smoothed_rtt_us.into()) {
        let at_least = at_least || exit.lost_at_least;
        text += &format!(", which cost {}{}", if at_least { "at least " } else { "" }, show_us(us));
    }
    if let Some(us) = exit.queue_us.filter(|us| *us > row.min_rtt_us.unwrap_or(0).into()) {
        text += &format!(", which left a queue of {}", show_us(us));
    }
    text
}
