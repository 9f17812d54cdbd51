//! `onramp-lab sim run` and `onramp-lab sim compare`.

use std::time::Instant;

use clap::Args;
use onramp_lab::experiment::{Arm, Comparison, Flow, Plan, Run};
use onramp_lab::sim::{self, SimError, SourceSpec};
use onramp_lab::table;

use crate::arm::Arms;
use crate::failure::Usage;
use crate::output::Output;
use crate::profile;
use crate::progress::{Progress, Resumes};
use crate::units;
use crate::verb::transfer::{self, Traffic, Transfer};

/// Simulate one transfer
///
/// An arm is an algorithm of onramp's, cubic (with the kernel's HyStart) or reno, with settings of its own after colons as
/// in `onramp lab run`, and for algorithms base=tahoe. The JSON is that of `onramp lab run`, with "simulated" as its clock.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp sim run search
  onramp sim run plain:base=reno:host.tcp_sack=off --profile bod --bytes 200k --seed 7 --json")]
pub(super) struct RunOne {
    /// Algorithm or congestion control, with settings after colons
    arm: String,
    #[command(flatten)]
    options: Options,
}

impl RunOne {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        self.options.simulate(&[self.arm], 1, output)
    }
}

/// Simulate arms side by side, on the same seeds
///
/// A transfer that is given up at the limit (--timeout) counts as at least that long: means become bounds (≥, in JSON
/// `bound`), and `paired` has the arms over the seeds that all of them finished. Exits 5 if there is one.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp sim compare --arms cubic,plain,search -n 100
  onramp sim compare --arms search:threshold_pct=10,search:threshold_pct=20 --profile leo --json
  onramp sim compare --arms cubic,search --bytes 20M --object 200k --think 2s")]
pub(crate) struct Compare {
    /// Algorithms and congestion controls, with settings after colons
    #[arg(long, value_delimiter = ',', value_name = "ARM,…", default_value = "cubic,plain,search")]
    arms: Vec<String>,
    /// Transfers of each arm
    #[arg(short = 'n', long, default_value_t = 10, value_parser = units::number(1..=10_000_u32))]
    repetitions: u32,
    #[command(flatten)]
    options: Options,
}

impl Compare {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        self.options.simulate(&self.arms, self.repetitions, output)
    }

    /// Simulates it; shows `each` what [`sim::compare_watched`] does.
    pub fn simulated(
        &self,
        each: impl FnMut(&Arm, u32, &Run, &Flow) -> Result<(), SimError>,
    ) -> anyhow::Result<Comparison> {
        let (plan, arms) = self.options.prepared(&self.arms, self.repetitions)?;
        self.options.simulated(&plan, &arms, each)
    }
}

/// What is simulated, for all arms.
#[derive(Args, Debug)]
struct Options {
    /// Link and hosts: a path, or a name in /etc/onramp/profiles or built in
    #[arg(long, value_name = "PROFILE", default_value = "geo")]
    profile: String,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    transfer: Transfer,
    #[command(flatten)]
    traffic: Traffic,
}

/// When the application has something to send.
#[derive(Args, Debug)]
struct SourceOptions {
    /// The bytes are objects of this size, each asked for after the one before has been received
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    object: Option<u64>,
    /// Time from the end of one object to the begin of the next
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = units::duration, requires = "object")]
    think: std::time::Duration,
    /// The bytes come in blocks of this size, at fixed times
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, conflicts_with = "object")]
    block: Option<u64>,
    /// Time from one block to the next, 1 ms at least
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration, requires = "block")]
    every: std::time::Duration,
}

impl SourceOptions {
    fn spec(&self) -> anyhow::Result<SourceSpec> {
        let micros = |time: std::time::Duration| time.as_micros() as u64;
        Ok(match (self.object, self.block) {
            (Some(object_bytes), _) => SourceSpec::Requests { object_bytes, think_us: micros(self.think) },
            (_, Some(_)) if micros(self.every) < 1_000 => {
                return Err(Usage::error(format!("--every {:?} is out of range: 1 ms at least", self.every)));
            }
            (_, Some(block_bytes)) => SourceSpec::Periodic { block_bytes, every_us: micros(self.every) },
            (None, None) => SourceSpec::Bulk,
        })
    }
}

