// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Files that are cut off or changed are named, and the others are used.

use std::fs;
use std::path::Path;

use crate::fixtures::{manifest, record, slow_start};
use crate::rows::{AckRow, DropRow};
use crate::{Error, Limits, Recording, Writer};

/// A small file, so that every byte of it can be tried.
fn small(directory: &Path) -> Vec<u8> {
    let mut writer = Writer::create(directory, manifest(), Limits::default()).unwrap();
    for index in 0..50 {
        writer.push(DropRow { at_us: index * 1_000, events: index, unobserved_us: 0 }).unwrap();
    }
    writer.finish(0).unwrap();
    // Found by its name alone: the manifest's sizes would show a cut at once.
    fs::remove_file(directory.join("manifest.json")).unwrap();
    fs::read(directory.join("drops-000001.parquet")).unwrap()
}

/// The rows read, or the one problem, which names the file.
fn read(directory: &Path) -> Result<Vec<DropRow>, String> {
    let mut recording = Recording::open(directory).unwrap();
    recording.problems.clear();
    let rows = recording.rows::<DropRow>();
    match recording.problems.first() {
        None => Ok(rows),
        Some(problem) => {
            assert!(rows.is_empty(), "{problem}");
            assert!(problem.to_string().contains("drops-000001.parquet"), "{problem}");
            Err(problem.to_string())
        }
    }
}

#[test]
fn a_file_cut_off_anywhere_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let whole = small(directory.path());
    assert_eq!(read(directory.path()).unwrap().len(), 50);
    for length in 0..whole.len() {
        fs::write(directory.path().join("drops-000001.parquet"), &whole[..length]).unwrap();
        assert!(read(directory.path()).is_err(), "cut to {length} of {}", whole.len());
    }
}

#[test]
fn a_byte_changed_anywhere_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let whole = small(directory.path());
    for at in 0..whole.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] ^= mask;
            fs::write(directory.path().join("drops-000001.parquet"), &changed).unwrap();
            assert!(read(directory.path()).is_err(), "byte {at} of {} ^ {mask:#x}", whole.len());
        }
    }
}

#[test]
fn damaged_parts_do_not_keep_the_others_from_being_read() {
    let directory = tempfile::tempdir().unwrap();
    let parameters = onramp_algorithm::find("plain").unwrap().parameters();
    record(directory.path(), 1, &parameters, &slow_start(300), 100);
    fs::write(directory.path().join("acks-000002.parquet"), "nonsense").unwrap();
    fs::remove_file(directory.path().join("acks-000003.parquet")).unwrap();
    let mut recording = Recording::open(directory.path()).unwrap();
    let rows = recording.rows::<AckRow>();
    assert_eq!(rows.len(), 100);
    let problems: Vec<_> = recording.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("acks-000002.parquet"), "{problems:?}");
    assert!(
        problems[1].contains("cannot read") && problems[1].contains("acks-000003.parquet"),
        "{problems:?}"
    );
}

#[test]
fn a_damaged_or_newer_manifest_is_named_and_the_tables_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let parameters = onramp_algorithm::find("plain").unwrap().parameters();
    record(directory.path(), 1, &parameters, &slow_start(10), 100);
    let path = directory.path().join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    for (changed, said) in [
        (text[..text.len() / 2].to_owned(), "manifest.json is damaged: EOF"),
        (
            text.replace("\"schema\": 1", "\"schema\": 3"),
            "has schema 3, and this build of onramp reads schema 1",
        ),
        (text.replace("\"level\"", "\"label\""), "unknown field `label`"),
        (String::new(), "manifest.json is damaged"),
    ] {
        fs::write(&path, changed).unwrap();
        let mut recording = Recording::open(directory.path()).unwrap();
        assert!(recording.problems[0].to_string().contains(said), "{}", recording.problems[0]);
        assert_eq!(recording.rows::<AckRow>().len(), 10);
    }
    fs::remove_file(&path).unwrap();
    let recording = Recording::open(directory.path()).unwrap();
    assert!(matches!(recording.problems[0], Error::Read { .. }));
}

#[test]
fn a_parquet_file_from_elsewhere_is_no_recording() {
    let directory = tempfile::tempdir().unwrap();
    let mut bytes = small(directory.path());
    let mark = bytes.windows(4).rposition(|bytes| bytes == b"ONRC").unwrap();
    bytes.drain(mark..mark + 8);
    fs::write(directory.path().join("drops-000001.parquet"), bytes).unwrap();
    assert!(
        read(directory.path()).unwrap_err().contains("is no recording: it is Parquet without the checksum")
    );
}
