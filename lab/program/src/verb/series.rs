//! A series of trials, each made once: what `onramp-lab reproduce` and `onramp-lab evaluate` share.

use std::path::Path;

use clap::Args;
use onramp_lab::experiment::{self, Comparison, Plan};
use onramp_lab::question::{Evidence, Trial};

use super::clock::ClockOptions;
use super::common::{Jobs, Tool};
use super::progress::{self, Clock};
use crate::arm::Arms;
use crate::output::Output;
use crate::progress::Resumes;
use crate::verb::reproduction::Manner;

/// Options of a series.
#[derive(Args, Debug)]
pub(super) struct SeriesOptions {
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    clock: ClockOptions,
    #[command(flatten)]
    tool: Tool,
    /// Take from DIR the experiments that an earlier run with the same conditions has completed
    #[arg(long)]
    resume: bool,
}

impl SeriesOptions {
    /// Whose time the runs are made in. `words` go to the program in the guest.
    pub fn clock(&self, words: &[&str]) -> anyhow::Result<experiment::Clock> {
        self.clock.clock(self.tool.into(), words, self.jobs.shard)
    }

    /// Whether the same command goes on after it was stopped.
    fn keeps(&self) -> bool {
        self.resume || self.clock.keeps()
    }

    /// Whether runs are made in guests.
    pub fn is_virtual(&self) -> bool {
        self.clock.is_virtual()
    }
}

pub(super) struct Series<'a> {
    pub options: &'a SeriesOptions,
    pub manner: Manner,
    /// Each trial has a directory below it.
    pub root: &'a Path,
}

impl Series<'_> {
    /// What a trial is to do, in the machine's time.
    pub fn plan(&self, trial: &Trial) -> anyhow::Result<Plan> {
        Ok(Plan {
            jobs: self.options.clock.jobs(self.options.jobs.jobs),
            tool: self.options.tool.into(),
            ..self.manner.plan(trial, self.root)?
        })
    }

    /// What a trial is expected to take, seconds.
    pub fn seconds(&self, trial: &Trial) -> anyhow::Result<f64> {
        let plan = self.plan(trial)?;
        Ok(plan.expected_seconds() * f64::from(plan.repetitions) * trial.arms.len() as f64)
    }

    /// What an earlier run has left of a trial. Also says what is wrong with it, before hours are spent.
    pub fn kept(&self, trial: &Trial, plan: &Plan) -> anyhow::Result<Option<Comparison>> {
        let arms = Arms::prepare(&trial.arms, &plan.profile, &[], &plan.clock)?;
        Ok(self.options.resume.then(|| experiment::kept(plan, &arms.arms)).flatten())
    }

    /// How far it is, once it is known what of the trials there is.
    pub fn begin(
        &self,
        verb: &'static str,
        trials: &[&Trial],
        evidence: &Evidence,
        output: &Output,
    ) -> anyhow::Result<Clock> {
        if !trials.is_empty() {
            self.options.clock.require_root(verb)?;
        }
        let mut expected = 0.0;
        for trial in trials.iter().filter(|trial| !evidence.trials.contains_key(&trial.name)) {
            expected += self.seconds(trial)?;
        }
        let resumes = if self.options.keeps() { Resumes::Yes } else { Resumes::No };
        Ok(Clock::start(expected, resumes, output))
    }

    /// Makes the runs of a trial.
    pub fn measure(&self, trial: &Trial, plan: &Plan, clock: &mut Clock) -> anyhow::Result<Comparison> {
        let arms = Arms::prepare(&trial.arms, &plan.profile, &[], &plan.clock)?;
        let each = plan.expected_seconds();
        let comparison = experiment::compare(plan, &arms.arms, |progress| {
            progress::show(&progress, each, clock);
        })?;
        Ok(comparison)
    }
}