impl Options {
    fn prepared(&self, arms: &[String], repetitions: u32) -> anyhow::Result<(Plan, Vec<Arm>)> {
        let mut plan = self.transfer.plan(profile::load(&self.profile)?, repetitions);
        self.traffic.join(&mut plan)?;
        let arms = Arms::describe(arms, &plan.profile, &self.transfer.settings)?;
        Ok((plan, arms))
    }

    fn simulated(
        &self,
        plan: &Plan,
        arms: &[Arm],
        each: impl FnMut(&Arm, u32, &Run, &Flow) -> Result<(), SimError>,
    ) -> anyhow::Result<Comparison> {
        sim::compare_watched(plan, arms, self.source.spec()?, each).map_err(|error| match error {
            SimError::Control { .. }
            | SimError::Unlearned { .. }
            | SimError::Range(_)
            | SimError::Plan(_) => Usage::error(error.to_string()),
            other => other.into(),
        })
    }

    fn simulate(&self, arms: &[String], repetitions: u32, output: &Output) -> anyhow::Result<u8> {
        let (plan, arms) = self.prepared(arms, repetitions)?;
        let all = u64::from(repetitions) * arms.len() as u64;
        let (mut made, began) = (0, Instant::now());
        let progress = Progress::begin(output, "runs", Resumes::No);
        let simulated = self.simulated(&plan, &arms, |arm, _, _, _| {
            made += 1;
            progress.count(&arm.name, made, all, began);
            Ok(())
        });
        drop(progress);
        let comparison = simulated?;
        output.versioned(&comparison, || table::comparison(&comparison))?;
        Ok(transfer::code(&comparison.arms))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        source: SourceOptions,
    }

    #[test]
    fn applications_are_read_with_their_ranges() {
        let spec =
            |words: &[&str]| CommandLine::try_parse_from([&["sim"], words].concat()).unwrap().source.spec();
        assert_eq!(spec(&[]).unwrap(), SourceSpec::Bulk);
        let think = SourceSpec::Requests { object_bytes: 5_000, think_us: 2_000_000 };
        assert_eq!(spec(&["--object", "5000", "--think", "2s"]).unwrap(), think);
        let video = SourceSpec::Periodic { block_bytes: 5_000, every_us: 40_000 };
        assert_eq!(spec(&["--block", "5000", "--every", "40ms"]).unwrap(), video);
        assert!(
            spec(&["--block", "5000", "--every", "0s"]).unwrap_err().to_string().contains("1 ms at least")
        );
        assert!(CommandLine::try_parse_from(["sim", "--object", "0"]).is_err());
        assert!(CommandLine::try_parse_from(["sim", "--think", "1s"]).is_err());
    }

    #[test]
    fn what_is_not_simulated_is_refused_by_name() {
        let arms = |name: &str, profile: &str| {
            let plan = Plan::new(profile::load(profile).unwrap());
            let arms = Arms::describe(&[name], &plan.profile, &[])?;
            sim::compare(&plan, &arms, SourceSpec::Bulk).map_err(anyhow::Error::from)
        };
        assert!(arms("bbr", "leo").is_ok() && arms("plain:base=bbr", "leo").is_ok());
        assert!(matches!(
            arms("inflight:base=bbr", "geo").unwrap_err().downcast(),
            Ok(SimError::AfterExitOverBbr { name, algorithm: "inflight" }) if name == "inflight:base=bbr"
        ));
        assert!(matches!(
            arms("ramp:start=resume", "geo").unwrap_err().downcast(),
            Ok(SimError::Unlearned { name, start }) if name == "ramp:start=resume" && start == "resume"
        ));
        assert!(arms("ramp:start=double", "geo").is_ok());
        assert!(arms("vegas", "geo").unwrap_err().to_string().contains("there is no arm"));
    }
}
