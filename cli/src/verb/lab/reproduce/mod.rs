//! `onramp lab reproduce`.

mod files;
pub(super) mod pairs;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use onramp_lab::experiment::{self, Comparison, Plan};
use onramp_lab::reproduce::report::{Figures, Outcome, Runs};
use onramp_lab::reproduce::{self, CLAIMS, Claim, Evidence, Footprint, Judgement, RoundRates, Trial};
use onramp_loader::abi::FlowHeader;
use onramp_loader::algorithm;
use serde::Serialize;

use super::clock::ClockOptions;
use super::common::{Jobs, Tool};
use super::progress::{self, Clock};
use crate::arm::Arms;
use crate::failure::{FAILURE, Usage};
use crate::output::Output;
use crate::profile;
use pairs::{Collector, PAIRS};

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
    /// Claims, by name; see --list
    #[arg(value_name = "ID", required_unless_present_any = ["all", "list"])]
    ids: Vec<String>,
    /// All claims
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// List the claims, with the time that each takes
    #[arg(long, conflicts_with_all = ["ids", "all"])]
    list: bool,
    /// Fewer repetitions, the same conditions
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    clock: ClockOptions,
    #[command(flatten)]
    tool: Tool,
    /// Take from DIR the experiments that an earlier run with the same conditions has completed
    #[arg(long)]
    resume: bool,
    /// Seed of the link's randomness in the first repetition
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Directory for everything [default: runs/reproduce]
    #[arg(short, long, value_name = "DIR", default_value = "runs/reproduce", hide_default_value = true)]
    output: PathBuf,
}

