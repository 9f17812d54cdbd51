// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The tables of a recording, one row structure each: name with its unit, type and meaning of every column, from which files,
//! exports and the tables of `docs/recording.md` come. `bpf/record.h` describes those of flows, and what the kernel reports
//! of them; the others are here. Times are those of the monotonic clock.

#![allow(
    clippy::needless_update,
    clippy::unnecessary_cast,
    clippy::useless_conversion,
    reason = "what is made of bpf/record.h has one form for every field"
)]

use onramp_algorithm::{
    Ack, AckPayload, CongestionState, EndPayload, ExitReason, ExitRecord, FlowCounts, LossPayload,
    RestartPayload, RoundPayload, StartEnd, StartPhase, StatePayload, UndoPayload, Verdict,
};

use crate::batch::Batch;
use crate::column::{Spec, Text};
use crate::table;
use crate::table::Row;

/// Names of the flags of an acknowledgment, lowest bit first (`enum ack_flag` in `algorithm.h`).
pub const ACK_FLAGS: [&str; 4] = ["app_limited", "rate_app_limited", "cwnd_limited", "paced"];

include!(concat!(env!("OUT_DIR"), "/rows.rs"));

table! {
    /// Events that were lost because the recorder was too slow.
    DropRow = "drops" {
        /// when it was noticed, monotonic clock
        at_us: u64,
        /// events lost since the last row
        events: u64,
        /// time since the last row in which nothing was reported at all: the recorder was frozen or starved
        unobserved_us: u64,
    }
}

table! {
    /// A parameter's value, whenever the recorder saw a generation for the first time.
    ParameterRow = "parameters" {
        /// when it was seen, monotonic clock
        at_us: u64,
        /// algorithm
        algorithm: Text,
        /// number of the parameter set
        parameter_set: u32,
        /// generation
        parameters_generation: u32,
        /// name
        name: Text,
        /// as it is typed: the name of a choice, else the number
        value: Text,
    }
}

impl AckRow {
    /// From an ACK and the verdict on it, whose outcome has this name; what else there is to say of it, the caller adds.
    pub fn new(flow: u64, ack: &Ack, verdict: &Verdict, outcome: Text) -> Self {
        let mut row =
            Self { flow, event: "ack".into(), called: 1, verdict_outcome: outcome, ..Self::default() };
        row.set_ack(ack);
        row.set_verdict(verdict);
        row
    }
}

impl ExitRecordRow {
    /// How a first slow start ended, by this record.
    pub fn new(record: &ExitRecord) -> Self {
        let mut row = Self { window_bytes: record.window_bytes(), ..Self::default() };
        row.set_exit_record(record);
        row
    }
}

/// Every table with its columns, in the order of the documentation.
pub const TABLES: &[(&str, &[Spec])] = &[
    (FlowRow::TABLE, FlowRow::COLUMNS),
    (AckRow::TABLE, AckRow::COLUMNS),
    (RoundRow::TABLE, RoundRow::COLUMNS),
    (ExitRow::TABLE, ExitRow::COLUMNS),
    (StateRow::TABLE, StateRow::COLUMNS),
    (DropRow::TABLE, DropRow::COLUMNS),
    (ParameterRow::TABLE, ParameterRow::COLUMNS),
];
