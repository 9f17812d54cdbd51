//! What was watched, in words.

use super::ShadowReport;
use super::flows::FlowRow;
use crate::limits::exited_by;
use crate::output::Output;
use crate::table::Table;
use crate::units::{count, show_bytes, show_us};
use crate::verb::finding::{and, cells, cost, given, titles};

/// All flows, one table each, and what is missing.
pub(super) fn report(report: &ShadowReport, regrets: bool, output: &Output) -> String {
    let mut parts: Vec<String> = report.flows.iter().map(|flow| one(flow, regrets, output)).collect();
    if parts.is_empty() {
        parts.push("no flow was in slow start\n".to_owned());
    }
    let mut missing = String::new();
    for (number, what) in [
        (
            report.skipped_established,
            "passed over that began before (--established evaluates them from their middle)",
        ),
        (report.skipped_no_memory, "not followed, for want of memory"),
        (report.skipped_too_many, "more than are kept"),
    ] {
        if number > 0 {
            missing += &format!("{} {what}\n", count(number as usize, "flow"));
        }
    }
    if report.dropped > 0 {
        missing +=
            &format!("{} came too fast and went missing\n", count(report.dropped as usize, "observation"));
    }
    parts.extend(Some(missing).filter(|text| !text.is_empty()));
    parts.join("\n")
}

fn one(flow: &FlowRow, regrets: bool, output: &Output) -> String {
    let title = title(flow);
    if !regrets {
        let mut table = Table::new(titles("WOULD LEAVE"));
        flow.findings.iter().for_each(|finding| table.push(cells(finding)));
        return format!("{}\n{}", output.bold(&title), table.render(output));
    }
    let mut table = Table::new(and(titles("WOULD LEAVE"), "COSTS"));
    let at_least = flow.given.is_some_and(|given| given.at_least);
    flow.findings.iter().for_each(|finding| table.push(and(cells(finding), cost(finding, at_least))));
    let title = format!("{title}\n{}", given(flow.given, flow.regret));
    format!("{}\n{}", output.bold(&title), table.render(output))
}

fn title(flow: &FlowRow) -> String {
    let mut title = format!("{} to {}, {}: ", flow.local, flow.remote, flow.congestion_control);
    title += &match &flow.exit {
        Some(exit) => format!(
            "left by {} after {} at {}, {} acknowledged",
            exited_by(exit.reason, &flow.congestion_control),
            show_us(exit.since_start_us),
            show_bytes(exit.window_bytes),
            show_bytes(exit.acknowledged_bytes)
        ),
        None if flow.closed_early => {
            "closed in slow start with data outstanding, the rest is not seen".to_owned()
        }
        None if flow.ended => "ended in slow start".to_owned(),
        None => "still in slow start".to_owned(),
    };
    title += &format!("; {}", count(flow.acks as usize, "acknowledgment"));
    if flow.dropped > 0 {
        title += &format!(", {} missing", count(flow.dropped as usize, "observation"));
    }
    if flow.established {
        title += "; was in progress";
    }
    title
}
