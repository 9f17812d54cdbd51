//! search, specification section 6: end to end over an ideal link (cases 37 and 38). Shows its table with --nocapture.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::ops::RangeInclusive;

use common::link::{Link, Run};
use common::random::check;
use common::{READINGS, parameters};
use onramp_algorithm::{Flow, find};
use proptest::prelude::*;

const MBIT: u64 = 1_000_000;

/// Paths of the kinds that the sources speak of.
const LINKS: [(&str, Link); 7] = [
    ("geo", Link { rate: 144 * MBIT, rtt_us: 600_000, queue: None }),
    ("geo, slow", Link { rate: 20 * MBIT, rtt_us: 600_000, queue: None }),
    ("leo", Link { rate: 200 * MBIT, rtt_us: 40_000, queue: None }),
    ("lte", Link { rate: 40 * MBIT, rtt_us: 60_000, queue: None }),
    ("wifi", Link { rate: 100 * MBIT, rtt_us: 15_000, queue: None }),
    ("terrestrial", Link { rate: 1_000 * MBIT, rtt_us: 20_000, queue: None }),
    ("dsl", Link { rate: 16 * MBIT, rtt_us: 35_000, queue: None }),
];

fn plain() -> Flow {
    Flow::new(find("plain").unwrap().parameters())
}

fn search(set: &[&str]) -> Flow {
    Flow::new(parameters(set))
}

/// Round trips from the moment the window held the path to the exit.
fn lag(link: &Link, run: &Run) -> f64 {
    (run.exit.unwrap().at_us - run.capacity.unwrap().at_us) as f64 / link.rtt_us as f64
}

/// quicly's transfers of one, two and three rounds, a handshake before them: search has no say in any of them.
#[test]
fn case_37_short_transfers_take_as_long_as_without() {
    let link = Link { rate: 1_000 * MBIT, rtt_us: 100_000, queue: None };
    for (bytes, rtts) in [(14_000_u64, 2.0), (45_000, 3.0), (72_000, 4.0)] {
        let segments = Some(bytes.div_ceil(common::link::SEGMENT));
        let time = |run: Run| 1.0 + run.done.unwrap().at_us as f64 / link.rtt_us as f64;
        let without = time(link.run(&mut plain(), segments));
        assert!((rtts..rtts + 0.5).contains(&without), "{bytes} bytes: {without} RTTs");
        for reading in READINGS {
            assert_eq!(
                time(link.run(&mut search(&reading), segments)),
                without,
                "{bytes} bytes, {reading:?}"
            );
        }
    }
}

/// Range of the window at the exit, in bandwidth-delay products, and of the RTTs since the window held the path, for a
/// reading on a link with room for it. The look-back by a sample that grows with the queue doubles the lag.
fn expected(reading: &[&str; 2]) -> (RangeInclusive<f64>, RangeInclusive<f64>) {
    match reading {
        ["form=sent", "look_back=min"] => (2.5..=3.5, 1.6..=2.6),
        ["form=delivered", "look_back=min"] => (3.2..=4.2, 2.5..=3.4),
        ["form=sent", _] => (5.0..=6.0, 4.2..=5.3),
        _ => (6.2..=7.0, 5.4..=6.2),
    }
}

/// With room for it, the exit comes after the window holds the path, within the lag that the method has.
#[test]
fn case_38_the_exit_comes_after_capacity() {
    println!(
        "{:12} {:9} {:9} {:>5} {:>6} {:>6} {:>6}",
        "link", "form", "look-back", "BDP", "window", "lag", "RTT"
    );
    for (name, link) in LINKS {
        for reading in READINGS {
            let run = link.run(&mut search(&reading), None);
            let exit = run.exit.unwrap();
            let window = f64::from(exit.cwnd) / link.bdp() as f64;
            let inflation = exit.rtt_us as f64 / link.rtt_us as f64;
            let words = reading.map(|text| text.split_once('=').unwrap().1);
            let (bdp, lag) = (link.bdp(), lag(&link, &run));
            println!(
                "{name:12} {:9} {:9} {bdp:5} {window:6.2} {lag:6.2} {inflation:6.2}",
                words[0], words[1]
            );
            let (windows, lags) = expected(&reading);
            assert!(windows.contains(&window), "{name} {reading:?}: window of {window} BDP");
            assert!(lags.contains(&lag), "{name} {reading:?}: {lag} RTTs after capacity");
        }
    }
}

/// The exit is before the first drop where the queue holds what the lag puts into it, and only there. Of a queue of one
/// or two bandwidth-delay products it is the first drop that slow start hears, but for the shortest lag.
#[test]
fn case_38_the_exit_comes_before_the_first_loss_where_the_queue_allows() {
    for (name, link) in LINKS {
        for reading in READINGS {
            let unbounded = link.run(&mut search(&reading), None).exit.unwrap();
            for percent in [50, 100, 200, 300, 400, 500, 600, 800] {
                let link = link.with_queue_pct(percent);
                let run = link.run(&mut search(&reading), None);
                let fits = u64::from(unbounded.cwnd) <= link.bdp() * (100 + percent) / 100;
                assert_ne!(run.exit.is_some(), run.loss.is_some(), "{name} {reading:?} {percent} %");
                assert_eq!(run.exit.is_some(), fits, "{name} {reading:?} {percent} %");
                assert!(run.exit.is_none() || run.exit == Some(unbounded));
            }
        }
    }
    let geo = LINKS[0].1.with_queue_pct(200);
    assert!(geo.run(&mut search(&["look_back=min"]), None).exit.is_some());
    assert!(geo.run(&mut search(&[]), None).loss.is_some());
}

/// What each action leaves on the way out of a queue that is full of the flow's own segments.
#[test]
fn case_38_where_each_action_ends() {
    let (_, link) = LINKS[0];
    let bdp = link.bdp() as f64;
    let left = |action: &str| {
        let run = link.run(&mut search(&[action]), None);
        let (exit, left) = (run.exit.unwrap(), run.left.unwrap());
        let window = f64::from(left.cwnd) / bdp;
        let rtts = (left.at_us - exit.at_us) as f64 / link.rtt_us as f64;
        println!("{action}: {window:.2} BDP, {rtts:.2} RTTs after the exit");
        (window, rtts)
    };
    let (window, rtts) = left("exit_action=hold");
    assert!((5.7..=5.8).contains(&window) && rtts == 0.0, "{window} {rtts}");
    let (window, rtts) = left("exit_action=rollback");
    assert!((3.9..=4.1).contains(&window) && rtts == 0.0, "{window} {rtts}");
    // One initial RTT's deliveries, in bins that together are 1.05 of it.
    let (window, rtts) = left("exit_action=drain");
    assert!((1.0..=1.06).contains(&window), "{window}");
    assert!((6.5..=7.5).contains(&rtts), "{rtts}");
}

/// On any link, at the default window length, the exit never comes before the window holds the path.
#[test]
fn case_38_no_link_is_left_before_capacity() {
    let links = (15..3_000_u64, 2_000..800_000_u64, 0..READINGS.len());
    check(38, 150, links, |(bdp, rtt_us, reading)| {
        let link = Link { rate: (bdp + 1) * 12_000 * 1_000_000 / rtt_us, rtt_us, queue: None };
        let run = link.run(&mut search(&READINGS[reading]), Some(200_000));
        let exit = run.exit.expect("an exit");
        let least = if READINGS[reading][1] == "look_back=min" { 1.4 } else { 4.5 };
        prop_assert!(
            f64::from(exit.cwnd) >= least * link.bdp() as f64,
            "{:?} {link:?} {run:?}",
            READINGS[reading]
        );
        Ok(())
    });
}
