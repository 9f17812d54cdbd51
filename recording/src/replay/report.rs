// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Replay of whatever lies under a path.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::{Candidate, FlowReport, Options, Replay, replay};
use crate::bounded;
use crate::csv::replay_csv;
use crate::error::Error;
use crate::input::{Input, input};

/// What is replayed of a path.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Through which algorithms.
    pub candidates: Vec<Candidate>,
    /// How far.
    pub options: Options,
    /// Pass over columns of a CSV file that are not known.
    pub ignore_unknown: bool,
    /// Only the flow of this number.
    pub flow: Option<u64>,
    /// Set from elsewhere: it is not wanted any more.
    pub cancelled: Arc<AtomicBool>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The path.
    pub path: PathBuf,
    /// Whether the recording ended properly; none: there is no manifest.
    pub complete: Option<bool>,
    /// Events that the recorder was too slow for.
    pub dropped_events: Option<u64>,
    /// Rows of a CSV file that were passed over.
    pub bad_rows: u64,
    /// Columns of it that were ignored.
    pub ignored_columns: Vec<String>,
    /// What could not be read.
    pub problems: Vec<String>,
    /// How it was read where it does not say.
    pub notes: Vec<String>,
    /// The flows, in the order of their numbers.
    pub flows: Vec<FlowReport>,
}

impl Request {
    /// Replays a recording, a file of one, a packet capture, or CSV; `-` is standard input.
    ///
    /// # Errors
    /// What lies there is none of these.
    pub fn replay(&self, path: &Path) -> Result<Report, Error> {
        let mut report = self.replay_all(path)?;
        report.flows.retain(|flow| self.flow.is_none_or(|wanted| wanted == flow.flow));
        Ok(report)
    }

    fn replay_all(&self, path: &Path) -> Result<Report, Error> {
        let replayed = Replay::new(self.candidates.clone(), self.options);
        let path = path.to_owned();
        let mut recording = match input(&path)? {
            Input::Recording(recording) => recording,
            Input::Text(text) => {
                let refuse = |reason| Error::NotARecording { path: path.clone(), reason };
                let csv = replay_csv(text, self.ignore_unknown, replayed, |_| true).map_err(refuse)?;
                let name = bounded::name(&path);
                let problems = csv.problems().iter().map(|problem| format!("{name}: {problem}")).collect();
                return Ok(Report {
                    path,
                    complete: None,
                    dropped_events: None,
                    bad_rows: csv.bad_rows,
                    problems,
                    notes: Vec::new(),
                    ignored_columns: csv.ignored,
                    flows: csv.flows,
                });
            }
        };
        recording.budget.cancelled = Arc::clone(&self.cancelled);
        let flows = replay(&mut recording, replayed);
        Ok(Report {
            path,
            complete: recording.manifest.as_ref().map(|manifest| manifest.complete),
            dropped_events: recording.manifest.as_ref().map(|manifest| manifest.dropped_events),
            bad_rows: 0,
            ignored_columns: Vec::new(),
            problems: recording.problems.iter().map(ToString::to_string).collect(),
            notes: recording.notes,
            flows,
        })
    }

    /// That there is a flow in what came of it.
    ///
    /// # Errors
    /// [`Error::NoAcks`].
    pub fn check(&self, report: &Report) -> Result<(), Error> {
        if report.flows.is_empty() {
            // Where some of it cannot be read, they may be there.
            let purpose = report.problems.is_empty().then_some("replayed");
            return Err(Error::NoAcks { path: report.path.clone(), flow: self.flow, purpose });
        }
        Ok(())
    }
}
