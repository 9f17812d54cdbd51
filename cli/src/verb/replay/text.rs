//! A replay in words.

use onramp_recording::replay::{Finding, FlowReport};

use crate::output::Output;
use crate::table::Table;
use crate::units::{count, show_bytes, show_us};

/// Exports of one value that are shown.
const EXPORTS: usize = 2;

/// All flows, one table each.
pub(super) fn report(flows: &[FlowReport], output: &Output) -> String {
    flows.iter().map(|flow| one(flow, output)).collect::<Vec<_>>().join("\n")
}

fn one(flow: &FlowReport, output: &Output) -> String {
    let mut table = Table::new([
        "ALGORITHM",
        "SETTINGS",
        "LEAVES",
        ">AT",
        ">WINDOW",
        ">IN FLIGHT",
        ">RTT",
        ">ACKED",
        "EXPORTS",
        "AS RECORDED",
    ]);
    for finding in &flow.findings {
        table.push(row(finding));
    }
    format!("{}\n{}", output.bold(&title(flow)), table.render(output))
}

fn title(flow: &FlowReport) -> String {
    let known = &flow.known;
    let mut title = format!("flow {}", flow.flow);
    if let (Some(local), Some(remote)) = (&known.local, &known.remote) {
        title += &format!(", {local} to {remote}");
    }
    if let Some(algorithm) = &known.algorithm {
        title += &format!(", ran {algorithm}");
    }
    title += &format!(": {} in {}", count(flow.acks as usize, "acknowledgement"), show_us(flow.duration_us));
    if let Some(exit) = &known.recorded_exit {
        title += &format!(
            "; left by {} after {} at {}",
            exit.reason,
            show_us(exit.at_us),
            show_bytes(exit.window_bytes)
        );
    }
    if known.from_start == Some(false) {
        title += "; its beginning is not recorded";
    }
    title
}

fn row(finding: &Finding) -> [String; 10] {
    let dash = || "-".to_owned();
    let recorded = match &finding.recorded {
        None => dash(),
        Some(verdicts) if verdicts.different == 0 => format!("all {} verdicts", verdicts.compared),
        Some(verdicts) => format!(
            "{} of {} verdicts differ, first at acknowledgement {}",
            verdicts.different,
            verdicts.compared,
            verdicts.first_different_ack.unwrap_or(0)
        ),
    };
    let settings = if finding.settings.is_empty() { dash() } else { finding.settings.join(" ") };
    let exports = exports(finding);
    let algorithm = finding.algorithm.to_owned();
    match &finding.exit {
        Some(exit) => [
            algorithm,
            settings,
            exit.by.to_owned(),
            show_us(exit.at_us),
            show_bytes(exit.window_bytes),
            exit.in_flight_segments.to_string(),
            show_us(exit.rtt_us.into()),
            show_bytes(exit.acknowledged_bytes),
            exports,
            recorded,
        ],
        None => {
            let stays = format!("no: {}", finding.last_outcome.replace('_', " "));
            [algorithm, settings, stays, dash(), dash(), dash(), dash(), dash(), exports, recorded]
        }
    }
}

/// Exports of one value, the first of them.
pub(in crate::verb) fn exports(finding: &Finding) -> String {
    let single = finding.exports.iter().filter_map(|(name, values)| match values[..] {
        [one] => Some(format!("{name}={one}")),
        _ => None,
    });
    let shown: Vec<String> = single.take(EXPORTS).collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(" ") }
}
