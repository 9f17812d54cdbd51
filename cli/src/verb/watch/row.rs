//! Events as JSON objects; `docs/watch.md` has the fields.

use onramp_loader::ExitReason;
use onramp_loader::abi::{FlowHeader, flow_flag};
use onramp_loader::telemetry::{EndEvent, Event, Item, What};
use onramp_recording::rows::{AckRow, EndRow, ExitRecordRow, RestartRow, RoundRow, StateRow, UndoRow};
use onramp_recording::{Row as TableRow, serialize_columns};
use serde::{Serialize, Serializer};

use super::{Cost, Summary};
use crate::event_rows;
use crate::limits::Limit;
use crate::output::Named;
use crate::settings::Value;
use crate::verb::flows::{self, ExportValue};

#[derive(Serialize)]
pub(super) struct EventRow {
    event: &'static str,
    at_us: u64,
    #[serde(flatten)]
    identity: Option<Identity>,
    #[serde(flatten)]
    body: Body,
}

/// Whose event it is.
#[derive(Serialize)]
struct Identity {
    flow: u64,
    sequence: u32,
    netns: u32,
    algorithm: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body {
    Flow(Box<Flow>),
    End(Box<End>),
    Exit {
        exit: Box<ExitRecordRow>,
        #[serde(skip_serializing_if = "Option::is_none")]
        observed: Option<Box<ExitRecordRow>>,
    },
    Undo(Columns<UndoRow>),
    Round(Box<Round>),
    Loss(Box<Columns<AckRow>>),
    State(Columns<StateRow>),
    Restart(RestartRow),
    Ack(Box<Acknowledgment>),
    Lost {
        events: u64,
        unobserved_us: u64,
    },
}

#[derive(Serialize)]
struct Flow {
    again: bool,
    local_address: String,
    local_port: u16,
    remote_address: String,
    remote_port: u16,
    cookie: Option<u64>,
    netns_cookie: u64,
    parameter_set: u32,
    parameters_generation: u32,
    parameters: Named<Value>,
    adopted: bool,
    started_us: Option<u64>,
    slow_starts: u32,
    exports: Named<ExportValue>,
}

#[derive(Serialize)]
struct End {
    #[serde(flatten)]
    columns: EndRow,
    exit: Option<ExitRecordRow>,
    /// Where rounds say it.
    regret: Option<Cost>,
    /// The limit that held longest; of what the kernel does not count, as far as rounds say it.
    limited: Option<Limit>,
    outcomes: Named<u32>,
}

#[derive(Serialize)]
struct Round {
    #[serde(flatten)]
    columns: Columns<RoundRow>,
    rate_bps: u64,
    slow_start: bool,
    exports: Named<ExportValue>,
}

#[derive(Serialize)]
struct Acknowledgment {
    #[serde(flatten)]
    columns: Columns<AckRow>,
    slow_start: bool,
}

/// What a recording keeps of an event, but for what every event has, and for what only a recorder knows.
struct Columns<R>(R);

/// The columns that are left out.
const OMITTED_COLUMNS: [&str; 5] = ["at_us", "flow", "sequence", "event", "slow_starts"];

impl<R: TableRow> Serialize for Columns<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_columns(&self.0, &OMITTED_COLUMNS, serializer)
    }
}

impl EventRow {
    /// Of an item; a report of losses has the time of the event before it, the end of a flow what came of it.
    pub fn new(item: &Item, last_us: u64, summary: Summary) -> Self {
        match item {
            Item::Event(event) => Self {
                event: event.what.name(),
                at_us: event.time_ns / 1_000,
                identity: Some(Identity {
                    flow: event.flow,
                    sequence: event.sequence,
                    netns: event.netns,
                    algorithm: event.algorithm.name(),
                }),
                body: body(event, summary),
            },
            Item::Lost(lost) => Self {
                event: "lost",
                at_us: last_us,
                identity: None,
                body: Body::Lost { events: lost.events, unobserved_us: lost.unobserved.as_micros() as u64 },
            },
        }
    }
}

fn body(event: &Event, summary: Summary) -> Body {
    let algorithm = event.algorithm;
    match &event.what {
        What::Flow(flow) => Body::Flow(Box::new(Flow {
            again: flow.again,
            local_address: flow.local.ip().to_string(),
            local_port: flow.local.port(),
            remote_address: flow.remote.ip().to_string(),
            remote_port: flow.remote.port(),
            cookie: flow.cookie,
            netns_cookie: flow.netns_cookie,
            parameter_set: flow.profile,
            parameters_generation: flow.generation,
            parameters: Named(
                flow.parameters.iter().map(|(one, value)| (one.name, Value::new(&one, value))).collect(),
            ),
            adopted: flow.header.has(flow_flag::ADOPTED),
            started_us: Some(flow.header.start_us).filter(|us| *us != 0),
            slow_starts: flow.header.slow_starts.into(),
            exports: flows::named(flow.exports(algorithm)),
        })),
        What::End(end) => Body::End(Box::new(End {
            columns: end_row(end),
            exit: exit(&end.header),
            regret: summary.regret,
            limited: summary.limited,
            outcomes: flows::outcomes(algorithm, end.outcomes),
        })),
        What::Exit(exit) => Body::Exit {
            exit: Box::new(ExitRecordRow::new(&exit.record)),
            observed: exit.observed.map(|record| Box::new(ExitRecordRow::new(&record))),
        },
        What::Undo(undo) => {
            let mut row = UndoRow::default();
            row.set_undo_payload(undo);
            Body::Undo(Columns(row))
        }
        What::Round(round) => Body::Round(Box::new(Round {
            columns: Columns(event_rows::round(event, round)),
            rate_bps: round.rate_bps(),
            slow_start: round.slow_start(),
            exports: flows::named(round.exports(algorithm)),
        })),
        What::Loss(loss) => Body::Loss(Box::new(Columns(event_rows::loss(event, loss)))),
        What::State(state) => Body::State(Columns(event_rows::state(event, state))),
        What::Restart(restart) => {
            let mut row = RestartRow::default();
            row.set_restart_payload(restart);
            Body::Restart(row)
        }
        What::Ack(ack) => Body::Ack(Box::new(Acknowledgment {
            columns: Columns(event_rows::ack(event, ack)),
            slow_start: u32::from(ack.flags) & flow_flag::SLOW_START != 0,
        })),
    }
}

