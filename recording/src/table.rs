// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A table is declared once: its row as a Rust structure is its schema, its writer and its reader.

use serde::Serializer;
use serde::ser::{SerializeMap, SerializeTuple};

use crate::column::{Column, Shown, Spec};

/// One row of a table.
pub trait Row: Sized + Default {
    /// Name of the table; its files are `<name>-<number>.parquet`.
    const TABLE: &'static str;
    /// Its columns, in order.
    const COLUMNS: &'static [Spec];
    /// Its values, in the order of [`Row::COLUMNS`].
    fn shown(&self) -> Vec<Shown<'_>>;
    /// Appends the row to the columns, which are those of [`Row::COLUMNS`].
    fn push(self, columns: &mut [Column]);
    /// Row number `row` of the columns, which are those of [`Row::COLUMNS`].
    fn get(columns: &[Column], row: usize) -> Option<Self>;
}

/// A row as JSON, without some of its columns: an object, in which none is null, and flags are true or false by their names.
///
/// # Errors
/// Those of the serializer.
pub fn serialize_columns<R: Row, S: Serializer>(
    row: &R,
    without: &[&str],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut object = serializer.serialize_map(None)?;
    for (spec, value) in R::COLUMNS.iter().zip(row.shown()) {
        if !without.contains(&spec.name) {
            spec.serialize(value, &mut object)?;
        }
    }
    object.end()
}

/// A row as JSON; in other formats its values in order, from which `Deserialize` makes it again.
pub(crate) fn serialize<R: Row, S: Serializer>(row: &R, serializer: S) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        return serialize_columns(row, &[], serializer);
    }
    let mut values = serializer.serialize_tuple(R::COLUMNS.len())?;
    for value in row.shown() {
        values.serialize_element(&value)?;
    }
    values.end()
}

/// Declares a row structure whose fields are a table's columns; the fields' documentation is the columns'. Units
/// belong to the names. Behind the type stands what the values say, where that is not what they are ([`crate::Sense`]), the
/// longest text, where that is not [`crate::TEXT_BYTES`], the unit, and the side of the event.
#[macro_export]
macro_rules! table {
    (@first $first:expr $(, $rest:expr)*) => { $first };
    ($(#[$about:meta])* $name:ident = $table:literal { $($(#[doc = $help:literal])+
        $field:ident: $type:ty $(=> $(read $sense:ident $(($names:expr))?)? $(most $bytes:literal)?
        $(unit $unit:literal)? $(side $side:literal)?)?,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[doc = $help])+ pub $field: $type,)+
        }

        impl $crate::Row for $name {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [$crate::Spec] = &[$($crate::Spec {
                name: stringify!($field),
                kind: <$type as $crate::Value>::KIND,
                bytes: $crate::table!(@first $($($bytes,)?)? $crate::TEXT_BYTES),
                sense: $crate::table!(@first $($($crate::Sense::$sense $(($names))?,)?)? $crate::Sense::Plain),
                unit: $crate::table!(@first $($($unit,)?)? ""),
                side: $crate::table!(@first $($($side,)?)? ""),
                help: concat!($($help),+),
            },)+];
            fn shown(&self) -> Vec<$crate::Shown<'_>> {
                vec![$($crate::Value::show(&self.$field)),+]
            }
            fn push(self, columns: &mut [$crate::Column]) {
                let mut columns = columns.iter_mut();
                $(if let Some(column) = columns.next() {
                    $crate::Value::push(self.$field, column);
                })+
            }
            fn get(columns: &[$crate::Column], row: usize) -> Option<Self> {
                let mut columns = columns.iter();
                Some(Self { $($field: $crate::Value::get(columns.next()?, row)?,)+ })
            }
        }
    };
}
