//! `onramp-lab sweep`.

use std::path::Path as Directory;

use clap::Args;
use onramp_lab::experiment::{self, Clock, Plan, Tool};
use onramp_lab::population::{MOST_BPS_OF_A_GUEST, MOST_BYTES_OF_A_GUEST, Path, Population};
use onramp_lab::sim::sweep::RunRow;

use super::clock::ClockOptions;
use crate::arm::Arms;
use crate::failure::Usage;
use crate::output::Output;
use crate::units;
use crate::verb::population::{self, Jobs};
use crate::verb::sweeping::{PROGRAM, Sweeping};

/// One path in so many is looked at, at most, for those that suit a guest.
const LOOKED_AT: u64 = 1_000;

/// Run arms over a population of paths with kernel TCP in virtual time
///
/// As `onramp sim sweep`, with the kernel instead of the simulator: the same paths, the same files and summary. Of the
/// population those paths are taken, in their order, that a guest keeps up with: one transfer of at most 100 MB at 500 Mb/s at
/// most. A path over which a guest was too slow all the same is left out, and said. Runs are kept as those of `onramp lab compare`
/// are, so a sweep that was broken off loses none. `onramp sim agree DIR/*/result.json` compares with the simulator.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab sweep --paths 50 --arms cubic,bbr,ramp
  onramp lab sweep --paths 50 --arms cubic,ramp:base=bbr --seed 7 --kernel 7.2
  onramp sim agree runs/lab-sweep-default-1/*/result.json")]
pub(crate) struct Sweep {
    #[command(flatten)]
    sweeping: Sweeping,
    /// Algorithms and controls, with settings after colons as in `onramp lab compare`
    #[arg(long, value_delimiter = ',', value_name = "ARM,…", default_value = "cubic,bbr,ramp")]
    arms: Vec<String>,
    /// How many paths, 1 to 100000
    #[arg(long, default_value_t = 20, value_parser = units::number(1..=100_000_u64))]
    paths: u64,
    #[command(flatten)]
    jobs: Jobs,
    /// Kernel of the guests: a series of `onramp lab kernel list`, or the path of a directory with vmlinuz and modules/
    #[arg(long, value_name = "KERNEL", default_value = "6.12")]
    kernel: String,
}

impl Sweep {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let (text, population) = population::load(&self.sweeping.population)?;
        let numbers = self.numbers(&population)?;
        let clock = ClockOptions::of_guests(&self.kernel, false).clock(Tool::Builtin, &[], None)?;
        let path = |at: u64| self.sweeping.path(&population, numbers[at as usize]);
        // What is wrong with an arm shows before anything is made.
        self.prepared(&path(0), &clock)?;
        let kernel = Some(self.kernel.clone());
        let definition = self.sweeping.definition(PROGRAM.as_ref(), text, &self.arms, self.paths, kernel)?;
        let directory = self.sweeping.directory("lab-sweep", &population);
        let make = |at| self.rows(&path(at), &clock, &directory, output);
        let jobs = self.jobs.jobs();
        self.sweeping.sweep(&definition, directory.clone(), &population, jobs, make, output)
    }

    /// The paths that suit a guest, from the first on.
    fn numbers(&self, population: &Population) -> anyhow::Result<Vec<u64>> {
        let all = 0..self.paths * LOOKED_AT;
        let suits = |number: &u64| self.sweeping.path(population, *number).suits_a_guest();
        let numbers: Vec<_> = all.filter(suits).take(self.paths as usize).collect();
        if numbers.len() < self.paths as usize {
            return Err(Usage::error(format!(
                "--paths {}: of the first {} paths of the population {} suit a guest (one transfer of at most {} MB at {} Mb/s at most)",
                self.paths,
                self.paths * LOOKED_AT,
                numbers.len(),
                MOST_BYTES_OF_A_GUEST / 1_000_000,
                MOST_BPS_OF_A_GUEST / 1_000_000
            )));
        }
        Ok(numbers)
    }

    fn prepared(&self, path: &Path, clock: &Clock) -> anyhow::Result<Arms> {
        Arms::prepare(&self.arms, &path.profile, &[], clock)
    }

    /// A run of each arm; none if one of them does not count.
    fn rows(
        &self,
        path: &Path,
        clock: &Clock,
        directory: &Directory,
        output: &Output,
    ) -> anyhow::Result<Vec<RunRow>> {
        let directory = Some(directory.join(path.number.to_string()));
        let plan = Plan { clock: clock.clone(), directory, ..path.plan() };
        let arms = self.prepared(path, clock)?;
        let comparison = experiment::compare(&plan, &arms.arms, |_| {})?;
        let mut rows = Vec::new();
        for (arm, result) in arms.arms.iter().zip(&comparison.arms) {
            match result.runs.first() {
                Some(run) if run.counts() => rows.push(RunRow::new(path, arm, run)),
                other => {
                    let why =
                        other.and_then(|run| run.invalid_reason.as_deref()).unwrap_or("it has no result");
                    let name = &path.profile.name;
                    output.progress(&format!(
                        "{name} is left out: the run of {} does not count: {why}",
                        arm.name
                    ));
                    return Ok(Vec::new());
                }
            }
        }
        Ok(rows)
    }
}
