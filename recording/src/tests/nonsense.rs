// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Recordings whose tables are whole and whose rows make no sense: replay comes to an end.

use std::path::Path;

use onramp_algorithm::{Flow, all, find};
use onramp_mutation::check;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::column::{Column, Kind};
use crate::fixtures::manifest;
use crate::replay::{Options, Replay, candidates, replay};
use crate::rows::{AckRow, ExitRow, FlowRow, ParameterRow, StateRow};
use crate::{Limits, Recording, Row, Writer};

/// What columns of text hold, right and wrong.
fn words() -> impl Strategy<Value = String> {
    let names: Vec<_> = all().map(|algorithm| algorithm.name()).collect();
    prop_oneof![
        4 => select(vec!["ack", "ack", "loss", "start", "again", "end", "exit", "undone", "recovery", ""]),
        4 => select(names),
        1 => select(vec!["threshold_pct", "1", "exit_action", "hold", "nonsense", "10.0.0.1", "\u{1b}[2J\n,\""]),
    ]
    .prop_map(str::to_owned)
}

/// Numbers close to each other, and those at the ends.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0..200_u64,
        3 => (0..64_u32).prop_map(|bit| 1 << bit),
        2 => any::<u64>(),
        1 => select(vec![u64::MAX, i64::MAX as u64, u32::MAX.into(), 1_448, 100_000]),
    ]
}

/// A row of any table with the flow's number between 0 and 2.
fn row<R: Row>(numbers: &[u64], words: &[String]) -> R {
    let columns: Vec<Column> = R::COLUMNS
        .iter()
        .enumerate()
        .map(|(at, spec)| {
            let number = numbers[at % numbers.len()];
            match spec.kind {
                _ if spec.name == "flow" => Column::I64(vec![(number % 3) as i64]),
                // 0 is refused when it is replayed.
                _ if spec.name == "mss_bytes" => Column::I32(vec![(number as i32).max(1)]),
                Kind::U64 => Column::I64(vec![number as i64]),
                Kind::U32 | Kind::I32 => Column::I32(vec![number as i32]),
                Kind::Text => Column::Text(vec![words[at % words.len()].clone().into_bytes().into()]),
            }
        })
        .collect();
    R::get(&columns, 0).unwrap()
}

fn through(directory: &Path) {
    for (keep_going, beyond) in [(false, false), (true, true)] {
        let names: Vec<_> = all().map(|algorithm| algorithm.name().to_owned()).collect();
        let options = Options { keep_going, beyond, regret: true };
        let replayed = Replay::new(candidates(&names, &[], &[]).unwrap(), options);
        let mut recording = Recording::open(directory).unwrap();
        for flow in replay(&mut recording, replayed) {
            serde_json::to_string(&flow).unwrap();
        }
        assert!(recording.problems.is_empty(), "{:?}", recording.problems);
    }
}

#[test]
fn rows_that_make_no_sense_are_replayed_to_the_end() {
    let rows = vec((0..9_u8, vec(number(), 37), vec(words(), 5)), 1..24);
    check(1, 120, rows, |rows| {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(directory.path(), manifest(), Limits::default()).unwrap();
        for (table, numbers, words) in rows {
            match table {
                0 => writer.push(row::<FlowRow>(&numbers, &words)),
                1 => writer.push(row::<ExitRow>(&numbers, &words)),
                2 => writer.push(row::<StateRow>(&numbers, &words)),
                3 => writer.push(row::<ParameterRow>(&numbers, &words)),
                _ => writer.push(row::<AckRow>(&numbers, &words)),
            }
            .unwrap();
        }
        writer.finish(0).unwrap();
        through(directory.path());
        Ok(())
    });
}

#[test]
fn whatever_state_a_recording_says_a_flow_had_its_algorithm_goes_on_from_it() {
    let acks = vec(vec(number(), 37), 1..8);
    let names: Vec<_> = all().map(|algorithm| algorithm.name()).collect();
    check(2, 3_000, (select(names), vec(number(), 200), acks), |(name, state, acks)| {
        let parameters = find(name).unwrap().parameters();
        let bytes: Vec<u8> = state.iter().flat_map(|word| word.to_le_bytes()).collect();
        let size = parameters.algorithm().state_size();
        let mut state = bytes.repeat(size / bytes.len() + 1);
        state.truncate(size);
        let mut flow = Flow::resume(parameters, &state).unwrap();
        for numbers in acks {
            let ack = row::<AckRow>(&numbers, &["ack".to_owned()]).ack().unwrap();
            flow.on_ack(&ack);
            flow.on_loss(&ack, ack.cwnd);
        }
        Ok(())
    });
}

#[test]
fn segments_without_bytes_are_refused_with_the_row() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(directory.path(), manifest(), Limits::default()).unwrap();
    let good = AckRow { event: "ack".into(), called: 1, mss_bytes: 1_448, ..AckRow::default() };
    writer.push(good.clone()).unwrap();
    writer.push(AckRow { mss_bytes: 0, ..good }).unwrap();
    writer.finish(0).unwrap();
    let mut recording = Recording::open(directory.path()).unwrap();
    let replayed = Replay::new(candidates(&["search".to_owned()], &[], &[]).unwrap(), Options::default());
    assert!(replay(&mut recording, replayed).is_empty());
    let problem = recording.problems[0].to_string();
    assert!(problem.contains("mss_bytes of row 1 is 0"), "{problem}");
}
