//! Events as lines for people.

use onramp_loader::telemetry::{AckPayload, EndEvent, Event, ExitEvent, FlowEvent, Item, RoundEvent, What};

use super::Summary;
use crate::live::threshold;
use crate::units::{count, show_bytes, show_rate, show_us};
use crate::verb::ends::canonical;
use crate::verb::finding::costs;

/// Without its time. The end of a flow says what its exit cost, and what limited it.
pub(super) fn line(item: &Item, summary: Summary) -> String {
    match item {
        Item::Event(event) => {
            let what = describe(event, summary);
            format!("{} {what}", head(event, event.what.name()))
        }
        Item::Lost(lost) if lost.unobserved.is_zero() => {
            format!("{:<19} {:<8} {}", "-", "lost", count(lost.events as usize, "event"))
        }
        Item::Lost(lost) => {
            let unobserved = show_us(lost.unobserved.as_micros() as u64);
            format!("{:<19} {:<8} {} events, and all of {unobserved}", "-", "lost", lost.events)
        }
    }
}

/// Whose line it is, and of what.
pub(super) fn head(event: &Event, name: &str) -> String {
    format!("{:<19} {name:<8} {:<10}", event.flow, event.algorithm.name())
}

fn describe(event: &Event, summary: Summary) -> String {
    match &event.what {
        What::Flow(flow) => known(flow),
        What::End(end) => ended(end, summary),
        What::Exit(exit) => left(exit),
        What::Undo(undo) => {
            let exit = if undo.exit_undone != 0 { ", the exit is undone" } else { "" };
            format!("the loss was none: cwnd {} -> {}{exit}", undo.cwnd, undo.restored)
        }
        What::Round(round) => round_text(round),
        What::Loss(loss) => {
            let by =
                if loss.called != 0 { format!(", the base's {}", loss.base_ssthresh) } else { String::new() };
            format!("cwnd {}, ssthresh becomes {}{by}", loss.ack.cwnd, loss.ssthresh)
        }
        What::State(state) => format!(
            "{} -> {}, cwnd {}, ssthresh {}, {} retransmitted",
            state.from.name(),
            state.to.name(),
            state.cwnd,
            segments(state.ssthresh),
            show_bytes(state.bytes_retransmitted)
        ),
        What::Restart(restart) => format!(
            "slow start {}, cwnd {}, ssthresh {}",
            restart.slow_starts,
            restart.cwnd,
            segments(restart.ssthresh)
        ),
        What::Ack(ack) => acknowledged(event, ack),
    }
}

fn known(flow: &FlowEvent) -> String {
    let again = if flow.again { ", again" } else { "" };
    let ends = format!("{} -> {}", canonical(flow.local), canonical(flow.remote));
    format!("{ends}, parameters {}.{}{again}", flow.profile, flow.generation)
}

fn ended(end: &EndEvent, summary: Summary) -> String {
    let exit = summary
        .regret
        .map_or_else(String::new, |cost| format!("; the exit: {}", costs(cost.regret, cost.bdp_at_least)));
    let limited = summary.limited.map_or_else(String::new, |limit| format!("; limited by {}", limit.title()));
    format!(
        "{} acknowledged, {} retransmitted, min RTT {}, cwnd {}, ssthresh {}{exit}{limited}",
        show_bytes(end.bytes_acked),
        show_bytes(end.bytes_retransmitted),
        rtt(end.min_rtt_us),
        end.cwnd,
        segments(end.ssthresh)
    )
}

fn left(exit: &ExitEvent) -> String {
    let record = &exit.record;
    format!(
        "{} at {}, {}, cwnd {} -> {}, in flight {}, RTT {} (min {})",
        exit.reason.name().replace('_', " "),
        show_us(record.at_us),
        show_bytes(record.bytes_acked),
        record.window,
        record.window_after,
        record.in_flight,
        rtt(record.rtt_us),
        rtt(record.min_rtt_us)
    )
}

fn round_text(round: &RoundEvent) -> String {
    format!(
        "{}: {} in {}, {}, {}, cwnd {}, ssthresh {}, in flight {}",
        round.number,
        show_bytes(round.bytes),
        show_us(round.duration_us),
        show_rate(round.rate_bps()),
        count(round.acks as usize, "ACK"),
        round.cwnd,
        segments(round.ssthresh),
        round.in_flight
    )
}

fn acknowledged(event: &Event, ack: &AckPayload) -> String {
    let verdict = ack.answer().map_or("-", |verdict| event.algorithm.outcome_name(verdict.outcome));
    let sample = u32::try_from(ack.ack.rtt_us).map_or_else(|_| "-".into(), |us| show_us(us.into()));
    format!(
        "{} of {}, RTT {sample}, cwnd {}, in flight {}, {verdict}",
        count(ack.ack.acked as usize, "segment"),
        show_bytes(ack.ack.bytes_acked),
        ack.ack.cwnd,
        ack.ack.in_flight
    )
}

fn segments(ssthresh: u32) -> String {
    threshold(ssthresh).map_or_else(|| "-".into(), |segments| segments.to_string())
}

fn rtt(us: u32) -> String {
    if us == 0 { "-".into() } else { show_us(us.into()) }
}
