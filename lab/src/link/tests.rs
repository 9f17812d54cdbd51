// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The models in virtual time: what every link does, here; the parts, in the files below. Means and distributions are
//! compared with closed forms in [`closed_forms`].

mod change;
mod closed_forms;
mod cross;
mod delay;
mod drops;
mod flow_queue;
mod own_delay;
mod paths;
mod property;
mod rate;
mod reordering;
mod schedule;

use super::spec::HandoverSpec;
use super::*;

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000 * MS;

fn spec() -> DirectionSpec {
    DirectionSpec::new(150_000_000, 300_000, Limit::Bytes(36_000_000))
}

fn direction(spec: &DirectionSpec, seed: u64) -> Direction<u64> {
    Direction::new(spec, "link.test", seed, 0).unwrap()
}

fn drain(direction: &mut Direction<u64>, until: Nanos) -> Vec<Delivery<u64>> {
    std::iter::from_fn(|| direction.deliver(until)).collect()
}

#[test]
fn a_packet_takes_transmission_and_propagation() {
    let mut link = direction(&spec(), 1);
    assert_eq!(link.next_due(), None);
    link.arrive(1_000, 7, 1_500).unwrap();
    // 1500 B at 150 Mb/s are 80 us.
    let due = 1_000 + 80_000 + 300 * MS;
    assert_eq!(link.next_due(), Some(due));
    assert_eq!(link.deliver(due - 1), None);
    assert_eq!(link.deliver(due), Some(Delivery { packet: 7, bytes: 1_500, due, marked: false }));
    assert_eq!(link.next_due(), None);
}

#[test]
fn rates_that_do_not_divide_a_nanosecond_do_not_drift() {
    for rate_bps in [7, 13, 44_000, 1_234_567, 999_999_937].map(|rate| rate.max(1_000)) {
        let spec = DirectionSpec { rate_bps, queue_bytes: None, queue_packets: Some(10_000), ..spec() };
        let mut link = direction(&spec, 1);
        for number in 0..10_000 {
            link.arrive(0, number, 1_447).unwrap();
        }
        let last = drain(&mut link, u64::MAX / 2).pop().unwrap().due;
        let exact = 10_000_u128 * 1_447 * 8 * 1_000_000_000 / u128::from(rate_bps);
        assert_eq!(u128::from(last), exact + u128::from(300 * MS), "{rate_bps} bit/s");
    }
}

#[test]
fn queue_limits_are_exact() {
    let bytes = DirectionSpec { queue_bytes: Some(15_000), ..spec() };
    let packets = DirectionSpec { queue_bytes: None, queue_packets: Some(10), ..spec() };
    for spec in [bytes, packets] {
        let mut link = direction(&spec, 1);
        for number in 0..10 {
            link.arrive(0, number, 1_500).unwrap();
        }
        assert_eq!(link.arrive(0, 10, 1_500), Err((10, DropCause::QueueFull)));
        // The packet being sent occupies the queue until its last bit has left.
        assert_eq!(link.arrive(79_999, 11, 1_500), Err((11, DropCause::QueueFull)));
        link.arrive(80_000, 12, 1_500).unwrap();
        assert_eq!(link.arrive(80_000, 13, 1_500), Err((13, DropCause::QueueFull)));
        assert_eq!(link.depth().packets, 10);
        let delivered = drain(&mut link, SECOND);
        assert_eq!(delivered.len(), 11);
        assert_eq!(delivered.last().unwrap().due, 11 * 80_000 + 300 * MS);
        assert_eq!(link.counters().dropped_queue_full, Count { packets: 3, bytes: 4_500 });
        assert_eq!(link.counters().max_queue_packets, 10);
    }
}

#[test]
fn aqm_drops_its_share_above_half_and_nothing_below() {
    let aqm = AqmSpec::RandomDrop { above_fraction: 0.5, drop_probability: 0.25 };
    let mut link = direction(&DirectionSpec { aqm: Some(aqm), ..spec() }, 3);
    // Exactly half of 36 MB: not above it.
    for number in 0..12_001 {
        link.arrive(0, number, 1_500).unwrap();
    }
    let (mut arrivals, mut dropped) = (0_u32, 0_u32);
    // One arrival per transmission time keeps the queue just above half for ever.
    for number in 1..=200_000 {
        let now = number * 80_000;
        drain(&mut link, now);
        while link.depth().bytes <= 18_000_000 {
            let _ = link.arrive(now, number, 1_500);
        }
        arrivals += 1;
        let result = link.arrive(now, number, 1_500);
        dropped += u32::from(matches!(result, Err((_, DropCause::Aqm))));
    }
    let share = f64::from(dropped) / f64::from(arrivals);
    // 5 sigma of a binomial share of 200,000.
    assert!((share - 0.25).abs() < 0.005, "{share}");
    assert_eq!(link.counters().dropped_queue_full.packets, 0);
}

