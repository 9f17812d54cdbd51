// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Paths of which one is in use.

use super::*;

/// 10 Mb/s, on which 1250 bytes take 1 ms.
fn link(rate_bps: u64, delay_us: u64) -> LinkSpec {
    let direction = DirectionSpec::new(rate_bps, delay_us, Limit::Packets(10));
    LinkSpec { forward: direction.clone(), back: direction }
}

fn arrive(paths: &mut Paths<u64>, now: Nanos, packet: u64) -> bool {
    paths.arrive_of(now, Arrival { packet, bytes: 1_250, capable: false, flow: 0, own_delay: 0 }).is_ok()
}

/// Numbers, and when they are due, in milliseconds.
fn dues(paths: &mut Paths<u64>) -> Vec<(u64, u64)> {
    let mut out = Vec::new();
    while let Some(due) = paths.next_due() {
        while let Some(delivery) = paths.deliver(due) {
            assert_eq!(delivery.due, due, "packet {}", delivery.packet);
            out.push((delivery.packet, due / MS));
        }
    }
    out
}

#[test]
fn what_is_on_a_path_ends_on_it_and_what_comes_later_takes_the_next_one() {
    let [mut paths, _] =
        Paths::pair(&link(10_000_000, 50_000), &[link(5_000_000, 10_000)], 1, 5_000).unwrap();
    paths.start(0);
    assert!((0..10).all(|number| arrive(&mut paths, 0, number)));
    assert!(!arrive(&mut paths, 0, 10), "the queue is full");
    paths.next_path(2 * MS);
    // A queue of its own, which is empty. The path is slower and shorter: these overtake the others.
    assert!((11..21).all(|number| arrive(&mut paths, 2 * MS, number)));
    assert!(!arrive(&mut paths, 2 * MS, 21));
    let first = (0..10).map(|number| (number, 51 + number));
    let second = (11..21).map(|number| (number, 14 + 2 * (number - 11)));
    let mut expected: Vec<_> = first.chain(second).collect();
    expected.sort_by_key(|(_, due)| *due);
    assert_eq!(dues(&mut paths), expected);
    let counters = paths.counters();
    assert_eq!((counters.arrived.packets, counters.delivered.packets), (22, 20));
    assert_eq!((counters.dropped_queue_full.packets, counters.max_queue_packets), (2, 10));
    // The log is that of the path in use.
    let samples = paths.take_samples();
    assert!(samples.is_sorted_by_key(|sample| sample.at_ns));
    assert_eq!(samples[0].queue_packets, 0);
    paths.next_path(90 * MS);
    assert!(arrive(&mut paths, 90 * MS, 30), "there is no further path");
    assert_eq!(dues(&mut paths), [(30, 102)]);
}

#[test]
fn a_longer_path_is_overtaken_by_nothing_and_changes_are_of_the_path_in_use() {
    let [mut paths, _] = Paths::pair(&link(10_000_000, 10_000), &[link(10_000_000, 50_000)], 1, 0).unwrap();
    assert!(arrive(&mut paths, 0, 0));
    paths.next_path(0);
    assert!(arrive(&mut paths, 0, 1));
    paths.change(0, Change { delay_us: Some(20_000), ..Change::default() }).unwrap();
    assert_eq!(dues(&mut paths), [(0, 11), (1, 21)]);
    let error = Paths::<u64>::pair(&link(10_000_000, 0), &[link(1, 0)], 1, 0).err().unwrap();
    assert_eq!(error.key, "link.forward.rate_bps");
}

/// What a run's digest is made of: what a driver gets of each packet, in this order, and the counters.
#[test]
fn one_path_and_no_delay_of_a_flow_are_what_a_link_alone_is() {
    let aqm = Some(AqmSpec::RandomDrop { above_fraction: 0.5, drop_probability: 0.25 });
    let forward = DirectionSpec { queue_bytes: Some(30_000), aqm, ..jittery() };
    let spec = LinkSpec { back: forward.clone(), forward };
    let [mut alone, _] = Direction::<u64>::pair(&spec, 5, 10_000).unwrap();
    let [mut paths, _] = Paths::<u64>::pair(&spec, &[link(1_000, 0)], 5, 10_000).unwrap();
    let mut random = Random::new(1, 1);
    let mut now = 7;
    alone.start(now);
    paths.start(now);
    for packet in 0..20_000 {
        now += random.up_to(60_000);
        let bytes = 40 + random.up_to(1_460) as u32;
        let arrival = Arrival { packet, bytes, capable: false, flow: 0, own_delay: 0 };
        assert_eq!(paths.arrive_of(now, arrival), alone.arrive(now, packet, bytes));
        assert_eq!(paths.next_due(), alone.next_due());
        assert_eq!(paths.deliver(now), alone.deliver(now));
    }
    now += 10 * SECOND;
    while let Some(delivery) = alone.deliver(now) {
        assert_eq!(paths.deliver(now), Some(delivery));
    }
    assert_eq!(paths.counters(), alone.counters());
    assert!(alone.counters().dropped_packets() > 0);
    assert_eq!(paths.take_samples(), alone.take_samples());
}
