//! `onramp-lab sim path`.

use std::path::{Path as File, PathBuf};

use anyhow::anyhow;
use clap::Args;
use onramp_files::bounded;
use onramp_lab::fit::{Checked, Driver, FitError, Fitted, Known, RecordedFlow, check, fit};
use onramp_recording::Recording;
use serde::Serialize;

use super::written;
use crate::failure::{PARTIAL, Usage};
use crate::output::{Output, escape_line, say, say_of_input};
use crate::units::{self, show_bytes, show_us};

/// Fit a path to a recorded flow, and check it before it is used
///
/// RECORDING is a directory that `onramp record` made, one of its acks files, or a packet capture (pcap, pcapng) of the
/// sender's side. Rate (over time where it varies), round-trip
/// time and queue are read off the acknowledgments, with all other variation of the round-trip time as it was. What the flow
/// did not reach is a lower bound.
///
/// Then the flow is simulated over the path: it has to take as long as it did, and HyStart has to exit slow start where it
/// leaves it over what was recorded. Neither cubic nor ramp may depend on a rate or a queue that the flow did not reach, nor on
/// what is not known exactly, for transfers of the recorded size and of --bytes. Where something disagrees it is named, no
/// profile is written, and the exit code is 5. It is also 5 if some of the files could not be used.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp sim path recording
  onramp sim path recording --flow 18446612 --write-profile slow.toml
  onramp sim compare --profile ./slow.toml --arms cubic,ramp")]
pub(super) struct Path {
    /// Directory of a recording, an acks file of one, or a packet capture; - is standard input
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    /// The flow of this number; needed where several have enough acknowledgments
    #[arg(long, value_name = "NUMBER", value_parser = units::number(0..=u64::MAX))]
    flow: Option<u64>,
    /// Size of the transfers that the path is to be used for, at most that of the recorded one [default: that size]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    bytes: Option<u64>,
    /// What drove the flow, where that is not recorded: cubic, reno, or an algorithm with its defaults
    #[arg(long, value_name = "CONTROL")]
    control: Option<String>,
    /// Write the path as a profile; - is standard output, in place of the report
    #[arg(long, value_name = "FILE")]
    write_profile: Option<PathBuf>,
}

/// A path, and what came of its check.
#[derive(Serialize)]
struct PathReport {
    #[serde(flatten)]
    fitted: Fitted,
    /// What drove the flow; null: the recording does not say.
    driver: Option<Driver>,
    checked: Checked,
}

impl Path {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let name = self.write_profile.as_deref().map(written::name).transpose()?;
        let mut recording = Recording::open(&self.recording)?;
        let flow = RecordedFlow::read(&mut recording, self.flow).map(|mut flow| {
            flow.driver = flow.driver.or_else(|| self.control.clone().map(Driver::named));
            flow
        });
        say_of_input(&recording.problems, &recording.notes);
        let unreadable = !recording.problems.is_empty();
        let refused = |error: FitError| match error {
            FitError::NoFlow { .. } | FitError::Several { .. } => Usage::error(error.to_string()),
            FitError::NoAcks if unreadable => {
                anyhow!("{} holds no acknowledgments that can be read", bounded::name(&self.recording))
            }
            other => anyhow!("{}: {other}", bounded::name(&self.recording)),
        };
        let flow = flow.map_err(refused)?;
        let fitted = fit(&flow).map_err(refused)?;
        let checked = check(&flow, &fitted, self.bytes.unwrap_or_else(|| flow.bytes())).map_err(refused)?;
        let report = PathReport { fitted, driver: flow.driver, checked };
        let standard = self.write_profile.as_deref().is_some_and(bounded::is_standard);
        if standard {
            report
                .checked
                .disagreements
                .iter()
                .for_each(|one| say(&format!("warning: {}", escape_line(&one.to_string()))));
        } else {
            output.data(&report, || text(&report))?;
        }
        if !report.checked.disagreements.is_empty() {
            if let Some(file) = &self.write_profile {
                say(&format!("warning: {} is not written: the path does not hold", bounded::name(file)));
            }
            return Ok(PARTIAL);
        }
        if let (Some(file), Some(name)) = (&self.write_profile, name) {
            let command = command(file);
            let profile = report.fitted.profile(&name, report.driver.as_ref());
            written::write(file, &profile, &format!("Simulate it: {command}"))?;
            output.progress(&format!("simulate it: {command}"));
        }
        Ok(if recording.problems.is_empty() { 0 } else { PARTIAL })
    }
}

fn command(file: &File) -> String {
    format!("onramp sim compare --profile {} --arms cubic,ramp", written::argument(file))
}

fn text(report: &PathReport) -> String {
    let bound = |known| match known {
        Known::Measured => "",
        Known::AtLeast => "at least ",
    };
    let PathReport { fitted, driver, checked } = report;
    let explained = &fitted.explained;
    let mut text = format!(
        "flow {}{}: {} acknowledgments in {}\n\
         rate             {}{:.3} Mb/s\n\
         round-trip time  {}\n\
         queue            {}{}\n\
         other delay      {}\n",
        fitted.flow,
        driver.as_ref().map_or_else(String::new, |driver| format!(", {}", escape_line(&driver.algorithm))),
        fitted.acks,
        show_us(fitted.duration_us),
        bound(fitted.rate_known),
        fitted.rate_bps as f64 / 1e6,
        show_us(fitted.base_rtt_us),
        bound(fitted.queue_known),
        show_bytes(fitted.queue_bytes),
        if fitted.jitter_us == 0 {
            "none that shows".to_owned()
        } else {
            format!("up to {}, as it was", show_us(fitted.jitter_us))
        },
    );
    for step in &fitted.rate_steps {
        text +=
            &format!("  from {:>8.3} s  {:.3} Mb/s\n", step.at_us as f64 / 1e6, step.rate_bps as f64 / 1e6);
    }
    if explained.samples > 0 {
        text += &format!(
            "explains         {} round-trip times to {:.1} % (median difference {:.1} ms)",
            explained.samples,
            100.0 * explained.rtt_error_share,
            explained.rtt_error_us / 1e3
        );
        if let Some(share) = explained.rtt_variance {
            text += &format!(", {:.0} % of their variance", 100.0 * share);
        }
        text += "\n";
    }
    if let Some(simulated) = checked.simulated_seconds {
        text += &format!(
            "simulated        {simulated:.2} s for what took {:.2} s when it was recorded\n",
            checked.recorded_seconds
        );
    }
    for arm in &checked.arms {
        text += &format!("  {:<14} {:.2} s for {}\n", arm.arm, arm.seconds, show_bytes(arm.bytes));
    }
    for one in &checked.disagreements {
        text += &format!("does not hold    {}\n", escape_line(&one.to_string()));
    }
    text
}
