//! Events as JSON objects; `docs/watch.md` has the fields.

use onramp_loader::ExitReason;
use onramp_loader::abi::{FlowHeader, flow_flag};
use onramp_loader::algorithm::{Ack, Verdict, ack_flag, growth};
use onramp_loader::telemetry::{Event, Item, What};
use onramp_recording::Row as TableRow;
use onramp_recording::rows::RoundRow;
use serde::{Serialize, Serializer};

use crate::live::threshold;
use crate::output::Named;
use crate::settings::Value;
use crate::verb::flows::{self, Exit, Words};

/// An event.
#[derive(Serialize)]
pub(super) struct Row {
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
    End(End),
    Exit {
        exit: Exit,
        #[serde(skip_serializing_if = "Option::is_none")]
        observed: Option<Exit>,
    },
    Undo {
        cwnd_segments: u32,
        restored_segments: u32,
        exit_undone: bool,
    },
    Round(Box<Round>),
    Loss {
        #[serde(flatten)]
        before: Before,
        base_ssthresh_segments: u32,
        new_ssthresh_segments: u32,
        asked: bool,
    },
    State {
        from: &'static str,
        to: &'static str,
        cwnd_segments: u32,
        ssthresh_segments: Option<u32>,
        in_flight_segments: u32,
        retransmitted_bytes: u64,
    },
    Restart {
        slow_starts: u32,
        cwnd_segments: u32,
        ssthresh_segments: Option<u32>,
    },
    Ack {
        #[serde(flatten)]
        before: Before,
        acknowledged_segments: u32,
        rtt_us: Option<i32>,
        slow_start: bool,
        verdict: Option<Answer>,
        parameters_generation: u32,
    },
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
    profile: u32,
    parameters_generation: u32,
    parameters: Named<Value>,
    adopted: bool,
    started_us: Option<u64>,
    slow_starts: u32,
    exports: Named<Words>,
}

#[derive(Serialize)]
struct End {
    delivered_bytes: u64,
    sent_bytes: u64,
    retransmitted_bytes: u64,
    smoothed_rtt_us: Option<u32>,
    min_rtt_us: Option<u32>,
    cwnd_segments: u32,
    ssthresh_segments: Option<u32>,
    slow_starts: u32,
    exit: Option<Exit>,
    outcomes: Named<u32>,
}

#[derive(Serialize)]
struct Round {
    #[serde(flatten)]
    columns: Columns<RoundRow>,
    rate_bps: u64,
    slow_start: bool,
    exports: Named<Words>,
}

/// What a recording keeps of an event, but whose it is and when it was.
struct Columns<R>(R);

impl<R: TableRow> Serialize for Columns<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let told = R::COLUMNS.iter().zip(self.0.shown());
        serializer.collect_map(
            told.filter(|(spec, _)| !["at_us", "flow", "sequence"].contains(&spec.name))
                .map(|(spec, value)| (spec.key, spec.none.is_there(value).then_some(value))),
        )
    }
}

/// The flow at an acknowledgement or loss, before anything is done about it.
#[derive(Serialize)]
struct Before {
    delivered_bytes: u64,
    sent_bytes: u64,
    outstanding_bytes: u32,
    delivered_segments: u32,
    smoothed_rtt_us: Option<u32>,
    min_rtt_us: Option<u32>,
    cwnd_segments: u32,
    ssthresh_segments: Option<u32>,
    in_flight_segments: u32,
    mss_bytes: u32,
    pacing_rate_bytes_per_s: Option<u64>,
    app_limited: bool,
    rate_app_limited: bool,
    cwnd_limited: bool,
    paced: bool,
}

#[derive(Serialize)]
struct Answer {
    outcome: &'static str,
    growth_limit_segments: Option<u32>,
    cwnd_segments: Option<u32>,
    ssthresh_segments: Option<u32>,
    pacing_rate_bytes_per_s: Option<u64>,
    undo_limit_segments: Option<u32>,
}

