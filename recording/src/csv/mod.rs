// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Acknowledgments from plain CSV: columns have the names of the table `acks`, in any order.

mod header;
mod lines;
mod prelude;
mod row;
mod sieve;

use std::collections::HashMap;
use std::io::Read;

use crate::replay::{FlowReport, Generations, Known, Replay};
use crate::sample::{Run, Sample};
use header::Header;
use lines::Lines;
use row::FlowState;
pub(crate) use row::number;
use sieve::{Fate, Sieve};

/// Rows that are fed at once.
const BATCH: usize = 4_096;
/// Bad rows that are described; the others are counted.
const DESCRIBED: usize = 20;

/// What a CSV file gave.
#[derive(Debug, Default)]
pub struct CsvReport {
    /// Flows, as from [`crate::replay::replay`].
    pub flows: Vec<FlowReport>,
    /// Rows that could be used.
    pub rows: u64,
    /// Rows that could not.
    pub bad_rows: u64,
    /// What was wrong with the first twenty, in their order: `line 7: …`.
    pub described: Vec<String>,
    /// Columns that were ignored.
    pub ignored: Vec<String>,
}

impl CsvReport {
    /// What was not used and why: a line for each row that is described, and one that says how many there are.
    pub fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> =
            self.described.iter().map(|reason| format!("{reason}; the row is not used")).collect();
        if self.bad_rows > 0 {
            problems.push(format!("{} of {} rows are not used", self.bad_rows, self.rows + self.bad_rows));
        }
        problems
    }
}

/// Replays acknowledgments in CSV, those that are wanted; it is asked about all of them. Columns with other names are an
/// error unless they are to be ignored; rows that cannot be used are described and passed over.
///
/// # Errors
/// Why it is no CSV of acknowledgments: what it is instead, which columns are missing or not known, or that no row can be
/// used.
pub fn replay_csv(
    source: impl Read,
    ignore_unknown: bool,
    replay: Replay,
    wants: impl FnMut(&Run<'_>) -> bool,
) -> Result<CsvReport, String> {
    let (separator, source) = prelude::read(source)?;
    let mut reader = ::csv::ReaderBuilder::new()
        .flexible(true)
        .trim(::csv::Trim::All)
        .delimiter(separator)
        .comment(Some(b'#'))
        .from_reader(Lines::new(source));
    let names = reader.headers().map_err(|error| unreadable(&error))?;
    let header = Header::new(names.iter(), ignore_unknown)?;
    let mut reading = Reading {
        report: CsvReport { ignored: header.ignored.clone(), ..CsvReport::default() },
        header,
        described: Vec::new(),
        feed: Feed { replay, wants, known: Known::default(), generations: Generations::default() },
        batch: (0, Vec::with_capacity(BATCH)),
    };
    let mut flows: HashMap<u64, (Sieve, FlowState)> = HashMap::new();
    let mut record = ::csv::StringRecord::new();
    loop {
        let line = reader.position().line();
        let read = reader.read_record(&mut record);
        // Before a record is read, the position is at the end of the one before.
        let line = record.position().map_or(line, ::csv::Position::line);
        match read {
            Ok(false) => break,
            Ok(true) => match reading.header.parse(&record, line) {
                Ok((flow, row)) => {
                    let (sieve, state) = flows.entry(flow).or_default();
                    sieve.push(row, &mut |fate| reading.take(flow, state, fate));
                }
                Err(reason) => reading.refuse(line, reason),
            },
            // It would be the same the next time.
            Err(error) if error.is_io_error() => return Err(error.to_string()),
            Err(error) => reading.refuse(line, unreadable(&error)),
        }
    }
    let mut flows: Vec<_> = flows.into_iter().collect();
    flows.sort_by_key(|(flow, _)| *flow);
    for (flow, (sieve, mut state)) in flows {
        sieve.finish(&mut |fate| reading.take(flow, &mut state, fate));
    }
    reading.finish()
}

/// Why a line makes no row.
fn unreadable(error: &::csv::Error) -> String {
    match error.kind() {
        ::csv::ErrorKind::Utf8 { err, .. } => {
            format!("it is not UTF-8 (column {} of a line): save it as UTF-8", err.field() + 1)
        }
        _ => error.to_string(),
    }
}

/// What is read so far.
struct Reading<W> {
    report: CsvReport,
    header: Header,
    /// Rows that were refused, by their lines.
    described: Vec<(u64, String)>,
    feed: Feed<W>,
    /// Samples of one flow that are yet to be fed.
    batch: (u64, Vec<Sample>),
}

struct Feed<W> {
    replay: Replay,
    wants: W,
    known: Known,
    generations: Generations,
}

impl<W: FnMut(&Run<'_>) -> bool> Reading<W> {
    fn take(&mut self, flow: u64, state: &mut FlowState, fate: Fate) {
        match fate {
            Fate::Refused(line, reason) => self.refuse(line, reason),
            Fate::Used(row) => {
                self.report.rows += 1;
                if flow != self.batch.0 || self.batch.1.len() >= BATCH {
                    self.flush();
                    self.batch.0 = flow;
                }
                self.batch.1.push(self.header.derive(row, state));
            }
        }
    }

    fn refuse(&mut self, line: u64, reason: String) {
        self.report.bad_rows += 1;
        if self.described.len() < DESCRIBED {
            self.described.push((line, reason));
        }
    }

    fn flush(&mut self) {
        let Feed { replay, wants, known, generations } = &mut self.feed;
        let run = Run { flow: self.batch.0, samples: &self.batch.1, verdicts: &[] };
        if wants(&run) {
            replay.feed(&run, known, generations);
        }
        self.batch.1.clear();
    }

    fn finish(mut self) -> Result<CsvReport, String> {
        self.flush();
        // That a row was wrong may have shown at a later one.
        self.described.sort();
        let mut described = self.described.into_iter().map(|(line, reason)| format!("line {line}: {reason}"));
        let Self { mut report, feed, .. } = self;
        match (report.rows, report.bad_rows) {
            (0, 0) => return Err("it has names of columns and no row".into()),
            (0, 1) => {
                return Err(format!("its only row cannot be used: {}", described.next().unwrap_or_default()));
            }
            (0, bad) => {
                let first = described.next().unwrap_or_default();
                return Err(format!("none of its {bad} rows can be used; the first: {first}"));
            }
            _ => {}
        }
        report.described = described.collect();
        report.flows = feed.replay.finish();
        Ok(report)
    }
}

#[cfg(test)]
mod tests;
