// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What holds for every link, whatever it is made of: no packet overtakes another or is lost uncounted, and the driver
//! is never asked to come at once for ever, or never.

use super::*;
use crate::link::random::Random;
use crate::link::spec::{DelayStep, RateStep};

/// One of a part's models or none, each as often as the others.
fn maybe<T, const N: usize>(random: &mut Random, models: [T; N]) -> Option<T> {
    models.into_iter().nth(random.up_to(N as u64) as usize)
}

fn any(random: &mut Random) -> DirectionSpec {
    let (min_bps, max_bps) = (2_000_000, 18_000_000);
    let steps = |repeat_us| RateSpec::Steps {
        steps: [(0, 16_000_000), (7_000, 0), (9_000, 6_000_000)]
            .map(|(at_us, rate_bps)| RateStep { at_us, rate_bps })
            .to_vec(),
        repeat_us,
    };
    // (16·7 + 0·2 + 6·7) / 16 = 9.6
    let rates = [
        steps(None),
        steps(Some(16_000)),
        RateSpec::Redraw { every_us: 3_000, min_bps, max_bps },
        RateSpec::Walk { every_us: 1_000, min_bps, max_bps, max_step_bps: 3_000_000 },
    ];
    let rate = maybe(random, rates);
    let aqm = maybe(
        random,
        [
            AqmSpec::RandomDrop { above_fraction: 0.3, drop_probability: 0.25 },
            AqmSpec::CoDel { target_us: 2_000, interval_us: 20_000, ecn: false },
            AqmSpec::FqCodel { target_us: 2_000, interval_us: 20_000, ecn: false },
            AqmSpec::Policer { rate_bps: 2_000_000, burst_bytes: 6_000 },
        ],
    );
    let schedule = maybe(
        random,
        [
            ScheduleSpec::OnDemand {
                opportunity_us: 4_000,
                guaranteed_bps: 500_000,
                request_packets: 3,
                grant_after_us: 30_000,
                release_after_us: 50_000,
            },
            ScheduleSpec::BandwidthOnDemand {
                request_every_us: 2_700,
                grant_every_us: 8_100,
                propagation_us: 7_500,
                factor: 1.3,
                frame_slots: 48,
                frame_us: 0,
            },
            ScheduleSpec::BandwidthOnDemand {
                request_every_us: 2_700,
                grant_every_us: 8_100,
                propagation_us: 7_500,
                factor: 1.3,
                frame_slots: 12,
                frame_us: 2_700,
            },
            ScheduleSpec::Aggregate { min_gap_us: 0, max_gap_us: 4_000, max_packets: 5, max_bytes: 6_000 },
        ],
    );
    let loss = maybe(
        random,
        [
            LossSpec::Random { probability: 0.05 },
            LossSpec::GilbertElliott { to_bad: 0.05, to_good: 0.3, good_loss: 0.01, bad_loss: 0.7 },
        ],
    );
    let cross = maybe(
        random,
        [
            CrossSpec::Constant { rate_bps: 1_000_000, packet_bytes: 512 },
            CrossSpec::Poisson { rate_bps: 2_000_000, packet_bytes: 1_000 },
        ],
    );
    let handover = maybe(random, [HandoverSpec { period_us: 60_000, max_extra_us: 9_000, outage_us: 3_000 }]);
    let outages = [
        OutageSpec::Scheduled { first_us: 2_000, period_us: 40_000, duration_us: 5_000 },
        OutageSpec::Random { mean_pause_us: 30_000, min_duration_us: 100, max_duration_us: 9_000 },
    ];
    let extra = [(0, 0), (20_000, 8_000)].map(|(at_us, extra_us)| DelayStep { at_us, extra_us }).to_vec();
    let jitter = [
        JitterSpec::Uniform { max_us: 5_000 },
        JitterSpec::Wave { period_us: 20_000, peak_to_peak_us: 5_000 },
        JitterSpec::Steps { steps: extra, repeat_us: Some(40_000) },
        JitterSpec::Retransmission { probability: 0.2, delay_us: 4_000, max_retries: 4 },
    ];
    let limit = if random.up_to(1) == 0 { Limit::Bytes(30_000) } else { Limit::Packets(20) };
    DirectionSpec {
        rate,
        aqm,
        schedule,
        loss,
        cross,
        handover,
        outages: maybe(random, outages).into_iter().collect(),
        jitter: maybe(random, jitter).into_iter().collect(),
        ..DirectionSpec::new(if random.up_to(1) == 0 { 9_600_000 } else { 10_000_000 }, 2_000, limit)
    }
}

/// A description with a mean that its rate has.
fn valid(random: &mut Random) -> DirectionSpec {
    loop {
        let spec = any(random);
        if spec.validate("link").is_ok() {
            return spec;
        }
    }
}

