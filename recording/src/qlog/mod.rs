// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A recording from qlog of the sender's side (draft-ietf-quic-qlog-main-schema, -quic-events, from 0.3 on; also draft-02):
//! JSON, JSON text sequences (RFC 7464) and lines of JSON.
//!
//! A log has windows, RTTs and packets as its transport saw them. What it lacks of a kernel's ACK, algorithms cannot be
//! replayed without, so only what explains flows opens it.

mod connection;
mod event;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::path::Path;

use serde_json::Value;

use crate::error::{Error, counted};
use crate::monotone::SET_BACK;
use crate::reader::{Origin, Recording};
use connection::{Connection, Tables};
use event::{Clock, Event, Trace};

/// Read of a log, bytes.
const MOST_BYTES: u64 = 1 << 27;
/// Records, or events of a log that is one document; of more nothing is read.
const MOST_EVENTS: usize = 2_000_000;
/// What is said of times that cannot be.
const BEYOND: [&str; 2] = [
    "event has a time that cannot be: it is not used",
    "events have times that cannot be: they are not used",
];

/// Reads a log as a recording, a flow for each connection that sent data.
///
/// # Errors
/// [`Error::NotARecording`]: no connection in it sent data that were acknowledged. What else cannot be used is a problem of
/// the recording.
pub(crate) fn recording(source: Box<dyn Read>, path: &Path) -> Result<Recording, Error> {
    let mut log = Log::default();
    let mut limited = source.take(MOST_BYTES);
    let reader = BufReader::new(Unframed(&mut limited));
    for record in serde_json::Deserializer::from_reader(reader).into_iter::<Value>() {
        match record {
            Ok(record) if log.events < MOST_EVENTS => log.take(&record),
            Ok(_) => {
                log.problems.push(format!("only its first {MOST_EVENTS} events are used"));
                break;
            }
            Err(error) if error.is_io() => return Err(Error::read(path)(error.into())),
            Err(error) if error.is_eof() => {
                log.problems.push("it ends within a record".into());
                break;
            }
            Err(error) => {
                log.problems.push(format!("what follows is no JSON and not used: {error}"));
                break;
            }
        }
    }
    if limited.limit() == 0 {
        log.problems.push(format!("only its first {MOST_BYTES} bytes are used"));
    }
    log.into_recording(path)
}

/// A text without the separators of a JSON text sequence, which no JSON contains.
struct Unframed<R>(R);

impl<R: Read> Read for Unframed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(buffer)?;
        buffer[..read].iter_mut().filter(|byte| **byte == b'\x1e').for_each(|byte| *byte = b' ');
        Ok(read)
    }
}

#[derive(Default)]
struct Log {
    /// By trace and group.
    connections: BTreeMap<(usize, String), Connection>,
    traces: usize,
    trace: Trace,
    clock: Clock,
    events: usize,
    /// Events of the form that drafts 00 and 01 have.
    rows: usize,
    problems: Vec<String>,
}

impl Log {
    /// Takes a record: the head of a log, a whole one, or an event.
    fn take(&mut self, record: &Value) {
        if let Some(traces) = record["traces"].as_array() {
            for trace in traces {
                self.begin(trace);
                for event in trace["events"].as_array().into_iter().flatten().take(MOST_EVENTS) {
                    self.event(event);
                }
            }
        } else if record.get("qlog_version").is_some() || record.get("trace").is_some() {
            self.begin(&record["trace"]);
        } else {
            self.event(record);
        }
    }

    fn begin(&mut self, trace: &Value) {
        self.traces += 1;
        self.trace = Trace::new(trace);
        self.clock.begin();
    }

    fn event(&mut self, event: &Value) {
        self.events += 1;
        self.rows += usize::from(event.is_array());
        let Some(event) = Event::new(event, &self.trace, &mut self.clock) else { return };
        let is_tcp = self.trace.is_tcp;
        let key = (self.traces, event.group.clone());
        self.connections.entry(key).or_insert_with(|| Connection::new(is_tcp)).take(&event);
    }

    fn into_recording(self, path: &Path) -> Result<Recording, Error> {
        let mut tables = Tables::default();
        let (mut is_tcp, mut set_back) = (true, 0);
        for connection in self.connections.into_values() {
            let of_tcp = connection.is_tcp;
            set_back += connection.times.set_back;
            if connection.finish(tables.numbers() + 1, &mut tables) {
                is_tcp &= of_tcp;
            }
        }
        if tables.numbers() == 0 {
            let reason = match self.problems.into_iter().next() {
                Some(problem) if self.events == 0 => problem,
                _ if self.rows > 0 => "it is qlog of draft-01 or before: convert it to 0.3 or later".into(),
                _ => "no connection in it has congestion windows and data that were acknowledged: log at the sender, \
                      with the events of recovery"
                    .into(),
            };
            return Err(Error::NotARecording { path: path.to_owned(), reason });
        }
        let clock = [(set_back, SET_BACK), (self.clock.beyond, BEYOND)];
        let clock = clock.into_iter().filter_map(|(number, [one, several])| counted(number, one, several));
        let problem = |reason| Error::Capture { path: path.to_owned(), reason };
        let mut recording = Recording::of_rows(path, Origin::Qlog { is_tcp }, |rows| tables.into_rows(rows));
        recording.problems = self.problems.into_iter().chain(clock).map(problem).collect();
        Ok(recording)
    }
}
