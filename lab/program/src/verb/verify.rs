//! `onramp-lab verify`.

use std::path::{Path, PathBuf};

use clap::Args;
use onramp_lab::experiment::{self, Arm, Comparison, Plan};
use onramp_lab::guest::Series;
use onramp_lab::verify::{self, Checked, Verdict};
use serde::Serialize;

use super::clock::ClockOptions;
use super::progress::{self, Clock};
use crate::failure::{FAILURE, Usage};
use crate::output::{Output, say};
use crate::scratch::Scratch;
use crate::table::Table;
use crate::units;
use crate::verb::result;

/// Make again what a result says, and compare
///
/// Reads results of `onramp lab run` and `onramp lab compare` that were made in virtual time (result.json, or what they
/// print with --json), makes every run anew on the same kernel with the same seeds, and compares digests of all that
/// crossed the link.
///
/// With the same program, kernel and QEMU the digests must be equal. With another program they cannot be: then the
/// figures are compared, what has moved is shown, and more than 0.5 % of time, 1 % of the window at the exit, or 2 % and
/// 3 of the retransmitted segments is a difference. Exits 1 if there is one.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp lab verify runs/search/result.json
  onramp lab verify tests/golden/*.json")]
pub(crate) struct Verify {
    /// Results: the directory of a run, or its result.json; - is standard input
    #[arg(value_name = "RESULT", required = true)]
    files: Vec<PathBuf>,
    /// Take runs that this program has made before instead of making them anew
    #[arg(long)]
    kept: bool,
    /// Runs at once [default: one for each processor]
    #[arg(short, long, value_name = "N", value_parser = units::number(1..=16_u16))]
    jobs: Option<u16>,
}

#[derive(Serialize)]
struct VerifyReport {
    runs: Vec<VerifyRow>,
    runs_that_differ: usize,
}

#[derive(Serialize)]
struct VerifyRow {
    file: String,
    kernel: String,
    #[serde(flatten)]
    checked: Checked,
}

impl Verify {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let results: Vec<_> = self.files.iter().map(|file| result::read(file)).collect::<Result<_, _>>()?;
        let mut rows = Vec::new();
        for (file, before) in self.files.iter().zip(&results) {
            let now = self.again(file, before, output)?;
            let row = |checked| VerifyRow {
                file: file.display().to_string(),
                kernel: before.origin.kernel.clone(),
                checked,
            };
            rows.extend(verify::compare(before, &now).into_iter().map(row));
        }
        let runs_that_differ = rows.iter().filter(|row| row.checked.verdict == Verdict::Differs).count();
        let report = VerifyReport { runs: rows, runs_that_differ };
        output.data(&report, || text(&report, output))?;
        Ok(if report.runs_that_differ == 0 { 0 } else { FAILURE })
    }

    fn again(&self, file: &Path, before: &Comparison, output: &Output) -> anyhow::Result<Comparison> {
        let name = file.display();
        let (plan, arms) =
            asked(before).map_err(|why| Usage::error(format!("{name} cannot be verified: {why}")))?;
        let series = series(&before.origin.kernel)?;
        let clock = ClockOptions::of_guests(series, !self.kept);
        let directory = Scratch::make()?;
        let plan = Plan {
            jobs: clock.jobs(self.jobs),
            clock: clock.clock(plan.tool, &[], None)?,
            directory: Some(directory.path().join("runs")),
            repetitions: before.arms.iter().map(|arm| arm.runs.len()).max().unwrap_or(1) as u32,
            seed: before.seed,
            ..plan.clone()
        };
        output.step(&format!(
            "{name}: {} runs on {}",
            plan.repetitions as usize * arms.len(),
            before.origin.kernel
        ));
        let each = plan.expected_seconds();
        let expected = each * f64::from(plan.repetitions) * arms.len() as f64;
        let mut clock = Clock::start(expected, progress::resumes(&plan.clock), output);
        Ok(experiment::compare(&plan, &arms, |progress| progress::show(&progress, each, &mut clock))?)
    }
}

/// What it says about how it was made.
fn asked(before: &Comparison) -> Result<(&Plan, Vec<Arm>), &'static str> {
    if before.origin.clock != "virtual" {
        return Err("it was not made in virtual time");
    }
    if before.arms.iter().all(|arm| arm.runs.is_empty()) {
        return Err("it has no runs");
    }
    let arms: Option<Vec<Arm>> = before.arms.iter().map(|arm| arm.definition.clone()).collect();
    let plan = before.plan.as_deref().ok_or("it does not say what was asked for")?;
    Ok((plan, arms.ok_or("it does not say what its arms are")?))
}

/// The series of guests' kernels that this release belongs to; that very release has to be kept.
fn series(release: &str) -> anyhow::Result<&'static str> {
    let of_it = |series: &&Series| {
        let rest = release.strip_prefix(series.series.as_str());
        rest.is_some_and(|rest| rest.starts_with(['.', '-', '+']))
    };
    let series = Series::all().iter().find(of_it);
    let series =
        series.ok_or_else(|| Usage::error(format!("no kernel of guests is of the series of {release}")))?;
    let kept = series.kept()?.release;
    if kept != release {
        say(&format!("note: made on {release}, compared on {kept}"));
    }
    Ok(&series.series)
}

fn text(report: &VerifyReport, output: &Output) -> String {
    let mut table = Table::new(["KERNEL", "RESULT", "ARM", ">SEED", "VERDICT", "WHAT MOVED"]);
    for row in &report.runs {
        let Checked { profile, arm, seed, verdict, moved, .. } = &row.checked;
        let moved: Vec<_> = moved.iter().map(ToString::to_string).collect();
        table.push([
            row.kernel.clone(),
            profile.clone(),
            arm.clone(),
            seed.to_string(),
            verdict.name().to_owned(),
            moved.join(", "),
        ]);
    }
    let (all, differ) = (report.runs.len(), report.runs_that_differ);
    format!("{}{} runs as before, {differ} differ\n", table.render(output), all - differ)
}