/// Packets of a bursty source: times and sizes.
fn arrivals(random: &mut Random) -> Vec<(Nanos, u32)> {
    let mut now = 0;
    let mut packet = || {
        now += if random.up_to(9) == 0 { random.up_to(40 * MS) } else { random.up_to(MS) };
        (now, 40 + random.up_to(1_460) as u32)
    };
    (0..400).map(|_| packet()).collect()
}

fn check_counts(link: &Direction<u64>) {
    let counters = link.counters();
    let held = link.depth().packets - counters.cross_queued() + link.on_the_way() as u64;
    assert_eq!(counters.arrived.packets, counters.delivered.packets + counters.dropped_packets() + held);
}

/// Drives a link as the emulator does: at each arrival and whenever it says that something is due.
fn drive(spec: &DirectionSpec, seed: u64, packets: &[(Nanos, u32)]) -> (Vec<Delivery<u64>>, Counters) {
    let mut link = direction(spec, seed);
    link.start(0);
    let mut out = Vec::new();
    let mut arriving = (0..).zip(packets).peekable();
    let mut now = 0;
    loop {
        let due = link.next_due();
        let next = arriving.peek().map(|(_, (at, _))| *at);
        let Some(at) = [due, next].into_iter().flatten().min() else { break };
        assert!(at > now || next == Some(at), "no progress at {now}");
        assert!(at < 1_000 * SECOND, "stalled at {now}");
        now = at;
        out.extend(drain(&mut link, now));
        while let Some((number, (_, bytes))) = arriving.next_if(|(_, (at, _))| *at == now) {
            let _ = link.arrive(now, number, *bytes);
        }
        out.extend(drain(&mut link, now));
        check_counts(&link);
    }
    (out, link.counters())
}

#[test]
fn no_link_reorders_loses_uncounted_or_stalls() {
    let mut random = Random::new(2_026, 0);
    let mut seen = Counters::default();
    for seed in 0..1_000 {
        let (spec, packets) = (valid(&mut random), arrivals(&mut random));
        let (out, counters) = drive(&spec, seed, &packets);
        assert!(out.is_sorted_by(|one, next| one.packet < next.packet && one.due <= next.due), "{spec:?}");
        assert_eq!(counters.arrived.packets, packets.len() as u64);
        assert_eq!(counters.delivered.packets, out.len() as u64);
        assert_eq!(
            counters.arrived.packets,
            counters.delivered.packets + counters.dropped_packets(),
            "{spec:?}"
        );
        let earliest = |delivery: &Delivery<u64>| packets[delivery.packet as usize].0 + 2 * MS;
        assert!(out.iter().all(|delivery| delivery.due > earliest(delivery)), "{spec:?}");

        // The same seed gives the same, also to a driver that seldom comes.
        let mut link = direction(&spec, seed);
        link.start(0);
        for (number, (at, bytes)) in (0..).zip(&packets) {
            let _ = link.arrive(*at, number, *bytes);
        }
        let end = out.last().map_or(0, |last| last.due) + SECOND;
        assert_eq!(drain(&mut link, end), out, "{spec:?}");
        for (total, part) in [
            (&mut seen.dropped_queue_full, counters.dropped_queue_full),
            (&mut seen.dropped_aqm, counters.dropped_aqm),
            (&mut seen.dropped_loss, counters.dropped_loss),
            (&mut seen.cross_dropped, counters.cross_dropped),
        ] {
            total.packets += part.packets;
        }
    }
    // All of this happened.
    for count in [seen.dropped_queue_full, seen.dropped_aqm, seen.dropped_loss, seen.cross_dropped] {
        assert!(count.packets > 1_000, "{seen:?}");
    }
}

#[test]
fn changes_at_any_time_keep_order_and_count() {
    let mut random = Random::new(7, 0);
    for seed in 0..300 {
        let (spec, packets) = (valid(&mut random), arrivals(&mut random));
        let mut link = direction(&spec, seed);
        let mut out = Vec::new();
        for (number, (at, bytes)) in (0..).zip(&packets) {
            if random.up_to(9) == 0 {
                let rate_bps = (random.up_to(1) == 0).then(|| 200_000 + random.up_to(50_000_000));
                let delay_us = (random.up_to(1) == 0).then(|| random.up_to(20_000));
                link.change(*at, Change { rate_bps, delay_us }).unwrap();
            }
            let _ = link.arrive(*at, number, *bytes);
            out.extend(drain(&mut link, *at));
            check_counts(&link);
        }
        while let Some(due) = link.next_due() {
            out.extend(drain(&mut link, due));
        }
        assert!(out.is_sorted_by(|one, next| one.packet < next.packet && one.due <= next.due), "{spec:?}");
        let counters = link.counters();
        assert_eq!(
            counters.arrived.packets,
            counters.delivered.packets + counters.dropped_packets(),
            "{spec:?}"
        );
    }
}
