// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Files from elsewhere, with a valid checksum: whatever they say, they are read or refused, and the
//! refusal names the file.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use onramp_mutation::check;
use onramp_mutation::memory::peak;
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

use crate::file::{FILE_ROWS, seal};
use crate::fixtures::manifest;
use crate::rows::{DropRow, ParameterRow};
use crate::{Limits, Recording, Row, Text, Writer};

const MARK: &[u8] = b"ONRC";

/// A file with both kinds of columns.
fn valid() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(directory.path(), manifest(), Limits::default()).unwrap();
    for index in 0..40_u64 {
        writer.push(ParameterRow { at_us: index * 1_000, ..row(index) }).unwrap();
    }
    writer.finish(0).unwrap();
    fs::read(directory.path().join("parameters-000001.parquet")).unwrap()
}

fn row(index: u64) -> ParameterRow {
    ParameterRow {
        algorithm: "search".into(),
        name: Text::from(format!("name{}", index % 7)),
        value: index.to_string().into(),
        parameter_set: index as u32,
        ..ParameterRow::default()
    }
}

/// Data and footer, without checksum, length and magic.
fn parts(bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mark = bytes.windows(MARK.len()).rposition(|bytes| bytes == MARK).unwrap();
    (bytes[..mark].to_vec(), bytes[mark + 8..bytes.len() - 8].to_vec())
}

/// A file of these that is whole by its checksum.
fn whole(data: &[u8], footer: &[u8]) -> Vec<u8> {
    let length = (footer.len() as u32).to_le_bytes();
    let mut bytes = [data, footer, &length, b"PAR1"].concat();
    seal(&mut bytes, data.len());
    bytes
}

/// The rows, or the problem.
fn read<R: Row>(bytes: &[u8]) -> Result<Vec<R>, String> {
    let directory = tempfile::tempdir().unwrap();
    let name = format!("{}-000001.parquet", R::TABLE);
    fs::write(directory.path().join(&name), bytes).unwrap();
    let mut recording = Recording::open(&directory.path().join(&name)).unwrap();
    let rows = recording.rows::<R>();
    match recording.problems.first() {
        None => Ok(rows),
        Some(problem) => {
            assert!(rows.is_empty() && problem.to_string().contains(&name), "{problem}");
            Err(problem.to_string())
        }
    }
}

#[test]
fn where_the_reader_panics_the_error_is_all_that_is_reported() {
    let test = "tests::hostile::data_changed_anywhere_under_a_right_checksum_are_read_or_refused";
    let run = Command::new(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]).output();
    let run = run.unwrap();
    let printed = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && printed.contains("1 passed"), "{printed}");
    assert_eq!(String::from_utf8_lossy(&run.stderr), "");
}

#[test]
fn data_changed_anywhere_under_a_right_checksum_are_read_or_refused() {
    let (data, footer) = parts(&valid());
    assert_eq!(read::<ParameterRow>(&whole(&data, &footer)).unwrap().len(), 40);
    check(1, 6_000, onramp_mutation::bytes(vec![data]), |data| {
        let rows = read::<ParameterRow>(&whole(&data, &footer)).unwrap_or_default();
        prop_assert!(rows.len() == 40 || rows.is_empty());
        Ok(())
    });
}

#[test]
fn a_footer_changed_anywhere_under_a_right_checksum_is_read_or_refused() {
    let (data, footer) = parts(&valid());
    check(2, 10_000, onramp_mutation::bytes(vec![footer]), |footer| {
        let rows = read::<ParameterRow>(&whole(&data, &footer)).unwrap_or_default();
        prop_assert!(rows.len() <= FILE_ROWS);
        Ok(())
    });
}

