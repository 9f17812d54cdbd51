//! `onramp-lab reproduce`.

use std::path::PathBuf;

use clap::Args;
use onramp_lab::experiment::{self, Comparison, Plan};
use onramp_lab::question::{Evidence, Footprint, RoundRates, Trial};
use onramp_loader::abi::FlowHeader;
use onramp_loader::algorithm;
use onramp_reproduce::{CLAIMS, Claim};

use super::pairs::{self, Collector, PAIRS};
use super::progress::Clock;
use super::series::{Series, SeriesOptions};
use crate::output::Output;
use crate::target::directory;
use crate::verb::reproduction::{self, CLAIMED, Choice, Outcomes, trials};

/// Test what the documents claim of real TCP: the source's figures compared with ours, and whether each claim holds
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
pub(crate) struct Reproduce {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    series: SeriesOptions,
    /// Directory for everything [default: runs/reproduce]
    #[arg(short, long, value_name = "DIR", value_parser = directory, default_value = "runs/reproduce", hide_default_value = true)]
    output: PathBuf,
}

/// Whose time trials are made in: one for those that collect pairs, and one for the others. What guests boot is built once
/// for each, and not at all where nothing is run.
struct Clocks {
    pairs: Option<experiment::Clock>,
    others: Option<experiment::Clock>,
}

impl Clocks {
    fn new(series: &Series<'_>, trials: &[&Trial]) -> anyhow::Result<Self> {
        let clock = |pairs: bool, words: &[&str]| {
            let needed = trials.iter().any(|trial| trial.pairs == pairs);
            needed.then(|| series.options.clock(words)).transpose()
        };
        Ok(Self { pairs: clock(true, &["--pairs"])?, others: clock(false, &[])? })
    }

    fn for_trial(&self, trial: &Trial) -> experiment::Clock {
        let clock = if trial.pairs { &self.pairs } else { &self.others };
        clock.clone().unwrap_or_default()
    }
}

impl Reproduce {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let series = self.series();
        if self.choice.list {
            let claims: Vec<_> = CLAIMS.iter().map(Claim::question).collect();
            return reproduction::print_list(
                "claims",
                &claims,
                |trial| series.seconds(trial).map(Some),
                output,
            );
        }
        let claims = self.choice.claims(&CLAIMS)?;
        let trials = trials(&claims);
        let mut evidence = Evidence { footprints: footprints(), ..Evidence::default() };
        let clocks = Clocks::new(&series, &trials)?;
        for trial in &trials {
            let plan = Plan { clock: clocks.for_trial(trial), ..series.plan(trial)? };
            if let Some((comparison, pairs)) = self.kept(&series, trial, &plan)? {
                evidence.pairs.extend(pairs);
                evidence.trials.insert(trial.name.clone(), comparison);
            }
        }
        let mut clock = series.begin("lab reproduce", &trials, &evidence, output)?;
        let mut outcomes = Outcomes::new(&self.output, self.choice.manner, CLAIMED)?;
        for claim in &claims {
            for trial in &claim.trials {
                if !evidence.trials.contains_key(&trial.name) {
                    clock.say(&format!("{}: {} over {}", claim.id, trial.name, trial.profile));
                    let comparison =
                        self.measure(&series, trial, clocks.for_trial(trial), &mut evidence, &mut clock)?;
                    evidence.trials.insert(trial.name.clone(), comparison);
                }
            }
            clock.say(&outcomes.add(claim, &evidence)?);
        }
        drop(clock);
        outcomes.finish(output)
    }

    fn series(&self) -> Series<'_> {
        Series { options: &self.series, manner: self.choice.manner, root: &self.output }
    }

    fn measure(
        &self,
        series: &Series<'_>,
        trial: &Trial,
        made_in: experiment::Clock,
        evidence: &mut Evidence,
        clock: &mut Clock,
    ) -> anyhow::Result<Comparison> {
        let collector = Collector::default();
        let watch = trial.pairs.then(|| collector.watch());
        let plan = Plan { clock: made_in, watch, ..series.plan(trial)? };
        let comparison = series.measure(trial, &plan, clock)?;
        if trial.pairs {
            let directory = self.output.join(&trial.name);
            let rounds = if self.series.is_virtual() { pairs::left(&directory)? } else { collector.rounds() };
            reproduction::write(&directory.join(PAIRS), &serde_json::to_string(&rounds)?)?;
            evidence.pairs.extend(rounds);
        }
        Ok(comparison)
    }

    /// What an earlier run has left of a trial.
    fn kept(
        &self,
        series: &Series<'_>,
        trial: &Trial,
        plan: &Plan,
    ) -> anyhow::Result<Option<(Comparison, Vec<RoundRates>)>> {
        let Some(comparison) = series.kept(trial, plan)? else { return Ok(None) };
        if !trial.pairs {
            return Ok(Some((comparison, Vec::new())));
        }
        let read = || {
            let pairs = std::fs::read_to_string(self.output.join(&trial.name).join(PAIRS)).ok()?;
            serde_json::from_str(&pairs).ok()
        };
        Ok(read().map(|pairs| (comparison, pairs)))
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
    struct CommandLine {
        #[command(flatten)]
        reproduce: Reproduce,
    }

    #[test]
    fn every_trial_has_a_profile_valid_as_adapted_and_is_run_once() {
        let reproduce = CommandLine::parse_from(["reproduce", "--all", "--quick"]).reproduce;
        let claims = reproduce.choice.claims(&CLAIMS).unwrap();
        let (trials, series) = (trials(&claims), reproduce.series());
        for (at, trial) in trials.iter().enumerate() {
            let plan = series.plan(trial).unwrap();
            plan.profile.validate().unwrap();
            assert_eq!(plan.repetitions, trial.quick);
            assert!(trials[..at].iter().all(|other| other.name != trial.name));
        }
        assert!(series.seconds(trials[0]).unwrap() > 60.0);
    }
}
