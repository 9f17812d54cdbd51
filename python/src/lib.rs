// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The native half of the Python package `onramp`: what the programs compute, as JSON and tables. The other half, in
//! `onramp/`, has names, defaults and documentation.

mod interrupt;
mod objects;
mod read;
mod rows;
mod table;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use onramp_lab::sim::SimError;
use onramp_lab_program::library;
use onramp_profiles::parameters::Chosen;
use onramp_recording::replay::{Options, Report, Request, candidates};
use onramp_terminal::failure::Usage;
use onramp_terminal::output::Output;
use pyo3::prelude::*;

use interrupt::interruptible;
use objects::{Cell, Objects};
use table::{Table, Tables};

/// JSON, and tables.
type Made = (String, Tables);

/// `onramp sim compare` with these words, and what was seen of each run's first flow if it is wanted.
#[pyfunction]
fn simulate(py: Python<'_>, words: Vec<String>, samples: bool) -> PyResult<Made> {
    interruptible(py, move |stopped| {
        let mut seen = Objects::default();
        let comparison = library::compare(&words, |arm, repetition, _, flow| {
            if samples {
                let before = [
                    ("arm", Cell::Text(arm.name.clone())),
                    ("repetition", Cell::Unsigned(repetition.into())),
                ];
                seen.add_csv(&before, &flow.csv(flow.began_ns().unwrap_or(0)));
            }
            if stopped.load(Ordering::Relaxed) { Err(SimError::Stopped) } else { Ok(()) }
        })?;
        let (json, mut tables) = read::of_comparison(&comparison)?;
        if samples {
            tables.insert("samples", seen.finish()?);
        }
        Ok((json, tables))
    })
}

/// `onramp sim sweep` with these words, by the library of this path.
#[pyfunction]
fn sweep(py: Python<'_>, words: Vec<String>, library: PathBuf) -> PyResult<Made> {
    interruptible(py, move |stopped| {
        let wanted = || if stopped.load(Ordering::Relaxed) { Err(SimError::Stopped) } else { Ok(()) };
        let (summary, rows) = library::sweep(&words, &library, wanted)?;
        read::of_sweep(&summary, rows)
    })
}

/// What `onramp replay` has.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Replayed {
    path: PathBuf,
    algorithm: Vec<String>,
    profile: Option<String>,
    set: Vec<String>,
    sweep: Vec<String>,
    flow: Option<u64>,
    keep_going: bool,
    beyond: bool,
    ignore_unknown: bool,
}

/// `onramp replay` with these options.
#[pyfunction]
fn replay(py: Python<'_>, options: Replayed) -> PyResult<Made> {
    interruptible(py, move |stopped| {
        let Replayed { path, algorithm, profile, set: settings, sweep, flow, .. } = options;
        if algorithm.is_empty() && profile.is_none() {
            return Err(Usage::error("give an algorithm, or a profile, which has one"));
        }
        let chosen = Chosen { algorithm, profile, settings, sweep };
        let (algorithms, settings) = chosen.wanted()?;
        let candidates = candidates(&algorithms, &settings, &chosen.sweep)
            .map_err(|error| Usage::error(error.to_string()))?;
        let request = Request {
            candidates,
            options: Options { keep_going: options.keep_going, beyond: options.beyond, regret: true },
            ignore_unknown: options.ignore_unknown,
            flow,
            cancelled: Arc::clone(stopped),
        };
        let report = request.replay(&path)?;
        request.check(&report)?;
        let tables = Tables::from([("findings", findings(&report)?), ("points", points(&report)?)]);
        Ok((Output::document_text(&report)?, tables))
    })
}

/// A row for each flow and candidate.
fn findings(report: &Report) -> anyhow::Result<Table> {
    let mut rows = Objects::with(&[
        ("flow", Cell::Unsigned(0)),
        ("algorithm", Cell::Text(String::new())),
        ("settings", Cell::Text(String::new())),
        ("exit_since_start_us", Cell::Int(0)),
        ("exit_window_bytes", Cell::Int(0)),
    ]);
    for flow in &report.flows {
        for finding in &flow.findings {
            rows.set("flow", Cell::Unsigned(flow.flow));
            rows.set_object("", &serde_json::to_string(finding)?)?;
            rows.end_row();
        }
    }
    Ok(rows.finish()?)
}

/// What flows did, thinned out.
fn points(report: &Report) -> anyhow::Result<Table> {
    let mut rows = Objects::default();
    for flow in &report.flows {
        for point in &flow.trace.points {
            rows.set("flow", Cell::Unsigned(flow.flow));
            rows.set("since_start_us", Cell::Unsigned(point.at_us));
            rows.set("window_bytes", Cell::Unsigned(point.window_bytes));
            rows.set("in_flight_bytes", Cell::Unsigned(point.in_flight_bytes));
            rows.set("smoothed_rtt_us", Cell::Unsigned(point.smoothed_rtt_us.into()));
            rows.end_row();
        }
    }
    Ok(rows.finish()?)
}

/// Names of the options of `compare` or `sweep`.
#[pyfunction]
fn options(verb: &str) -> Vec<String> {
    library::options(verb)
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Table>()?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_function(wrap_pyfunction!(sweep, module)?)?;
    module.add_function(wrap_pyfunction!(replay, module)?)?;
    module.add_function(wrap_pyfunction!(read::read, module)?)?;
    module.add_function(wrap_pyfunction!(read::table, module)?)?;
    module.add_function(wrap_pyfunction!(options, module)?)?;
    Ok(())
}