/// A whole file of this message, with one row group of these columns.
fn foreign(message: &str, table: &str, schema: &str, groups: usize, rows: i32) -> Vec<u8> {
    let schema_of = Arc::new(parse_message_type(message).unwrap());
    let properties = Arc::new(
        WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build(),
    );
    let mut writer = SerializedFileWriter::new(Vec::new(), schema_of, properties).unwrap();
    for _ in 0..groups {
        let mut group = writer.next_row_group().unwrap();
        while let Some(mut column) = group.next_column().unwrap() {
            use parquet::column::writer::ColumnWriter;
            // Every second value is null, where one can be.
            let nulls: Vec<i16> = (0..rows).map(|row| (row % 2) as i16).collect();
            let lists = vec![0_i16; rows as usize];
            let count = nulls.len().div_ceil(2);
            match column.untyped() {
                ColumnWriter::Int64ColumnWriter(to) if to.get_descriptor().max_rep_level() > 0 => {
                    to.write_batch(&vec![7; count], Some(&nulls), Some(&lists))
                }
                ColumnWriter::Int64ColumnWriter(to) if to.get_descriptor().max_def_level() > 0 => {
                    to.write_batch(&vec![7; count], Some(&nulls), None)
                }
                ColumnWriter::Int64ColumnWriter(_) => {
                    column.typed::<Int64Type>().write_batch(&vec![7; rows as usize], None, None)
                }
                ColumnWriter::Int32ColumnWriter(_) => {
                    column.typed::<Int32Type>().write_batch(&vec![7; rows as usize], None, None)
                }
                _ => column.typed::<ByteArrayType>().write_batch(
                    &vec![ByteArray::from(vec![0xff, 0xfe]); rows as usize],
                    None,
                    None,
                ),
            }
            .unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.flush().unwrap();
    let data = writer.inner().len();
    for (key, value) in [("onramp.schema", schema), ("onramp.table", table)] {
        writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value.to_owned()));
    }
    let mut bytes = writer.into_inner().unwrap();
    seal(&mut bytes, data);
    bytes
}

#[test]
fn another_schema_is_refused_with_the_column() {
    let three = "required int64 at_us; required int64 events; required int64 unobserved_us;";
    let drops = |columns: &str, schema: &str, groups| {
        read::<DropRow>(&foreign(&format!("message drops {{ {columns} }}"), "drops", schema, groups, 10))
    };
    let rows = drops(three, "1", 1).unwrap();
    assert_eq!((rows.len(), rows[9].clone()), (10, DropRow { at_us: 7, events: 7, unobserved_us: 7 }));
    // Several row groups are one table.
    assert_eq!(drops(three, "1", 5).unwrap().len(), 50);
    // A column that is not there is 0, one that is not known is passed over.
    let rows = drops("required int64 at_us; required int32 another;", "1", 1).unwrap();
    assert_eq!(rows[0], DropRow { at_us: 7, ..DropRow::default() });
    for (columns, schema, said) in [
        (three.replace("int64 events", "int32 events"), "1", "column events has another type"),
        (three.replace("int64 events", "binary events"), "1", "column events has another type"),
        (
            three.replace("required int64 events", "optional int64 events"),
            "1",
            "column events may lack values",
        ),
        (
            three.replace("required int64 events", "repeated int64 events"),
            "1",
            "column events may lack values",
        ),
        (three.to_owned(), "3", "has schema 3, and this build of onramp reads schema 1"),
        (three.to_owned(), "-1", "has schema 0"),
        (three.to_owned(), "two", "has schema 0"),
    ] {
        let error = drops(&columns, schema, 1).unwrap_err();
        assert!(error.contains(said), "{columns}: {error}");
    }
    // No recording has columns inside of others.
    let error =
        drops("required int64 at_us; required group of { required int64 events; }", "1", 1).unwrap_err();
    assert!(error.contains("its footer is no list of plain columns"), "{error}");
}

/// A whole file of the table `parameters` with these names alone.
fn named(properties: WriterPropertiesBuilder, names: &[ByteArray]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type("message parameters { required binary name; }").unwrap());
    let properties = Arc::new(
        properties.set_statistics_enabled(EnabledStatistics::None).set_offset_index_disabled(true).build(),
    );
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(names, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.flush().unwrap();
    let data = writer.inner().len();
    for (key, value) in [("onramp.schema", "1"), ("onramp.table", "parameters")] {
        writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value.to_owned()));
    }
    let mut bytes = writer.into_inner().unwrap();
    seal(&mut bytes, data);
    bytes
}

