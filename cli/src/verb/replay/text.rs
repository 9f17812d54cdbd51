//! A replay in words.

use onramp_recording::replay::{Finding, FlowReport};

use crate::output::{Output, escape_line};
use crate::table::Table;
use crate::units::{count, show_bytes, show_us};
use crate::verb::finding::{and, cells, cost, given, titles};

/// All flows, one table each.
pub(super) fn report(flows: &[FlowReport], regrets: bool, output: &Output) -> String {
    flows.iter().map(|flow| one(flow, regrets, output)).collect::<Vec<_>>().join("\n")
}

fn one(flow: &FlowReport, regrets: bool, output: &Output) -> String {
    let mut table = Table::new(and(titles("LEAVES"), if regrets { "COSTS" } else { "AS RECORDED" }));
    let at_least = flow.given.is_some_and(|given| given.at_least);
    for finding in &flow.findings {
        let last = if regrets { cost(finding, at_least) } else { recorded(finding) };
        table.push(and(cells(finding), last));
    }
    let title = title(flow);
    let title = if regrets { format!("{title}\n{}", given(flow.given, flow.regret)) } else { title };
    format!("{}\n{}", output.bold(&title), table.render(output))
}

fn title(flow: &FlowReport) -> String {
    let known = &flow.known;
    let mut title = format!("flow {}", flow.flow);
    if let (Some(local), Some(remote)) = (&known.local, &known.remote) {
        title += &format!(", {local} to {remote}");
    }
    if let Some(algorithm) = known.algorithm.as_ref().filter(|name| !name.is_empty()) {
        title += &format!(", ran {algorithm}");
    }
    title += &format!(": {} in {}", count(flow.acks as usize, "acknowledgment"), show_us(flow.duration_us));
    if let Some(exit) = &known.recorded_exit {
        title += &format!(
            "; left by {} after {} at {}",
            exit.reason,
            show_us(exit.since_start_us),
            show_bytes(exit.window_bytes)
        );
    }
    if known.from_start == Some(false) {
        title += "; its beginning is not recorded";
    }
    // Names come from the recording.
    escape_line(&title)
}

/// How the verdicts compare with those that were recorded.
fn recorded(finding: &Finding) -> String {
    match &finding.recorded {
        None => "-".to_owned(),
        Some(verdicts) if verdicts.different == 0 => format!("all {} verdicts", verdicts.compared),
        Some(verdicts) => format!(
            "{} of {} verdicts differ, first at acknowledgment {}",
            verdicts.different,
            verdicts.compared,
            verdicts.first_different_ack.unwrap_or(0)
        ),
    }
}