fn jittery() -> DirectionSpec {
    let jitter = vec![
        JitterSpec::Uniform { max_us: 40_000 },
        JitterSpec::Wave { period_us: 2_000_000, peak_to_peak_us: 30_000 },
    ];
    DirectionSpec { jitter, ..spec() }
}

#[test]
fn jitter_keeps_order_and_bounds() {
    let mut link = direction(&jittery(), 5);
    let mut dues = Vec::new();
    for number in 0..20_000 {
        link.arrive(number * MS, number, 1_000).unwrap();
        dues.extend(
            drain(&mut link, number * MS).into_iter().map(|delivery| (delivery.packet, delivery.due)),
        );
    }
    dues.extend(drain(&mut link, 100 * SECOND).into_iter().map(|delivery| (delivery.packet, delivery.due)));
    assert_eq!(dues.len(), 20_000);
    assert!(dues.is_sorted());
    let delays = dues.iter().map(|(number, due)| due - number * MS - 300 * MS);
    assert!(delays.clone().all(|delay| delay < 71 * MS));
    let mean = delays.sum::<u64>() / 20_000;
    // Waiting behind a slower packet adds to the means of 20 and 15 ms.
    assert!((35 * MS..65 * MS).contains(&mean), "{mean}");
}

#[test]
fn wave_has_its_period_and_range() {
    let jitter = vec![JitterSpec::Wave { period_us: 2_000_000, peak_to_peak_us: 30_000 }];
    let mut link = direction(&DirectionSpec { delay_us: 0, jitter, ..spec() }, 9);
    // Spaced so that no packet waits for another, 5 times the period.
    let mut delays = Vec::new();
    for number in 0..100 {
        link.arrive(number * 100 * MS, number, 1_500).unwrap();
        let delivered = drain(&mut link, number * 100 * MS + 99 * MS).pop().unwrap();
        delays.push(delivered.due - number * 100 * MS - 80_000);
    }
    let (low, high) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!(*low < 2 * MS && *high > 28 * MS && *high <= 30 * MS, "{low} {high}");
    for at in 0..80 {
        assert!(delays[at].abs_diff(delays[at + 20]) < 1_000, "{at}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let run = |seed| {
        let mut link = direction(&jittery(), seed);
        (0..1_000).for_each(|number| link.arrive(number * MS, number, 1_000).unwrap());
        drain(&mut link, 100 * SECOND)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn how_often_the_driver_calls_does_not_matter() {
    let run = |step: u64| {
        let mut link = direction(&jittery(), 4);
        let mut out = Vec::new();
        for number in 0..5_000 {
            let _ = link.arrive(number * 50_000, number, 1_500);
            if number % step == 0 {
                out.extend(drain(&mut link, number * 50_000));
            }
        }
        out.extend(drain(&mut link, 100 * SECOND));
        out
    };
    assert_eq!(run(1), run(977));
}

#[test]
fn packets_are_conserved() {
    let aqm = Some(AqmSpec::RandomDrop { above_fraction: 0.5, drop_probability: 0.25 });
    let spec = DirectionSpec { queue_bytes: Some(30_000), aqm, ..jittery() };
    let mut link = direction(&spec, 11);
    let mut random = Random::new(1, 1);
    let mut now = 0;
    for number in 0..50_000 {
        now += random.up_to(60_000);
        let _ = link.arrive(now, number, 40 + random.up_to(1_460) as u32);
        if random.up_to(3) == 0 {
            drain(&mut link, now);
        }
        let counters = link.counters();
        let held = link.depth().packets + link.on_the_way() as u64;
        assert_eq!(counters.arrived.packets, counters.delivered.packets + counters.dropped_packets() + held);
    }
    drain(&mut link, now + 100 * SECOND);
    let counters = link.counters();
    let dropped = counters.dropped_queue_full.bytes + counters.dropped_aqm.bytes;
    assert_eq!(counters.arrived.bytes, counters.delivered.bytes + dropped);
    assert!(counters.dropped_queue_full.packets > 0 && counters.dropped_aqm.packets > 0);
}

fn scheduled() -> DirectionSpec {
    let schedule = Some(ScheduleSpec::OnDemand {
        opportunity_us: 40_000,
        guaranteed_bps: 128_000,
        request_packets: 4,
        grant_after_us: 1_500_000,
        release_after_us: 1_000_000,
    });
    DirectionSpec { rate_bps: 10_000_000, schedule, ..spec() }
}

/// Bursts of 52-byte acknowledgments every 600 ms; gaps at the far end within each burst, and its first delay.
fn bursts(sizes: &[u64], pause: Nanos) -> Vec<(Nanos, Vec<Nanos>)> {
    let mut link = direction(&scheduled(), 2);
    let mut out = Vec::new();
    for (round, size) in (0_u64..).zip(sizes) {
        let begin = round * pause;
        (0..*size).for_each(|number| link.arrive(begin + number, number, 52).unwrap());
        let dues: Vec<_> = drain(&mut link, begin + pause - 1).iter().map(|delivery| delivery.due).collect();
        assert_eq!(dues.len() as u64, *size);
        out.push((dues[0] - begin - 300 * MS, dues.windows(2).map(|pair| pair[1] - pair[0]).collect()));
    }
    out
}

#[test]
fn return_link_is_slow_at_first_and_regular_after_the_grant() {
    // 52 B at 128 kb/s are 3.25 ms, at 10 Mb/s 41.6 us.
    let rounds = bursts(&[10, 20, 40, 80, 160], 600 * MS);
    for (first, gaps) in &rounds[..3] {
        assert!(*first <= 40 * MS + 3_250_000, "{first}");
        assert!(gaps.iter().all(|gap| *gap == 3_250_000), "{gaps:?}");
    }
    for (first, gaps) in &rounds[3..] {
        assert_eq!(*first, 41_600);
        assert!(gaps.iter().all(|gap| *gap == 41_600), "{gaps:?}");
    }
}

#[test]
fn single_packets_never_get_a_grant_and_an_idle_terminal_loses_it() {
    assert!(bursts(&[1; 20], 600 * MS).iter().any(|(first, _)| *first > 10 * MS));
    let rounds = bursts(&[10, 10], 5 * SECOND);
    assert!(rounds.iter().all(|(_, gaps)| gaps.iter().all(|gap| *gap == 3_250_000)));
}

#[test]
fn the_log_has_a_line_per_period_also_while_nothing_happens() {
    let mut link = Direction::new(&spec(), "link.test", 1, 10_000).unwrap();
    for number in 0..1_000 {
        link.arrive(5 * MS, number, 1_500).unwrap();
    }
    while link.deliver(505 * MS).is_some() {}
    let samples = link.take_samples();
    assert_eq!(samples.len(), 51);
    // 10 ms at 150 Mb/s are 125 packets; the first sample is taken before its packet enters.
    assert_eq!(samples[0].queue_packets, 0);
    assert_eq!(samples[1].queue_packets, 1_000 - 125);
    assert_eq!(samples[7].queue_packets, 1_000 - 7 * 125);
    assert_eq!((samples[8].queue_packets, samples[50].queue_bytes), (0, 0));
    assert_eq!(samples[50].delay_ns, 80 * MS + 300 * MS);
    assert!(samples.windows(2).all(|pair| pair[1].at_ns - pair[0].at_ns == 10 * MS));
}

#[test]
fn descriptions_out_of_range_name_key_value_and_range() {
    let error = |spec: DirectionSpec| spec_error(&spec);
    assert_eq!(
        error(DirectionSpec { rate_bps: 1, ..spec() }),
        "link.forward.rate_bps = 1 is out of range: expected 1000 to 100000000000"
    );
    let aqm = Some(AqmSpec::RandomDrop { above_fraction: 0.5, drop_probability: 1.5 });
    assert_eq!(
        error(DirectionSpec { aqm, ..spec() }),
        "link.forward.aqm.drop_probability = 1.5 is out of range: expected 0 to 1"
    );
    let aqm = Some(AqmSpec::Policer { rate_bps: 1_000_000, burst_bytes: 1_499 });
    assert_eq!(
        error(DirectionSpec { aqm, ..spec() }),
        "link.forward.aqm.burst_bytes = 1499 is out of range: expected 1500 to 1000000000"
    );
    let jitter =
        vec![JitterSpec::Uniform { max_us: 5 }, JitterSpec::Wave { period_us: 1, peak_to_peak_us: 1 }];
    assert!(error(DirectionSpec { jitter, ..spec() }).starts_with("link.forward.jitter[1].period_us = 1 "));
    assert!(error(DirectionSpec { queue_packets: Some(5), ..spec() }).contains("exactly one"));
    assert!(error(DirectionSpec { queue_bytes: None, ..spec() }).contains("no limit"));
}

fn spec_error(spec: &DirectionSpec) -> String {
    match Direction::<()>::new(spec, "link.forward", 0, 0) {
        Ok(_) => panic!("{spec:?} is accepted"),
        Err(error) => error.to_string(),
    }
}
