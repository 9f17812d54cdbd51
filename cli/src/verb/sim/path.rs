//! `onramp sim path`.

use std::path::{Path as File, PathBuf};

use anyhow::anyhow;
use clap::Args;
use onramp_lab::fit::{FitError, Fitted, Known, RecordedFlow, fit};
use onramp_recording::{Recording, bounded};

use super::written;
use crate::failure::{PARTIAL, Usage};
use crate::output::{Output, say};
use crate::units::{show_bytes, show_us};

/// Fit a path to a recorded flow, and say how well it explains what was recorded
///
/// RECORDING is a directory that `onramp record` made, or one of its acks files. Rate (over time where it varies), round-trip
/// time, queue and jitter are read off the acknowledgements; what the flow did not reach is given as a lower bound.
/// The recorded packets then go through the model of such a link: their round-trip times are compared with those
/// recorded, up to the first loss. The profile is one for `onramp sim` and `onramp lab`. Exits 5 if some of the files could
/// not be used.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp sim path recording
  onramp sim path recording --flow 18446612 --write-profile slow.toml
  onramp sim compare --profile ./slow.toml --arms cubic,search,ramp")]
pub(super) struct Path {
    /// Directory of a recording, or an acks file of one; - is standard input
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    /// The flow of this number [default: the one with most acknowledgements]
    #[arg(long, value_name = "NUMBER")]
    flow: Option<u64>,
    /// Write the path as a profile; - is standard output, in place of the report
    #[arg(long, value_name = "FILE")]
    write_profile: Option<PathBuf>,
}

impl Path {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let name = self.write_profile.as_deref().map(written::name).transpose()?;
        let mut recording = Recording::open(&self.recording)?;
        let flow = RecordedFlow::read(&mut recording, self.flow);
        for problem in &recording.problems {
            say(&format!("warning: {problem}"));
        }
        let unreadable = !recording.problems.is_empty();
        let told = |error: FitError| match error {
            FitError::NoFlow { .. } => Usage::error(error.to_string()),
            FitError::NoAcks if unreadable => {
                anyhow!("{} holds no acknowledgments that can be read", bounded::name(&self.recording))
            }
            other => anyhow!("{}: {other}", bounded::name(&self.recording)),
        };
        let fitted = fit(&flow.map_err(told)?).map_err(told)?;
        if let (Some(file), Some(name)) = (&self.write_profile, name) {
            let command = command(file);
            written::write(file, &fitted.profile(&name), &format!("Simulate it: {command}"))?;
            output.progress(&format!("simulate it: {command}"));
        }
        if !self.write_profile.as_deref().is_some_and(bounded::is_standard) {
            output.data(&fitted, || text(&fitted))?;
        }
        Ok(if recording.problems.is_empty() { 0 } else { PARTIAL })
    }
}

fn command(file: &File) -> String {
    format!("onramp sim compare --profile {} --arms cubic,search,ramp", written::argument(file))
}

fn text(fitted: &Fitted) -> String {
    let bound = |known| match known {
        Known::Measured => "",
        Known::AtLeast => "at least ",
    };
    let explained = &fitted.explained;
    let mut text = format!(
        "flow {}: {} acknowledgements in {}\n\
         rate             {}{:.3} Mb/s\n\
         round-trip time  {}\n\
         queue            {}{}\n\
         jitter           {}\n",
        fitted.flow,
        fitted.acks,
        show_us(fitted.duration_us),
        bound(fitted.rate_known),
        fitted.rate_bps as f64 / 1e6,
        show_us(fitted.base_rtt_us),
        bound(fitted.queue_known),
        show_bytes(fitted.queue_bytes),
        if fitted.jitter_us == 0 { "none that shows".to_owned() } else { show_us(fitted.jitter_us) },
    );
    for step in &fitted.rate_steps {
        text +=
            &format!("  from {:>8.3} s  {:.3} Mb/s\n", step.at_us as f64 / 1e6, step.rate_bps as f64 / 1e6);
    }
    text += &format!(
        "explains         {} round-trip times to {:.1} % (median difference {:.1} ms)",
        explained.samples,
        100.0 * explained.rtt_error_share,
        explained.rtt_error_us / 1e3
    );
    if let Some(share) = explained.rtt_variance {
        text += &format!(", {:.0} % of their variance", 100.0 * share);
    }
    text + "\n"
}
