//! What a reproduction leaves: runs as CSV, figures, one page.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Context;
use onramp_lab::experiment::{Comparison, Run};
use onramp_lab::reproduce::report::{self, Figures, Outcome};
use onramp_lab::reproduce::{Claim, Evidence, Judgement};
use serde_json::json;

use crate::output::SCHEMA;

pub(in crate::verb) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// `ID.csv` with every run of the claim's trials (or its sizes and rates), and `ID.svg`; returns the figures.
pub(super) fn claim(
    root: &Path,
    claim: &Claim,
    evidence: &Evidence,
    judgement: Option<&Judgement>,
) -> anyhow::Result<Figures> {
    let mut figures = Figures::new();
    if let Some(judgement) = judgement {
        let path = root.join(format!("{}.svg", claim.id));
        judgement.figure.write(&path)?;
        figures.push((judgement.figure.title.clone(), read(&path)?));
    }
    let names: Vec<_> = (claim.trials)().into_iter().map(|trial| trial.name).collect();
    let mut csv = csv_header();
    for name in &names {
        let Some(comparison) = evidence.trials.get(name) else { continue };
        csv += &runs_csv(name, comparison);
        if let Some(directory) = &comparison.directory {
            let plot = directory.join("plot.svg");
            figures.push((format!("{name}: the first run of each arm"), read(&plot)?));
        }
    }
    if names.is_empty()
        && let Some(judgement) = judgement
    {
        csv = checks_csv(judgement);
    }
    write(&root.join(format!("{}.csv", claim.id)), &csv)?;
    Ok(figures)
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn csv_header() -> String {
    "trial,arm,seed,valid,seconds,goodput_bps,retransmitted_segments,queue_drops,exit_reason,exit_seconds,exit_window_bytes,\
     exit_acks,max_rtt_us,mean_rtt_us,ramp_seconds,steady_goodput_bps,longest_stall_seconds,rate_variation,\
     doubling_seconds,machine_cpu_seconds,objects\n"
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
        "{},{},{},{},{},{:.0},{},{},{:.6},{},{},{},{}",
        exit.map_or("", |exit| exit.reason.as_str()),
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
    );
    line
}

fn checks_csv(judgement: &Judgement) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "'"));
    let mut csv = String::from("what,measured,expected,holds\n");
    for check in &judgement.checks {
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

/// `report.html` and `claims.json`.
pub(super) fn page(
    root: &Path,
    outcomes: &[(Outcome, Figures)],
    quick: bool,
    seed: u64,
) -> anyhow::Result<()> {
    let about = about(quick, seed);
    write(
        &root.join("report.html"),
        &report::html("What the sources claim, and what shows here", &about, outcomes),
    )?;
    let claims: Vec<_> = outcomes.iter().map(|(outcome, _)| outcome).collect();
    let about: serde_json::Map<_, _> = about.into_iter().map(|(name, value)| (name, value.into())).collect();
    let manifest = json!({"schema": SCHEMA, "about": about, "claims": claims});
    write(&root.join("claims.json"), &(serde_json::to_string_pretty(&manifest)? + "\n"))
}

fn about(quick: bool, seed: u64) -> Vec<(String, String)> {
    let command: Vec<_> = std::env::args().collect();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    [
        ("onramp", env!("CARGO_PKG_VERSION").to_owned()),
        ("command", command.join(" ")),
        ("date", onramp_lab::clock::utc()),
        ("kernel", onramp_loader::kernel::release()),
        ("processors", processors.to_string()),
        ("repetitions", if quick { "few (--quick)" } else { "all" }.to_owned()),
        ("seed", seed.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
