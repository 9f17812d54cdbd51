// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! CoDel and loss.

use super::*;
use crate::link::codel::CoDel;

fn turn(sojourn: Nanos, behind_bytes: u64) -> Turn {
    Turn { bytes: 1_500, sojourn, behind_bytes }
}

fn codel() -> CoDel {
    CoDel::new(5 * MS, 100 * MS, false)
}

#[test]
fn codel_waits_for_an_interval_and_then_drops_one() {
    let mut aqm = codel();
    assert!(!aqm.drops_head(0, turn(5 * MS, 9_000)));
    assert!(!aqm.drops_head(100 * MS - 1, turn(5 * MS, 9_000)));
    assert!(aqm.drops_head(100 * MS, turn(5 * MS, 9_000)));
    // The next one at the same time is sent; the one after waits for interval/√1.
    assert!(!aqm.drops_head(100 * MS, turn(5 * MS, 9_000)));
    assert!(!aqm.drops_head(200 * MS - 1, turn(5 * MS, 9_000)));
    assert!(aqm.drops_head(200 * MS, turn(5 * MS, 9_000)));
}

#[test]
fn codel_is_content_below_the_target_and_with_a_packet_left() {
    for content in [turn(5 * MS - 1, 9_000), turn(500 * MS, 1_500)] {
        let mut aqm = codel();
        assert!((0..1_000).all(|number| !aqm.drops_head(number * MS, content)));
        // Once in an interval is enough.
        let mut aqm = codel();
        let often = |number: u64| if number % 100 == 99 { content } else { turn(50 * MS, 9_000) };
        assert!((0..1_000).all(|number| !aqm.drops_head(number * MS, often(number))));
    }
}

/// Times of the drops of packets that come up every ms from `begin` to `end`, all waiting for too long.
fn dropped(aqm: &mut CoDel, begin: u64, end: u64) -> Vec<u64> {
    let mut times = Vec::new();
    for ms in begin..end {
        // As many as it takes until one is sent.
        while aqm.drops_head(ms * MS, turn(50 * MS, 9_000)) {
            times.push(ms);
        }
    }
    times
}

#[test]
fn codel_drops_faster_and_faster_and_remembers_for_16_intervals() {
    let mut aqm = codel();
    // 100, + 100/√1, + 100/√2, + 100/√3, + 100/√4.
    assert_eq!(dropped(&mut aqm, 0, 400), [100, 200, 271, 329, 379]);
    // Content for a moment: the next state begins after an interval, with the frequency of 5 - 1 = 4 drops.
    assert!(!aqm.drops_head(400 * MS, turn(0, 9_000)));
    assert_eq!(dropped(&mut aqm, 401, 580), [501, 551]);
    // Long content: from the beginning.
    let mut aqm = codel();
    dropped(&mut aqm, 0, 400);
    assert!(!aqm.drops_head(400 * MS, turn(0, 9_000)));
    assert_eq!(dropped(&mut aqm, 2_100, 2_350), [2_200, 2_300]);
}

#[test]
fn codel_makes_up_for_turns_that_come_late() {
    let mut aqm = codel();
    dropped(&mut aqm, 0, 150);
    // Drops of 200, 271, 329, 379, 424 and 464 ms are overdue at once.
    assert_eq!(dropped(&mut aqm, 500, 501), [500; 6]);
}

#[test]
fn codel_holds_a_queue_near_the_target_where_tail_drop_fills_it() {
    let run = |aqm| {
        let mut link =
            direction(&DirectionSpec { aqm, ..DirectionSpec::new(12_000_000, 0, Limit::Packets(1_000)) }, 1);
        let mut longest = 0;
        // 1 % more than the link carries: packets of 1 ms.
        for number in 0..60_000 {
            let now = number * 990_099;
            let _ = link.arrive(now, number, 1_500);
            drain(&mut link, now);
            longest = link.depth().packets.max(longest);
        }
        (longest, link.counters())
    };
    let (filled, tail) = run(None);
    assert!((590..600).contains(&filled) && tail.dropped_packets() == 0, "{filled}");
    let (held, counters) = run(Some(AqmSpec::CoDel { target_us: 5_000, interval_us: 100_000, ecn: false }));
    assert!(
        held < 60 && counters.dropped_aqm.packets > 300 && counters.dropped_queue_full.packets == 0,
        "{held} {counters:?}"
    );
}

