// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A table in a file of its own, without a recording around it.

use std::path::Path;

use crate::budget::Budget;
use crate::column::Column;
use crate::error::Error;
use crate::file::{self, Part};
use crate::table::Row;

/// What the columns of such a file may unpack to: its writer was this program, so it is to be refused only by accident.
const FILE_BYTES: u64 = 1 << 31;

/// Writes rows as one Parquet file with a checksum, whole or not at all.
///
/// # Errors
/// [`Error::Write`].
pub fn write_rows<R: Row>(path: &Path, rows: impl IntoIterator<Item = R>) -> Result<(), Error> {
    let mut columns: Vec<_> = R::COLUMNS.iter().map(|spec| Column::new(spec.kind)).collect();
    rows.into_iter().for_each(|row| row.push(&mut columns));
    file::write(path, R::TABLE, R::COLUMNS, &columns).map(drop)
}

/// Reads what [`write_rows`] has written.
///
/// # Errors
/// [`Error::Read`], [`Error::Damaged`], [`Error::Schema`]; [`Error::NotARecording`] also for another table.
pub fn read_rows<R: Row>(path: &Path) -> Result<Vec<R>, Error> {
    let part = Part::open(path)?;
    if part.table != R::TABLE {
        let reason = format!("it holds the table {:?}, not {:?}", part.table, R::TABLE);
        return Err(Error::NotARecording { path: path.to_owned(), reason });
    }
    let columns =
        part.columns(R::COLUMNS, |_| true, &Budget { file_bytes: FILE_BYTES, ..Budget::default() })?;
    Ok((0..part.rows).map_while(|row| R::get(&columns, row)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Text;

    crate::table! {
        /// For tests.
        Line = "lines" {
            /// a number
            number: u64,
            /// a name
            name: Text,
        }
    }

    crate::table! {
        /// Another one.
        Other = "others" {
            /// a number
            number: u64,
        }
    }

    #[test]
    fn rows_come_back_and_what_is_no_such_table_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lines.parquet");
        let lines = vec![
            Line { number: u64::MAX, name: "one".into() },
            Line { number: 0, name: String::from("two").into() },
        ];
        write_rows(&path, lines.clone()).unwrap();
        assert_eq!(read_rows::<Line>(&path).unwrap(), lines);
        let other = read_rows::<Other>(&path).unwrap_err().to_string();
        assert!(other.contains("\"lines\", not \"others\""), "{other}");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[10] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(matches!(read_rows::<Line>(&path), Err(Error::Damaged { .. })));
    }
}
