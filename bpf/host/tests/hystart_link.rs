//! hystart and hystartpp end to end over an ideal link. Shows its table with --nocapture.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::link::Link;
use onramp_algorithm::{Flow, find};

const MBIT: u64 = 1_000_000;

const LINKS: [(&str, Link); 7] = [
    ("144 Mb/s, 600 ms", Link { rate: 144 * MBIT, rtt_us: 600_000, queue: None }),
    ("20 Mb/s, 600 ms", Link { rate: 20 * MBIT, rtt_us: 600_000, queue: None }),
    ("200 Mb/s, 40 ms", Link { rate: 200 * MBIT, rtt_us: 40_000, queue: None }),
    ("40 Mb/s, 60 ms", Link { rate: 40 * MBIT, rtt_us: 60_000, queue: None }),
    ("100 Mb/s, 15 ms", Link { rate: 100 * MBIT, rtt_us: 15_000, queue: None }),
    ("1 Gb/s, 20 ms", Link { rate: 1_000 * MBIT, rtt_us: 20_000, queue: None }),
    ("16 Mb/s, 35 ms", Link { rate: 16 * MBIT, rtt_us: 35_000, queue: None }),
];

/// Window at the exit in bandwidth-delay products, and what the flow exports then.
fn exit(link: &Link, algorithm: &str, settings: &[&str]) -> (f64, Flow) {
    let mut parameters = find(algorithm).unwrap().parameters();
    parameters.assign(settings).unwrap();
    let mut flow = Flow::new(parameters);
    let run = link.run(&mut flow, None);
    assert!(run.loss.is_none());
    (f64::from(run.exit.unwrap().cwnd) / link.bdp() as f64, flow)
}

/// Trains by the time that they fill the path, delays a round after the queue has begun, HyStart++ another five rounds
/// of growth by a quarter after that.
#[test]
fn where_they_leave() {
    for (name, link) in LINKS {
        let (train, _) = exit(&link, "hystart", &["detect=train"]);
        let (delay, _) = exit(&link, "hystart", &["detect=delay"]);
        let (both, flow) = exit(&link, "hystart", &[]);
        let (plusplus, after) = exit(&link, "hystartpp", &[]);
        let entries = after.export("css_entries")[0];
        let detected = flow.export("detected")[0];
        println!(
            "| {name} | {} | {train:.2} | {delay:.2} | {both:.2} by {detected} | {plusplus:.2} | {entries} |",
            link.bdp()
        );
        assert!((0.4..2.2).contains(&train), "{name}: {train}");
        assert!((1.0..4.2).contains(&delay), "{name}: {delay}");
        assert!(both <= train.min(delay), "{name}: {both}");
        assert!((delay..delay * 3.5).contains(&plusplus) && entries == 1, "{name}: {plusplus}, {entries}");
    }
}
