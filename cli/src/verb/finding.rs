//! What came of an algorithm that was asked about a flow, as cells of a table.

use onramp_recording::replay::{Finding, PathEstimate, Regret};

use crate::units::{show_bytes, show_us};

/// Exports of one value that are shown.
const EXPORTS: usize = 2;

const COLUMNS: usize = 9;

/// The columns' titles, that of whether and why it leaves as given.
pub(super) fn titles(leaves: &'static str) -> [&'static str; COLUMNS] {
    ["ALGORITHM", "SETTINGS", leaves, ">AT", ">WINDOW", ">IN FLIGHT", ">RTT", ">ACKED", "EXPORTS"]
}

/// What stands in them.
pub(super) fn cells(finding: &Finding) -> [String; COLUMNS] {
    let dash = || "-".to_owned();
    let algorithm = finding.algorithm.to_owned();
    let settings = if finding.settings.is_empty() { dash() } else { finding.settings.join(" ") };
    let exports = exports(finding);
    match &finding.exit {
        Some(exit) => [
            algorithm,
            settings,
            exit.reason.name().to_owned(),
            show_us(exit.since_start_us),
            show_bytes(exit.window_bytes),
            exit.in_flight_segments.to_string(),
            show_us(exit.rtt_us.into()),
            show_bytes(exit.acknowledged_bytes),
            exports,
        ],
        None => {
            let outcome = finding.last_outcome.replace('_', " ");
            let stays = if finding.flow_left_first {
                format!("unknown: not before the flow itself left ({outcome})")
            } else {
                format!("not while the flow was in slow start ({outcome})")
            };
            [algorithm, settings, stays, dash(), dash(), dash(), dash(), dash(), exports]
        }
    }
}

/// One column more.
pub(super) fn and<T>([a, b, c, d, e, f, g, h, i]: [T; COLUMNS], last: T) -> [T; COLUMNS + 1] {
    [a, b, c, d, e, f, g, h, i, last]
}

/// What the exit would have cost, where that is known, of a flow whose BDP may be a lower bound.
pub(super) fn cost(finding: &Finding, bdp_at_least: bool) -> String {
    finding.regret.map_or_else(|| "-".into(), |regret| costs(regret, bdp_at_least))
}

/// What the path gave, and what the real exit cost.
pub(super) fn given(given: Option<PathEstimate>, exit: Option<Regret>) -> String {
    let Some(given) = given else {
        return "the BDP of the path is not known: no round was seen to its end".into();
    };
    let (least, kept) = match (given.at_least, given.carried_since_start_us) {
        (false, Some(us)) => ("", format!(", which the window carried after {}", show_us(us))),
        _ => ("≥ ", ", as it did not keep its peak rate for four rounds".into()),
    };
    let path = format!(
        "peak rate {}/s, minimum RTT {}: BDP {least}{}{kept}",
        show_bytes(given.rate_bytes_per_second),
        show_us(given.base_rtt_us.into()),
        show_bytes(given.window_bytes),
    );
    match exit {
        Some(regret) => format!("{path}; the exit: {}", costs(regret, given.at_least)),
        None => path,
    }
}

/// An exit against the path, whose BDP may be a lower bound.
pub(super) fn costs(regret: Regret, bdp_at_least: bool) -> String {
    let cost = match (regret.early_us, regret.queue_us) {
        (0, Some(0) | None) => String::new(),
        (0, Some(queue_us)) => format!(", {} of queue", show_us(queue_us)),
        (early_us, _) => format!(", {} lost", show_us(early_us)),
    };
    let most = if bdp_at_least { "≤ " } else { "" };
    format!("{most}{:.2} BDP{cost}", regret.window_to_bdp)
}

/// Exports of one value, the first of them.
fn exports(finding: &Finding) -> String {
    let single = finding.exports.iter().filter_map(|(name, values)| match values[..] {
        [one] => Some(format!("{name}={one}")),
        _ => None,
    });
    let shown: Vec<String> = single.take(EXPORTS).collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(" ") }
}
