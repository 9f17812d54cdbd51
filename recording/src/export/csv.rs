// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A table as text, in the form that [`crate::replay_csv`] reads.

use std::io::{self, Write};

use super::{rows_of, unless_failed};
use crate::column::{Shown, Spec};
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
    writer.write_record(specs.iter().map(|spec| spec.name)).map_err(plain)?;
    let flow_column = specs.iter().position(|spec| spec.name == "flow");
    let mut result = Ok(());
    recording.visit(table, specs, &[], |columns| {
        for row in rows_of(&columns, flow_column, flow) {
            unless_failed(&mut result, || {
                for (column, spec) in columns.iter().zip(specs) {
                    match column.show(row, spec.kind) {
                        Shown::Text(text) => writer.write_field(text),
                        number => writer.write_field(number.to_string()),
                    }
                    .map_err(plain)?;
                }
                writer.write_record(None::<&[u8]>).map_err(plain)
            });
        }
    });
    result?;
    writer.flush()
}

/// The error of the output, which distinguishes a closed pipe from a full disk.
fn plain(error: ::csv::Error) -> io::Error {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
