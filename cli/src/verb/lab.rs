//! `onramp lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use onramp_lab::experiment::{self, Comparison, Plan, Progress};
use onramp_lab::table;

use crate::arm::Arms;
use crate::failure::{FAILURE, Usage};
use crate::follow;
use crate::output::Output;
use crate::profile;

/// Measure with real kernel TCP over an emulated link
///
/// Two network namespaces are joined by an emulator on two TUN devices; iperf3 downloads from one to the other.
/// Everything is made for the run and gone with it.
#[derive(Args, Debug)]
pub(crate) struct Lab {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(RunOne),
    Compare(Compare),
    Calibrate(Calibrate),
}

/// What all experiments take.
#[derive(Args, Debug)]
struct Common {
    /// Link and hosts: a path, or a name in ./profiles, /etc/onramp/profiles or built in
    #[arg(long, value_name = "PROFILE", default_value = "geo")]
    profile: String,
    /// Bytes of each download
    #[arg(long, value_name = "BYTES", default_value_t = experiment::DEFAULT_BYTES)]
    bytes: u64,
    /// Seed of the link's randomness in the first repetition
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Set a parameter of an arm, on top of the profile
    #[arg(long = "set", value_name = "ALG.NAME=VALUE")]
    settings: Vec<String>,
    /// Say once a second on stderr what the flow does
    #[arg(long)]
    follow: bool,
    /// Directory for manifest, results, series and plot [default: runs/TIME-PROFILE-ARMS]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Download once
///
/// An arm is an algorithm of onramp's (attached for the run unless it is attached already, then used as it is) or a
/// congestion control of this kernel.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp lab run search\n  onramp lab run cubic --profile geo --bytes 200000000"
)]
struct RunOne {
    /// Algorithm or congestion control
    arm: String,
    #[command(flatten)]
    common: Common,
}

/// Compare arms: several downloads each, taking turns, on the same seeds
///
/// Times are the receiver's, to the last byte. Means are over the valid runs, with the 95 % confidence interval; a run
/// in which the emulator fell behind is invalid. The exit of the kernel's own controls is found by sampling every
/// 10 ms; onramp's flows record theirs.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp lab compare --arms cubic,plain,search --repetitions 5\n  onramp lab compare --arms plain,search --set search.exit_action=hold --json"
)]
struct Compare {
    /// Algorithms and congestion controls
    #[arg(long, value_delimiter = ',', value_name = "ARM,…", default_value = "cubic,plain,search")]
    arms: Vec<String>,
    /// Downloads of each arm
    #[arg(short = 'n', long, default_value_t = 3)]
    repetitions: u32,
    #[command(flatten)]
    common: Common,
}

/// Measure the emulated link itself: rate within 1 %, base RTT within 1 ms, queue limit within a packet
///
/// The link is built without its random parts and probed with UDP. Exits 1 if it is off: this machine is too busy to
/// emulate it.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp lab calibrate\n  onramp lab calibrate --profile ./mine.toml --json"
)]
struct Calibrate {
    /// Link: a path, or a name in ./profiles, /etc/onramp/profiles or built in
    #[arg(long, value_name = "PROFILE", default_value = "geo")]
    profile: String,
}

impl Calibrate {
    fn run(self, output: &Output) -> anyhow::Result<u8> {
        let profile = profile::load(&self.profile)?;
        let calibration = onramp_lab::calibrate::calibrate(&profile.link)?;
        output.data(&calibration, || format!("{}: {calibration}\n", profile.name))?;
        Ok(if calibration.holds() { 0 } else { FAILURE })
    }
}

impl Lab {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        match self.verb {
            Verb::Run(one) => measure(&[one.arm], 1, one.common, output),
            Verb::Calibrate(calibrate) => calibrate.run(output),
            Verb::Compare(compare) => measure(&compare.arms, compare.repetitions, compare.common, output),
        }
    }
}

fn measure(names: &[String], repetitions: u32, common: Common, output: &Output) -> anyhow::Result<u8> {
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return Err(Usage::error(format!("arm {:?} is given twice", twice.1)));
    }
    let profile = profile::load(&common.profile)?;
    let arms = Arms::prepare(names, &profile, &common.settings)?;
    let plan = Plan {
        bytes: common.bytes,
        repetitions,
        seed: common.seed,
        directory: common.output,
        watch: common.follow.then(follow::follow),
        ..Plan::new(profile)
    };
    let comparison = experiment::compare(&plan, &arms.arms, |progress| show(&progress, output))?;
    output.versioned(&comparison, || text(&comparison))?;
    let valid = comparison.arms.iter().all(|arm| arm.valid_runs > 0);
    Ok(if valid { 0 } else { FAILURE })
}

fn text(comparison: &Comparison) -> String {
    let mut text = table::comparison(comparison);
    if let Some(directory) = &comparison.directory {
        text += &format!("plot: {}\n", directory.join("plot.svg").display());
    }
    text
}

fn show(progress: &Progress<'_>, output: &Output) {
    match progress {
        Progress::Started { index, total, arm, seed, .. } => {
            output.progress(&format!("[{}/{total}] {arm}, seed {seed} …", index + 1));
        }
        Progress::Finished { index, total, arm, run, .. } => {
            let exit = run.exit.as_ref().map_or_else(String::new, |exit| {
                format!(
                    ", left slow start by {} after {:.2} s at {:.2} MB",
                    exit.reason,
                    exit.seconds,
                    exit.window_bytes as f64 / 1e6
                )
            });
            let invalid =
                run.invalid_reason.as_ref().map_or_else(String::new, |why| format!(" — INVALID: {why}"));
            output.progress(&format!(
                "[{}/{total}] {arm}: {:.2} s, {} retransmitted{exit}{invalid}",
                index + 1,
                run.seconds,
                run.retransmitted_segments
            ));
        }
    }
}
