//! best end to end over an ideal link. Shows its table with --nocapture.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::link::Link;
use common::random::check;
use onramp_algorithm::{Flow, find};
use proptest::prelude::*;

const MBIT: u64 = 1_000_000;

const LINKS: [(&str, Link); 6] = [
    ("geo", Link { rate: 144 * MBIT, rtt_us: 600_000, queue: None }),
    ("geo, slow", Link { rate: 20 * MBIT, rtt_us: 600_000, queue: None }),
    ("leo", Link { rate: 200 * MBIT, rtt_us: 40_000, queue: None }),
    ("lte", Link { rate: 40 * MBIT, rtt_us: 60_000, queue: None }),
    ("terrestrial", Link { rate: 1_000 * MBIT, rtt_us: 20_000, queue: None }),
    ("dsl", Link { rate: 16 * MBIT, rtt_us: 35_000, queue: None }),
];

fn best(settings: &[&str]) -> Flow {
    let mut parameters = find("best").unwrap().parameters();
    parameters.assign(settings).unwrap();
    Flow::new(parameters)
}

/// With the minimum RTT slow start ends at the bandwidth-delay product, before anything is lost, where the queue holds
/// what slow start sends at twice the rate meanwhile: half of the window.
#[test]
fn slow_start_ends_at_the_bandwidth_delay_product() {
    for (name, link) in LINKS {
        for queue in [None, Some(60)] {
            let link = queue.map_or(link, |percent| link.with_queue_pct(percent));
            let run = link.run(&mut best(&[]), None);
            let window = f64::from(run.left.unwrap().cwnd) / link.bdp() as f64;
            println!("{name:12} {:5} {window:6.3}", link.bdp());
            // The minimum RTT holds a segment's transmission, which the product leaves out.
            assert!((0.96..1.06).contains(&window), "{name}: {window}");
            assert_eq!(run.loss, None, "{name}");
        }
    }
}

/// Below the minimum rate nothing is estimated: the first loss ends slow start.
#[test]
fn a_link_below_the_minimum_rate_is_left_to_loss() {
    let link = Link { rate: 6 * MBIT, rtt_us: 100_000, queue: Some(100) };
    let run = link.run(&mut best(&[]), None);
    assert!(run.left.is_none() && run.loss.is_some(), "{run:?}");
    let run = link.run(&mut best(&["min_rate_bytes_per_s=0"]), None);
    assert!(run.left.is_some() && run.loss.is_none(), "{run:?}");
}

/// A round's own minimum grows with the queue that the flow fills, as the latest RTT does: they leave no earlier.
#[test]
fn other_rtts_leave_no_earlier() {
    let left = |source: &str| LINKS[0].1.run(&mut best(&[source]), None).left.unwrap().cwnd;
    let (minimum, round, latest) =
        (left("rtt_source=min"), left("rtt_source=round_min"), left("rtt_source=latest"));
    println!("min {minimum}, round_min {round}, latest {latest} segments");
    assert!(minimum <= round && round <= latest);
}

/// On any link up to 1 Gb/s; beyond, the microsecond by which ACKs are timed is a large part of a segment's time.
#[test]
fn any_link_is_left_near_its_bandwidth_delay_product() {
    check(31, 300, (50..5_000_u64, 12_000..800_000_u64), |(bdp, segment_ns)| {
        let rtt_us = (bdp * segment_ns).div_ceil(1_000);
        let link = Link { rate: common::link::SEGMENT * 8_000_000_000 / segment_ns, rtt_us, queue: None };
        let run = link.run(&mut best(&["min_rate_bytes_per_s=0"]), Some(200_000));
        let window = f64::from(run.left.expect("an exit").cwnd) / link.bdp() as f64;
        prop_assert!((0.93..1.09).contains(&window), "{link:?} {window}");
        Ok(())
    });
}
