// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is read at once.

use std::marker::PhantomData;

use crate::column::Column;
use crate::table::Row;

/// Rows of one file, as columns.
#[derive(Debug)]
pub struct Batch<R> {
    pub(crate) columns: Vec<Column>,
    pub(crate) row: PhantomData<R>,
}

impl<R: Row> Batch<R> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.columns.iter().map(Column::len).max().unwrap_or(0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows, one by one; none if not all columns were asked for.
    pub fn rows(&self) -> impl Iterator<Item = R> + '_ {
        (0..self.len()).map_while(|row| R::get(&self.columns, row))
    }

    /// The columns, in the order of [`Row::COLUMNS`]; those that were not asked for are empty.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The values of the 64-bit column of this name; empty if there is none.
    pub(crate) fn longs(&self, name: &str) -> &[i64] {
        self.column(name).map_or(&[], Column::longs)
    }

    /// The values of the 32-bit column of this name; empty if there is none.
    pub(crate) fn words(&self, name: &str) -> &[i32] {
        self.column(name).map_or(&[], Column::words)
    }

    /// The column of this name.
    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.get(R::COLUMNS.iter().position(|spec| spec.name == name)?)
    }
}
