// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What people and other programs write, changed at random: it is read or refused, the refusal names the file, and what is read
//! is within its ranges and means the same when it is written again.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use onramp_mutation::{check, text};
use onramp_recording::rows::AckRow;
use onramp_recording::{Limits, Manifest, Recording, Writer};
use proptest::prelude::*;

use crate::experiment::Comparison;
use crate::fit::{RecordedFlow, fit};
use crate::link::Direction;
use crate::population::Population;
use crate::profile::Profile;
use crate::{qlog, verify};

/// The repository's profiles, by name.
fn profiles() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiles");
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut profiles: Vec<_> = paths
        .filter(|path| {
            path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with("Cargo.toml")
        })
        .map(|path| {
            (path.file_stem().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap())
        })
        .collect();
    profiles.sort();
    profiles
}

/// Counts up.
fn count(counter: &Cell<u32>) {
    counter.set(counter.get() + 1);
}

/// What holds of every profile that is accepted.
fn usable(profile: &Profile) {
    profile.validate().unwrap();
    let link = &profile.link;
    Direction::<u64>::new(&link.forward, "link.forward", 1, 0).unwrap();
    Direction::<u64>::new(&link.back, "link.return", 1, 1).unwrap();
    let _ = (profile.download_bytes(), link.available_bps(), link.constant().validate("link"));
}

#[test]
fn profiles_changed_anywhere_are_read_or_refused() {
    let profiles = profiles();
    let valid: Vec<_> = profiles.iter().map(|(_, text)| text.clone()).collect();
    let find = |name: &str| profiles.iter().find(|(other, _)| other == name).map(|(_, text)| text.as_str());
    let accepted = Cell::new(0);
    check(1, 8_000, text(&valid), |text| {
        match Profile::parse_among(&text, "x.toml", find) {
            Ok(profile) => {
                count(&accepted);
                usable(&profile);
                let again = toml::to_string(&profile).unwrap();
                prop_assert_eq!(Profile::parse(&again, "again.toml").unwrap(), profile);
            }
            Err(error) => prop_assert!(error.to_string().contains("x.toml"), "{}", error),
        }
        Ok(())
    });
    assert!(accepted.get() > 800, "{}", accepted.get());
}

#[test]
fn tables_in_tables_without_end_are_refused() {
    for text in [
        format!("{} = 1", vec!["a"; 100_000].join(".")),
        format!("[{}]", vec!["a"; 100_000].join(".")),
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}{}", "[".repeat(50_000), "]".repeat(50_000)),
        format!("a = {}", "{a=".repeat(100_000)),
        format!("like = \"geo\"\nwithout = [\"{}\"]", vec!["link"; 100_000].join(".")),
    ] {
        let geo = |name: &str| (name == "geo").then_some(include_str!("../../profiles/geo.toml"));
        Profile::parse_among(&text, "x.toml", geo).unwrap_err();
        Population::parse(&text, "x.toml").unwrap_err();
    }
    serde_json::from_str::<Comparison>(&"[".repeat(100_000)).unwrap_err();
}

#[test]
fn populations_changed_anywhere_give_paths_within_their_ranges_or_are_refused() {
    let valid = [include_str!("../populations/default.toml"), include_str!("../../docs/population.toml")];
    let accepted = Cell::new(0);
    check(2, 4_000, text(&valid), |text| {
        match Population::parse(&text, "x.toml") {
            Ok(population) => {
                count(&accepted);
                for number in [0, 1, 2, 3, u64::MAX] {
                    let path = population.path(7, number);
                    path.plan().validate().unwrap();
                    let _ = (path.limit(), path.suits_a_guest());
                }
            }
            Err(error) => prop_assert!(error.to_string().contains("x.toml"), "{}", error),
        }
        Ok(())
    });
    assert!(accepted.get() > 400, "{}", accepted.get());
}

#[test]
fn traces_changed_anywhere_are_read_or_refused_with_their_line() {
    let directory = tempfile::tempdir().unwrap();
    let (profile, trace) = (directory.path().join("x.toml"), directory.path().join("rates.csv"));
    let geo = include_str!("../../profiles/geo.toml");
    let mut table: toml::Table = geo.parse().unwrap();
    let rate: toml::Value = toml::from_str("kind = 'trace'\nfile = 'rates.csv'\n").unwrap();
    let forward = table["link"]["forward"].as_table_mut().unwrap();
    forward.insert("rate".into(), rate);
    forward.insert("rate_bps".into(), 20_000_000.into());
    fs::write(&profile, toml::to_string(&table).unwrap()).unwrap();
    let delay = forward_delay(geo);
    let valid = [
        "# Tuesday\ntime_us,rate_bps\n0,10000000\n500000,20000000\n1000000,30000000\n".to_owned(),
        format!("0,10000000,{delay}\n500000,0,{delay}\n1000000,30000000,{delay}\n"),
    ];
    let (accepted, refused) = (Cell::new(0), Cell::new(0));
    check(3, 3_000, text(&valid), |text| {
        fs::write(&trace, &text).unwrap();
        match Profile::load(&profile) {
            Ok(profile) => {
                count(&accepted);
                usable(&profile);
            }
            Err(error) => {
                count(&refused);
                let error = error.to_string();
                prop_assert!(error.contains("x.toml") && error.contains("rate"), "{}", error);
            }
        }
        Ok(())
    });
    assert!(accepted.get() > 300 && refused.get() > 300, "{} {}", accepted.get(), refused.get());
}

