// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Reading back what [`crate::export::ndjson`] has written.

use std::path::Path;

use onramp_algorithm::NO_THRESHOLD;
use parquet::data_type::ByteArray;
use serde_json::{Map, Value};

use crate::column::{Column, Kind, Sense, Shown, Spec};
use crate::error::Error;
use crate::rows::TABLES;

/// Rows of one table.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub table: &'static str,
    specs: &'static [Spec],
    pub columns: Vec<Column>,
}

/// The tables of a file, in the order of their first rows.
///
/// # Errors
/// [`Error::NotARecording`] where the first line is no row of a table, [`Error::Damaged`] where a later one is none.
pub(crate) fn read(path: &Path, text: &[u8]) -> Result<Vec<Rows>, Error> {
    let mut tables: Vec<Rows> = Vec::new();
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        take(line, &mut tables).map_err(|reason| {
            let (path, reason) = (path.to_owned(), format!("line {}: {reason}", number + 1));
            match tables[..] {
                [] => Error::NotARecording { path, reason },
                _ => Error::Damaged { path, reason },
            }
        })?;
    }
    Ok(tables)
}

fn take(line: &[u8], tables: &mut Vec<Rows>) -> Result<(), String> {
    let row: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| format!("it is no JSON object: {error}"))?;
    let Some(Value::String(name)) = row.get("table") else {
        return Err("it does not say its `table`, as `onramp export --format ndjson` does".into());
    };
    let Some((table, specs)) = TABLES.iter().find(|(table, _)| table == name) else {
        let known: Vec<_> = TABLES.iter().map(|(table, _)| *table).collect();
        return Err(format!("there is no table {name:?}, but {}", known.join(", ")));
    };
    // All of the row before any of it, so that columns stay of equal length.
    let values = specs.iter().map(|spec| spec.parse(&row)).collect::<Result<Vec<_>, _>>()?;
    let at = tables.iter().position(|one| one.table == *table).unwrap_or_else(|| {
        let columns = specs.iter().map(|spec| Column::new(spec.kind)).collect();
        tables.push(Rows { table, specs, columns });
        tables.len() - 1
    });
    tables[at].columns.iter_mut().zip(values).for_each(|(column, value)| push(column, value));
    Ok(())
}

fn push(column: &mut Column, value: Shown<'_>) {
    match (column, value) {
        (Column::Long(values), Shown::Unsigned(number)) => values.push(number as i64),
        (Column::Word(values), Shown::Unsigned(number)) => values.push(number as i32),
        (Column::Word(values), Shown::Signed(number)) => values.push(number as i32),
        (Column::Text(values), Shown::Text(text)) => values.push(ByteArray::from(text)),
        // What is parsed is of its column's kind.
        _ => {}
    }
}

impl Rows {
    /// Of the columns asked for (none: all), the others empty, in the order of the table's own.
    pub fn columns(&self, wanted: &[&str]) -> Vec<Column> {
        let one = |(spec, column): (&Spec, &Column)| {
            if wanted.is_empty() || wanted.contains(&spec.name) {
                column.clone()
            } else {
                Column::new(spec.kind)
            }
        };
        self.specs.iter().zip(&self.columns).map(one).collect()
    }

    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }
}

impl Spec {
    /// What [`Spec::serialize`] has added to an object.
    fn parse<'a>(&self, object: &'a Map<String, Value>) -> Result<Shown<'a>, String> {
        let of = |name: &str| object.get(name).ok_or_else(|| format!("it has no {name}"));
        let flag = |name: &str| {
            let value = of(name)?;
            value.as_bool().ok_or_else(|| format!("{name} is {value}: true or false is allowed"))
        };
        match self.sense {
            Sense::Flag => return Ok(Shown::Unsigned(flag(self.name)?.into())),
            Sense::Bits(names) => {
                let mut bits = 0;
                for (bit, name) in names.iter().enumerate() {
                    bits |= u64::from(flag(name)?) << bit;
                }
                return Ok(Shown::Unsigned(bits));
            }
            _ => {}
        }
        let value = of(self.name)?;
        if value.is_null() {
            let none = match self.sense {
                Sense::Zero => Some(Shown::Unsigned(0)),
                Sense::Negative => Some(Shown::Signed(-1)),
                Sense::Threshold => Some(Shown::Unsigned(NO_THRESHOLD.into())),
                Sense::Empty => Some(Shown::Text("")),
                Sense::Plain | Sense::Flag | Sense::Bits(_) => None,
            };
            return none.ok_or_else(|| format!("{} is null, and never is none", self.name));
        }
        let (read, allowed) = match self.kind {
            Kind::U64 => (value.as_u64().map(Shown::Unsigned), format!("0 to {}", u64::MAX)),
            Kind::U32 => {
                let number = value.as_u64().filter(|number| u32::try_from(*number).is_ok());
                (number.map(Shown::Unsigned), format!("0 to {}", u32::MAX))
            }
            Kind::I32 => {
                let number = value.as_i64().filter(|number| i32::try_from(*number).is_ok());
                (number.map(Shown::Signed), format!("{} to {}", i32::MIN, i32::MAX))
            }
            Kind::Text => (value.as_str().map(Shown::Text), "text".into()),
        };
        read.ok_or_else(|| format!("{} is {value}: {allowed} is allowed", self.name))
    }
}

