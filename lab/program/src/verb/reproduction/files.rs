//! What a reproduction or an evaluation leaves: runs as CSV, figures, one page.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Context;
use onramp_files::bounded;
use onramp_lab::experiment::{Comparison, Run};
use onramp_lab::question::report::{self, Figures, Outcome, ReportText};
use onramp_lab::question::{Evaluation, Evidence, Question};
use serde_json::json;

use crate::output::SCHEMA;

pub(in crate::verb) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// `ID.csv` with every run of the question's trials (or its sizes and rates), and `ID.svg`; returns the figures.
pub(super) fn question(
    root: &Path,
    question: &Question<'_>,
    evidence: &Evidence,
    evaluation: Option<&Evaluation>,
) -> anyhow::Result<Figures> {
    let mut figures = Figures::new();
    if let Some(evaluation) = evaluation {
        let path = root.join(format!("{}.svg", question.id));
        evaluation.figure.write(&path)?;
        figures.push((evaluation.figure.title.clone(), read(&path)?));
    }
    let names: Vec<_> = question.trials.iter().map(|trial| trial.name.as_str()).collect();
    let mut csv = csv_header();
    for name in &names {
        let Some(comparison) = evidence.trials.get(*name) else { continue };
        csv += &runs_csv(name, comparison);
        if let Some(directory) = &comparison.directory {
            let plot = directory.join("plot.svg");
            figures.push((format!("{name}: the first run of each arm"), read(&plot)?));
        }
    }
    if names.is_empty()
        && let Some(evaluation) = evaluation
    {
        csv = checks_csv(evaluation);
    }
    write(&root.join(format!("{}.csv", question.id)), &csv)?;
    Ok(figures)
}

fn read(path: &Path) -> anyhow::Result<String> {
    bounded::read_text(path).with_context(|| format!("cannot read {}", path.display()))
}

fn csv_header() -> String {
    "trial,arm,seed,valid,seconds,goodput_bps,retransmitted_segments,queue_drops,exit_reason,exit_seconds,exit_window_bytes,\
     exit_acks,max_rtt_us,mean_rtt_us,ramp_seconds,steady_goodput_bps,longest_stall_seconds,rate_variation,\
     doubling_seconds,machine_cpu_seconds,objects,digest\n"
        .into()
}

fn runs_csv(trial: &str, comparison: &Comparison) -> String {
    let runs = comparison.arms.iter().flat_map(|arm| arm.runs.iter().map(move |run| (arm, run)));
    runs.map(|(arm, run)| run_csv(trial, &arm.arm, run)).collect()
}

fn run_csv(trial: &str, arm: &str, run: &Run) -> String {
    let some = |value: Option<f64>| value.map(|value| format!("{value:.6}")).unwrap_or_default();
    let (exit, measures) = (run.exit.as_ref(), &run.measures);
    let mut line = format!(
        "{trial},{arm},{},{},{:.6},{:.0},{},{},",
        run.seed, run.valid, run.seconds, run.goodput_bps, run.retransmitted_segments, run.queue_drops
    );
    // Writing to a String cannot fail.
    let _ = writeln!(
        line,
        "{},{},{},{},{},{:.0},{},{},{:.6},{},{},{},{},{}",
        exit.map_or("", |exit| exit.reason.name()),
        some(exit.map(|exit| exit.seconds)),
        exit.map(|exit| exit.window_bytes.to_string()).unwrap_or_default(),
        exit.and_then(|exit| exit.acks).map(|acks| acks.to_string()).unwrap_or_default(),
        run.max_rtt_us,
        run.mean_rtt_us,
        some(measures.ramp_seconds),
        some(measures.steady_goodput_bps),
        measures.longest_stall_seconds,
        some(measures.rate_variation),
        some(measures.doubling_seconds),
        some(run.machine_cpu_seconds),
        measures
            .objects
            .iter()
            .map(|object| format!("{}:{}", object.bytes, some(object.seconds)))
            .collect::<Vec<_>>()
            .join(" "),
        run.digest.as_deref().unwrap_or_default(),
    );
    line
}

fn checks_csv(evaluation: &Evaluation) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "'"));
    let mut csv = String::from("what,measured,expected,holds\n");
    for check in &evaluation.checks {
        let _ = writeln!(
            csv,
            "{},{},{},{}",
            quoted(&check.what),
            check.measured,
            quoted(&check.expected),
            check.holds
        );
    }
    csv
}

/// `report.html`, and the same as `claims.json` or `cases.json`.
pub(super) fn page(
    root: &Path,
    words: ReportText<'_>,
    about: Vec<(String, String)>,
    outcomes: &[(Outcome, Figures)],
) -> anyhow::Result<()> {
    write(&root.join("report.html"), &report::html(words, &about, outcomes))?;
    let all: Vec<_> = outcomes.iter().map(|(outcome, _)| outcome).collect();
    let about: serde_json::Map<_, _> = about.into_iter().map(|(name, value)| (name, value.into())).collect();
    let name = super::plural(words);
    let manifest = json!({"schema": SCHEMA, "about": about, &name: all});
    write(&root.join(format!("{name}.json")), &(serde_json::to_string_pretty(&manifest)? + "\n"))
}
