//! `onramp lab reproduce`.

use std::path::PathBuf;

use clap::Args;
use onramp_lab::experiment::{self, Comparison, Plan};
use onramp_lab::reproduce::{CLAIMS, Evidence, Footprint, RoundRates, Trial};
use onramp_loader::abi::FlowHeader;
use onramp_loader::algorithm;

use super::clock::ClockOptions;
use super::common::{Jobs, Tool};
use super::pairs::{self, Collector, PAIRS};
use super::progress::{self, Clock};
use crate::arm::Arms;
use crate::output::Output;
use crate::verb::reproduction::{self, Choice, Outcomes, trials};

/// Test what the documents claim of real TCP: the source's figures beside ours, and whether each claim holds
///
/// Each claim is a set of predicates with margins on what was measured. Every claim leaves a CSV file with its runs and
/// a figure; report.html gathers all in one page. Experiments that several claims need are run once. Exits 1 if a claim
/// does not hold.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab reproduce geo-download --quick
  onramp lab reproduce --all --jobs 4 -o reproduction
  onramp lab reproduce --all --jobs 4 -o reproduction --resume
  onramp lab reproduce buffers-map memory --json")]
pub(super) struct Reproduce {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    clock: ClockOptions,
    #[command(flatten)]
    tool: Tool,
    /// Take from DIR the experiments that an earlier run with the same conditions has completed
    #[arg(long)]
    resume: bool,
    /// Directory for everything [default: runs/reproduce]
    #[arg(short, long, value_name = "DIR", default_value = "runs/reproduce", hide_default_value = true)]
    output: PathBuf,
}

/// Whose time trials are made in: one for those that collect pairs, and one for the others. What guests boot is built once
/// for each, and not at all where nothing is run.
struct Clocks {
    pairs: Option<experiment::Clock>,
    others: Option<experiment::Clock>,
}

impl Clocks {
    fn new(asked: &Reproduce, trials: &[Trial]) -> anyhow::Result<Self> {
        let clock = |pairs: bool, words: &[&str]| {
            let needed = trials.iter().any(|trial| trial.pairs == pairs);
            needed.then(|| asked.clock.clock(asked.tool.into(), words, asked.jobs.shard)).transpose()
        };
        Ok(Self { pairs: clock(true, &["--pairs"])?, others: clock(false, &[])? })
    }

    fn of(&self, trial: &Trial) -> experiment::Clock {
        let clock = if trial.pairs { &self.pairs } else { &self.others };
        clock.clone().unwrap_or_default()
    }
}

impl Reproduce {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        if self.choice.list {
            return reproduction::print_list(&CLAIMS, |trial| self.seconds(trial).map(Some), output);
        }
        let claims = self.choice.claims(&CLAIMS)?;
        let trials = trials(&claims);
        let mut evidence = Evidence { footprints: footprints(), ..Evidence::default() };
        let clocks = Clocks::new(&self, &trials)?;
        if !trials.is_empty() {
            // What is wrong is to show before hours are spent.
            for trial in &trials {
                let plan = Plan { clock: clocks.of(trial), ..self.plan(trial)? };
                let arms = Arms::prepare(&trial.arms, &plan.profile, &[], &plan.clock)?;
                if let Some((comparison, pairs)) = self.kept(trial, &plan, &arms) {
                    evidence.pairs.extend(pairs);
                    evidence.trials.insert(trial.name.clone(), comparison);
                }
            }
            self.clock.require_root("lab reproduce")?;
        }
        let mut outcomes = Outcomes::new(&self.output, &self.choice)?;
        let mut expected = 0.0;
        for trial in trials.iter().filter(|trial| !evidence.trials.contains_key(&trial.name)) {
            expected += self.seconds(trial)?;
        }
        let mut clock = Clock::start(expected);
        for claim in &claims {
            for trial in (claim.trials)() {
                if !evidence.trials.contains_key(&trial.name) {
                    output.progress(&format!("{}: {} over {}", claim.id, trial.name, trial.profile));
                    let comparison =
                        self.measure(&trial, clocks.of(&trial), &mut evidence, &mut clock, output)?;
                    evidence.trials.insert(trial.name, comparison);
                }
            }
            outcomes.add(claim, &evidence, output)?;
        }
        outcomes.finish(output)
    }

    fn plan(&self, trial: &Trial) -> anyhow::Result<Plan> {
        Ok(Plan {
            jobs: self.clock.jobs(self.jobs.jobs),
            tool: self.tool.into(),
            ..self.choice.plan(trial, &self.output)?
        })
    }

    /// What a trial is expected to take, seconds.
    fn seconds(&self, trial: &Trial) -> anyhow::Result<f64> {
        let plan = self.plan(trial)?;
        Ok(plan.expected_seconds() * f64::from(plan.repetitions) * trial.arms.len() as f64)
    }

    fn measure(
        &self,
        trial: &Trial,
        made_in: experiment::Clock,
        evidence: &mut Evidence,
        clock: &mut Clock,
        output: &Output,
    ) -> anyhow::Result<Comparison> {
        let collector = Collector::default();
        let watch = trial.pairs.then(|| collector.watch());
        let plan = Plan { clock: made_in, watch, ..self.plan(trial)? };
        let arms = Arms::prepare(&trial.arms, &plan.profile, &[], &plan.clock)?;
        let each = plan.expected_seconds();
        let comparison = experiment::compare(&plan, &arms.arms, |progress| {
            progress::show(&progress, each, clock, output);
        })?;
        if trial.pairs {
            let directory = self.output.join(&trial.name);
            let rounds = if self.clock.is_virtual() { pairs::left(&directory)? } else { collector.rounds() };
            reproduction::write(
                &self.output.join(&trial.name).join(PAIRS),
                &serde_json::to_string(&rounds)?,
            )?;
            evidence.pairs.extend(rounds);
        }
        Ok(comparison)
    }

    /// What an earlier run has left of a trial.
    fn kept(&self, trial: &Trial, plan: &Plan, arms: &Arms) -> Option<(Comparison, Vec<RoundRates>)> {
        if !self.resume {
            return None;
        }
        let comparison = experiment::kept(plan, &arms.arms)?;
        if !trial.pairs {
            return Some((comparison, Vec::new()));
        }
        let pairs = std::fs::read_to_string(self.output.join(&trial.name).join(PAIRS)).ok()?;
        Some((comparison, serde_json::from_str(&pairs).ok()?))
    }
}

fn footprints() -> Vec<Footprint> {
    let of = |one: algorithm::Algorithm| Footprint {
        algorithm: one.name().to_owned(),
        state_bytes: one.kept_size(),
        header_bytes: size_of::<FlowHeader>(),
    };
    algorithm::all().map(of).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        reproduce: Reproduce,
    }

    #[test]
    fn every_trial_has_a_profile_valid_as_adapted_and_is_run_once() {
        let reproduce = Words::parse_from(["reproduce", "--all", "--quick"]).reproduce;
        let trials = trials(&reproduce.choice.claims(&CLAIMS).unwrap());
        for (at, trial) in trials.iter().enumerate() {
            let plan = reproduce.plan(trial).unwrap();
            plan.profile.validate().unwrap();
            assert_eq!(plan.repetitions, trial.quick);
            assert!(trials[..at].iter().all(|other| other.name != trial.name));
        }
        assert!(reproduce.seconds(&trials[0]).unwrap() > 60.0);
    }
}
