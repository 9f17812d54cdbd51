//! What `onramp lab reproduce`, `onramp sim reproduce` and `onramp lab evaluate` share: which claims, the plan of a trial,
//! evaluation and the report.

mod files;

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use onramp_lab::experiment::{Origin, PathChange, Plan};
use onramp_lab::question::report::{Figures, Outcome, ReportText, RunDigest, Runs};
use onramp_lab::question::{Adapt, Comparand, Evaluation, Evidence, Question, Trial};
use onramp_loader::algorithm::did_you_mean;
use onramp_reproduce::Claim;
use serde::Serialize;

pub(super) use files::write;

use crate::failure::{FAILURE, PARTIAL, Usage};
use crate::output::Output;
use crate::profile;
use crate::units;
use crate::verb::transfer::limit;

/// How trials are made.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Fewer repetitions, the same conditions
    #[arg(long)]
    pub quick: bool,
    /// Seed of the link's randomness in the first repetition
    #[arg(long, default_value_t = 1, value_parser = units::number(0..=u64::MAX))]
    pub seed: u64,
    /// Time after which a transfer is given up, 1 s to 24 h; it then counts as at least that long [default: 2 min and 20 times
    /// what the link's rate needs]
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub timeout: Option<Duration>,
}

impl Manner {
    /// What a trial is to do, with its files below `root`.
    pub fn plan(self, trial: &Trial, root: &Path) -> anyhow::Result<Plan> {
        let mut profile = profile::load(trial.profile)?;
        (trial.adapt)(&mut profile);
        let path = |(at, adapt): &(Duration, Adapt)| {
            let mut other = profile.clone();
            adapt(&mut other);
            PathChange { at: *at, profile: trial.name.clone(), link: other.link }
        };
        let paths = trial.paths.iter().map(path).collect();
        Ok(Plan {
            amount: trial.amount,
            flows: trial.flows,
            stagger: trial.stagger,
            competitor: trial.competitor.clone(),
            changes: trial.changes.clone(),
            extra_rtt_us: trial.extra_rtt_us.clone(),
            paths,
            objects: trial.objects.clone(),
            repetitions: if self.quick { trial.quick } else { trial.repetitions },
            seed: self.seed,
            timeout: self.timeout,
            directory: Some(root.join(&trial.name)),
            ..Plan::new(profile)
        })
    }
}

/// The words of both reproductions.
pub(super) const CLAIMED: ReportText<'_> = ReportText {
    title: "What the sources claim, and what shows here",
    question: "claim",
    compared_with: "source",
    here: "here",
};

/// Which claims are tested, and how.
#[derive(Args, Debug)]
pub(super) struct Choice {
    /// Claims, by name; see --list
    #[arg(value_name = "CLAIM", required_unless_present_any = ["all", "list"])]
    ids: Vec<String>,
    /// All claims
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// List the claims
    #[arg(long, conflicts_with_all = ["ids", "all"])]
    pub list: bool,
    #[command(flatten)]
    pub manner: Manner,
}

impl Choice {
    /// The claims that are asked for, of those that there are.
    pub fn claims(&self, known: &'static [Claim]) -> anyhow::Result<Vec<Question<'static>>> {
        let questions = known.iter().map(Claim::question).collect();
        if self.all { Ok(questions) } else { chosen("claim", questions, &self.ids) }
    }
}

/// Those of these names, in the order of the names.
pub(super) fn chosen<'a>(
    what: &str,
    questions: Vec<Question<'a>>,
    ids: &[String],
) -> anyhow::Result<Vec<Question<'a>>> {
    let names = questions.iter().map(|question| question.id).collect::<Vec<_>>().join(", ");
    let mut left = questions;
    let mut take = |id: &String| {
        let at = left.iter().position(|question| question.id == id);
        let at = at.ok_or_else(|| {
            if names.split(", ").any(|name| name == id) {
                return Usage::error(format!("{what} {id:?} is named twice: name it once"));
            }
            let hint = did_you_mean(id, names.split(", "));
            Usage::error(format!("there is no {what} {id:?}{hint}: give some of {names}"))
        })?;
        Ok(left.remove(at))
    };
    ids.iter().map(&mut take).collect()
}

