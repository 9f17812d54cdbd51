//! Events as rows of the tables that recordings have, from which `onramp watch --json` takes its names too.

use onramp_loader::telemetry::{AckEvent, Event, ExitEvent, LossEvent, RoundEvent, StateEvent};
use onramp_recording::rows::{AckRow, ExitRow, RoundRow, StateRow};

/// An acknowledgement. How often slow start has begun, it does not tell.
pub(crate) fn ack(event: &Event, ack: &AckEvent) -> AckRow {
    let verdict = ack.verdict.unwrap_or_default();
    let outcome = ack.verdict.map_or("", |verdict| event.algorithm.outcome_name(verdict.outcome));
    AckRow {
        sequence: event.sequence,
        asked: ack.verdict.is_some().into(),
        parameters_generation: ack.generation,
        receive_window_bytes: ack.receive_window,
        ..AckRow::new(event.flow, &ack.ack, &verdict, outcome.into())
    }
}

/// A loss, as [`ack`].
pub(crate) fn loss(event: &Event, loss: &LossEvent) -> AckRow {
    AckRow {
        sequence: event.sequence,
        event: "loss".into(),
        asked: loss.asked.into(),
        verdict_ssthresh_segments: loss.ssthresh,
        base_ssthresh_segments: loss.base_ssthresh,
        ..AckRow::new(event.flow, &loss.ack, &Default::default(), "".into())
    }
}

/// A round that is over.
pub(crate) fn round(event: &Event, round: &RoundEvent) -> RoundRow {
    RoundRow::new(event.time_ns / 1_000, event.flow, event.sequence, &round.told)
}

/// A change of the congestion state.
pub(crate) fn state(event: &Event, state: &StateEvent) -> StateRow {
    StateRow {
        at_us: event.time_ns / 1_000,
        flow: event.flow,
        sequence: event.sequence,
        from_state: state.from.name().into(),
        to_state: state.to.name().into(),
        cwnd_segments: state.cwnd,
        ssthresh_segments: state.ssthresh,
        in_flight_segments: state.in_flight,
        retransmitted_bytes: state.bytes_retransmitted,
    }
}

/// The end of a first slow start.
pub(crate) fn exit(event: &Event, exit: &ExitEvent) -> ExitRow {
    let record = &exit.record;
    ExitRow {
        at_us: event.time_ns / 1_000,
        flow: event.flow,
        sequence: event.sequence,
        event: "exit".into(),
        reason: exit.reason.name().into(),
        since_start_us: record.at_us,
        acknowledged_bytes: record.bytes_acked,
        cwnd_segments: record.window,
        cwnd_after_segments: record.window_after,
        in_flight_segments: record.in_flight,
        mss_bytes: record.mss.into(),
        rtt_us: record.rtt_us,
        min_rtt_us: record.min_rtt_us,
        undone: record.undone.into(),
    }
}

#[cfg(test)]
mod tests {
    use onramp_loader::ExitReason;
    use onramp_recording::Row;

    use super::*;

    #[test]
    fn reasons_of_exits_are_described_by_the_names_that_are_written() {
        let reason = ExitRow::COLUMNS.iter().find(|column| column.name == "reason").unwrap();
        for name in ExitReason::ALL.map(ExitReason::name) {
            assert!(reason.help.contains(&format!("`{name}`")), "{name}: {}", reason.help);
        }
    }
}
