// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Replay of a recording: what is known of its flows, and what happened to them between acknowledgments.

use std::collections::{BTreeMap, HashMap};

use onramp_algorithm::find;
use serde::Serialize;

use super::{FlowReport, Replay};
use crate::reader::Recording;
use crate::rows::{ExitRecordRow, ExitRow, FlowRow, ParameterRow};
use crate::sample::{self, Run};

/// What a recording says of a flow, beyond its acknowledgments.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Known {
    /// `address:port` at this host.
    pub local: Option<String>,
    /// `address:port` of the peer.
    pub remote: Option<String>,
    /// Algorithm that it ran.
    pub algorithm: Option<String>,
    /// Number of its parameter set.
    pub parameter_set: u32,
    /// Whether the recording has the flow from its beginning; none: it does not say.
    pub from_start: Option<bool>,
    /// How its first slow start really ended.
    pub recorded_exit: Option<ExitRecordRow>,
    /// Where a flow stood whose beginning was not recorded.
    #[serde(skip)]
    pub resumed: Option<Resumed>,
}

/// Where a flow stood when its recording began.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// When its first data was sent; 0: not yet.
    pub start_us: u64,
    /// Slow starts until then.
    pub slow_starts: u32,
    /// State of the algorithm that it ran.
    pub state: Vec<u8>,
}

/// Parameters by algorithm, set and generation, as `name=value`.
#[derive(Clone, Debug, Default)]
pub struct Generations(HashMap<(String, u32, u32), Vec<String>>);

impl Generations {
    fn new(recording: &mut Recording) -> Self {
        let mut all: HashMap<_, Vec<String>> = HashMap::new();
        recording.each_row(|row: ParameterRow| {
            let key = (row.algorithm.into_owned(), row.parameter_set, row.parameters_generation);
            all.entry(key).or_default().push(format!("{}={}", row.name, row.value));
        });
        Self(all)
    }

    /// The settings of one generation; none: not recorded.
    pub(super) fn get(&self, algorithm: &str, set: u32, generation: u32) -> Option<&Vec<String>> {
        self.0.get(&(algorithm.to_owned(), set, generation))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Replays a recording; what could not be read is among its problems afterwards.
pub fn replay(recording: &mut Recording, replay: Replay) -> Vec<FlowReport> {
    replay_with(recording, replay, |_| true)
}

/// The same of those acknowledgments that are wanted; it is asked about all of them, in order.
pub fn replay_with(
    recording: &mut Recording,
    mut replay: Replay,
    mut wants: impl FnMut(&Run<'_>) -> bool,
) -> Vec<FlowReport> {
    let known = flows(recording);
    let generations = Generations::new(recording);
    let algorithm_of =
        known.iter().filter_map(|(flow, known)| Some((*flow, find(known.algorithm.as_deref()?)?))).collect();
    let nothing = Known::default();
    sample::each_run(recording, &algorithm_of, |run| {
        if wants(&run) {
            replay.feed(&run, known.get(&run.flow).unwrap_or(&nothing), &generations);
        }
    });
    replay.finish()
}

fn flows(recording: &mut Recording) -> BTreeMap<u64, Known> {
    let mut flows: BTreeMap<u64, Known> = BTreeMap::new();
    recording.each_row(|row: FlowRow| {
        if row.event == "end" {
            return;
        }
        let known = flows.entry(row.flow).or_default();
        if known.from_start.is_none() {
            known.from_start = Some(row.event == "start");
            known.resumed = resumed(&row).filter(|_| row.event != "start");
        }
        known.local = Some(address(&row.local_address, row.local_port));
        known.remote = Some(address(&row.remote_address, row.remote_port));
        known.algorithm = Some(row.algorithm.into_owned());
        known.parameter_set = row.parameter_set;
    });
    recording.each_row(|row: ExitRow| {
        let exit = row.exit_record().filter(|record| row.event == "exit" && record.reason != 0);
        flows.entry(row.flow).or_default().recorded_exit = exit.map(|record| ExitRecordRow::new(&record));
    });
    flows
}

/// None: the state is not written as it should be.
fn resumed(row: &FlowRow) -> Option<Resumed> {
    let byte = |at: usize| u8::from_str_radix(row.state.get(at..at + 2)?, 16).ok();
    let state: Option<Vec<u8>> = (0..row.state.len()).step_by(2).map(byte).collect();
    Some(Resumed { start_us: row.started_us, slow_starts: row.slow_starts, state: state? })
}

fn address(host: &str, port: u32) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