#[test]
fn a_small_file_that_unpacks_to_gigabytes_is_refused_by_its_column_before_it_is_unpacked() {
    let snappy = || WriterProperties::builder().set_compression(Compression::SNAPPY);
    let plain = || snappy().set_dictionary_enabled(false);
    let long = vec![ByteArray::from(vec![b'A'; 1_000_000]); 1_900];
    let few = &long[..200];
    let short = vec![ByteArray::from(vec![b'A'; 64]); 1_900];
    for (bytes, said) in [
        (
            named(
                plain().set_encoding(Encoding::DELTA_BYTE_ARRAY).set_compression(Compression::UNCOMPRESSED),
                &long,
            ),
            "is compressed by UNCOMPRESSED: SNAPPY is read",
        ),
        (named(plain().set_encoding(Encoding::DELTA_BYTE_ARRAY), &long), "is encoded with DELTA_BYTE_ARRAY"),
        (named(plain().set_encoding(Encoding::DELTA_BYTE_ARRAY), &short), "is encoded with DELTA_BYTE_ARRAY"),
        (
            named(plain().set_encoding(Encoding::DELTA_LENGTH_BYTE_ARRAY), few),
            "is encoded with DELTA_LENGTH_BYTE_ARRAY",
        ),
        (named(plain(), few), "has a page that unpacks to"),
        (
            named(snappy().set_dictionary_page_size_limit(1 << 30), few),
            "has a page that unpacks to 1000004 bytes",
        ),
        (named(plain(), &[ByteArray::from(vec![b'A'; 65])]), "column name of row 0 has 65 bytes: 64 at most"),
    ] {
        let (read, peak) = peak(|| read::<ParameterRow>(&bytes));
        let error = read.unwrap_err();
        assert!(error.contains("column name") && error.contains(said), "{said}: {error}");
        // The file twice, and what its headers take.
        assert!(peak < 2 * bytes.len() + (1 << 20), "{said}: {peak} bytes for {}", bytes.len());
    }
    assert_eq!(read::<ParameterRow>(&named(plain(), &short)).unwrap().len(), 1_900);
    assert_eq!(read::<ParameterRow>(&named(snappy(), &short)).unwrap().len(), 1_900);
}

#[test]
fn rows_beyond_the_budget_of_a_file_are_refused_before_they_are_decoded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("parameters-000001.parquet");
    crate::write_rows(&path, (0..200_000).map(|_| ParameterRow::default())).unwrap();
    let length = fs::metadata(&path).unwrap().len() as usize;
    assert!(length < 100_000, "{length}");
    let read = |file_bytes| {
        let mut recording = Recording::open(&path).unwrap();
        recording.budget.file_bytes = file_bytes;
        let (rows, peak) = peak(|| {
            let mut rows = 0;
            recording.each_row(|_: ParameterRow| rows += 1);
            rows
        });
        (rows, peak, recording.problems.first().map(ToString::to_string))
    };
    let (rows, peak, problem) = read(10_000_000);
    assert_eq!(rows, 0);
    let problem = problem.unwrap();
    assert!(problem.contains("parameters-000001.parquet"), "{problem}");
    assert!(peak < 2 * length + (1 << 20), "{peak}");
    let (rows, peak, problem) = read(1 << 25);
    assert_eq!((rows, problem), (200_000, None));
    assert!(peak < 1 << 26, "{peak}");
}

#[test]
fn what_is_not_wanted_any_more_is_not_read_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let writer = Writer::create(directory.path(), manifest(), Limits { rows: 10, ..Limits::default() });
    let mut writer = writer.unwrap();
    (0..30).for_each(|index| writer.push(row(index)).unwrap());
    writer.finish(0).unwrap();
    let mut recording = Recording::open(directory.path()).unwrap();
    let cancelled = Arc::clone(&recording.budget.cancelled);
    let mut rows = 0;
    recording.each_row(|_: ParameterRow| {
        rows += 1;
        cancelled.store(true, Ordering::Relaxed);
    });
    assert_eq!(rows, 10, "of the first file");
    assert!(matches!(
        recording.problems[..],
        [crate::Error::Cancelled { .. }, crate::Error::Cancelled { .. }]
    ));
}

#[test]
fn a_footer_that_makes_its_reader_reserve_memory_is_refused() {
    let three = "required int64 at_us; required int64 events; required int64 unobserved_us;";
    let (data, footer) = parts(&foreign(&format!("message drops {{ {three} }}"), "drops", "1", 1, 10));
    // The root's number of columns, its fifth field in Thrift's compact protocol: 3 is 6 there.
    let at = footer.windows(7).position(|bytes| bytes == b"drops\x15\x06").unwrap() + 6;
    for children in [[0xfe, 0xff, 0xff, 0xff, 0x0f], [0xfe, 0xff, 0xff, 0xff, 0x01]] {
        let footer = [&footer[..at], &children, &footer[at + 1..]].concat();
        let (read, peak) = peak(|| read::<DropRow>(&whole(&data, &footer)));
        let error = read.unwrap_err();
        assert!(error.contains("its footer is no list of plain columns"), "{error}");
        assert!(peak < 1 << 20, "{peak}");
    }
    // A group that has the others in it, which was the last of them.
    let deep: String = (0..200).map(|_| "required group of { ").collect();
    let end = "}".repeat(200);
    let nested =
        foreign(&format!("message drops {{ {deep} required int64 at_us; {end} }}"), "drops", "1", 1, 1);
    let error = read::<DropRow>(&nested).unwrap_err();
    assert!(error.contains("its footer"), "{error}");
    let many: String = (0..3_000).map(|number| format!("required int64 column_{number};")).collect();
    let error =
        read::<DropRow>(&foreign(&format!("message drops {{ {many} }}"), "drops", "1", 1, 1)).unwrap_err();
    assert!(error.contains("65536 bytes"), "{error}");
}