#[cfg(test)]
mod tests {
    use onramp_algorithm::find;

    use super::*;
    use crate::fixtures::{record, slow_start};
    use crate::rows::AckRow;
    use crate::{Recording, Row, export};

    /// A recording with acknowledgements, an exit and parameters, as NDJSON.
    fn exported() -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        record(directory.path(), 3, &find("search").unwrap().parameters(), &slow_start(200), 150);
        text(&mut Recording::open(directory.path()).unwrap())
    }

    fn text(recording: &mut Recording) -> Vec<u8> {
        let mut text = Vec::new();
        export::ndjson(recording, TABLES, None, &mut text).unwrap();
        assert!(recording.problems.is_empty(), "{:?}", recording.problems);
        text
    }

    fn of(text: Vec<u8>) -> Recording {
        Recording::of_files([("rec.ndjson".into(), text)])
    }

    #[test]
    fn what_was_exported_comes_back_whole() {
        let exported = exported();
        let mut recording = of(exported.clone());
        assert_eq!(recording.flows(), 1);
        assert!(recording.stated_rows().contains(&200));
        assert_eq!(String::from_utf8(text(&mut recording)).unwrap(), String::from_utf8(exported).unwrap());
        // Nothing but what was asked for is handed out.
        recording.read::<AckRow>(&["flow"], |batch| {
            let lengths: Vec<usize> = batch.columns().iter().map(Column::len).collect();
            let asked = AckRow::COLUMNS.iter().map(|spec| if spec.name == "flow" { 200 } else { 0 });
            assert_eq!(lengths, asked.collect::<Vec<_>>());
        });
    }

    #[test]
    fn what_is_no_row_is_named_with_its_line_and_what_is_allowed() {
        let exported = String::from_utf8(exported()).unwrap();
        let ack = exported.lines().find(|line| line.contains("\"table\":\"acks\"")).unwrap();
        let watched = "{\"schema\":2,\"event\":\"ack\",\"at_us\":1}";
        for (text, said) in [
            (watched.to_owned(), "is no recording: line 1: it does not say its `table`"),
            (ack.replace("\"acks\"", "\"packs\""), "line 1: there is no table \"packs\", but flows, acks,"),
            (format!("{ack}\n\n{}", &ack[..ack.len() / 2]), "is damaged: line 3: it is no JSON object"),
            (ack.replace("\"flow\":3", "\"flow\":-3"), "flow is -3: 0 to 18446744073709551615 is allowed"),
            (ack.replace("\"flow\":3", "\"flows\":3"), "it has no flow"),
            (ack.replace("\"flow\":3", "\"flow\":null"), "flow is null"),
            (
                ack.replace("\"mss_bytes\":1000", "\"mss_bytes\":4294967296"),
                "mss_bytes is 4294967296: 0 to 4294967295",
            ),
            (ack.replace("\"asked\":true", "\"asked\":1"), "asked is 1: true or false"),
            (ack.replace("\"event\":\"ack\"", "\"event\":7"), "event is 7: text is allowed"),
        ] {
            let problems = of(text.into_bytes()).problems;
            let problem = problems.first().map(ToString::to_string).unwrap_or_default();
            assert!(problem.starts_with("rec.ndjson") && problem.contains(said), "{said}: {problem}");
        }
    }

    #[test]
    fn bytes_changed_anywhere_are_rows_or_refused() {
        let understood = std::cell::Cell::new(0);
        onramp_mutation::check(11, 2_000, onramp_mutation::bytes(vec![exported()]), |bytes| {
            let mut recording = of(bytes);
            if recording.problems.is_empty() {
                understood.set(understood.get() + 1);
                let again = text(&mut recording);
                assert_eq!(text(&mut of(again.clone())), again);
            }
            Ok(())
        });
        assert!(understood.get() > 20, "{}", understood.get());
    }
}
