// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One table file: Parquet with one row group, and a checksum of all of it.
//!
//! Parquet finds its data by offsets from the beginning and its footer from the end, so there is room for eight bytes
//! between them that other readers pass over: a mark and the CRC-32 of everything else in the file.

use std::cell::Cell;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use crate::bounded;
use crate::budget::Budget;
use crate::column::{Column, Kind, Spec};
use crate::error::Error;
use crate::kind;
use crate::manifest::SCHEMA;
use crate::pages::survey;
use crate::replace::replace;
use crate::thrift::{Met, walk};

/// Keys in the footer.
const SCHEMA_KEY: &str = "onramp.schema";
const TABLE_KEY: &str = "onramp.table";
/// Begins and ends a Parquet file; before the last lies the length of the footer.
pub(crate) const MAGIC: &[u8] = b"PAR1";
const TRAILER: usize = 8;
/// Largest file that is read, bytes; those that are written are a tenth of it.
pub(crate) const FILE_BYTES: u64 = 1 << 28;
/// Rows of a file at most; a recording's have an eighth of it.
pub(crate) const FILE_ROWS: usize = 1 << 20;
/// Largest footer that is read, bytes; what Parquet's reader makes of it is ten times as large. Those that are written have
/// a tenth of it.
const FOOTER_BYTES: usize = 1 << 16;
/// Before the checksum.
const MARK: &[u8] = b"ONRC";
const CHECKSUM: usize = 8;

thread_local! {
    /// Whether a panic of this thread becomes an error.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Writes a table under its final name at once: first next to it, then renamed, so that a file that is there is whole.
/// Returns its size in bytes.
pub(crate) fn write(path: &Path, table: &str, specs: &[Spec], columns: &[Column]) -> Result<u64, Error> {
    let rows = columns.iter().map(Column::len).max().unwrap_or(0);
    if rows > FILE_ROWS {
        let reason = format!("{rows} rows are too many for one file: {FILE_ROWS} at most");
        return Err(Error::write(path)(io::Error::other(reason)));
    }
    if let Some(reason) = specs.iter().zip(columns).find_map(|(spec, column)| too_long(spec, column)) {
        return Err(Error::write(path)(io::Error::other(reason)));
    }
    let bytes = encode(table, specs, columns).map_err(io::Error::other).map_err(Error::write(path))?;
    replace(path, &bytes)?;
    Ok(bytes.len() as u64)
}

/// What is wrong with a text that is not read back.
fn too_long(spec: &Spec, column: &Column) -> Option<String> {
    let (row, length) = column.first_longer(spec.bytes)?;
    let (name, most) = (spec.name, spec.bytes);
    Some(format!("column {name} of row {row} has {length} bytes: {most} at most"))
}

/// The file's bytes.
fn encode(table: &str, specs: &[Spec], columns: &[Column]) -> Result<Vec<u8>, ParquetError> {
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema(table, specs)?, Arc::new(properties(specs)))?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        let Some(mut target) = group.next_column()? else { break };
        match column {
            Column::I64(values) => target.typed::<Int64Type>().write_batch(values, None, None)?,
            Column::I32(values) => target.typed::<Int32Type>().write_batch(values, None, None)?,
            Column::Text(values) => target.typed::<ByteArrayType>().write_batch(values, None, None)?,
        };
        target.close()?;
    }
    group.close()?;
    writer.flush()?;
    let data = writer.inner().len();
    for (key, value) in [(SCHEMA_KEY, SCHEMA.to_string()), (TABLE_KEY, table.to_owned())] {
        writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }
    for spec in specs {
        writer.append_key_value_metadata(KeyValue::new(format!("column.{}", spec.name), spec.metadata()));
    }
    let mut bytes = writer.into_inner()?;
    seal(&mut bytes, data);
    Ok(bytes)
}

/// Puts mark and checksum behind the data, which end at `data`.
pub(crate) fn seal(bytes: &mut Vec<u8>, data: usize) {
    let sum = crc32fast::hash(bytes);
    bytes.splice(data..data, MARK.iter().copied().chain(sum.to_le_bytes()));
}

/// The footer of a file, if that is whole; else what is wrong.
fn check(bytes: &[u8]) -> Result<&[u8], Wrong> {
    let cut = || Wrong::Damaged("it does not end as it was written: cut off, or changed");
    if !bytes.starts_with(MAGIC) && !bytes.ends_with(MAGIC) {
        return Err(Wrong::Foreign(kind::not_parquet(bytes)));
    }
    let (rest, trailer) = bytes.split_last_chunk::<TRAILER>().ok_or_else(cut)?;
    let (length, magic) = trailer.split_first_chunk::<4>().ok_or_else(cut)?;
    if magic != MAGIC {
        return Err(cut());
    }
    let footer = rest.len().checked_sub(u32::from_le_bytes(*length) as usize).ok_or_else(cut)?;
    let at = footer.checked_sub(CHECKSUM).ok_or_else(cut)?;
    let (mark, sum) = rest[at..footer].split_at(MARK.len());
    if mark != MARK {
        return Err(Wrong::Foreign("Parquet without the checksum of a recording's file, or damaged"));
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..at]);
    hasher.update(&bytes[footer..]);
    if sum != hasher.finalize().to_le_bytes() {
        return Err(Wrong::Damaged("it does not have the checksum that it states"));
    }
    let footer = &rest[footer..];
    if footer.len() > FOOTER_BYTES {
        return Err(Wrong::Damaged("its footer has more than 65536 bytes"));
    }
    flat(footer).then_some(footer).ok_or(Wrong::Damaged("its footer is no list of plain columns"))
}

