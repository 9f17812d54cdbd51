// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is asked of the tool that makes the transfers of a run, and what it answers.

use std::time::Duration;

use super::plan::Amount;

/// Port of the first server; further ones follow.
pub const PORT: u16 = 5201;
/// How often a transfer in progress is looked after.
pub(super) const POLL: Duration = Duration::from_millis(5);

/// One transfer among those of a run.
#[derive(Clone)]
pub(super) struct Request {
    /// Where its data come from; each run has its own namespace.
    pub port: u16,
    pub congestion_control: String,
    pub amount: Amount,
    /// When it begins.
    pub start: Duration,
    /// The congestion control of its other connection, where it may not be that of the data: over a remembered path that would take
    /// the data's turn.
    pub other_control: Option<&'static str>,
    /// It only accompanies the others: it is ended when they have, and reports nothing.
    pub accompanies: bool,
}

impl Request {
    /// A transfer from the beginning on.
    pub fn new(congestion_control: &str, amount: Amount) -> Self {
        let congestion_control = congestion_control.to_owned();
        let start = Duration::ZERO;
        Self { port: PORT, congestion_control, amount, start, other_control: None, accompanies: false }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub(super) struct Download {
    /// Receiver's time, from the start of the test to the last byte received. The test starts where the source's word
    /// that it begins to send has arrived, on a connection of its own.
    pub seconds: f64,
    /// Bytes the receiver got.
    pub bytes: u64,
    /// What only iperf3 says.
    pub iperf3: Option<Iperf3Report>,
}

/// What only iperf3 says.
#[derive(Clone, Debug)]
pub(super) struct Iperf3Report {
    /// Segments the sender retransmitted, as it counted.
    pub retransmits: Option<u64>,
    /// The reports themselves.
    pub client_json: String,
    pub server_json: String,
}