/// A question of a list.
#[derive(Serialize)]
struct ClaimRow<'a> {
    id: &'a str,
    source: &'a str,
    statement: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_seconds: Option<f64>,
}

/// Prints the questions that there are, in JSON below `key`; `seconds` is what a trial takes, where that is worth knowing.
pub(super) fn print_list(
    key: &str,
    known: &[Question<'_>],
    seconds: impl Fn(&Trial) -> anyhow::Result<Option<f64>>,
    output: &Output,
) -> anyhow::Result<u8> {
    let mut rows = Vec::new();
    for Question { id, source, statement, trials, .. } in known {
        let each = trials.iter().map(&seconds).collect::<anyhow::Result<Vec<_>>>()?;
        // The sum of nothing is -0.0, and 0 with this.
        let expected_seconds = each.into_iter().sum::<Option<f64>>().map(|all| all + 0.0);
        rows.push(ClaimRow { id, source, statement, expected_seconds });
    }
    output.data(&serde_json::json!({ key: rows }), || {
        let line = |row: &ClaimRow<'_>| {
            let minutes =
                row.expected_seconds.map_or(String::new(), |all| format!("{:>6.1} min  ", all / 60.0));
            format!("{:<17} {minutes}{}: {}\n", row.id, row.source, row.statement)
        };
        rows.iter().map(line).collect()
    })?;
    Ok(0)
}

/// What became of the questions so far, and the files that say so.
pub(super) struct Outcomes<'a> {
    root: &'a Path,
    manner: Manner,
    words: ReportText<'a>,
    /// What else the page says of itself, name and value.
    also: Vec<(&'static str, &'static str)>,
    /// Where the experiments were made; none: nothing has been measured.
    origin: Option<Origin>,
    outcomes: Vec<(Outcome, Figures)>,
}

impl<'a> Outcomes<'a> {
    /// None yet; makes the directory.
    pub fn new(root: &'a Path, manner: Manner, words: ReportText<'a>) -> anyhow::Result<Self> {
        std::fs::create_dir_all(root).with_context(|| format!("cannot create {}", root.display()))?;
        Ok(Self { root, manner, words, also: Vec::new(), origin: None, outcomes: Vec::new() })
    }

