// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Recordings in other formats: a table as CSV, flows as qlog.

mod csv;
mod qlog;
mod qlog_flow;

use std::io;

pub use csv::csv;
pub use qlog::qlog;

use crate::column::Column;

/// The rows of a flow, or all of them.
fn rows_of(columns: &[Column], flow_column: Option<usize>, wanted: Option<u64>) -> Vec<usize> {
    let count = columns.first().map_or(0, Column::len);
    let (Some(column), Some(wanted)) = (flow_column.and_then(|index| columns.get(index)), wanted) else {
        return (0..count).collect();
    };
    let flows = column.longs().iter().enumerate();
    flows.filter(|(_, flow)| **flow as u64 == wanted).map(|(row, _)| row).collect()
}

/// Runs `step` unless an earlier one has failed.
fn unless_failed(result: &mut io::Result<()>, step: impl FnOnce() -> io::Result<()>) {
    if result.is_ok() {
        *result = step();
    }
}
