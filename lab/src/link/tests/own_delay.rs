// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Flows that share a queue and have delays of their own behind it.

use super::*;

/// Of the flow of odd numbers.
const OWN: Nanos = 60 * MS;

/// Packets of two flows in turn: numbers, and when they are due.
fn dues(spec: &DirectionSpec, own_delay: Nanos) -> Vec<(u64, Nanos)> {
    let mut link = direction(spec, 3);
    let mut out = Vec::new();
    for number in 0..5_000 {
        let now = number * 70_000;
        let own_delay = if number % 2 == 1 { own_delay } else { 0 };
        let _ =
            link.arrive_of(now, Arrival { packet: number, bytes: 1_500, capable: false, flow: 0, own_delay });
        out.extend(drain(&mut link, now));
    }
    out.extend(drain(&mut link, 100 * SECOND));
    out.iter().map(|delivery| (delivery.packet, delivery.due)).collect()
}

#[test]
fn each_flow_has_its_delay_and_keeps_its_order_and_both_share_the_queue() {
    // A packet takes 80 us and comes every 70: the queue grows, overflows, and the delay varies.
    let jittery = DirectionSpec { queue_bytes: Some(60_000), ..jittery() };
    for spec in [DirectionSpec { queue_bytes: Some(60_000), ..spec() }, jittery] {
        let same = dues(&spec, 0);
        let apart = dues(&spec, OWN);
        assert!(same.len() < 5_000 && same.is_sorted(), "some did not fit");
        assert!(apart.is_sorted_by_key(|(_, due)| *due) && !apart.is_sorted());
        for parity in [0, 1] {
            let of = |all: &[(u64, Nanos)]| -> Vec<_> {
                all.iter().copied().filter(|(number, _)| number % 2 == parity).collect()
            };
            let later = |(number, due)| (number, due + parity * OWN);
            // What is dropped, and when the others leave the queue, does not depend on what comes behind it.
            assert!(of(&apart).into_iter().eq(of(&same).into_iter().map(later)), "{parity}");
        }
    }
}

#[test]
fn a_driver_that_calls_at_the_time_given_is_never_late() {
    let mut link = direction(&spec(), 1);
    for packet in 0..1_000 {
        let own_delay = (packet % 7) * MS;
        link.arrive_of(0, Arrival { packet, bytes: 1_500, capable: false, flow: 0, own_delay }).unwrap();
    }
    let mut delivered = 0;
    while let Some(due) = link.next_due() {
        while let Some(delivery) = link.deliver(due) {
            assert_eq!(delivery.due, due, "packet {}", delivery.packet);
            delivered += 1;
        }
    }
    assert_eq!(delivered, 1_000);
}

#[test]
fn a_shorter_delay_of_the_link_does_not_let_packets_of_a_flow_overtake() {
    let mut link = direction(&spec(), 1);
    let arrival = |packet| Arrival { packet, bytes: 1_500, capable: false, flow: 0, own_delay: OWN };
    (0..10).for_each(|number| link.arrive_of(0, arrival(number)).unwrap());
    link.change(MS, Change { delay_us: Some(0), ..Change::default() }).unwrap();
    link.arrive_of(MS, arrival(10)).unwrap();
    let delivered = drain(&mut link, SECOND);
    assert!(delivered.iter().map(|delivery| delivery.packet).eq(0..=10));
}
