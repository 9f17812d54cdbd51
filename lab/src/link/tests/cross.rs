// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Cross traffic in the queue.

use super::*;

/// 12 Mb/s without delay: 1500 bytes take 1 ms.
fn shared(cross: CrossSpec, queue: Limit) -> Direction<u64> {
    let mut link =
        direction(&DirectionSpec { cross: Some(cross), ..DirectionSpec::new(12_000_000, 0, queue) }, 1);
    link.start(0);
    link
}

#[test]
fn it_takes_its_share_of_the_transmitter_and_is_not_delivered() {
    let half = CrossSpec::Constant { rate_bps: 6_000_000, packet_bytes: 1_500 };
    let mut link = shared(half, Limit::Packets(1_000_000));
    // 10 Mb/s.
    (0..10_000).for_each(|number| link.arrive(number * 1_200_000, number, 1_500).unwrap());
    let dues: Vec<_> = drain(&mut link, 100 * SECOND).iter().map(|delivery| delivery.due).collect();
    assert_eq!(dues.len(), 10_000);
    // Behind the last of ours are 10 s of our packets and 6 s of its.
    assert!((15_990 * MS..=16_000 * MS).contains(dues.last().unwrap()), "{:?}", dues.last());
    let counters = link.counters();
    assert_eq!(counters.arrived, counters.delivered);
    assert_eq!(counters.cross_dropped.packets, 0);
    assert_eq!(counters.cross_arrived.bytes, counters.cross_arrived.packets * 1_500);
    assert_eq!(counters.cross_arrived.packets, counters.cross_sent.packets + link.depth().packets);
    assert_eq!(counters.cross_arrived.packets, 50_000);
}

#[test]
fn it_fills_the_queue_and_is_dropped_from_it() {
    let double = CrossSpec::Poisson { rate_bps: 24_000_000, packet_bytes: 1_500 };
    let mut link = shared(double, Limit::Packets(10));
    let (mut full, total) = (0, 20_000);
    for number in 0..total {
        // Not in step with departures.
        let now = number * 10_000_777;
        full += u64::from(link.arrive(now, number, 1_500).is_err());
        drain(&mut link, now);
    }
    let counters = link.counters();
    assert_eq!(counters.dropped_queue_full.packets, full);
    // Twice the rate: half of it is dropped, and arrivals of ours find the queue as full.
    let share = counters.cross_dropped.packets as f64 / counters.cross_arrived.packets as f64;
    assert!(
        (share - 0.55).abs() < 0.05 && (full as f64 / total as f64 - share).abs() < 0.05,
        "{share} {full}"
    );
    assert_eq!(counters.max_queue_packets, 10);
    let cross = counters.cross_sent.packets + counters.cross_dropped.packets;
    assert!(counters.cross_arrived.packets - cross <= 10);
}

#[test]
fn it_flows_from_the_start_of_the_link_on() {
    let cross = CrossSpec::Constant { rate_bps: 1_200_000, packet_bytes: 1_500 };
    let mut link = shared(cross.clone(), Limit::Packets(10));
    link.advance(SECOND - 1);
    assert_eq!(link.counters().cross_arrived.packets, 100);
    assert_eq!(link.next_due(), None);
    // Without a start, from the first arrival on.
    let spec = DirectionSpec { cross: Some(cross), ..spec() };
    let mut link = direction(&spec, 1);
    link.advance(SECOND);
    link.arrive(5 * SECOND, 0, 1_500).unwrap();
    assert_eq!(link.counters().cross_arrived.packets, 0);
    link.advance(6 * SECOND - 1);
    assert_eq!(link.counters().cross_arrived.packets, 100);
}