fn forward_delay(profile: &str) -> u64 {
    Profile::parse(profile, "geo.toml").unwrap().link.forward.delay_us
}

#[test]
fn results_changed_anywhere_are_read_or_refused_and_compared() {
    let valid = [include_str!("../../tests/golden/6.12-geo.json")];
    let accepted = Cell::new(0);
    check(4, 1_500, text(&valid), |text| {
        let Ok(result) = serde_json::from_str::<Comparison>(&text) else { return Ok(()) };
        count(&accepted);
        let _ = verify::compare(&result, &result).iter().map(|one| one.moved.len()).sum::<usize>();
        if let Some(plan) = &result.plan
            && plan.validate().is_ok()
        {
            assert!(plan.expected_seconds() > 0.0 && !plan.timeout().is_zero());
        }
        let written = serde_json::to_value(&result).unwrap();
        let again: Comparison = serde_json::from_value(written.clone()).unwrap();
        prop_assert_eq!(serde_json::to_value(again).unwrap(), written);
        Ok(())
    });
    assert!(accepted.get() > 300, "{}", accepted.get());
}

/// A flow of 300 acknowledgments that a path of 8 Mb/s and 50 ms could have had.
fn flow() -> Vec<AckRow> {
    (0..300_u64)
        .map(|index| AckRow {
            at_us: 1_000_000 + index * 1_500,
            event: "ack".into(),
            called: 1,
            sequence: index as u32,
            acknowledged_bytes: (index + 1) * 1_448,
            sent_bytes: (index + 40) * 1_448,
            delivered_segments: index as u32 + 1,
            rtt_us: 50_000 + (index * 100) as i32,
            outstanding_bytes: 39 * 1_448,
            in_flight_segments: 39,
            mss_bytes: 1_448,
            ..AckRow::default()
        })
        .collect()
}

/// The fit of a recording with these rows, which is qlog too, whatever they are.
fn fitted(rows: Vec<AckRow>) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(directory.path(), Manifest::default(), Limits::default()).unwrap();
    rows.into_iter().for_each(|row| writer.push(row).unwrap());
    writer.finish(0).unwrap();
    let mut recording = Recording::open(directory.path()).unwrap();
    qlog::write(&mut recording, None, &mut std::io::sink()).unwrap();
    let flow = RecordedFlow::read(&mut recording, None).map_err(|error| error.to_string())?;
    let fitted = fit(&flow).map_err(|error| error.to_string())?;
    fitted.profile("fitted", None).validate().unwrap();
    Ok(())
}

#[test]
fn flows_that_make_no_sense_are_fitted_or_refused() {
    fitted(flow()).unwrap();
    let number = prop_oneof![0..100_u64, (0..64_u32).prop_map(|bit| 1 << bit), any::<u64>()];
    let change = (0..10_u8, 0..300_usize, 1..300_usize, number);
    let accepted = Cell::new(0);
    check(5, 150, proptest::collection::vec(change, 1..5), |changes| {
        let mut rows = flow();
        for (column, from, span, value) in changes {
            for row in rows.iter_mut().skip(from).take(span) {
                match column {
                    0 => row.at_us = row.at_us.saturating_add(value),
                    1 => row.acknowledged_bytes = row.acknowledged_bytes.wrapping_add(value),
                    2 => row.sent_bytes = row.sent_bytes.wrapping_add(value),
                    3 => row.delivered_segments = row.delivered_segments.wrapping_add(value as u32),
                    4 => row.rtt_us = value as i32,
                    5 => row.mss_bytes = (value as u32).max(1),
                    6 => row.in_flight_segments = value as u32,
                    7 => row.sequence = value as u32,
                    8 => row.event = if value % 2 == 0 { "ack" } else { "loss" }.into(),
                    _ => row.outstanding_bytes = value as u32,
                }
            }
        }
        if fitted(rows).is_ok() {
            count(&accepted);
        }
        Ok(())
    });
    assert!(accepted.get() > 20, "{}", accepted.get());
}

#[test]
fn a_flow_that_says_it_sent_more_than_there_is_or_for_ever_is_fitted_or_refused() {
    let with = |change: fn(&mut AckRow)| {
        let mut rows = flow();
        rows.iter_mut().skip(150).for_each(change);
        fitted(rows)
    };
    let error = with(|row| row.sent_bytes += 1 << 62).unwrap_err();
    assert!(error.contains("1 GiB"), "{error}");
    // Nothing that is bounded by the file alone: these are 2^29 bytes, a packet each.
    with(|row| (row.sent_bytes, row.mss_bytes) = (row.sent_bytes + (1 << 29), 1)).unwrap();
    let error = with(|row| row.at_us += 1 << 62).unwrap_err();
    assert!(error.contains("11 days"), "{error}");
    let error = with(|row| row.mss_bytes = 1 << 31).unwrap_err();
    assert!(error.contains("1 to 65535 bytes"), "{error}");
}