    /// The page says this of itself, too.
    pub fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.also.push((name, value));
        self
    }

    /// Evaluates a question, and returns its result in a line. The files are written after each, so that what is there is
    /// complete at any time.
    pub fn add(&mut self, question: &Question<'_>, evidence: &Evidence) -> anyhow::Result<String> {
        let evaluated = evaluate(question, evidence, self.root)?;
        let line = summary(&evaluated.0);
        self.outcomes.push(evaluated);
        if self.origin.is_none() {
            self.origin = evidence.trials.values().next().map(|comparison| comparison.origin.clone());
        }
        files::page(self.root, self.words, self.about(), &self.outcomes)?;
        Ok(line)
    }

    /// What the page says of itself.
    fn about(&self) -> Vec<(String, String)> {
        let command: Vec<_> = std::env::args().collect();
        let mut about = vec![
            ("onramp", env!("CARGO_PKG_VERSION").to_owned()),
            ("command", command.join(" ")),
            ("date", onramp_lab::clock::utc()),
            ("repetitions", if self.manner.quick { "few (--quick)" } else { "all" }.to_owned()),
            ("seed", self.manner.seed.to_string()),
        ];
        if let Some(Origin { clock, kernel, qemu, .. }) = &self.origin {
            // A simulation has no kernel, and a machine's time no emulator.
            let qemu = qemu.clone().unwrap_or_default();
            let made = [("clock", clock.clone()), ("kernel", kernel.clone()), ("QEMU", qemu)];
            about.extend(made.into_iter().filter(|(_, value)| !value.is_empty()));
        }
        about.extend(self.also.iter().map(|(name, value)| (*name, (*value).to_owned())));
        about.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Prints them; the exit code.
    pub fn finish(self, output: &Output) -> anyhow::Result<u8> {
        let outcomes: Vec<_> = self.outcomes.iter().map(|(outcome, _)| outcome).collect();
        let report = serde_json::json!({ plural(self.words): outcomes });
        output.data(&report, || self.text())?;
        Ok(match (outcomes.iter().all(|one| one.holds), outcomes.iter().any(|one| one.runs.cut_off > 0)) {
            (true, _) => 0,
            (false, true) => PARTIAL,
            (false, false) => FAILURE,
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (one, _) in &self.outcomes {
            section(&mut text, self.words, one);
        }
        let held = self.outcomes.iter().filter(|(one, _)| one.holds).count();
        text + &format!(
            "{held} of {} {} hold; see {}\n",
            self.outcomes.len(),
            plural(self.words),
            self.root.join("report.html").display()
        )
    }
}

/// The name of a list of questions, in JSON and of files.
fn plural(words: ReportText<'_>) -> String {
    format!("{}s", words.question)
}

/// All trials that these need, each once.
pub(super) fn trials<'a>(questions: &'a [Question<'_>]) -> Vec<&'a Trial> {
    let mut all = Vec::<&Trial>::new();
    for trial in questions.iter().flat_map(|question| &question.trials) {
        if all.iter().all(|other| other.name != trial.name) {
            all.push(trial);
        }
    }
    all
}

fn evaluate(question: &Question<'_>, evidence: &Evidence, root: &Path) -> anyhow::Result<(Outcome, Figures)> {
    let evaluated = (question.evaluate)(evidence);
    let figures = files::question(root, question, evidence, evaluated.as_ref().ok())?;
    let error = evaluated.as_ref().err().map(ToString::to_string);
    let (holds, measured, checks) = match evaluated {
        Ok(evaluation) => {
            let holds = evaluation.holds();
            let Evaluation { comparands, checks, .. } = evaluation;
            (holds, comparands, checks)
        }
        Err(_) => (false, Vec::new(), Vec::new()),
    };
    let (mut runs, mut digests) = (Runs::default(), Vec::new());
    for trial in &question.trials {
        let Some(comparison) = evidence.trials.get(&trial.name) else { continue };
        for arm in &comparison.arms {
            runs.valid += arm.valid_runs;
            runs.cut_off += arm.cut_off_runs;
            runs.total += arm.runs.len();
            digests.extend(arm.runs.iter().filter_map(|run| {
                let digest = run.digest.clone()?;
                Some(RunDigest { trial: trial.name.clone(), arm: arm.arm.clone(), seed: run.seed, digest })
            }));
        }
    }
    let outcome = Outcome {
        id: question.id.into(),
        // What is known of a run that was given up is a bound only.
        holds: holds && runs.cut_off == 0,
        source: question.source.into(),
        statement: question.statement.into(),
        measured,
        checks,
        runs,
        digests,
        error,
    };
    Ok((outcome, figures))
}

fn summary(outcome: &Outcome) -> String {
    let held = outcome.checks.iter().filter(|check| check.holds).count();
    let verdict = if outcome.holds { "holds" } else { "DOES NOT HOLD" };
    format!("{}: {verdict}, {held} of {} checks", outcome.id, outcome.checks.len())
}

fn section(text: &mut String, words: ReportText<'_>, one: &Outcome) {
    *text += &format!("{} ({})\n  {}\n", summary(one), one.source, one.statement);
    if let Some(error) = &one.error {
        *text += &format!("  not evaluated: {error}\n");
    }
    if one.runs.cut_off > 0 {
        *text += &format!("  {} runs were given up at the limit and count as ≥\n", one.runs.cut_off);
    }
    let width = |value: &dyn Fn(&Comparand) -> usize| one.measured.iter().map(value).max().unwrap_or(0);
    let what = width(&|row| row.what.chars().count()).max(6);
    let compared_with = width(&|row| row.source.chars().count()).max(words.compared_with.chars().count());
    *text += &format!("  {:<what$}  {:<compared_with$}  {}\n", "figure", words.compared_with, words.here);
    for row in &one.measured {
        *text += &format!("  {:<what$}  {:<compared_with$}  {}\n", row.what, row.source, row.ours);
    }
    for check in &one.checks {
        let mark = if check.holds { "ok  " } else { "FAIL" };
        *text += &format!("  {mark}  {}: {:.3}, expected {}\n", check.what, check.measured, check.expected);
    }
    text.push('\n');
}
