//! `onramp export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use onramp_loader::algorithm::did_you_mean;
use onramp_recording::rows::TABLES;
use onramp_recording::{Recording, Spec, export};

use crate::failure::{PARTIAL, Usage};
use crate::output::say;
use crate::target;

/// Turn a recording into CSV or qlog
///
/// csv is one table, whose acknowledgments `onramp replay` reads back; qlog is a JSON text sequence of recovery events
/// that qvis opens (name the file .sqlog). Exits 5 if some files of the recording could not be read; the others are
/// exported.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp export recording --format csv --table exits\n  onramp export recording --format qlog -o flows.sqlog"
)]
pub(crate) struct Export {
    /// Directory of a recording, or one file of it; - is standard input
    #[arg(value_name = "RECORDING")]
    path: PathBuf,
    /// Format
    #[arg(short, long, value_enum)]
    format: Format,
    /// Table for csv: flows, acks, rounds, exits, states, drops or parameters [default: acks]
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,
    /// Only the flow of this number
    #[arg(long, value_name = "NUMBER")]
    flow: Option<u64>,
    /// File to write [default: -, standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Csv,
    Qlog,
}

impl Export {
    pub fn run(self) -> anyhow::Result<u8> {
        let table = self.table()?;
        let mut recording = Recording::open(&self.path)?;
        target::write(self.output.as_deref(), |output| match self.format {
            Format::Csv => export::csv(&mut recording, table, self.flow, output),
            Format::Qlog => export::qlog(&mut recording, self.flow, output),
        })?;
        for problem in &recording.problems {
            say(&format!("warning: {problem}"));
        }
        Ok(if recording.problems.is_empty() { 0 } else { PARTIAL })
    }

    fn table(&self) -> anyhow::Result<(&'static str, &'static [Spec])> {
        if self.table.is_some() && self.format == Format::Qlog {
            return Err(Usage::error("--table is for csv: qlog has events of several tables"));
        }
        let wanted = self.table.as_deref().unwrap_or("acks");
        TABLES.iter().copied().find(|(name, _)| *name == wanted).ok_or_else(|| {
            let names: Vec<_> = TABLES.iter().map(|(name, _)| *name).collect();
            let hint = did_you_mean(wanted, names.iter().copied());
            Usage::error(format!("there is no table {wanted:?}{hint}: give one of {}", names.join(", ")))
        })
    }
}
