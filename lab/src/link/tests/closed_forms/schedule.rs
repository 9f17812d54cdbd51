// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Schedules of the transmitter.

use super::{BYTES, MS, ModelCheck, SECOND, delays, mean, plain, saturated, throughput};
use crate::link::{Access, DirectionSpec, Random, ScheduleSpec, build};

pub(super) fn checks(seed: u64) -> Vec<ModelCheck> {
    [aggregate(seed), on_demand(seed), bandwidth_on_demand(seed)].concat()
}

/// Aggregates of 8 packets, gaps of 2 to 6 ms: a saturated link sends 8 ms and is silent for 4 ms on average.
fn aggregate(seed: u64) -> Vec<ModelCheck> {
    let with = |min_gap_us, max_gap_us, max_packets, max_bytes| {
        let schedule = ScheduleSpec::Aggregate { min_gap_us, max_gap_us, max_packets, max_bytes };
        DirectionSpec { schedule: Some(schedule), ..plain() }
    };
    let packets = with(2_000, 6_000, 8, 1_000_000);
    let dues = saturated(&packets, seed, 300 * SECOND);
    // Packets of an aggregate are one transmission time apart, 1 ms.
    let bursts: Vec<_> = dues.chunk_by(|one, next| next - one == MS).collect();
    let whole = &bursts[1..bursts.len() - 1];
    let size = mean(&whole.iter().map(|burst| burst.len() as f64).collect::<Vec<_>>());
    let gaps = whole.windows(2).map(|pair| (pair[1][0] - MS - pair[0][pair[0].len() - 1]) as f64);
    let gap = mean(&gaps.collect::<Vec<_>>()) / MS as f64;
    let sigma = 4.0 / (12.0 * whole.len() as f64).sqrt();
    // 5 packets of 1250 bytes in at most 6250.
    let bytes = throughput(&with(5_000, 5_000, 64, 6_250), seed, 100 * SECOND);
    let idle = mean(&delays(&with(5_000, 5_000, 8, 1_000_000), seed, 20_000, 50 * MS)) / MS as f64;
    vec![
        ModelCheck::new("schedule aggregate", "packets of an aggregate", 8.0, size, 1e-9),
        ModelCheck::new("schedule aggregate", "mean gap, ms", 4.0, gap, 5.0 * sigma),
        // Half the time.
        ModelCheck::new(
            "schedule aggregate",
            "rate by bytes, bit/s",
            5e6,
            bytes,
            6.0 * 8.0 * f64::from(BYTES) / 100.0,
        ),
        ModelCheck::new(
            "schedule aggregate",
            "wait when idle, ms",
            2.5,
            idle,
            5.0 * 5.0 / (12.0_f64 * 20_000.0).sqrt(),
        ),
    ]
}

/// Single packets never make the terminal ask for capacity.
fn on_demand(seed: u64) -> Vec<ModelCheck> {
    let schedule = ScheduleSpec::OnDemand {
        opportunity_us: 40_000,
        guaranteed_bps: 1_000_000,
        request_packets: 4,
        grant_after_us: 1_500_000,
        release_after_us: 2_000_000,
    };
    let spec = DirectionSpec { schedule: Some(schedule), ..plain() };
    let wait = mean(&delays(&spec, seed, 20_000, 100 * MS)) / MS as f64;
    // 10 ms at the guaranteed rate instead of 1 ms, and half of 40 ms.
    let expected = 9.0 + 20.0;
    let granted = saturated(&spec, seed, 10 * SECOND);
    let rate = granted.iter().filter(|due| **due > 5 * SECOND).count() as f64 * f64::from(BYTES) * 8.0 / 5.0;
    vec![
        ModelCheck::new(
            "schedule on-demand",
            "wait when idle, ms",
            expected,
            wait,
            5.0 * 40.0 / (12.0_f64 * 20_000.0).sqrt(),
        ),
        ModelCheck::new("schedule on-demand", "rate when granted, bit/s", 1e7, rate, 2e3),
    ]
}

/// The carrier of Gotta et al. 2006, 48 slots of 44 kb/s.
const CARRIER_BPS: u64 = 2_112_000;

/// The platform of Gotta et al. 2006: Tr = 273 ms, Ta = 819 ms, τ = 750 ms.
fn skyplex(factor: f64, frame_us: u64, seed: u64) -> Box<dyn Access> {
    let spec = ScheduleSpec::BandwidthOnDemand {
        request_every_us: 273_000,
        grant_every_us: 819_000,
        propagation_us: 750_000,
        factor,
        frame_slots: 48,
        frame_us,
    };
    build::access(&spec, Random::new(seed, 0))
}

fn bandwidth_on_demand(seed: u64) -> Vec<ModelCheck> {
    // 55 bytes in each ms are 440 kb/s.
    let granted = |factor, bytes| {
        let mut terminal = skyplex(factor, 0, seed);
        (0..10_000).for_each(|number| terminal.arrived(number * MS, bytes));
        terminal.allows(10 * SECOND, CARRIER_BPS).bps as f64
    };
    let runs = 4_000;
    let delay = mean(&(0..runs).map(|run| allocation_delay(seed + run)).collect::<Vec<_>>());
    // Equation (1): τ + Tr/2 + Ta/2.
    let expected = 750.0 + 273.0 / 2.0 + 819.0 / 2.0;
    let sigma = ((273_f64.powi(2) + 819_f64.powi(2)) / 12.0 / runs as f64).sqrt();
    let check = |quantity, expected, measured, tolerance| {
        ModelCheck::new("bandwidth-on-demand", quantity, expected, measured, tolerance)
    };
    vec![
        check("allocation delay Da, ms", expected, delay, 5.0 * sigma),
        check("granted when idle, bit/s", 44e3, granted(1.0, 0), 0.5),
        check("granted at 440 kb/s, k = 1, bit/s", 440e3, granted(1.0, 55), 0.5),
        check("granted at 440 kb/s, k = 2.5, bit/s", 1.1e6, granted(2.5, 55), 0.5),
        check("granted at 440 kb/s, k = 4.8, bit/s", 2.112e6, granted(4.8, 55), 0.5),
        check("granted at 4.4 Mb/s, k = 1, bit/s", 2.112e6, granted(1.0, 550), 0.5),
        // The ends of a burst are seen to the millisecond: 0.7 % of a burst of 57 ms, 0.02 % in the mean of 1000.
        check("granted at 440 kb/s in bursts, bit/s", 440e3, rate_in_bursts(seed), 500.0),
    ]
}

/// Mean over 1000 frames of what is allowed to a terminal with 440 kb/s, seen each ms. Frames are not a whole number of
/// these long, so that bursts begin at all points between two looks.
fn rate_in_bursts(seed: u64) -> f64 {
    let mut terminal = skyplex(1.0, 273_377, seed);
    let allowed = |number: u64| {
        terminal.arrived(number * MS, 55);
        terminal.allows(number * MS, CARRIER_BPS).bps as f64
    };
    let settled: Vec<_> = (0..278_377).map(allowed).skip(5_000).collect();
    mean(&settled)
}

/// From the arrival of a burst until capacity for it is granted, ms.
fn allocation_delay(seed: u64) -> f64 {
    let mut terminal = skyplex(1.0, 0, seed);
    // Beyond the first periods, and random in relation to them, because these begin at random points.
    let arrived = 10 * SECOND;
    terminal.arrived(arrived, 30_000);
    let mut now = arrived;
    loop {
        let stretch = terminal.allows(now, CARRIER_BPS);
        if stretch.bps > CARRIER_BPS / 48 {
            return (now - arrived) as f64 / MS as f64;
        }
        now = stretch.until;
    }
}
