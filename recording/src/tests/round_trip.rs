// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is written is read; what was flushed survives the writer.

use std::fs;
use std::path::Path;
use std::time::Duration;

use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::fixtures::{manifest, record, slow_start};
use crate::rows::{AckRow, DropRow, ExitRow, FlowRow, ParameterRow, StateRow, TABLES};
use crate::{Column, Error, Limits, Manifest, Recording, Row as _, Writer};

#[test]
fn a_file_says_what_its_columns_mean() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(directory.path(), manifest(), Limits::default()).unwrap();
    writer.push(AckRow { mss_bytes: 1_448, ..AckRow::default() }).unwrap();
    writer.finish(1).unwrap();
    let file = fs::File::open(directory.path().join("acks-000001.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
    for column in AckRow::COLUMNS {
        let key = format!("column.{}", column.name);
        let pair = pairs.iter().find(|pair| pair.key == key).unwrap_or_else(|| panic!("{key}"));
        let said: serde_json::Value = serde_json::from_str(pair.value.as_ref().unwrap()).unwrap();
        assert_eq!(said["unit"], column.unit, "{key}");
        assert!(said["help"].as_str().is_some_and(|help| !help.is_empty()), "{key}");
    }
    let none = |name: &str| {
        let column = AckRow::COLUMNS.iter().find(|column| column.name == name).unwrap();
        serde_json::from_str::<serde_json::Value>(&column.metadata()).unwrap()["none"].clone()
    };
    assert_eq!(none("cwnd_segments"), "never");
    assert_eq!(none("rtt_us"), "negative");
    assert_eq!(none("ssthresh_segments"), "no_threshold");
    assert_eq!(none("receive_window_bytes"), "zero");
}

#[test]
fn rows_come_back_as_they_were_over_several_files() {
    let directory = tempfile::tempdir().unwrap();
    let extremes = AckRow {
        at_us: u64::MAX,
        acknowledged_bytes: u64::MAX - 1,
        rtt_us: i32::MIN,
        cwnd_segments: u32::MAX,
        verdict_outcome: "grow".into(),
        ..AckRow::default()
    };
    let row = |index: u64| AckRow { at_us: index, flow: index % 3, rtt_us: -1, ..AckRow::default() };
    let rows: Vec<AckRow> = (0..2_500).map(row).chain([extremes]).collect();
    let mut writer =
        Writer::create(directory.path(), manifest(), Limits { rows: 1_000, ..Limits::default() }).unwrap();
    for row in &rows {
        writer.push(row.clone()).unwrap();
    }
    assert_eq!(writer.rows_written(), 2_000);
    let written = writer.finish(7).unwrap();
    assert_eq!(written.files.iter().map(|file| file.rows).collect::<Vec<_>>(), [1_000, 1_000, 501]);

    let mut recording = Recording::open(directory.path()).unwrap();
    assert_eq!(recording.rows::<AckRow>(), rows);
    assert_eq!(recording.manifest, Some(written.clone()));
    assert!(written.complete && written.ended_us == Some(7));
    assert!(recording.problems.is_empty());
    assert_eq!(recording.rows::<FlowRow>(), []);

    let mut single = Recording::open(&directory.path().join("acks-000003.parquet")).unwrap();
    assert_eq!(single.rows::<AckRow>(), rows[2_000..]);
}

#[test]
fn a_recording_of_an_earlier_build_reads_as_it_was_written() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/recorded");
    let new = tempfile::tempdir().unwrap();
    record(new.path(), 7, &onramp_algorithm::find("search").unwrap().parameters(), &slow_start(24), 100);
    let mut old = Recording::open(&old).unwrap();
    let mut new = Recording::open(new.path()).unwrap();
    assert_eq!(old.rows::<AckRow>(), new.rows::<AckRow>());
    assert_eq!(old.rows::<FlowRow>(), new.rows::<FlowRow>());
    assert_eq!(old.rows::<ExitRow>(), new.rows::<ExitRow>());
    assert_eq!(old.rows::<StateRow>(), new.rows::<StateRow>());
    assert_eq!(old.rows::<ParameterRow>(), new.rows::<ParameterRow>());
    assert_eq!(old.rows::<AckRow>().len(), 24);
    assert!(old.problems.is_empty());
}

#[test]
fn without_an_end_what_was_flushed_is_there_and_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits { rows: 100, age: Duration::ZERO };
    let mut writer = Writer::create(directory.path(), manifest(), limits).unwrap();
    writer.push(DropRow { at_us: 1, events: 2, unobserved_us: 3 }).unwrap();
    // Old enough at once.
    writer.tick().unwrap();
    for index in 0..150 {
        writer.push(AckRow { at_us: index, ..AckRow::default() }).unwrap();
    }
    // As a kill does: nothing of the writer runs any more.
    std::mem::forget(writer);
    let mut recording = Recording::open(directory.path()).unwrap();
    assert_eq!(recording.rows::<DropRow>(), [DropRow { at_us: 1, events: 2, unobserved_us: 3 }]);
    assert_eq!(recording.rows::<AckRow>().len(), 100);
    assert!(recording.problems.is_empty());
    assert!(!recording.manifest.unwrap().complete);
}

#[test]
fn a_directory_that_holds_something_is_not_recorded_into() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("letter"), "dear").unwrap();
    let error = Writer::create(directory.path(), manifest(), Limits::default()).unwrap_err();
    assert!(matches!(error, Error::NotEmpty { .. }), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn what_is_no_recording_is_called_that() {
    let directory = tempfile::tempdir().unwrap();
    let error = Recording::open(directory.path()).unwrap_err();
    assert!(matches!(error, Error::NotARecording { .. }), "{error}");
    let error = Recording::open(&directory.path().join("nowhere")).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[test]
fn the_manifest_keeps_what_it_is_given() {
    let directory = tempfile::tempdir().unwrap();
    let parameters = onramp_algorithm::find("search").unwrap().parameters();
    let written = record(directory.path(), 1, &parameters, &slow_start(10), 100);
    assert_eq!(Manifest::read(directory.path()).unwrap(), written);
    assert_eq!(written.wall_us(written.started_monotonic_us + 5), written.started_us + 5);
}

#[test]
fn every_column_has_a_meaning_and_no_table_has_a_name_twice() {
    for (table, specs) in TABLES {
        for spec in *specs {
            assert!(!spec.help.trim().is_empty(), "{table}.{}", spec.name);
            assert_eq!(
                specs.iter().filter(|other| other.name == spec.name).count(),
                1,
                "{table}.{}",
                spec.name
            );
            assert!(Column::new(spec.kind).is_empty());
        }
    }
}
