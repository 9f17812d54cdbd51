//! What `onramp lab reproduce` and `onramp sim reproduce` share: which claims, the plan of a trial, judging and the report.

mod files;

use std::path::Path;

use anyhow::Context;
use clap::Args;
use onramp_lab::experiment::Plan;
use onramp_lab::reproduce::report::{Figures, Outcome, Runs};
use onramp_lab::reproduce::{self, Claim, Comparand, Evidence, Judgement, Trial};
use serde::Serialize;

pub(super) use files::write;

use crate::failure::{FAILURE, Usage};
use crate::output::Output;
use crate::profile;

/// Which claims are tested, and how.
#[derive(Args, Debug)]
pub(super) struct Choice {
    /// Claims, by name; see --list
    #[arg(value_name = "ID", required_unless_present_any = ["all", "list"])]
    ids: Vec<String>,
    /// All claims
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// List the claims
    #[arg(long, conflicts_with_all = ["ids", "all"])]
    pub list: bool,
    /// Fewer repetitions, the same conditions
    #[arg(long)]
    pub quick: bool,
    /// Seed of the link's randomness in the first repetition
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Choice {
    /// The claims that are asked for, of those that there are.
    pub fn claims(&self, known: &'static [Claim]) -> anyhow::Result<Vec<&'static Claim>> {
        if self.all {
            return Ok(known.iter().collect());
        }
        let find = |id: &String| {
            reproduce::find(known, id).ok_or_else(|| {
                let names: Vec<_> = known.iter().map(|claim| claim.id).collect();
                Usage::error(format!("there is no claim {id:?}: give some of {}", names.join(", ")))
            })
        };
        self.ids.iter().map(find).collect()
    }

    /// What a trial is to do, with its files below `root`.
    pub fn plan(&self, trial: &Trial, root: &Path) -> anyhow::Result<Plan> {
        let mut profile = profile::load(trial.profile)?;
        (trial.adapt)(&mut profile);
        Ok(Plan {
            amount: trial.amount,
            objects: trial.objects.clone(),
            repetitions: if self.quick { trial.quick } else { trial.repetitions },
            seed: self.seed,
            directory: Some(root.join(&trial.name)),
            ..Plan::new(profile)
        })
    }
}

/// A claim of a list.
#[derive(Serialize)]
struct Row {
    id: &'static str,
    source: &'static str,
    statement: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_seconds: Option<f64>,
}

/// Prints the claims that there are; `seconds` is what a trial takes, where that is worth knowing.
pub(super) fn print_list(
    known: &'static [Claim],
    seconds: impl Fn(&Trial) -> anyhow::Result<Option<f64>>,
    output: &Output,
) -> anyhow::Result<u8> {
    let mut rows = Vec::new();
    for claim in known {
        let each = (claim.trials)().iter().map(&seconds).collect::<anyhow::Result<Vec<_>>>()?;
        let expected_seconds = each.into_iter().sum();
        rows.push(Row { id: claim.id, source: claim.source, statement: claim.statement, expected_seconds });
    }
    output.data(&serde_json::json!({ "claims": rows }), || {
        let line = |row: &Row| {
            let minutes =
                row.expected_seconds.map_or(String::new(), |all| format!("{:>6.1} min  ", all / 60.0));
            format!("{:<16} {minutes}{}: {}\n", row.id, row.source, row.statement)
        };
        rows.iter().map(line).collect()
    })?;
    Ok(0)
}

#[derive(Serialize)]
struct Report<'a> {
    claims: Vec<&'a Outcome>,
}

/// What became of the claims so far, and the files that say so.
pub(super) struct Outcomes<'a> {
    root: &'a Path,
    choice: &'a Choice,
    outcomes: Vec<(Outcome, Figures)>,
}

impl<'a> Outcomes<'a> {
    /// None yet; makes the directory.
    pub fn new(root: &'a Path, choice: &'a Choice) -> anyhow::Result<Self> {
        std::fs::create_dir_all(root).with_context(|| format!("cannot create {}", root.display()))?;
        Ok(Self { root, choice, outcomes: Vec::new() })
    }

    /// Judges a claim. The files are written after each, so that what is there is complete at any time.
    pub fn add(&mut self, claim: &Claim, evidence: &Evidence, output: &Output) -> anyhow::Result<()> {
        let judged = judge(claim, evidence, self.root)?;
        output.progress(&summary(&judged.0));
        self.outcomes.push(judged);
        files::page(self.root, &self.outcomes, self.choice.quick, self.choice.seed)
    }

    /// Prints them; the exit code.
    pub fn finish(self, output: &Output) -> anyhow::Result<u8> {
        let report = Report { claims: self.outcomes.iter().map(|(outcome, _)| outcome).collect() };
        output.data(&report, || text(&report, self.root))?;
        Ok(if report.claims.iter().all(|claim| claim.holds) { 0 } else { FAILURE })
    }
}

/// All trials that these claims need, each once.
pub(super) fn trials(claims: &[&Claim]) -> Vec<Trial> {
    let mut all = Vec::<Trial>::new();
    for trial in claims.iter().flat_map(|claim| (claim.trials)()) {
        if all.iter().all(|other| other.name != trial.name) {
            all.push(trial);
        }
    }
    all
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
        let width = |value: &dyn Fn(&Comparand) -> usize| claim.measured.iter().map(value).max().unwrap_or(0);
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
