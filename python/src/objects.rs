//! Tables of what has no declared rows: objects of a JSON document, and CSV that this project writes. Columns are in the order
//! in which they are met, and those of objects within have both names.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, StringArray, UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::table::{Table, UNIT, unit_of};

/// One value.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
}

/// A table in the making.
#[derive(Default)]
pub(crate) struct Objects {
    columns: Vec<Column>,
    rows: usize,
    /// Where the next column is expected.
    next: usize,
}

struct Column {
    name: String,
    values: Vec<Cell>,
    /// A value of its type, where there may be none.
    like: Cell,
}

/// The members of an object, in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl Objects {
    /// A table that has these columns in any case, the first ones, with a value of the type of each.
    pub fn with(columns: &[(&str, Cell)]) -> Self {
        let column = |(name, like): &(&str, Cell)| Column {
            name: (*name).to_owned(),
            values: Vec::new(),
            like: like.clone(),
        };
        Self { columns: columns.iter().map(column).collect(), ..Self::default() }
    }

    /// Sets a value of the row that is made.
    pub fn set(&mut self, name: &str, cell: Cell) {
        let expected = self.columns.get(self.next).is_some_and(|column| column.name == name);
        let found = if expected {
            Some(self.next)
        } else {
            self.columns.iter().position(|column| column.name == name)
        };
        let at = found.unwrap_or_else(|| {
            let values = vec![Cell::Null; self.rows];
            self.columns.push(Column { name: name.to_owned(), values, like: Cell::Null });
            self.columns.len() - 1
        });
        self.next = at + 1;
        let values = &mut self.columns[at].values;
        values.truncate(self.rows);
        values.push(cell);
    }

    /// Sets the members of an object; of lists only those of texts, as one text.
    pub fn set_object(&mut self, prefix: &str, object: &str) -> serde_json::Result<()> {
        for (name, value) in serde_json::from_str::<Members<'_>>(object)?.0 {
            let name = if prefix.is_empty() { name } else { format!("{prefix}_{name}") };
            let text = value.get();
            match text.as_bytes().first() {
                Some(b'{') => self.set_object(&name, text)?,
                Some(b'[') => {
                    if let Ok(texts) = serde_json::from_str::<Vec<String>>(text) {
                        self.set(&name, Cell::Text(texts.join(" ")));
                    }
                }
                Some(b'"') => self.set(&name, Cell::Text(serde_json::from_str(text)?)),
                _ => self.set(&name, scalar(text)),
            }
        }
        Ok(())
    }

    /// The row is whole.
    pub fn end_row(&mut self) {
        self.rows += 1;
        self.next = 0;
        let rows = self.rows;
        self.columns.iter_mut().for_each(|column| column.values.resize(rows, Cell::Null));
    }

    /// Rows of CSV of numbers without quotes, each with these values before it.
    pub fn add_csv(&mut self, before: &[(&str, Cell)], text: &str) {
        let mut lines = text.lines();
        let names: Vec<_> = lines.next().unwrap_or_default().split(',').collect();
        for line in lines {
            before.iter().for_each(|(name, cell)| self.set(name, cell.clone()));
            names.iter().zip(line.split(',')).for_each(|(name, value)| self.set(name, scalar(value)));
            self.end_row();
        }
    }

    pub fn finish(self) -> Result<Table, ArrowError> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        let names: Vec<_> = self.columns.iter().map(|column| column.name.clone()).collect();
        for Column { name, values, like } in self.columns {
            let array = array(&values, &like);
            // Null in place of an object: its members say that already.
            let within = |other: &String| other.strip_prefix(&name).is_some_and(|rest| rest.starts_with('_'));
            if array.logical_null_count() == array.len()
                && matches!(like, Cell::Null)
                && names.iter().any(within)
            {
                continue;
            }
            let unit = unit_of(&name).map(|unit| (UNIT.to_owned(), unit.to_owned()));
            fields.push(
                Field::new(name, array.data_type().clone(), true)
                    .with_metadata(unit.into_iter().collect::<HashMap<_, _>>()),
            );
            arrays.push(array);
        }
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let batches =
            if arrays.is_empty() { vec![] } else { vec![RecordBatch::try_new(schema.clone(), arrays)?] };
        Ok(Table::new(schema, batches))
    }
}

fn scalar(text: &str) -> Cell {
    match text {
        "" | "null" => Cell::Null,
        "true" => Cell::Bool(true),
        "false" => Cell::Bool(false),
        _ => text
            .parse()
            .map(Cell::Int)
            .or_else(|_| text.parse().map(Cell::Unsigned))
            .or_else(|_| text.parse().map(Cell::Float))
            .unwrap_or_else(|_| Cell::Text(text.to_owned())),
    }
}

/// The narrowest type that has all values.
fn array(values: &[Cell], like: &Cell) -> ArrayRef {
    let any = |kind: fn(&Cell) -> bool| values.iter().chain([like]).any(kind);
    if any(|cell| matches!(cell, Cell::Text(_))) {
        let text = |cell: &Cell| if let Cell::Text(text) = cell { Some(text.clone()) } else { None };
        return Arc::new(values.iter().map(text).collect::<StringArray>());
    }
    if any(|cell| matches!(cell, Cell::Float(_))) {
        let number = |cell: &Cell| match cell {
            Cell::Int(number) => Some(*number as f64),
            Cell::Unsigned(number) => Some(*number as f64),
            Cell::Float(number) => Some(*number),
            _ => None,
        };
        return Arc::new(values.iter().map(number).collect::<Float64Array>());
    }
    if any(|cell| matches!(cell, Cell::Unsigned(_))) {
        let number = |cell: &Cell| match cell {
            Cell::Int(number) => u64::try_from(*number).ok(),
            Cell::Unsigned(number) => Some(*number),
            _ => None,
        };
        return Arc::new(values.iter().map(number).collect::<UInt64Array>());
    }
    if any(|cell| matches!(cell, Cell::Int(_))) {
        let number = |cell: &Cell| if let Cell::Int(number) = cell { Some(*number) } else { None };
        return Arc::new(values.iter().map(number).collect::<Int64Array>());
    }
    if any(|cell| matches!(cell, Cell::Bool(_))) {
        let flag = |cell: &Cell| if let Cell::Bool(flag) = cell { Some(*flag) } else { None };
        return Arc::new(values.iter().map(flag).collect::<BooleanArray>());
    }
    Arc::new(NullArray::new(values.len()))
}
