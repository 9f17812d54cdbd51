// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The acknowledgments of a recording, flow by flow, as replay takes them.

use std::collections::HashMap;

use onramp_algorithm::{Ack, Algorithm, StartEnd, StartPhase, Verdict};

use crate::batch::Batch;
use crate::column::Column;
use crate::reader::Recording;
use crate::rows::AckRow;

/// An outcome that no algorithm has: the recording names one that this build does not know.
pub(crate) const UNKNOWN_OUTCOME: u32 = u32::MAX;

/// One acknowledgment of a flow and where the flow stood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// As the algorithm sees it.
    pub ack: Ack,
    /// Times slow start was entered, this acknowledgment included.
    pub slow_starts: u32,
    /// Generation of the parameters in force.
    pub generation: u32,
    /// Number of the event among those of the flow; 0 where that is not recorded.
    pub sequence: u32,
    /// What happened.
    pub event: Event,
    /// How far a start from memory had come before; `None`: there was none, or it is not recorded.
    pub start: Option<StartPhase>,
    /// How that start had ended; `None`: it had not.
    pub start_end: Option<StartEnd>,
}

/// What a sample is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Event {
    /// An ACK with which the algorithm was called.
    #[default]
    Called,
    /// An acknowledgment on which it was not: in recovery, or beyond slow start.
    NotCalled,
    /// Slow start was left by loss, ECN or timeout; the base's own threshold, segments.
    Loss(u32),
}

/// Acknowledgments of one flow that follow each other, and the verdicts on them where they were recorded.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Number of the connection.
    pub flow: u64,
    /// In the order of arrival.
    pub samples: &'a [Sample],
    /// As many, or none.
    pub verdicts: &'a [Verdict],
}

/// Goes through all acknowledgments of a recording. `algorithm_of` says whose outcomes a flow's verdicts name.
pub fn each_run(
    recording: &mut Recording,
    algorithm_of: &HashMap<u64, Algorithm>,
    mut each: impl FnMut(Run<'_>),
) {
    let (mut samples, mut verdicts) = (Vec::new(), Vec::new());
    let mut outcomes = Outcomes::default();
    recording.read_checked::<AckRow>(segments_have_bytes, |batch| {
        let flows = batch.longs("flow");
        fill(&batch, &mut samples, &mut verdicts);
        outcomes.fill(&batch, flows, algorithm_of, &mut verdicts);
        let mut begin = 0;
        for run in flows.chunk_by(|one, next| one == next) {
            let range = begin..begin + run.len();
            begin = range.end;
            let flow = run[0] as u64;
            each(Run { flow, samples: &samples[range.clone()], verdicts: &verdicts[range] });
        }
    });
}

/// What no acknowledgment lacks, and no algorithm does without.
fn segments_have_bytes(batch: &Batch<AckRow>) -> Result<(), String> {
    let sizes = batch.words("mss_bytes");
    let row = sizes.iter().position(|size| *size == 0);
    row.map_or(Ok(()), |row| Err(format!("mss_bytes of row {row} is 0: it can be 1 to {}", u32::MAX)))
}

/// Column by column, which the processor likes better than row by row.
fn fill(batch: &Batch<AckRow>, samples: &mut Vec<Sample>, verdicts: &mut Vec<Verdict>) {
    samples.clear();
    verdicts.clear();
    samples.resize(batch.len(), Sample::default());
    verdicts.resize(batch.len(), Verdict::default());
    AckRow::fill_ack(batch, samples, |sample| &mut sample.ack);
    AckRow::fill_verdict(batch, verdicts, |verdict| verdict);
    let word = |name: &str| batch.words(name).iter().map(|value| *value as u32);
    samples.iter_mut().zip(word("slow_starts")).for_each(|(row, value)| row.slow_starts = value);
    samples.iter_mut().zip(word("parameters_generation")).for_each(|(row, value)| row.generation = value);
    samples.iter_mut().zip(word("sequence")).for_each(|(row, value)| row.sequence = value);
    fill_names(batch, "start_phase", samples, |sample, name| sample.start = StartPhase::from_name(name));
    fill_names(batch, "start_end", samples, |sample, name| sample.start_end = StartEnd::from_name(name));
    for (sample, called) in samples.iter_mut().zip(word("called")) {
        sample.event = if called == 0 { Event::NotCalled } else { Event::Called };
    }
    if let Some(Column::Text(events)) = batch.column("event") {
        let losses = samples.iter_mut().zip(events).zip(word("base_ssthresh_segments"));
        for ((sample, _), threshold) in losses.filter(|((_, event), _)| event.data() == b"loss") {
            sample.event = Event::Loss(threshold);
        }
    }
}

/// Sets what a column names, where it names something: few flows start from memory, and recordings may be without the column.
fn fill_names(batch: &Batch<AckRow>, column: &str, samples: &mut [Sample], set: impl Fn(&mut Sample, &str)) {
    let Some(Column::Text(names)) = batch.column(column) else { return };
    for (sample, name) in samples.iter_mut().zip(names).filter(|(_, name)| !name.is_empty()) {
        set(sample, std::str::from_utf8(name.data()).unwrap_or_default());
    }
}

/// Numbers of outcomes by algorithm and name.
#[derive(Default)]
struct Outcomes {
    names: HashMap<(&'static str, String), u32>,
}

impl Outcomes {
    fn fill(
        &mut self,
        batch: &Batch<AckRow>,
        flows: &[i64],
        algorithm_of: &HashMap<u64, Algorithm>,
        verdicts: &mut [Verdict],
    ) {
        let Some(Column::Text(names)) = batch.column("verdict_outcome") else { return };
        let mut last: Option<(&[u8], i64, u32)> = None;
        for ((verdict, name), flow) in verdicts.iter_mut().zip(names).zip(flows) {
            let name = name.data();
            verdict.outcome = match last {
                Some((known, whose, number)) if known == name && whose == *flow => number,
                _ => algorithm_of
                    .get(&(*flow as u64))
                    .map_or(UNKNOWN_OUTCOME, |algorithm| self.number(*algorithm, name)),
            };
            last = Some((name, *flow, verdict.outcome));
        }
    }

    fn number(&mut self, algorithm: Algorithm, name: &[u8]) -> u32 {
        let name = String::from_utf8_lossy(name).into_owned();
        let key = (algorithm.name(), name);
        if let Some(number) = self.names.get(&key) {
            return *number;
        }
        let number =
            algorithm.outcomes().position(|outcome| outcome.name == key.1 && !outcome.name.is_empty());
        let number = number.map_or(UNKNOWN_OUTCOME, |number| number as u32);
        self.names.insert(key, number);
        number
    }
}