/// Whether a footer can be, and its schema is one group of columns that have none in them. The schema is its second field,
/// the number of columns in a group the fifth of an element.
fn flat(footer: &[u8]) -> bool {
    let (mut elements, mut groups) = (0, Vec::new());
    let walked = walk(footer, |fields, met| match (fields, met) {
        ([2], Met::List(size)) => elements = size,
        ([2, 5], Met::Number(children)) if children != 0 => groups.push(children),
        _ => {}
    });
    walked == Some(footer.len())
        && matches!(groups[..], [] | [_])
        && groups.iter().all(|one| (0..elements as i64).contains(one))
}

enum Wrong {
    Damaged(&'static str),
    Foreign(&'static str),
}

fn schema(table: &str, specs: &[Spec]) -> Result<Arc<Type>, ParquetError> {
    let field = |spec: &Spec| {
        let (physical, logical) = match spec.kind {
            Kind::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Kind::U32 => (Physical::INT32, Some(LogicalType::integer(32, false))),
            Kind::I32 => (Physical::INT32, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(spec.name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical)
            .with_converted_type(ConvertedType::NONE);
        Ok(Arc::new(field.build()?))
    };
    let fields: Result<Vec<_>, ParquetError> = specs.iter().map(field).collect();
    Ok(Arc::new(Type::group_type_builder(table).with_fields(fields?).build()?))
}

fn properties(specs: &[Spec]) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("onramp ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for spec in specs.iter().filter(|spec| spec.kind == Kind::U64) {
        // Times and counters move in small steps; a dictionary would only be tried and given up.
        let path = ColumnPath::from(spec.name);
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    builder.build()
}

/// A table file that was read: checked against its checksum, columns not yet decoded.
pub(crate) struct Part {
    path: PathBuf,
    bytes: Bytes,
    reader: SerializedFileReader<Bytes>,
    /// The table's name.
    pub table: String,
    /// Number of rows.
    pub rows: usize,
}

impl Part {
    /// Reads and checks a file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::new(path, bounded::read(path, FILE_BYTES).map_err(Error::read(path))?.into())
    }

    /// Checks a file that was read from there.
    pub fn new(path: &Path, bytes: Bytes) -> Result<Self, Error> {
        guarded(path, || Self::of_unguarded(path, bytes))
    }

    fn of_unguarded(path: &Path, bytes: Bytes) -> Result<Self, Error> {
        check(&bytes).map(drop).map_err(|wrong| match wrong {
            Wrong::Damaged(reason) => Error::damaged(path, reason),
            Wrong::Foreign(reason) => {
                Error::NotARecording { path: path.to_owned(), reason: format!("it is {reason}") }
            }
        })?;
        let damaged = |error: ParquetError| Error::damaged(path, error);
        let end = bytes.len() as u64;
        let reader = SerializedFileReader::new(bytes.clone()).map_err(damaged)?;
        let metadata = reader.metadata().file_metadata();
        let value = |key: &str| {
            let mut pairs = metadata.key_value_metadata().into_iter().flatten();
            pairs.find(|pair| pair.key == key).and_then(|pair| pair.value.clone())
        };
        let found = value(SCHEMA_KEY).and_then(|text| text.parse().ok()).unwrap_or(0);
        if found != SCHEMA {
            return Err(Error::Schema { path: path.to_owned(), found, known: SCHEMA });
        }
        let table = value(TABLE_KEY).unwrap_or_default();
        let rows = rows(reader.metadata(), end).map_err(|reason| Error::damaged(path, reason))?;
        Ok(Self { path: path.to_owned(), bytes, reader, table, rows })
    }

    /// Decodes columns, of which those that are not wanted stay empty. One that recordings did not have when the file was
    /// written is all 0, or empty texts. Nothing is decoded if that is not within the budget.
    pub fn columns(
        &self,
        specs: &[Spec],
        wanted: impl Fn(&Spec) -> bool,
        budget: &Budget,
    ) -> Result<Vec<Column>, Error> {
        guarded(&self.path, || {
            let mut bytes = 0;
            for spec in specs.iter().filter(|spec| wanted(spec)) {
                bytes += self.survey(spec).map_err(|reason| Error::damaged(&self.path, reason))?;
            }
            if bytes > budget.file_bytes {
                let most = budget.file_bytes;
                let reason = format!("its columns unpack to {bytes} bytes: {most} at most are read");
                return Err(Error::TooLarge { path: self.path.clone(), reason });
            }
            let column = |spec: &Spec| {
                budget.wanted(&self.path)?;
                if wanted(spec) { self.column(spec) } else { Ok(Column::new(spec.kind)) }
            };
            specs.iter().map(column).collect()
        })
    }

    /// Where a column is, if the file has it.
    fn index(&self, spec: &Spec) -> Option<usize> {
        let columns = self.reader.metadata().file_metadata().schema_descr().columns();
        columns.iter().position(|column| column.path().parts() == [spec.name])
    }

    /// The bytes that a column takes in memory.
    fn survey(&self, spec: &Spec) -> Result<u64, String> {
        let values = self.rows as u64 * spec.kind.size();
        let Some(index) = self.index(spec) else { return Ok(values) };
        let mut pages = 0;
        for group in self.reader.metadata().row_groups() {
            let column = group.column(index);
            if column.compression() != Compression::SNAPPY {
                let codec = column.compression().to_string();
                return Err(format!("column {} is compressed by {codec}: SNAPPY is read", spec.name));
            }
            let (begin, length) = column.byte_range();
            let chunk = &self.bytes[begin as usize..(begin + length) as usize];
            pages += survey(chunk, group.num_rows() as u64, spec)?;
        }
        // Numbers are copied from one page at a time, texts lie in theirs.
        Ok(values + if spec.kind == Kind::Text { pages } else { 0 })
    }

    fn column(&self, spec: &Spec) -> Result<Column, Error> {
        let damaged = |error: ParquetError| Error::damaged(&self.path, error);
        let Some(index) = self.index(spec) else { return Ok(Column::blank(spec.kind, self.rows)) };
        let (schema, name) = (self.reader.metadata().file_metadata().schema_descr(), spec.name);
        if schema.column(index).max_def_level() != 0 {
            let reason = format!("column {name} may lack values, or have several in a row");
            return Err(Error::damaged(&self.path, reason));
        }
        let mut column = Column::new(spec.kind);
        for group in 0..self.reader.num_row_groups() {
            let group = self.reader.get_row_group(group).map_err(damaged)?;
            let rows = group.metadata().num_rows() as usize;
            let reader = group.get_column_reader(index).map_err(damaged)?;
            match (&mut column, reader) {
                (Column::I64(values), ColumnReader::Int64ColumnReader(mut reader)) => {
                    reader.read_records(rows, None, None, values).map(drop)
                }
                (Column::I32(values), ColumnReader::Int32ColumnReader(mut reader)) => {
                    reader.read_records(rows, None, None, values).map(drop)
                }
                (Column::Text(values), ColumnReader::ByteArrayColumnReader(mut reader)) => {
                    reader.read_records(rows, None, None, values).map(drop)
                }
                _ => {
                    return Err(Error::damaged(&self.path, format!("column {name} has another type")));
                }
            }
            .map_err(damaged)?;
        }
        if column.len() != self.rows {
            let reason = format!("column {name} has {} values in {} rows", column.len(), self.rows);
            return Err(Error::damaged(&self.path, reason));
        }
        if let Some(reason) = too_long(spec, &column) {
            return Err(Error::damaged(&self.path, reason));
        }
        if let Some(row) = column.first_not_utf8() {
            return Err(Error::damaged(&self.path, format!("column {name} of row {row} is not UTF-8")));
        }
        Ok(column)
    }
}

/// Reads what may be made to mislead: Parquet's reader takes much of it for granted, and panics where it is not so. The
/// checksum shows accidents, not intent. Such a panic is reported as the error alone.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    static SILENCE: Once = Once::new();
    SILENCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                report(info);
            }
        }));
    });
    GUARDED.set(true);
    let read = panic::catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(false);
    read.unwrap_or_else(|_| Err(Error::damaged(path, "its data are not what it says of them")))
}

/// The number of rows, where all that the footer says can be: its reader takes sizes and offsets for what they are.
fn rows(metadata: &ParquetMetaData, end: u64) -> Result<usize, String> {
    let stated = metadata.file_metadata().num_rows();
    let rows = usize::try_from(stated).ok().filter(|rows| *rows <= FILE_ROWS);
    let rows = rows.ok_or_else(|| format!("it states {stated} rows: 0 to {FILE_ROWS} are read"))?;
    let mut of_groups = 0_i64;
    for group in metadata.row_groups() {
        if group.num_rows() < 0 {
            return Err(format!("a group of it states {} rows", group.num_rows()));
        }
        of_groups = of_groups.saturating_add(group.num_rows());
        for column in group.columns() {
            let begin = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let ends = u64::try_from(begin).ok().zip(u64::try_from(column.compressed_size()).ok());
            if ends.and_then(|(begin, size)| begin.checked_add(size)).is_none_or(|stated| stated > end) {
                let name = column.column_path().string();
                return Err(format!("column {name} is said to lie outside of the file"));
            }
        }
    }
    if of_groups != stated {
        return Err(format!("it states {stated} rows, its groups {of_groups}"));
    }
    Ok(rows)
}
