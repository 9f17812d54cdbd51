// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Acknowledgements from plain CSV: columns have the names of the table `acks`, or those of its schema 1, in any order.

mod header;
mod lines;
mod row;

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use crate::error::Error;
use crate::replay::{FlowReport, Generations, Known, Replay};
use crate::sample::{Run, Sample};
use header::Header;
use lines::Lines;
use row::FlowState;

/// Rows that are fed at once.
const BATCH: usize = 4_096;
/// Bad rows that are described; of the others the number is told.
const DESCRIBED: usize = 20;

/// What a CSV file gave.
#[derive(Debug, Default)]
pub struct CsvReport {
    /// Flows, as from [`crate::replay::replay`].
    pub flows: Vec<FlowReport>,
    /// Rows that could be used.
    pub rows: u64,
    /// Rows that could not, with the reason of the first twenty: `line 7: …`.
    pub bad_rows: u64,
    /// What was wrong with the first of them.
    pub described: Vec<String>,
    /// Columns that were ignored.
    pub ignored: Vec<String>,
}

/// Replays a CSV file. Columns with other names are an error unless they are to be ignored; rows that cannot be used
/// are described and passed over.
///
/// # Errors
/// [`Error::Read`], [`Error::NotARecording`] if required columns are missing or others are there.
pub fn replay_csv(path: &Path, ignore_unknown: bool, replay: Replay) -> Result<CsvReport, Error> {
    let file = std::fs::File::open(path).map_err(Error::read(path))?;
    let refuse = |reason| Error::NotARecording { path: path.to_owned(), reason };
    replay_csv_beside(file, ignore_unknown, replay, |_| true).map_err(refuse)
}

/// The same of what is read from anywhere, and of those acknowledgements that are wanted; it is asked about all of them.
///
/// # Errors
/// Why it is no CSV of acknowledgements.
pub fn replay_csv_beside(
    source: impl Read,
    ignore_unknown: bool,
    mut replay: Replay,
    mut wants: impl FnMut(&Run<'_>) -> bool,
) -> Result<CsvReport, String> {
    let mut reader =
        ::csv::ReaderBuilder::new().flexible(true).trim(::csv::Trim::All).from_reader(Lines::new(source));
    let names = reader.headers().map_err(|error| error.to_string())?;
    let header = Header::new(names.iter(), ignore_unknown)?;
    let mut report = CsvReport { ignored: header.ignored.clone(), ..CsvReport::default() };
    let mut flows: HashMap<u64, FlowState> = HashMap::new();
    let mut batch: (u64, Vec<Sample>) = (0, Vec::with_capacity(BATCH));
    let (known, generations) = (Known::default(), Generations::default());
    let mut feed = |flow: u64, samples: &mut Vec<Sample>| {
        let run = Run { flow, samples, verdicts: &[] };
        if wants(&run) {
            replay.feed(&run, &known, &generations);
        }
        samples.clear();
    };
    let mut record = ::csv::StringRecord::new();
    loop {
        let line = reader.position().line();
        let read = match reader.read_record(&mut record) {
            Ok(false) => break,
            Ok(true) => header.sample(&record, &mut flows),
            // It would be the same the next time.
            Err(error) if error.is_io_error() => return Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok((flow, sample)) => {
                report.rows += 1;
                if flow != batch.0 || batch.1.len() >= BATCH {
                    feed(batch.0, &mut batch.1);
                    batch.0 = flow;
                }
                batch.1.push(sample);
            }
            Err(reason) => {
                report.bad_rows += 1;
                if report.described.len() < DESCRIBED {
                    // Before a record is read, the position is at the end of the one before.
                    let line = record.position().map_or(line, ::csv::Position::line);
                    report.described.push(format!("line {line}: {reason}"));
                }
            }
        }
    }
    feed(batch.0, &mut batch.1);
    report.flows = replay.finish();
    Ok(report)
}

#[cfg(test)]
mod tests;
