//! `onramp export`.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use onramp_recording::rows::TABLES;
use onramp_recording::{Recording, Spec, export};

use crate::failure::{PARTIAL, Usage};
use crate::output::say;
use crate::terminal::Terminal;

/// Turn a recording into CSV, NDJSON or qlog
///
/// csv is one table; ndjson is all tables, one object per row; qlog is a JSON text sequence of recovery events that
/// qvis opens (name the file .sqlog). Exits 5 if some files of the recording could not be read; the others are
/// exported.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp export recording --format csv --table exits\n  onramp export recording --format ndjson | jq 'select(.table == \"exits\")'\n  onramp export recording --format qlog -o flows.sqlog"
)]
pub(crate) struct Export {
    /// Directory of a recording, or one file of it
    #[arg(value_name = "RECORDING")]
    path: PathBuf,
    /// Format
    #[arg(short, long, value_enum)]
    format: Format,
    /// Table: flows, acks, rounds, exits, states, drops or parameters [default: acks for csv, all for ndjson]
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,
    /// Only the flow of this number
    #[arg(long, value_name = "NUMBER")]
    flow: Option<u64>,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Csv,
    Ndjson,
    Qlog,
}

impl Export {
    pub fn run(self) -> anyhow::Result<u8> {
        let tables = self.tables()?;
        let mut recording = Recording::open(&self.path)?;
        let (mut target, name): (Box<dyn Write>, String) = match &self.output {
            Some(path) => {
                let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
                (Box::new(file), path.display().to_string())
            }
            // Strings of a recording may be anybody's; into files and pipes they go as they are.
            None if io::stdout().is_terminal() => {
                (Box::new(Terminal::new(io::stdout())), "to stdout".to_owned())
            }
            None => (Box::new(io::stdout()), "to stdout".to_owned()),
        };
        let mut buffered = BufWriter::new(&mut target);
        let written = match self.format {
            Format::Csv => export::csv(&mut recording, tables[0], self.flow, &mut buffered),
            Format::Ndjson => export::ndjson(&mut recording, &tables, self.flow, &mut buffered),
            Format::Qlog => export::qlog(&mut recording, self.flow, &mut buffered),
        };
        match written.and_then(|()| buffered.flush()) {
            // A reader that has gone away has seen what it wanted.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            other => other.with_context(|| format!("cannot write {name}"))?,
        }
        for problem in &recording.problems {
            say(&format!("warning: {problem}"));
        }
        Ok(if recording.problems.is_empty() { 0 } else { PARTIAL })
    }

    fn tables(&self) -> anyhow::Result<Vec<(&'static str, &'static [Spec])>> {
        let named =
            |wanted: &str| TABLES.iter().copied().filter(|(name, _)| *name == wanted).collect::<Vec<_>>();
        match (&self.table, self.format) {
            (Some(_), Format::Qlog) => {
                Err(Usage::error("--table is for csv and ndjson: qlog has events of several tables"))
            }
            (Some(table), _) => {
                let found = named(table);
                if found.is_empty() {
                    let names: Vec<_> = TABLES.iter().map(|(name, _)| *name).collect();
                    return Err(Usage::error(format!(
                        "there is no table {table:?}: give one of {}",
                        names.join(", ")
                    )));
                }
                Ok(found)
            }
            (None, Format::Csv) => Ok(named("acks")),
            (None, _) => Ok(TABLES.to_vec()),
        }
    }
}
