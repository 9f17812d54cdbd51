//! What programs have written, as tables.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use onramp_lab::experiment::{ArmResult, Comparison};
use onramp_lab_program::library;
use onramp_recording::Recording;
use onramp_recording::rows::TABLES;
use onramp_terminal::failure::Usage;
use pyo3::prelude::*;

use crate::Made;
use crate::interrupt::interruptible;
use crate::objects::{Cell, Objects};
use crate::rows::{batch, of_rows, schema};
use crate::table::{Table, Tables};

/// What lies there: `recording`, `result` or `sweep`; its JSON; its tables, but for those of recordings, which may be large; what
/// of it could not be read; and the names of a recording's tables.
type Found = (&'static str, Made, Vec<String>, Vec<&'static str>);

/// Opens a recording, a packet capture, qlog, a result of the lab or a sweep.
#[pyfunction]
pub(crate) fn read(py: Python<'_>, path: PathBuf) -> PyResult<Found> {
    interruptible(py, move |_| {
        let none = |kind, made| Ok((kind, made, Vec::new(), Vec::new()));
        if library::is_sweep(&path) {
            let (summary, rows) = library::read_sweep(&path)?;
            return none("sweep", of_sweep(&summary, rows)?);
        }
        if library::is_result(&path) {
            return none("result", of_comparison(&library::read_result(&path)?)?);
        }
        let mut recording = Recording::open_to_explain(&path)?;
        let rows = recording.stated_rows();
        let has = |table: &str| rows.iter().any(|(name, rows)| name == table && *rows > 0);
        let tables = TABLES.iter().map(|(name, _)| *name).filter(|name| has(name)).collect();
        let json = serde_json::to_string(&recording.manifest)?;
        let problems =
            recording.problems.iter().map(ToString::to_string).chain(recording.notes.clone()).collect();
        Ok(("recording", (json, Tables::new()), problems, tables))
    })
}

/// A table of a recording, and what of it could not be read.
#[pyfunction]
pub(crate) fn table(py: Python<'_>, path: PathBuf, name: String) -> PyResult<(Table, Vec<String>)> {
    interruptible(py, move |stopped| {
        let names = || TABLES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let (table, specs) = TABLES.iter().find(|(table, _)| **table == name).ok_or_else(|| {
            Usage::error(format!("recordings have no table {name:?}: give one of {}", names()))
        })?;
        let mut recording = Recording::open_to_explain(&path)?;
        recording.budget.cancelled = Arc::clone(stopped);
        let schema = schema(specs);
        let mut batches = Vec::new();
        recording.visit(table, specs, &[], |columns| batches.push(batch(&schema, specs, &columns)));
        let problems =
            recording.problems.iter().map(ToString::to_string).chain(recording.notes.clone()).collect();
        Ok((Table::new(schema, batches.into_iter().collect::<Result<_, _>>()?), problems))
    })
}

/// A sweep: a row per run.
pub(crate) fn of_sweep(
    summary: &onramp_lab::sim::sweep::Sweep,
    rows: Vec<onramp_lab::sim::sweep::RunRow>,
) -> anyhow::Result<Made> {
    Ok((serde_json::to_string(summary)?, Tables::from([("runs", of_rows(rows)?)])))
}

/// A comparison: a row per run, and, of several flows, a row per flow.
pub(crate) fn of_comparison(comparison: &Comparison) -> anyhow::Result<Made> {
    let mut runs = Objects::with(&[
        ("arm", Cell::Text(String::new())),
        ("repetition", Cell::Unsigned(0)),
        ("exit_reason", Cell::Text(String::new())),
        ("exit_seconds", Cell::Float(0.0)),
        ("exit_window_bytes", Cell::Int(0)),
    ]);
    let mut flows = Objects::default();
    for ArmResult { arm, runs: of_arm, .. } in &comparison.arms {
        for (repetition, run) in of_arm.iter().enumerate() {
            let begin = |objects: &mut Objects| {
                objects.set("arm", Cell::Text(arm.clone()));
                objects.set("repetition", Cell::Unsigned(repetition as u64));
            };
            begin(&mut runs);
            runs.set_object("", &serde_json::to_string(run)?)?;
            runs.end_row();
            for (number, flow) in run.flows.iter().enumerate() {
                begin(&mut flows);
                flows.set("flow", Cell::Unsigned(number as u64));
                flows.set_object("", &serde_json::to_string(flow)?)?;
                flows.end_row();
            }
        }
    }
    let json = serde_json::to_string(comparison).context("cannot write the result")?;
    let mut tables = Tables::from([("runs", runs.finish()?)]);
    let several = flows.finish()?;
    if !several.is_empty() {
        tables.insert("flows", several);
    }
    Ok((json, tables))
}
