//! `onramp replay`.

mod figure;
mod text;

use std::path::PathBuf;

use clap::Args;
use onramp_files::bounded;
use onramp_profiles::parameters::Chosen;
use onramp_recording::replay::{Options, Request, candidates};

use crate::failure::{PARTIAL, Usage};
use crate::output::{Output, say_of_input};
use crate::units;

/// Run algorithms over recorded ACKs: when each would have exited slow start, at what window, and why
///
/// RECORDING is a directory that `onramp record` made, one of its acks files, a packet capture (pcap, pcapng) of the sender's
/// side, or plain CSV with columns named after the fields of struct ack (see docs/replay.md). Replay is open loop: what was recorded is what the flow did, whatever an
/// algorithm answers. A flow is evaluated while it was in slow start, and until the first exit. Where a flow ran
/// the algorithm itself, the recorded parameters are used and --set goes on top; else the defaults. Of algorithms that
/// --profile has parameters for, these are used in either case.
///
/// Exits 5 if some of the files or rows could not be used.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp replay recording --algorithm search\n  onramp replay recording --algorithm search,plain --sweep search.threshold_pct=10:40:5 -o plot.svg\n  onramp replay acks.csv --algorithm search --set threshold_pct=30 --json\n  onramp replay recording --profile geo"
)]
pub(crate) struct Replays {
    /// Directory of a recording, an acks file of one, a packet capture, or CSV; - is standard input
    #[arg(value_name = "RECORDING")]
    path: PathBuf,
    #[command(flatten)]
    chosen: Chosen,
    /// Only the flow of this number
    #[arg(long, value_name = "NUMBER", value_parser = units::number(0..=u64::MAX))]
    flow: Option<u64>,
    /// Go on after the first exit, as long as the flow was in slow start
    #[arg(long = "continue")]
    keep_going: bool,
    /// Evaluate all ACKs, also where the flow had exited slow start
    #[arg(long)]
    beyond: bool,
    /// Also say what the path gave in the end, and what each exit cost against that: time lost by leaving early
    #[arg(long)]
    regret: bool,
    /// Pass over columns of a CSV file that are not known
    #[arg(long)]
    ignore_unknown: bool,
    /// Draw windows and exits of the first flows into this SVG file; - is standard output, in place of the report
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Replays {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let (algorithms, settings) = self.chosen.wanted()?;
        let candidates = candidates(&algorithms, &settings, &self.chosen.sweep)
            .map_err(|error| Usage::error(error.to_string()))?;
        let request = Request {
            candidates,
            options: Options { keep_going: self.keep_going, beyond: self.beyond, regret: true },
            ignore_unknown: self.ignore_unknown,
            flow: self.flow,
            ..Request::default()
        };
        let report = request.replay(&self.path)?;
        say_of_input(&report.problems, &report.notes);
        request.check(&report)?;
        if let Some(path) = &self.output {
            let code = figure::write(path, &report.flows)?;
            if code != 0 {
                return Ok(code);
            }
        }
        if !self.output.as_deref().is_some_and(bounded::is_standard) {
            output.data(&report, || text::report(&report.flows, self.regret, output))?;
        }
        Ok(if report.problems.is_empty() { 0 } else { PARTIAL })
    }
}