#[derive(Serialize)]
struct Report<'a> {
    claims: Vec<&'a Outcome>,
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
        if self.list {
            return self.print_list(output);
        }
        let claims = self.claims()?;
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
        std::fs::create_dir_all(&self.output)
            .with_context(|| format!("cannot create {}", self.output.display()))?;
        let mut expected = 0.0;
        for trial in trials.iter().filter(|trial| !evidence.trials.contains_key(&trial.name)) {
            expected += self.seconds(trial)?;
        }
        let mut clock = Clock::start(expected);
        let mut outcomes: Vec<(Outcome, Figures)> = Vec::new();
        for claim in &claims {
            for trial in (claim.trials)() {
                if !evidence.trials.contains_key(&trial.name) {
                    output.progress(&format!("{}: {} over {}", claim.id, trial.name, trial.profile));
                    let comparison =
                        self.measure(&trial, clocks.of(&trial), &mut evidence, &mut clock, output)?;
                    evidence.trials.insert(trial.name, comparison);
                }
            }
            outcomes.push(judge(claim, &evidence, &self.output)?);
            // After each claim, so that what is there is complete at any time.
            files::page(&self.output, &outcomes, self.quick, self.seed)?;
            if let Some((outcome, _)) = outcomes.last() {
                output.progress(&summary(outcome));
            }
        }
        let report = Report { claims: outcomes.iter().map(|(outcome, _)| outcome).collect() };
        output.data(&report, || text(&report, &self.output))?;
        Ok(if report.claims.iter().all(|claim| claim.holds) { 0 } else { FAILURE })
    }

    fn claims(&self) -> anyhow::Result<Vec<&'static Claim>> {
        if self.all {
            return Ok(CLAIMS.iter().collect());
        }
        let find = |id: &String| {
            reproduce::find(id).ok_or_else(|| {
                let known: Vec<_> = CLAIMS.iter().map(|claim| claim.id).collect();
                Usage::error(format!("there is no claim {id:?}: give some of {}", known.join(", ")))
            })
        };
        self.ids.iter().map(find).collect()
    }

    fn plan(&self, trial: &Trial) -> anyhow::Result<Plan> {
        let mut profile = profile::load(trial.profile)?;
        (trial.adapt)(&mut profile);
        Ok(Plan {
            amount: trial.amount,
            objects: trial.objects.clone(),
            repetitions: if self.quick { trial.quick } else { trial.repetitions },
            jobs: self.clock.jobs(self.jobs.jobs),
            seed: self.seed,
            directory: Some(self.output.join(&trial.name)),
            tool: self.tool.into(),
            ..Plan::new(profile)
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
            files::write(&self.output.join(&trial.name).join(PAIRS), &serde_json::to_string(&rounds)?)?;
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

    fn print_list(&self, output: &Output) -> anyhow::Result<u8> {
        #[derive(Serialize)]
        struct Row {
            id: &'static str,
            source: &'static str,
            statement: &'static str,
            expected_seconds: f64,
        }
        let mut rows = Vec::new();
        for claim in &CLAIMS {
            let mut expected_seconds = 0.0;
            for trial in (claim.trials)() {
                expected_seconds += self.seconds(&trial)?;
            }
            rows.push(Row {
                id: claim.id,
                source: claim.source,
                statement: claim.statement,
                expected_seconds,
            });
        }
        output.data(&serde_json::json!({ "claims": rows }), || {
            let line = |row: &Row| {
                let minutes = row.expected_seconds / 60.0;
                format!("{:<16} {minutes:>6.1} min  {}: {}\n", row.id, row.source, row.statement)
            };
            rows.iter().map(line).collect()
        })?;
        Ok(0)
    }
}

/// All trials that these claims need, each once.
fn trials(claims: &[&Claim]) -> Vec<Trial> {
    let mut all = Vec::<Trial>::new();
    for trial in claims.iter().flat_map(|claim| (claim.trials)()) {
        if all.iter().all(|other| other.name != trial.name) {
            all.push(trial);
        }
    }
    all
}

fn footprints() -> Vec<Footprint> {
    let of = |one: algorithm::Algorithm| Footprint {
        algorithm: one.name().to_owned(),
        state_bytes: one.state_size(),
        header_bytes: size_of::<FlowHeader>(),
    };
    algorithm::all().map(of).collect()
}

fn judge(claim: &Claim, evidence: &Evidence, root: &Path) -> anyhow::Result<(Outcome, Figures)> {
    let judged = (claim.judge)(evidence);
    let figures = files::claim(root, claim, evidence, judged.as_ref().ok())?;
    let error = judged.as_ref().err().map(ToString::to_string);
    let (holds, measured, checks) = match judged {
        Ok(judgement) => {
            let holds = judgement.holds();
            let Judgement { comparands, checks, .. } = judgement;
            (holds, comparands, checks)
        }
        Err(_) => (false, Vec::new(), Vec::new()),
    };
    let mut runs = Runs::default();
    for arm in
        (claim.trials)().iter().filter_map(|trial| evidence.trials.get(&trial.name)).flat_map(|one| &one.arms)
    {
        runs.valid += arm.valid_runs;
        runs.total += arm.runs.len();
    }
    let outcome = Outcome {
        id: claim.id.into(),
        holds,
        source: claim.source.into(),
        statement: claim.statement.into(),
        measured,
        checks,
        runs,
        error,
    };
    Ok((outcome, figures))
}

fn summary(outcome: &Outcome) -> String {
    let held = outcome.checks.iter().filter(|check| check.holds).count();
    let verdict = if outcome.holds { "holds" } else { "DOES NOT HOLD" };
    format!("{}: {verdict}, {held} of {} checks", outcome.id, outcome.checks.len())
}

fn text(report: &Report<'_>, root: &Path) -> String {
    let mut text = String::new();
    for claim in &report.claims {
        text += &format!("{} ({})\n  {}\n", summary(claim), claim.source, claim.statement);
        if let Some(error) = &claim.error {
            text += &format!("  not judged: {error}\n");
        }
        let width = |value: &dyn Fn(&reproduce::Comparand) -> usize| {
            claim.measured.iter().map(value).max().unwrap_or(0)
        };
        let what = width(&|row| row.what.chars().count()).max(6);
        let source = width(&|row| row.source.chars().count()).max(6);
        text += &format!("  {:<what$}  {:<source$}  here\n", "figure", "source");
        for row in &claim.measured {
            text += &format!("  {:<what$}  {:<source$}  {}\n", row.what, row.source, row.ours);
        }
        for check in &claim.checks {
            let mark = if check.holds { "ok  " } else { "FAIL" };
            text +=
                &format!("  {mark}  {}: {:.3}, expected {}\n", check.what, check.measured, check.expected);
        }
        text.push('\n');
    }
    let held = report.claims.iter().filter(|claim| claim.holds).count();
    text + &format!(
        "{held} of {} claims hold; see {}\n",
        report.claims.len(),
        root.join("report.html").display()
    )
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
        let trials = trials(&reproduce.claims().unwrap());
        for (at, trial) in trials.iter().enumerate() {
            let plan = reproduce.plan(trial).unwrap();
            plan.profile.validate().unwrap();
            assert_eq!(plan.repetitions, trial.quick);
            assert!(trials[..at].iter().all(|other| other.name != trial.name));
        }
        assert!(reproduce.seconds(&trials[0]).unwrap() > 60.0);
    }
}
