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
    use onramp_recording::{Kind, Row, Sense};
    use serde_json::Value;

    use super::*;

    /// An exit as the API has it: each property, and whether it can be null.
    fn of_document() -> Vec<(String, bool)> {
        let document: Value = serde_json::from_str(include_str!("verb/serve/web/openapi.json")).unwrap();
        let properties = document["components"]["schemas"]["Exit"]["properties"].as_object().unwrap();
        let null =
            |schema: &Value| schema["type"].as_array().is_some_and(|types| types.contains(&"null".into()));
        properties.iter().map(|(name, schema)| (name.clone(), null(schema))).collect()
    }

    /// An exit as the page has it, likewise.
    fn of_page() -> Vec<(String, bool)> {
        let page = include_str!("../../web/src/api.ts");
        let body = page.split("export interface Exit {").nth(1).unwrap().split('}').next().unwrap();
        let fields = body.split(';').filter_map(|field| field.split_once(':'));
        fields.map(|(name, kind)| (name.trim().to_owned(), kind.contains("null"))).collect()
    }

    #[test]
    fn an_exit_of_the_api_and_the_page_has_the_recorded_columns() {
        let event = ["at_us", "flow", "sequence", "event"];
        let columns = ExitRow::COLUMNS.iter().filter(|column| !event.contains(&column.name));
        let none = |sense| matches!(sense, Sense::Zero | Sense::Negative | Sense::Threshold);
        let mut expected: Vec<_> = columns
            .map(|column| (column.name.to_owned(), column.kind != Kind::Text && none(column.sense)))
            .chain([("window_bytes".to_owned(), false)])
            .collect();
        expected.sort();
        for mut found in [of_document(), of_page()] {
            found.sort();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn reasons_of_exits_are_described_by_the_names_that_are_written() {
        let reason = ExitRow::COLUMNS.iter().find(|column| column.name == "reason").unwrap();
        for name in ExitReason::ALL.map(ExitReason::name) {
            assert!(reason.help.contains(&format!("`{name}`")), "{name}: {}", reason.help);
        }
    }
}
