//! `onramp replay`.

mod figure;
mod text;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use onramp_recording::replay::{Candidate, FlowReport, Options, Replay, candidates, replay};
use onramp_recording::{CsvReport, Error, Recording, replay_csv};
use serde::Serialize;

use crate::failure::{PARTIAL, Usage};
use crate::output::{Output, say};

/// Ask algorithms what they would have done with recorded acknowledgements: when each would have left slow start, at
/// what window, and why
///
/// RECORDING is a directory that `onramp record` made, one of its acks files, or plain CSV with columns named after the
/// fields of struct ack (see docs/replay.md). Replay is open loop: what was recorded is what the flow did, whatever an
/// algorithm answers. A flow is judged while it was in slow start, and no more after the first exit. Where a flow ran
/// the algorithm itself, the recorded parameters are used and --set goes on top; else the defaults.
///
/// Exits 5 if some of the files or rows could not be used.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp replay recording --algorithm search\n  onramp replay recording --algorithm search,plain --sweep search.threshold_pct=10:40:5 -o plot.svg\n  onramp replay acks.csv --algorithm search --set threshold_pct=30 --json"
)]
pub(crate) struct Replays {
    /// Directory of a recording, an acks file of one, or CSV
    #[arg(value_name = "RECORDING")]
    path: PathBuf,
    /// Algorithms; `onramp list` shows them
    #[arg(short, long, value_name = "ALG,…", value_delimiter = ',', required = true)]
    algorithm: Vec<String>,
    /// Set a parameter: NAME=VALUE for all algorithms, ALG.NAME=VALUE for one
    #[arg(long = "set", value_name = "[ALG.]NAME=VALUE")]
    settings: Vec<String>,
    /// Try every value: NAME=VALUE,VALUE,… or NAME=FROM:TO:STEP; several sweeps make all combinations
    #[arg(long, value_name = "[ALG.]NAME=VALUES")]
    sweep: Vec<String>,
    /// Only the flow of this number
    #[arg(long, value_name = "NUMBER")]
    flow: Option<u64>,
    /// Go on judging after the first exit, as long as the flow was in slow start
    #[arg(long = "continue")]
    keep_going: bool,
    /// Judge all acknowledgements, also where the flow had left slow start
    #[arg(long)]
    beyond: bool,
    /// Also say what the path gave in the end, and what each exit cost against that: time lost by leaving early
    #[arg(long)]
    regret: bool,
    /// Pass over columns of a CSV file that are not known
    #[arg(long)]
    ignore_unknown: bool,
    /// Draw windows and exits of the first flows into this SVG file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    path: PathBuf,
    /// Whether the recording ended properly; none: there is no manifest to tell.
    complete: Option<bool>,
    /// Events that the recorder was too slow for.
    dropped_events: Option<u64>,
    /// Rows of a CSV file that were passed over.
    bad_rows: u64,
    ignored_columns: Vec<String>,
    /// What could not be read.
    problems: Vec<String>,
    flows: Vec<FlowReport>,
}

impl Replays {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let candidates = candidates(&self.algorithm, &self.settings, &self.sweep)
            .map_err(|error| Usage::error(error.to_string()))?;
        let mut report = self.report(candidates)?;
        report.flows.retain(|flow| self.flow.is_none_or(|wanted| wanted == flow.flow));
        for problem in &report.problems {
            say(&format!("warning: {problem}"));
        }
        if report.flows.is_empty() {
            return Err(anyhow!(
                "{} holds no acknowledgements{} that could be replayed: they are recorded with --level ack",
                self.path.display(),
                self.flow.map_or_else(String::new, |flow| format!(" of flow {flow}"))
            ));
        }
        if let Some(path) = &self.output {
            figure::write(path, &report.flows)?;
        }
        output.data(&report, || text::report(&report.flows, self.regret, output))?;
        Ok(if report.problems.is_empty() { 0 } else { PARTIAL })
    }

    fn report(&self, candidates: Vec<Candidate>) -> anyhow::Result<Report> {
        let replayed = Replay::new(candidates, Options { keep_going: self.keep_going, beyond: self.beyond });
        let path = self.path.clone();
        if is_csv(&self.path)? {
            let csv = replay_csv(&self.path, self.ignore_unknown, replayed)?;
            return Ok(Report {
                path,
                complete: None,
                dropped_events: None,
                bad_rows: csv.bad_rows,
                problems: bad_rows(&self.path, &csv),
                ignored_columns: csv.ignored,
                flows: csv.flows,
            });
        }
        let mut recording = Recording::open(&self.path)?;
        let flows = replay(&mut recording, replayed);
        Ok(Report {
            path,
            complete: recording.manifest.as_ref().map(|manifest| manifest.complete),
            dropped_events: recording.manifest.as_ref().map(|manifest| manifest.dropped_events),
            bad_rows: 0,
            ignored_columns: Vec::new(),
            problems: recording.problems.iter().map(ToString::to_string).collect(),
            flows,
        })
    }
}

fn bad_rows(path: &Path, csv: &CsvReport) -> Vec<String> {
    let mut problems: Vec<String> = csv
        .described
        .iter()
        .map(|reason| format!("{}: {reason}; the row is not used", path.display()))
        .collect();
    let more = csv.bad_rows - csv.described.len() as u64;
    if more > 0 {
        problems.push(format!("{}: {more} more rows are not used", path.display()));
    }
    problems
}

/// A file that does not begin as Parquet does is taken for CSV.
fn is_csv(path: &Path) -> Result<bool, Error> {
    if path.is_dir() {
        return Ok(false);
    }
    let mut begin = Vec::new();
    File::open(path)
        .and_then(|file| file.take(4).read_to_end(&mut begin))
        .map_err(|source| Error::Read { path: path.to_owned(), source })?;
    Ok(begin != b"PAR1" && path.extension().is_none_or(|extension| extension != "parquet"))
}
