//! Arguments, rows and the table; no kernel is touched.

use std::time::Instant;

use clap::Parser;

use super::load::{Look, Measured};
use super::*;
use crate::arguments::Arguments;
use crate::global::{Color, Global};
use crate::verb::Verb;
use crate::verb::bench::{Bench, Part};

fn parse(arguments: &str) -> Result<EventsOptions, clap::Error> {
    let words = ["onramp", "bench", "events"].into_iter().chain(arguments.split_whitespace());
    match Arguments::try_parse_from(words)?.verb {
        Verb::Bench(Bench { part: Some(Part::Events(events)), .. }) => Ok(events),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rates_are_a_list() {
    let default = parse("").unwrap();
    assert!(default.check().is_ok());
    let rates: Vec<_> = default.rates.iter().map(|rate| rate.0).collect();
    let of_mbit = |mbit: u64| Some(mbit * 1_000_000);
    assert_eq!(rates[..6], [1, 2, 5, 10, 20, 50].map(of_mbit));
    assert_eq!(rates[6..], [None]);
    let some = parse("--rates 500kbit,unlimited --for 1500ms").unwrap();
    assert_eq!(some.rates, [Rate(Some(500_000)), Rate(None)]);
    assert_eq!((some.time, load::seconds(some.time)), (Duration::from_millis(1500), 5));
    for wrong in ["--rates fast", "--rates 1mbit,,2mbit"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
    let error = parse("--rates fast").unwrap_err().to_string();
    assert!(error.contains("or unlimited"), "{error}");
}

#[test]
fn it_stands_alone_and_in_its_ranges() {
    for other in ["programs", "--rounds 3", "--pairs 3"] {
        assert!(parse(other).is_err(), "{other}");
    }
    for wrong in ["--for 900ms", "--for 61s"] {
        let error = parse(wrong).unwrap().check().unwrap_err();
        assert!(error.to_string().contains("1s to 60s"), "{error}");
    }
    let many = vec!["1mbit"; RATES_MAX + 1].join(",");
    let error = parse(&format!("--rates {many}")).unwrap().check().unwrap_err();
    assert!(error.to_string().contains("at most 32"), "{error}");
}

/// In two seconds so many events of which so many lost, half a processor for the consumer and one and a half for all.
fn row(kind: Kind, events: u64, lost: u64) -> ConsumerRow {
    let at = Instant::now();
    let first = Look {
        at,
        numbered: 1_000,
        lost: 7,
        unobserved: Duration::ZERO,
        consumer_seconds: 10.0,
        machine_seconds: 100.0,
    };
    let last = Look {
        at: at + Duration::from_secs(2),
        numbered: 1_000 + events,
        lost: 7 + lost,
        unobserved: Duration::ZERO,
        consumer_seconds: 11.0,
        machine_seconds: 103.0,
    };
    ConsumerRow::new(kind, Some(5_000_000), &Measured { first, last, goodput_bps: 320e6 })
}

#[test]
fn a_row_is_of_the_measured_time_alone() {
    let row = row(Kind::Watch, 1_000, 250);
    assert_eq!((row.duration_us, row.lost_events, row.unobserved_us), (2_000_000, 250, 0));
    assert_eq!((row.events_per_second, row.lost_ratio), (375.0, 0.25));
    assert_eq!((row.consumer_processors, row.machine_processors), (0.5, 1.5));
}

#[test]
fn a_summary_says_where_losses_begin() {
    let of = |rows: &[(u64, u64)]| {
        let rows: Vec<ConsumerRow> =
            rows.iter().map(|(events, lost)| row(Kind::Watch, *events, *lost)).collect();
        summary("watch", rows.iter())
    };
    assert_eq!(of(&[(200, 0), (400, 0)]), "watch: nothing lost at 200 events/s, no losses\n");
    assert_eq!(
        of(&[(200, 0), (2_000, 900), (800, 2)]),
        "watch: nothing lost at 100 events/s, losses from 400 on\n"
    );
    assert_eq!(of(&[(200, 1)]), "watch: lost events at every rate, losses from 100 on\n");
    let stalled = ConsumerRow { unobserved_us: 3_000_000, ..row(Kind::Watch, 200, 0) };
    assert_eq!(
        summary("watch", [&stalled].into_iter()),
        "watch: lost events at every rate, losses from 100 on; for 3.00 s nothing was written at all\n"
    );
}

#[test]
fn the_table_has_a_line_for_each_row_and_one_for_each_consumer() {
    let rows = Kind::ALL.map(|kind| row(kind, 4_000, 0)).into();
    let report = Events { algorithm: ALGORITHM, flows: FLOWS, processors: 2, rows };
    let global = Global { json: false, pretty: false, quiet: false, verbose: 0, color: Color::Never };
    let text = text(&report, &Output::new(&global));
    let top = text.lines().find(|line| line.contains(" top ")).unwrap();
    let words: Vec<&str> = top.split_whitespace().collect();
    assert_eq!(
        words,
        ["5.00", "Mbit/s", "top", "round", "320", "Mbit/s", "2000", "0", "50", "%", "150", "%"],
        "{text}"
    );
    assert!(text.ends_with("top: nothing lost at 2000 events/s, no losses\n"), "{text}");
}
