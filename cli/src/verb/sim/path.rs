//! `onramp sim path`.

use std::path::{Path as File, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use onramp_lab::fit::{FitError, Fitted, Known, RecordedFlow, fit};
use onramp_lab::profile::Profile;
use onramp_recording::Recording;

use crate::failure::{PARTIAL, Usage};
use crate::output::{Output, say};
use crate::units::{show_bytes, show_us};

/// Longest name of a profile.
const LONGEST_NAME: usize = 31;

/// Fit a path to a recorded flow, and say how well it explains what was recorded
///
/// RECORDING is a directory that `onramp record` made, or one of its acks files. Rate (over time where it varies), round-trip
/// time, queue and jitter are read off the acknowledgments; what the flow did not reach is given as a lower bound.
/// The recorded packets then go through the model of such a link: their round-trip times are compared with those
/// recorded, up to the first loss. The profile is one for `onramp sim` and `onramp lab`. Exits 5 if some of the files could
/// not be used.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp sim path recording
  onramp sim path recording --flow 18446612 --write-profile slow.toml
  onramp sim compare --profile ./slow.toml --arms cubic,search,ramp")]
pub(super) struct Path {
    /// Directory of a recording, or an acks file of one
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    /// The flow of this number [default: the one with most acknowledgments]
    #[arg(long, value_name = "NUMBER")]
    flow: Option<u64>,
    /// Write the path as a profile
    #[arg(long, value_name = "FILE")]
    write_profile: Option<PathBuf>,
}

impl Path {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let name = self.write_profile.as_deref().map(profile_name).transpose()?;
        let mut recording = Recording::open(&self.recording)?;
        let flow = RecordedFlow::read(&mut recording, self.flow);
        for problem in &recording.problems {
            say(&format!("warning: {problem}"));
        }
        let unreadable = !recording.problems.is_empty();
        let told = |error: FitError| match error {
            FitError::NoFlow { .. } => Usage::error(error.to_string()),
            FitError::NoAcks if unreadable => {
                anyhow!("{} holds no acknowledgments that can be read", self.recording.display())
            }
            other => anyhow!("{}: {other}", self.recording.display()),
        };
        let fitted = fit(&flow.map_err(told)?).map_err(told)?;
        if let (Some(file), Some(name)) = (&self.write_profile, name) {
            write(file, &fitted.profile(&name))?;
            output.progress(&format!("simulate it: {}", command(file)));
        }
        output.data(&fitted, || text(&fitted))?;
        Ok(if recording.problems.is_empty() { 0 } else { PARTIAL })
    }
}

/// Profiles are called as their files.
fn profile_name(file: &File) -> anyhow::Result<String> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if file.extension().is_none_or(|extension| extension != "toml")
        || name.is_empty()
        || name.len() > LONGEST_NAME
        || !name.chars().all(plain)
    {
        return Err(Usage::error(format!(
            "--write-profile {}: give NAME.toml, NAME of 1 to {LONGEST_NAME} lower-case letters, digits and dashes",
            file.display()
        )));
    }
    Ok(name)
}

fn write(file: &File, profile: &Profile) -> anyhow::Result<()> {
    let text = toml::to_string(profile).context("cannot write the path as a profile")?;
    std::fs::write(file, format!("# Simulate it: {}\n\n{text}", command(file)))
        .with_context(|| format!("cannot write {}", file.display()))
}

fn command(file: &File) -> String {
    let file = file.display().to_string();
    let file = if file.contains('/') { file } else { format!("./{file}") };
    format!("onramp sim compare --profile {file} --arms cubic,search,ramp")
}

fn text(fitted: &Fitted) -> String {
    let bound = |known| match known {
        Known::Measured => "",
        Known::AtLeast => "at least ",
    };
    let explained = &fitted.explained;
    let mut text = format!(
        "flow {}: {} acknowledgments in {}\n\
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_called_as_its_file() {
        assert_eq!(profile_name(File::new("/tmp/slow-1.toml")).unwrap(), "slow-1");
        for wrong in ["slow", "Slow.toml", ".toml", "a_b.toml", "x.json"] {
            let error = profile_name(File::new(wrong)).unwrap_err().to_string();
            assert!(error.contains(wrong) && error.contains("NAME.toml"), "{error}");
        }
        assert!(profile_name(File::new(&format!("{}.toml", "a".repeat(32)))).is_err());
    }
}
