//! Events as rows of the tables that recordings have, from which `onramp watch --json` takes its names too.

use onramp_loader::telemetry::{AckPayload, Event, ExitEvent, LossPayload, RoundEvent, StateEvent};
use onramp_recording::rows::{AckRow, ExitRow, RoundRow, StateRow};

/// An acknowledgment. How often slow start has begun, it does not say.
pub(crate) fn ack(event: &Event, payload: &AckPayload) -> AckRow {
    let outcome = payload.answer().map_or("", |verdict| event.algorithm.outcome_name(verdict.outcome));
    let mut row = AckRow::new(event.flow, &payload.ack, &payload.verdict, outcome.into());
    row.sequence = event.sequence;
    row.set_ack_payload(payload);
    row
}

/// A loss, as [`ack`].
pub(crate) fn loss(event: &Event, payload: &LossPayload) -> AckRow {
    let mut row = AckRow {
        sequence: event.sequence,
        event: "loss".into(),
        ..AckRow::new(event.flow, &payload.ack, &Default::default(), "".into())
    };
    row.set_loss_payload(payload);
    row
}

/// A round that is over.
pub(crate) fn round(event: &Event, round: &RoundEvent) -> RoundRow {
    let (at_us, flow, sequence) = head(event);
    let mut row = RoundRow { at_us, flow, sequence, ..RoundRow::default() };
    row.set_round_payload(round);
    row
}

/// A change of the congestion state.
pub(crate) fn state(event: &Event, state: &StateEvent) -> StateRow {
    let (at_us, flow, sequence) = head(event);
    let mut row = StateRow { at_us, flow, sequence, ..StateRow::default() };
    row.set_state_payload(state);
    row
}

/// The end of a first slow start.
pub(crate) fn exit(event: &Event, exit: &ExitEvent) -> ExitRow {
    let (at_us, flow, sequence) = head(event);
    let mut row = ExitRow { at_us, flow, sequence, event: "exit".into(), ..ExitRow::default() };
    row.set_exit_record(&exit.record);
    row
}

fn head(event: &Event) -> (u64, u64, u32) {
    (event.time_ns / 1_000, event.flow, event.sequence)
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