#[test]
fn codel_marks_what_it_may_and_drops_the_rest() {
    let run = |ecn| {
        let aqm = Some(AqmSpec::CoDel { target_us: 5_000, interval_us: 100_000, ecn });
        let mut link =
            direction(&DirectionSpec { aqm, ..DirectionSpec::new(12_000_000, 0, Limit::Packets(1_000)) }, 1);
        let mut delivered = Vec::new();
        // Of two senders in turns, one of which takes part.
        for number in 0..60_000 {
            let now = number * 990_099;
            let _ = link.arrive_of(
                now,
                Arrival { packet: number, bytes: 1_500, capable: number % 2 == 0, flow: 0, own_delay: 0 },
            );
            delivered.extend(drain(&mut link, now));
        }
        let marked: Vec<_> = delivered.iter().filter(|one| one.marked).map(|one| one.packet).collect();
        let lost: Vec<_> = delivered.windows(2).flat_map(|pair| pair[0].packet + 1..pair[1].packet).collect();
        assert_eq!(marked.len() as u64, link.counters().marked.packets);
        assert_eq!(lost.len() as u64, link.counters().dropped_packets());
        (marked, lost)
    };
    let (marked, lost) = run(true);
    assert!(marked.len() > 50 && marked.iter().all(|number| number % 2 == 0), "{marked:?}");
    assert!(lost.len() > 50 && lost.iter().all(|number| number % 2 == 1), "{lost:?}");
    let (marked, lost) = run(false);
    assert!(marked.is_empty() && lost.iter().any(|number| number % 2 == 0), "{lost:?}");
}

#[test]
fn lost_packets_have_taken_their_time_and_are_counted() {
    let loss = Some(LossSpec::Random { probability: 1.0 });
    let mut link = direction(&DirectionSpec { loss, ..spec() }, 1);
    for number in 0..10 {
        link.arrive(0, number, 1_500).unwrap();
    }
    link.advance(400_000);
    assert_eq!((link.depth().packets, link.on_the_way()), (5, 0));
    assert_eq!(drain(&mut link, SECOND), []);
    assert_eq!(link.next_due(), None);
    assert_eq!(link.counters().dropped_loss, Count { packets: 10, bytes: 15_000 });
    assert_eq!(link.counters().dropped_packets(), 10);
}

#[test]
fn gilbert_elliott_alternates_when_its_states_always_change() {
    let loss = Some(LossSpec::GilbertElliott { to_bad: 1.0, to_good: 1.0, good_loss: 0.0, bad_loss: 1.0 });
    let mut link = direction(&DirectionSpec { loss, ..spec() }, 1);
    (0..10).for_each(|number| link.arrive(0, number, 1_500).unwrap());
    let arrived: Vec<_> = drain(&mut link, SECOND).iter().map(|delivery| delivery.packet).collect();
    assert_eq!(arrived, [1, 3, 5, 7, 9]);
}

#[test]
fn a_policer_passes_a_burst_and_then_its_rate_without_delay() {
    let aqm = Some(AqmSpec::Policer { rate_bps: 12_000_000, burst_bytes: 15_000 });
    let mut link = direction(&DirectionSpec { aqm, ..spec() }, 1);
    // Ten packets are in the bucket; the next token for one comes after a millisecond.
    let passed = (0..20).filter(|number| link.arrive(0, *number, 1_500).is_ok()).count();
    assert_eq!(passed, 10);
    assert_eq!(link.arrive(MS - 1, 20, 1_500), Err((20, DropCause::Aqm)));
    link.arrive(MS, 21, 1_500).unwrap();
    assert_eq!(link.arrive(MS, 22, 1_500), Err((22, DropCause::Aqm)));
    // However long nothing comes, the bucket holds no more than its size.
    let passed = (0..20).filter(|number| link.arrive(3_600 * SECOND, *number, 1_500).is_ok()).count();
    assert_eq!(passed, 10);
}
