//! `onramp-lab sim reproduce`.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use onramp_lab::experiment::{Comparison, Plan};
use onramp_lab::plot::{self, Curve};
use onramp_lab::question::{Evidence, Trial};
use onramp_lab::sim::{self, SourceSpec};
use onramp_reproduce::{Claim, SIMULATED};

use crate::arm::Arms;
use crate::output::Output;
use crate::progress::{Progress, Resumes};
use crate::target::directory;
use crate::verb::reproduction::{self, CLAIMED, Choice, Outcomes, trials};

/// Test what the documents show by simulations and closed forms, in the simulator: the source's figures compared with ours
///
/// Claims, files and report are of the form that `onramp lab reproduce` has for real TCP: each claim leaves a CSV file with its
/// runs and a figure, each experiment the windows of the first run of each arm over time, and report.html gathers all
/// in one page. All take some minutes, with --quick half of one. Exits 1 if a claim does not hold.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp sim reproduce early-loss
  onramp sim reproduce --all -o reproduction
  onramp sim reproduce bod-model bod-k --quick --json")]
pub(super) struct Reproduce {
    #[command(flatten)]
    choice: Choice,
    /// Directory for everything [default: runs/sim-reproduce]
    #[arg(short, long, value_name = "DIR", value_parser = directory, default_value = "runs/sim-reproduce", hide_default_value = true)]
    output: PathBuf,
}

impl Reproduce {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        if self.choice.list {
            let claims: Vec<_> = SIMULATED.iter().map(Claim::question).collect();
            return reproduction::print_list("claims", &claims, |_| Ok(None), output);
        }
        let claims = self.choice.claims(&SIMULATED)?;
        let mut outcomes = Outcomes::new(&self.output, self.choice.manner, CLAIMED)?;
        let all = claims.iter().map(|claim| trials(std::slice::from_ref(claim)).len() as u64).sum();
        let (mut made, began) = (0, Instant::now());
        let progress = Progress::begin(output, "experiments", Resumes::No);
        for claim in claims {
            let mut evidence = Evidence::default();
            for trial in trials(std::slice::from_ref(&claim)) {
                progress.count(&format!("{}: {}", claim.id, trial.name), made, all, began);
                let comparison = self.simulate(trial)?;
                evidence.trials.insert(trial.name.clone(), comparison);
                made += 1;
            }
            progress.say(&outcomes.add(&claim, &evidence)?);
        }
        drop(progress);
        outcomes.finish(output)
    }

    fn simulate(&self, trial: &Trial) -> anyhow::Result<Comparison> {
        let directory = self.output.join(&trial.name);
        let plan: Plan = self.choice.manner.plan(trial, &self.output)?;
        let arms = Arms::describe(&trial.arms, &plan.profile, &[])?;
        let mut curves = Vec::new();
        let comparison =
            sim::compare_watched(&plan, &arms, SourceSpec::Bulk, |arm, repetition, run, flow| {
                if repetition == 0 {
                    curves.push(Curve::new(&arm.name, flow, run.exit.as_ref()));
                }
                Ok(())
            })?;
        std::fs::create_dir_all(&directory)?;
        plot::write(&directory, &plan.profile, &curves)?;
        Ok(Comparison { directory: Some(directory), ..comparison })
    }
}