impl Row {
    /// Of an item; a report of losses has the time of the event before it.
    pub fn of(item: &Item, last_us: u64) -> Self {
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
                body: body(event),
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

fn body(event: &Event) -> Body {
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
            profile: flow.profile,
            parameters_generation: flow.generation,
            parameters: Named(
                flow.parameters.iter().map(|(one, value)| (one.name, Value::of(&one, value))).collect(),
            ),
            adopted: flow.header.flags & flow_flag::ADOPTED != 0,
            started_us: Some(flow.header.start_us).filter(|us| *us != 0),
            slow_starts: flow.header.slow_starts,
            exports: flows::named(flow.exports(algorithm)),
        })),
        What::End(end) => Body::End(End {
            delivered_bytes: end.bytes_acked,
            sent_bytes: end.bytes_sent,
            retransmitted_bytes: end.bytes_retransmitted,
            smoothed_rtt_us: known(end.smoothed_rtt_us),
            min_rtt_us: known(end.min_rtt_us),
            cwnd_segments: end.cwnd,
            ssthresh_segments: threshold(end.ssthresh),
            slow_starts: end.header.slow_starts,
            exit: exit(&end.header),
            outcomes: flows::outcomes(algorithm, &end.header),
        }),
        What::Exit(exit) => Body::Exit {
            exit: flows::exit(exit.reason, &exit.record),
            observed: exit.observed.map(|record| flows::exit(ExitReason::Algorithm, &record)),
        },
        What::Undo(undo) => Body::Undo {
            cwnd_segments: undo.cwnd,
            restored_segments: undo.restored,
            exit_undone: undo.exit_undone,
        },
        What::Round(round) => Body::Round(Box::new(Round {
            columns: Columns(RoundRow::new(event.time_ns / 1_000, event.flow, event.sequence, &round.told)),
            rate_bps: round.rate_bps(),
            slow_start: round.slow_start(),
            exports: flows::named(round.exports(algorithm)),
        })),
        What::Loss(loss) => Body::Loss {
            before: before(&loss.ack),
            base_ssthresh_segments: loss.base_ssthresh,
            new_ssthresh_segments: loss.ssthresh,
            asked: loss.asked,
        },
        What::State(state) => Body::State {
            from: state.from.name(),
            to: state.to.name(),
            cwnd_segments: state.cwnd,
            ssthresh_segments: threshold(state.ssthresh),
            in_flight_segments: state.in_flight,
            retransmitted_bytes: state.bytes_retransmitted,
        },
        What::Restart(restart) => Body::Restart {
            slow_starts: restart.slow_starts,
            cwnd_segments: restart.cwnd,
            ssthresh_segments: threshold(restart.ssthresh),
        },
        What::Ack(ack) => Body::Ack {
            before: before(&ack.ack),
            acknowledged_segments: ack.ack.acked,
            rtt_us: Some(ack.ack.rtt_us).filter(|us| *us >= 0),
            slow_start: ack.flags & flow_flag::SLOW_START != 0,
            verdict: ack.verdict.map(|verdict| Answer {
                outcome: algorithm.outcome_name(verdict.outcome),
                ..answer(&verdict)
            }),
            parameters_generation: ack.generation,
        },
    }
}

fn before(ack: &Ack) -> Before {
    let flag = |bit| ack.flags & bit != 0;
    Before {
        delivered_bytes: ack.bytes_acked,
        sent_bytes: ack.bytes_sent,
        outstanding_bytes: ack.bytes_outstanding,
        delivered_segments: ack.delivered,
        smoothed_rtt_us: known(ack.smoothed_rtt_us),
        min_rtt_us: known(ack.min_rtt_us),
        cwnd_segments: ack.cwnd,
        ssthresh_segments: threshold(ack.ssthresh),
        in_flight_segments: ack.in_flight,
        mss_bytes: ack.mss,
        pacing_rate_bytes_per_s: Some(ack.pacing_rate).filter(|rate| *rate != 0),
        app_limited: flag(ack_flag::APP_LIMITED),
        rate_app_limited: flag(ack_flag::RATE_APP_LIMITED),
        cwnd_limited: flag(ack_flag::CWND_LIMITED),
        paced: flag(ack_flag::PACED),
    }
}

fn answer(verdict: &Verdict) -> Answer {
    Answer {
        outcome: "",
        growth_limit_segments: (verdict.growth == growth::LIMITED).then_some(verdict.growth_limit),
        cwnd_segments: known(verdict.cwnd),
        ssthresh_segments: known(verdict.ssthresh),
        pacing_rate_bytes_per_s: Some(verdict.pacing_rate).filter(|rate| *rate != 0),
        undo_limit_segments: known(verdict.undo_limit),
    }
}

fn exit(header: &FlowHeader) -> Option<Exit> {
    let reason = ExitReason::from_number(header.exit.reason)?;
    Some(flows::exit(reason, &header.exit))
}

fn known(value: u32) -> Option<u32> {
    (value != 0).then_some(value)
}

#[cfg(test)]
mod tests {
    use onramp_loader::algorithm::{NO_THRESHOLD, RoundTold, find};
    use onramp_loader::telemetry::RoundEvent;

    use super::*;

    #[test]
    fn a_round_has_the_recorded_columns_with_their_units_and_null_for_none() {
        let algorithm = find("plain").unwrap();
        let told = RoundTold { number: 3, bytes: 2_000, duration_us: 1_000, ..RoundTold::default() };
        let told = RoundTold { cwnd: 20, ssthresh: NO_THRESHOLD, min_rtt_us: 900, ..told };
        let round = RoundEvent { told, state: vec![0; algorithm.state_size()] };
        let event = Event {
            time_ns: 5_000_000,
            flow: 7,
            sequence: 1,
            netns: 1,
            algorithm,
            what: What::Round(Box::new(round)),
        };
        let row = serde_json::to_value(Row::of(&Item::Event(event), 0)).unwrap();
        for (key, value) in [
            ("at_us", Some(5_000)),
            ("round", Some(3)),
            ("acknowledged_bytes", Some(2_000)),
            ("rate_bps", Some(16_000_000)),
            ("min_rtt_us", Some(900)),
            ("smoothed_rtt_us", None),
            ("cwnd_segments", Some(20)),
            ("ssthresh_segments", None),
        ] {
            assert!(row.get(key).is_some() && row[key].as_u64() == value, "{key}: {row}");
        }
        for column in RoundRow::COLUMNS {
            assert!(row.get(column.key).is_some(), "{}: {row}", column.key);
        }
    }
}