#[test]
fn text_that_is_longer_than_it_is_read_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.parquet");
    let of = |bytes: usize| ParameterRow { value: "x".repeat(bytes).into(), ..ParameterRow::default() };
    crate::write_rows(&path, [of(64)]).unwrap();
    let error = crate::write_rows(&path, [of(64), of(65)]).unwrap_err();
    assert!(error.to_string().contains("65 bytes: 64"), "{error}");
    assert_eq!(crate::read_rows::<ParameterRow>(&path).unwrap().len(), 1);
}

#[test]
fn text_that_is_none_is_refused_with_column_and_row() {
    let message = "message parameters { required binary algorithm; }";
    let error = read::<ParameterRow>(&foreign(message, "parameters", "1", 1, 3)).unwrap_err();
    assert!(error.contains("column algorithm of row 0"), "{error}");
}

#[test]
fn rows_that_are_stated_and_not_there_take_no_memory() {
    // A column that is not there is made as long as the others.
    let message = "message drops { required int64 another; }";
    let (data, footer) = parts(&foreign(message, "drops", "1", 1, 50));
    // Field 3 of the footer in Thrift's compact protocol, an i64 in zigzag; 50 is 100 there.
    let at = footer.windows(2).position(|bytes| bytes == [0x16, 100]).unwrap() + 1;
    for (stated, said) in [
        (u64::MAX - 1, "it states 9223372036854775807 rows: 0 to 1048576 are read"),
        (u64::MAX, "it states -9223372036854775808 rows"),
        (2 * (FILE_ROWS as u64 + 1), "it states 1048577 rows: 0 to 1048576 are read"),
        (2 * FILE_ROWS as u64, "it states 1048576 rows, its groups 50"),
        (98, "it states 49 rows, its groups 50"),
    ] {
        let mut varint = Vec::new();
        let mut rest = stated;
        while rest >= 0x80 {
            varint.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        varint.push(rest as u8);
        let footer = [&footer[..at], &varint, &footer[at + 1..]].concat();
        let error = read::<DropRow>(&whole(&data, &footer)).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn more_rows_than_are_read_are_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.parquet");
    let error = crate::write_rows(&path, (0..=FILE_ROWS).map(|_| DropRow::default())).unwrap_err();
    assert!(error.to_string().contains("1048577 rows"), "{error}");
    assert!(!path.exists());
    crate::write_rows(&path, (0..FILE_ROWS).map(|_| DropRow::default())).unwrap();
    assert_eq!(crate::read_rows::<DropRow>(&path).unwrap().len(), FILE_ROWS);
}

#[test]
fn a_file_without_an_end_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("drops-000001.parquet");
    fs::File::create(&path).unwrap().set_len((1 << 28) + 1).unwrap();
    let error = crate::read_rows::<DropRow>(&path).unwrap_err();
    assert!(error.to_string().contains("268435456 bytes"), "{error}");
}

#[test]
fn a_manifest_changed_anywhere_is_read_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let writer = Writer::create(directory.path(), manifest(), Limits::default()).unwrap();
    writer.finish(1).unwrap();
    let path = directory.path().join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let accepted = std::cell::Cell::new(0);
    check(3, 3_000, onramp_mutation::text(&[text]), |text| {
        fs::write(&path, text).unwrap();
        match crate::Manifest::read(directory.path()) {
            Ok(manifest) => {
                accepted.set(accepted.get() + 1);
                manifest.write(directory.path()).unwrap();
                prop_assert_eq!(crate::Manifest::read(directory.path()).unwrap(), manifest);
            }
            Err(error) => prop_assert!(error.to_string().contains("manifest.json"), "{}", error),
        }
        Ok(())
    });
    assert!(accepted.get() > 100);
}
