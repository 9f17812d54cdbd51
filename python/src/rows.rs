//! Tables that are declared as rows ([`Row`]), column by column. As in JSON, what stands for none is null, and flags are true or
//! false by their names.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int32Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use onramp_recording::{Column, Kind, Row, Sense, Spec};

use crate::table::{Table, UNIT, unit_of};

/// Rows of a table in memory.
pub(crate) fn of_rows<R: Row>(rows: Vec<R>) -> Result<Table, ArrowError> {
    let mut columns: Vec<_> = R::COLUMNS.iter().map(|spec| Column::new(spec.kind)).collect();
    rows.into_iter().for_each(|row| row.push(&mut columns));
    let schema = schema(R::COLUMNS);
    Ok(Table::new(SchemaRef::clone(&schema), vec![batch(&schema, R::COLUMNS, &columns)?]))
}

/// What the columns are.
pub(crate) fn schema(specs: &[Spec]) -> SchemaRef {
    let mut fields = Vec::new();
    for spec in specs {
        let unit = Some(spec.unit).filter(|unit| !unit.is_empty()).or_else(|| unit_of(spec.name));
        let mut metadata = HashMap::from([("help".to_owned(), spec.help.trim().to_owned())]);
        metadata.extend(unit.map(|unit| (UNIT.to_owned(), unit.to_owned())));
        let named = |name: &str, kind| Field::new(name, kind, true).with_metadata(metadata.clone());
        match (spec.sense, spec.kind) {
            (Sense::Bits(names), _) => fields.extend(names.iter().map(|name| named(name, DataType::Boolean))),
            (Sense::Flag, _) => fields.push(named(spec.name, DataType::Boolean)),
            (_, Kind::U64) => fields.push(named(spec.name, DataType::UInt64)),
            (_, Kind::U32) => fields.push(named(spec.name, DataType::UInt32)),
            (_, Kind::I32) => fields.push(named(spec.name, DataType::Int32)),
            (_, Kind::Text) => fields.push(named(spec.name, DataType::Utf8)),
        }
    }
    Arc::new(Schema::new(fields))
}

/// Columns as their schema has them.
pub(crate) fn batch(
    schema: &SchemaRef,
    specs: &[Spec],
    columns: &[Column],
) -> Result<RecordBatch, ArrowError> {
    let arrays = specs.iter().zip(columns).flat_map(|(spec, column)| arrays(spec, column)).collect();
    RecordBatch::try_new(SchemaRef::clone(schema), arrays)
}

fn arrays(spec: &Spec, column: &Column) -> Vec<ArrayRef> {
    let none = |value: u64| match spec.sense {
        Sense::Zero => value == 0,
        Sense::Threshold => value >= onramp_loader::algorithm::NO_THRESHOLD.into(),
        _ => false,
    };
    let array: ArrayRef = match column {
        Column::I64(values) => {
            let values = values.iter().map(|value| Some(*value as u64).filter(|value| !none(*value)));
            Arc::new(values.collect::<UInt64Array>())
        }
        Column::I32(values) if matches!(spec.sense, Sense::Flag | Sense::Bits(_)) => {
            let bits = if let Sense::Bits(names) = spec.sense { names.len() } else { 1 };
            let bit = |at: usize| -> ArrayRef {
                Arc::new(values.iter().map(|value| Some(value >> at & 1 != 0)).collect::<BooleanArray>())
            };
            return (0..bits).map(bit).collect();
        }
        Column::I32(values) if spec.kind == Kind::I32 => {
            let negative = |value: &i32| spec.sense == Sense::Negative && *value < 0;
            let values = values.iter().map(|value| Some(*value).filter(|value| !negative(value)));
            Arc::new(values.collect::<Int32Array>())
        }
        Column::I32(values) => {
            let values =
                values.iter().map(|value| Some(*value as u32).filter(|value| !none((*value).into())));
            Arc::new(values.collect::<UInt32Array>())
        }
        Column::Text(values) => {
            let text = values.iter().map(|value| value.as_utf8().ok());
            let empty = |text: &&str| spec.sense == Sense::Empty && text.is_empty();
            Arc::new(text.map(|text| text.filter(|text| !empty(text))).collect::<StringArray>())
        }
    };
    vec![array]
}
