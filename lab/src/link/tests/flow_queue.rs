// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Queues by flow.

use super::*;

/// 12 Mb/s, so that a packet of 1,500 bytes takes a millisecond.
fn fq_codel(packets: u64) -> Direction<u64> {
    let aqm = Some(AqmSpec::FqCodel { target_us: 5_000, interval_us: 100_000, ecn: false });
    direction(&DirectionSpec { aqm, ..DirectionSpec::new(12_000_000, 0, Limit::Packets(packets)) }, 1)
}

fn arrive(link: &mut Direction<u64>, now: Nanos, flow: u64, packet: u64, bytes: u32) {
    let arrival = Arrival { packet, bytes, capable: false, flow, own_delay: 0 };
    assert!(link.arrive_of(now, arrival).is_ok());
}

fn order(link: &mut Direction<u64>, now: Nanos) -> Vec<u64> {
    drain(link, now).into_iter().map(|delivery| delivery.packet).collect()
}

#[test]
fn flows_take_turns_and_keep_their_own_order() {
    let mut link = fq_codel(100);
    for packet in 0..4 {
        arrive(&mut link, 0, 1, packet, 1_500);
    }
    for packet in 10..14 {
        arrive(&mut link, 0, 2, packet, 1_500);
    }
    let sent = order(&mut link, 20 * MS);
    let of = |first| sent.iter().copied().filter(|packet| packet / 10 == first).collect::<Vec<_>>();
    assert_eq!((of(0), of(1)), (vec![0, 1, 2, 3], vec![10, 11, 12, 13]));
    // Neither is ever more than a quantum ahead.
    for count in 1..=sent.len() {
        let ahead: i32 = sent[..count].iter().map(|packet| if *packet < 10 { 1 } else { -1 }).sum();
        assert!(ahead.abs() <= 2, "{sent:?}");
    }
}

#[test]
fn shares_are_of_bytes_and_not_of_packets() {
    let mut link = fq_codel(10_000);
    for packet in 0..2_000 {
        arrive(&mut link, 0, 1, packet, 300);
    }
    for packet in 0..400 {
        arrive(&mut link, 0, 2, 10_000 + packet, 1_500);
    }
    // Before CoDel has seen a wait of an interval.
    let sent = order(&mut link, 90 * MS);
    let bytes = |large: bool| {
        let count = sent.iter().filter(|packet| (**packet >= 10_000) == large).count() as i64;
        count * if large { 1_500 } else { 300 }
    };
    assert!((bytes(true) - bytes(false)).abs() <= 2 * 1_514 + 1_500, "{} {}", bytes(true), bytes(false));
}

#[test]
fn a_new_flow_does_not_wait_for_the_queue_of_another() {
    let mut link = fq_codel(1_000);
    for packet in 0..50 {
        arrive(&mut link, 0, 1, packet, 1_500);
    }
    assert_eq!(order(&mut link, 10 * MS).len(), 10);
    arrive(&mut link, 10 * MS + 1, 2, 99, 1_500);
    // After the one in the transmitter.
    assert_eq!(order(&mut link, 12 * MS), [10, 99]);
}

#[test]
fn a_full_queue_loses_the_first_packet_of_the_longest_but_for_the_one_being_sent() {
    let mut link = fq_codel(5);
    for packet in 0..4 {
        arrive(&mut link, 0, 1, packet, 1_500);
    }
    arrive(&mut link, 0, 2, 10, 1_500);
    arrive(&mut link, 0, 2, 11, 1_500);
    assert_eq!(link.counters().dropped_queue_full.packets, 1);
    let mut sent = order(&mut link, 20 * MS);
    sent.sort_unstable();
    assert_eq!(sent, [0, 2, 3, 10, 11]);
}

#[test]
fn a_flow_that_fills_its_queue_is_held_to_the_target_and_leaves_others_alone() {
    let mut link = fq_codel(10_000);
    let mut waits = Vec::new();
    for number in 0..20_000_u64 {
        // Flow 1 sends 1.5 times the rate; flow 2 a packet in twenty.
        let now = number * MS * 2 / 3;
        arrive(&mut link, now, 1, number, 1_500);
        if number % 30 == 0 {
            arrive(&mut link, now, 2, 1_000_000 + now, 1_500);
        }
        for delivery in drain(&mut link, now) {
            if delivery.packet >= 1_000_000 {
                waits.push(delivery.due - (delivery.packet - 1_000_000));
            }
        }
    }
    assert!(link.counters().dropped_aqm.packets > 100, "{:?}", link.counters());
    assert!(waits.len() > 600 && waits.iter().all(|wait| *wait <= 4 * MS), "{:?}", waits.iter().max());
}
