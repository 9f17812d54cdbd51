// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Tables as they are, in text.

use std::io::{self, Write};

use serde::ser::{SerializeMap, Serializer};

use super::{rows_of, unless_failed};
use crate::column::{Column, Shown, Spec};
use crate::reader::Recording;

/// One table as CSV with a header line; of one flow or of all. Numbers and names need no quotes.
///
/// # Errors
/// Those of `output`.
pub fn csv(
    recording: &mut Recording,
    (table, specs): (&str, &[Spec]),
    flow: Option<u64>,
    output: &mut dyn Write,
) -> io::Result<()> {
    let mut writer = ::csv::Writer::from_writer(output);
    writer.write_record(specs.iter().map(|spec| spec.name))?;
    let flow_column = specs.iter().position(|spec| spec.name == "flow");
    let mut result = Ok(());
    recording.visit(table, specs, &[], |columns| {
        for row in rows_of(&columns, flow_column, flow) {
            unless_failed(&mut result, || {
                for (column, spec) in columns.iter().zip(specs) {
                    match column.show(row, spec.kind) {
                        Shown::Text(text) => writer.write_field(text)?,
                        number => writer.write_field(number.to_string())?,
                    }
                }
                writer.write_record(None::<&[u8]>)?;
                Ok(())
            });
        }
    });
    result?;
    writer.flush()
}

/// Tables as one JSON object per row and line, with the table's name in `table` and the columns as [`Spec::serialize`] says
/// them; of one flow or of all. Table after table, each in the order of its events.
///
/// # Errors
/// Those of `output`.
pub fn ndjson(
    recording: &mut Recording,
    tables: &[(&str, &[Spec])],
    flow: Option<u64>,
    output: &mut dyn Write,
) -> io::Result<()> {
    let mut result = Ok(());
    for (table, specs) in tables {
        let flow_column = specs.iter().position(|spec| spec.name == "flow");
        if flow.is_some() && flow_column.is_none() {
            continue;
        }
        recording.visit(table, specs, &[], |columns| {
            for row in rows_of(&columns, flow_column, flow) {
                unless_failed(&mut result, || object(output, table, specs, &columns, row));
            }
        });
    }
    result?;
    output.flush()
}

fn object(
    output: &mut dyn Write,
    table: &str,
    specs: &[Spec],
    columns: &[Column],
    row: usize,
) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::new(&mut *output);
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("table", table)?;
    for (column, spec) in columns.iter().zip(specs) {
        spec.serialize(column.show(row, spec.kind), &mut map)?;
    }
    map.end()?;
    output.write_all(b"\n")
}