fn exit(header: &FlowHeader) -> Option<ExitRecordRow> {
    ExitReason::from_number(header.exit.reason.into()).map(|_| ExitRecordRow::new(&header.exit))
}

fn end_row(end: &EndEvent) -> EndRow {
    let mut row = EndRow { slow_starts: end.header.slow_starts.into(), ..EndRow::default() };
    row.set_end_payload(end);
    row
}

#[cfg(test)]
mod tests {
    use onramp_loader::abi::ExitRecord;
    use onramp_loader::algorithm::{Ack, NO_THRESHOLD, RoundPayload, find};
    use onramp_loader::telemetry::{AckPayload, ExitEvent, RoundEvent};
    use onramp_recording::rows::{ACK_FLAGS, ExitRow};
    use serde_json::Value as Json;

    use super::*;

    fn shown(what: What) -> Json {
        let algorithm = find("plain").unwrap();
        let event = Event { time_ns: 5_000_000, flow: 7, sequence: 1, netns: 1, algorithm, what };
        serde_json::to_value(EventRow::new(&Item::Event(event), 0, Summary::default())).unwrap()
    }

    /// But for the names of bits, which stand for themselves.
    fn has_columns<R: TableRow>(row: &Json) {
        for column in R::COLUMNS.iter().filter(|column| !["slow_starts", "flags"].contains(&column.name)) {
            assert!(row.get(column.name).is_some(), "{}: {row}", column.name);
        }
    }

    #[test]
    fn a_round_has_the_recorded_columns_with_their_units_and_null_for_none() {
        let payload = RoundPayload { number: 3, bytes: 9_000, duration_us: 1_000, ..RoundPayload::default() };
        // A hole was filled: more was acknowledged than arrived.
        let payload = RoundPayload { delivered: 2, mss: 1_000, ..payload };
        let payload = RoundPayload { cwnd: 20, ssthresh: NO_THRESHOLD, min_rtt_us: 900, ..payload };
        let state = vec![0; find("plain").unwrap().state_size()];
        let row = shown(What::Round(Box::new(RoundEvent { payload, state })));
        for (key, value) in [
            ("at_us", Some(5_000)),
            ("round", Some(3)),
            ("acknowledged_bytes", Some(9_000)),
            ("rate_bps", Some(16_000_000)),
            ("min_rtt_us", Some(900)),
            ("smoothed_rtt_us", None),
            ("cwnd_segments", Some(20)),
            ("ssthresh_segments", None),
        ] {
            assert!(row.get(key).is_some() && row[key].as_u64() == value, "{key}: {row}");
        }
        has_columns::<RoundRow>(&row);
    }

    #[test]
    fn an_acknowledgment_has_the_recorded_columns_and_flags_by_their_names() {
        let ack = Ack { flags: 4, rtt_us: -1, cwnd: 10, ssthresh: 9, ..Ack::default() };
        let row = shown(What::Ack(AckPayload { ack, generation: 2, ..AckPayload::default() }));
        has_columns::<AckRow>(&row);
        for flag in ACK_FLAGS {
            assert_eq!(row[flag], flag == "cwnd_limited", "{flag}: {row}");
        }
        assert_eq!((&row["called"], &row["rtt_us"]), (&false.into(), &Json::Null));
        assert_eq!((&row["ssthresh_segments"], &row["parameters_generation"]), (&9.into(), &2.into()));
    }

    #[test]
    fn an_exit_has_the_recorded_columns() {
        let (reason, record) =
            (ExitReason::Loss, ExitRecord { reason: 2, mss: 1_000, ..ExitRecord::default() });
        let row = shown(What::Exit(ExitEvent { reason, record, observed: None }));
        let payload = row["exit"].as_object().unwrap();
        for column in ExitRow::COLUMNS.iter().filter(|column| !OMITTED_COLUMNS.contains(&column.name)) {
            assert!(payload.contains_key(column.name), "{}: {row}", column.name);
        }
        assert_eq!((&payload["reason"], &payload["cwnd_after_segments"]), (&"loss".into(), &Json::Null));
    }
}
