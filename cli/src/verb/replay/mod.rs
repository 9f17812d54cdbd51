//! `onramp replay`.

mod figure;
mod text;

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use onramp_files::bounded;
use onramp_recording::replay::{Candidate, FlowReport, Options, Replay, candidates, replay};
use onramp_recording::{Error, Input, input, replay_csv};
use serde::Serialize;

use crate::failure::{PARTIAL, Usage};
use crate::output::{Output, say};
use crate::profile;
use crate::settings::AlgorithmName;

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
    /// Algorithms; `onramp list` shows them [default: the profile's]
    #[arg(short, long, value_name = "ALG,…", value_parser = AlgorithmName, hide_possible_values = true, value_delimiter = ',', required_unless_present = "profile")]
    algorithm: Vec<String>,
    /// Take parameters from this profile: a path, or a name in /etc/onramp/profiles or built in
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Set a parameter: NAME=VALUE for all algorithms, ALG.NAME=VALUE for one
    #[arg(long = "set", value_name = "[ALG.]NAME=VALUE")]
    settings: Vec<String>,
    /// Try every value: NAME=VALUE,VALUE,… or NAME=FROM:TO:STEP; several sweeps make all combinations
    #[arg(long, value_name = "[ALG.]NAME=VALUES")]
    sweep: Vec<String>,
    /// Only the flow of this number
    #[arg(long, value_name = "NUMBER")]
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

#[derive(Serialize)]
struct ReplayReport {
    path: PathBuf,
    /// Whether the recording ended properly; none: there is no manifest.
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
        let (algorithms, settings) = self.wanted()?;
        let candidates = candidates(&algorithms, &settings, &self.sweep)
            .map_err(|error| Usage::error(error.to_string()))?;
        let mut report = self.report(candidates)?;
        report.flows.retain(|flow| self.flow.is_none_or(|wanted| wanted == flow.flow));
        for problem in &report.problems {
            say(&format!("warning: {problem}"));
        }
        if report.flows.is_empty() {
            let of = self.flow.map_or_else(String::new, |flow| format!(" of flow {flow}"));
            let none = format!("{} holds no acknowledgments{of} that", bounded::name(&self.path));
            // Where some of it cannot be read, they may be there.
            return Err(if report.problems.is_empty() {
                anyhow!("{none} could be replayed: they are recorded with --level ack")
            } else {
                anyhow!("{none} can be read")
            });
        }
        if let Some(path) = &self.output {
            figure::write(path, &report.flows)?;
        }
        if !self.output.as_deref().is_some_and(bounded::is_standard) {
            output.data(&report, || text::report(&report.flows, self.regret, output))?;
        }
        Ok(if report.problems.is_empty() { 0 } else { PARTIAL })
    }

    /// Algorithms and settings, those of the profile first.
    fn wanted(&self) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let (mut algorithms, mut settings) = (self.algorithm.clone(), Vec::new());
        if let Some(name) = &self.profile {
            let profile = profile::load(name)?;
            if algorithms.is_empty() {
                algorithms.push(profile.algorithm.clone());
            }
            let of_profile = profile::parameters(&profile)?;
            let used =
                of_profile.iter().filter(|of| algorithms.iter().any(|name| name == of.algorithm().name()));
            for parameters in used {
                let algorithm = parameters.algorithm().name();
                settings
                    .extend(parameters.shown().map(|(name, value)| format!("{algorithm}.{name}={value}")));
            }
            if settings.is_empty() && !algorithms.contains(&profile.algorithm) {
                return Err(Usage::error(format!(
                    "profile {name} has nothing for {}: it is for {}",
                    algorithms.join(", "),
                    profile.algorithms().join(" and ")
                )));
            }
        }
        settings.extend(self.settings.iter().cloned());
        Ok((algorithms, settings))
    }

    fn report(&self, candidates: Vec<Candidate>) -> anyhow::Result<ReplayReport> {
        let options = Options { keep_going: self.keep_going, beyond: self.beyond, regret: true };
        let replayed = Replay::new(candidates, options);
        let path = self.path.clone();
        let mut recording = match input(&path)? {
            Input::Recording(recording) => recording,
            Input::Text(text) => {
                let refuse = |reason| Error::NotARecording { path: path.clone(), reason };
                let csv = replay_csv(text, self.ignore_unknown, replayed, |_| true).map_err(refuse)?;
                let name = bounded::name(&path);
                let problems = csv.problems().iter().map(|problem| format!("{name}: {problem}")).collect();
                return Ok(ReplayReport {
                    path,
                    complete: None,
                    dropped_events: None,
                    bad_rows: csv.bad_rows,
                    problems,
                    ignored_columns: csv.ignored,
                    flows: csv.flows,
                });
            }
        };
        let flows = replay(&mut recording, replayed);
        Ok(ReplayReport {
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
