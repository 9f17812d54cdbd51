//! What all experiments take.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use onramp_lab::experiment::{self, Arm, Clock, Plan, Shard};
use onramp_loader::algorithm;
use onramp_profiles::Profile;

use super::clock::{ClockOptions, RECORD};
use crate::failure::Usage;
use crate::follow;
use crate::target::directory;
use crate::units;
use crate::verb::transfer::Transfer;

/// Options of every experiment.
#[derive(Args, Clone, Debug)]
pub(super) struct Common {
    #[command(flatten)]
    pub transfer: Transfer,
    #[command(flatten)]
    pub tool: Tool,
    /// Say once a second on stderr what the flow does
    #[arg(long)]
    follow: bool,
    /// Record the flows of onramp's algorithms, as `onramp record` does, into the directory recording/ of each run; takes
    /// processor time of the guest
    #[arg(long)]
    record: bool,
    #[command(flatten)]
    pub clock: ClockOptions,
    /// Directory for manifest, results, series and plot [default: runs/TIME-PROFILE-ARMS]
    #[arg(short, long, value_name = "DIR", value_parser = directory)]
    pub output: Option<PathBuf>,
}

/// What makes the transfers.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Tool {
    /// What makes the transfers: a source and a sink of onramp's own, or iperf3, which needs several times the processor
    /// time and gives the same results where the processor keeps up
    #[arg(long, value_enum, default_value = "builtin")]
    tool: ToolName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ToolName {
    Builtin,
    Iperf3,
}

impl From<Tool> for experiment::Tool {
    fn from(option: Tool) -> Self {
        match option.tool {
            ToolName::Builtin => Self::Builtin,
            ToolName::Iperf3 => Self::Iperf3,
        }
    }
}

/// Of experiments with many runs.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Jobs {
    /// Runs at once, 1 to 16 [default: in virtual time one for each processor, else 1]. In the machine's time arms of
    /// one algorithm that differ in parameters still take turns, and the emulators must keep up: see invalid runs
    #[arg(short, long, value_name = "N", value_parser = units::number(1..=16_u16))]
    pub jobs: Option<u16>,
    /// In virtual time, make only the I-th of N equal parts of the runs here and take the others where they have been
    /// made: results are kept in ONRAMP_CACHE, which several machines may share
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
}

impl Common {
    /// Whose time its runs are made in, all of them or those of a shard.
    pub fn clock(&self, shard: Option<Shard>) -> anyhow::Result<Clock> {
        if self.record && !self.clock.is_virtual() {
            return Err(Usage::error(
                "--record is for virtual time: with --clock machine, run `onramp record` next to it",
            ));
        }
        let words = [("--follow", self.follow), (RECORD, self.record)];
        let words: Vec<_> = words.into_iter().filter_map(|(word, is)| is.then_some(word)).collect();
        self.clock.clock(self.tool.into(), &words, shard)
    }

    /// Refuses to record arms of which none can be.
    pub fn check_recorded(&self, arms: &[Arm]) -> anyhow::Result<()> {
        if !self.record || arms.iter().any(|arm| arm.records_exit) {
            return Ok(());
        }
        let cubic = algorithm::of_cubic().name();
        Err(Usage::error(format!(
            "--record: only flows of onramp's algorithms are recorded, and none of the arms is one: {cubic} has the slow start of \
             the kernel's CUBIC"
        )))
    }

    /// The plan of an experiment with `repetitions` of each arm, `jobs` runs at once.
    pub fn plan(&self, profile: Profile, repetitions: u32, jobs: Option<u16>, clock: Clock) -> Plan {
        Plan {
            jobs: self.clock.jobs(jobs),
            clock,
            directory: self.output.clone(),
            tool: self.tool.into(),
            watch: self.follow.then(follow::follow),
            ..self.transfer.plan(profile, repetitions)
        }
    }
}
