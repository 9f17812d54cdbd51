//! Packets that overtake each other.

use super::*;
use crate::link::ReorderingSpec;

/// One packet of 1 ms each millisecond, of which some take 5.5 ms longer: their numbers as they arrive, and when.
fn arrivals(probability: f64, seed: u64) -> Vec<(u64, Nanos)> {
    let reordering = Some(ReorderingSpec { probability, later_us: 5_500 });
    let mut link = direction(&DirectionSpec { reordering, ..spec() }, seed);
    let mut arrived = Vec::new();
    for number in 0..10_000 {
        link.arrive(number * MS, number, 1_000).unwrap();
        arrived.extend(drain(&mut link, number * MS));
    }
    arrived.extend(drain(&mut link, 100 * SECOND));
    arrived.into_iter().map(|delivery| (delivery.packet, delivery.due)).collect()
}

#[test]
fn those_that_take_longer_are_overtaken_and_the_others_keep_time_and_order() {
    let in_order = arrivals(0.0, 1);
    assert!(in_order.iter().map(|(number, _)| *number).eq(0..10_000), "no packet takes longer");
    let arrived = arrivals(0.1, 1);
    assert_eq!(arrived.len(), 10_000);
    assert!(arrived.is_sorted_by_key(|(_, due)| *due));
    let due_in_order = |number: u64| in_order[number as usize].1;
    let (on_time, late): (Vec<_>, Vec<_>) =
        arrived.iter().partition(|(number, due)| *due == due_in_order(*number));
    assert!(on_time.is_sorted());
    assert!(late.iter().all(|(number, due)| *due == due_in_order(*number) + 5_500 * 1_000));
    assert!((850..1_150).contains(&late.len()), "{}", late.len());
    assert_eq!(arrivals(0.1, 1), arrived);
    assert_ne!(arrivals(0.1, 2), arrived);
    // Where all take longer, none is overtaken.
    let all = arrivals(1.0, 1);
    assert!(all.iter().zip(&in_order).all(|(late, on_time)| *late == (on_time.0, on_time.1 + 5_500 * 1_000)));
}

#[test]
fn a_driver_that_calls_at_the_time_given_is_never_late() {
    let reordering = Some(ReorderingSpec { probability: 0.3, later_us: 20_000 });
    let mut link = direction(&DirectionSpec { reordering, ..spec() }, 3);
    for number in 0..1_000 {
        link.arrive(0, number, 1_000).unwrap();
    }
    let mut last = 0;
    while let Some(due) = link.next_due() {
        assert!(due >= last);
        last = due;
        while let Some(delivery) = link.deliver(due) {
            assert_eq!(delivery.due, due, "packet {}", delivery.packet);
        }
    }
    assert_eq!(link.counters().delivered.packets, 1_000);
}
