//! What kernel TCP in virtual time says of a candidate.

use std::fmt;
use std::path::Path as Directory;

use clap::Args;
use onramp_lab::experiment::{self, Clock, Plan, Run, Tool};
use onramp_lab::population::{MOST_BPS_OF_A_GUEST, MOST_BYTES_OF_A_GUEST, Path};
use onramp_lab::sim::tune::{HeldOut, Tuning, cost_seconds};
use serde::Serialize;

use crate::failure::Usage;
use crate::output::Output;
use crate::units;
use crate::verb::clock::ClockOptions;

/// Whether kernel TCP is asked.
#[derive(Args, Clone, Debug)]
pub(super) struct Confirmation {
    /// Ask kernel TCP in virtual time as well, on the first N of the paths that are held out on which a guest can keep up: 1 to
    /// 1000, two transfers each of half a minute or so
    #[arg(long, value_name = "N", value_parser = units::number(1..=1_000_u16))]
    confirm: Option<u16>,
    /// Kernel of the guests: a series of `onramp lab kernel list`, or the path of a directory with vmlinuz and modules/
    #[arg(long, value_name = "KERNEL", default_value = "6.12", requires = "confirm")]
    kernel: String,
}

/// What it said.
#[derive(Serialize)]
pub(super) struct Confirmed {
    /// The kernel's series.
    kernel: String,
    /// Best against start.
    pub beside_start: HeldOut,
    /// Each path.
    paths: Vec<Measured>,
}

/// Two transfers over one path.
#[derive(Serialize)]
struct Measured {
    path: u64,
    name: String,
    start_seconds: f64,
    start_retransmitted_segments: u64,
    seconds: f64,
    retransmitted_segments: u64,
}

impl Confirmation {
    /// The guests' clock, if kernel TCP is asked.
    pub fn prepare(&self) -> anyhow::Result<Option<Clock>> {
        let options = ClockOptions::of_guests(&self.kernel, false);
        self.confirm.map(|_| options.clock(Tool::Builtin, &[], None)).transpose()
    }

    /// Start and best over some of these paths.
    pub fn confirm(
        &self,
        tuning: &Tuning,
        paths: impl Iterator<Item = Path>,
        clock: Clock,
        directory: &Directory,
        output: &Output,
    ) -> anyhow::Result<Confirmed> {
        let wanted = usize::from(self.confirm.unwrap_or_default());
        let arms = tuning.arms();
        let mut measured = Vec::new();
        let mut logarithms = Vec::new();
        for path in paths.filter(Path::suits_a_guest).take(wanted) {
            output.step(&format!(
                "kernel TCP over {} ({} of {wanted})",
                path.profile.name,
                measured.len() + 1
            ));
            let directory = Some(directory.join(path.number.to_string()));
            let plan = Plan { clock: clock.clone(), jobs: 2, directory, ..path.plan() };
            let comparison = experiment::compare(&plan, &arms, |_| {})?;
            let mut of_arms = comparison.arms.iter().map(|arm| arm.runs.iter().find(|run| run.counts()));
            let both = of_arms.next().flatten().zip(of_arms.next().flatten());
            // Of two that were given up, nothing is known of which is faster.
            let Some((start, best)) = both.filter(|(start, best)| start.valid || best.valid) else {
                output.progress(&format!("{} does not count: a run was not measured", path.profile.name));
                continue;
            };
            let cost = |run: &Run| {
                let bps = path.profile.link.available_bps();
                cost_seconds(run.seconds, run.retransmitted_segments, bps, tuning.loss_weight)
            };
            let logarithm = (cost(best) / cost(start)).ln();
            logarithms.push(match (best.valid, start.valid) {
                (false, _) => logarithm.max(0.0),
                (true, false) => logarithm.min(0.0),
                (true, true) => logarithm,
            });
            measured.push(Measured {
                path: path.number,
                name: path.profile.name.clone(),
                start_seconds: start.seconds,
                start_retransmitted_segments: start.retransmitted_segments,
                seconds: best.seconds,
                retransmitted_segments: best.retransmitted_segments,
            });
        }
        let Some(beside_start) = HeldOut::new(tuning.held_out.first_path, &logarithms) else {
            return Err(Usage::error(format!(
                "--confirm {wanted}: none of the paths that are held out is one transfer of at most {} MB at {} Mb/s at most",
                MOST_BYTES_OF_A_GUEST / 1_000_000,
                MOST_BPS_OF_A_GUEST / 1_000_000
            )));
        };
        Ok(Confirmed { kernel: self.kernel.clone(), beside_start, paths: measured })
    }
}

impl fmt::Display for Confirmed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "Kernel TCP {}, {}", self.kernel, self.beside_start)?;
        writeln!(
            out,
            "\n| path | start, s | retransmitted | best, s | retransmitted |\n| --- | ---: | ---: | ---: | ---: |"
        )?;
        self.paths.iter().try_for_each(|path| {
            writeln!(
                out,
                "| {} | {:.3} | {} | {:.3} | {} |",
                path.name,
                path.start_seconds,
                path.start_retransmitted_segments,
                path.seconds,
                path.retransmitted_segments
            )
        })
    }
}
