// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Rates that vary, outages and cross traffic.

use super::{BYTES, MS, ModelCheck, RATE_BPS, SECOND, direction, plain, throughput};
use crate::link::spec::{HandoverSpec, RateStep};
use crate::link::{CrossSpec, DirectionSpec, OutageSpec, RateSpec};

pub(super) fn checks(seed: u64) -> Vec<ModelCheck> {
    [media(seed), outages(seed), cross(seed)].concat()
}

/// One packet in `seconds`, bit/s.
fn packet_bps(seconds: u64) -> f64 {
    f64::from(BYTES) * 8.0 / seconds as f64
}

fn media(seed: u64) -> Vec<ModelCheck> {
    let varying = |rate: RateSpec, rate_bps| DirectionSpec { rate: Some(rate), rate_bps, ..plain() };
    let steps = vec![
        RateStep { at_us: 0, rate_bps: 5_000_000 },
        RateStep { at_us: 300_000, rate_bps: 20_000_000 },
        RateStep { at_us: 500_000, rate_bps: 0 },
        RateStep { at_us: 600_000, rate_bps: 8_000_000 },
    ];
    // (5·300 + 20·200 + 0·100 + 8·400) / 1000
    let steps = varying(RateSpec::Steps { steps, repeat_us: Some(1_000_000) }, 8_700_000);
    let (min_bps, max_bps) = (20_000_000, 35_000_000);
    let redraw = varying(RateSpec::Redraw { every_us: 20_000, min_bps, max_bps }, 27_500_000);
    let walk = RateSpec::Walk { every_us: 20_000, min_bps, max_bps, max_step_bps: 10_000_000 };
    let walk = varying(walk, 27_500_000);
    // 10,000 independent draws. The walk forgets its past within a few steps of this size: ten times the variance.
    let sigma = 15e6 / (12.0_f64 * 10_000.0).sqrt();
    let throughput = |spec, seconds| throughput(spec, seed, seconds * SECOND);
    vec![
        ModelCheck::new("constant", "rate, bit/s", RATE_BPS as f64, throughput(&plain(), 10), packet_bps(10)),
        ModelCheck::new("steps", "mean rate, bit/s", 8.7e6, throughput(&steps, 100), packet_bps(100)),
        ModelCheck::new("redraw", "mean rate, bit/s", 27.5e6, throughput(&redraw, 200), 5.0 * sigma),
        ModelCheck::new(
            "walk",
            "mean rate, bit/s",
            27.5e6,
            throughput(&walk, 200),
            5.0 * 10_f64.sqrt() * sigma,
        ),
    ]
}

fn outages(seed: u64) -> Vec<ModelCheck> {
    let with = |outage| DirectionSpec { outages: vec![outage], ..plain() };
    let share =
        |spec: &DirectionSpec, seconds| 1.0 - throughput(spec, seed, seconds * SECOND) / RATE_BPS as f64;
    let scheduled = with(OutageSpec::Scheduled { first_us: 0, period_us: 1_000_000, duration_us: 150_000 });
    let random = with(OutageSpec::Random {
        mean_pause_us: 400_000,
        min_duration_us: 50_000,
        max_duration_us: 150_000,
    });
    let handover = HandoverSpec { period_us: 15_000_000, max_extra_us: 0, outage_us: 300_000 };
    let handover = DirectionSpec { handover: Some(handover), ..plain() };
    // A renewal process of 2000 cycles of 0.5 s: the pause varies by 0.4 s, which counts for the 0.2 of an outage.
    let sigma = 0.2 * 0.4 / 0.5 / 2_000_f64.sqrt();
    vec![
        ModelCheck::new("outage scheduled", "silence, share of time", 0.15, share(&scheduled, 100), 1e-4),
        ModelCheck::new("outage random", "silence, share of time", 0.2, share(&random, 1_000), 5.0 * sigma),
        ModelCheck::new("handover", "silence, share of time", 0.02, share(&handover, 1_500), 1e-4),
    ]
}

/// Arrivals of cross traffic, also against the queue they share: mean and, for Poisson, variance over mean of counts.
fn cross(seed: u64) -> Vec<ModelCheck> {
    let (rate_bps, packet_bytes) = (4_096_000, 512);
    let counts = |cross: CrossSpec| {
        let mut link = direction(&DirectionSpec { cross: Some(cross), ..plain() }, seed);
        link.start(0);
        let mut before = 0;
        (1..=20_000)
            .map(|number| {
                link.advance(number * 10 * MS);
                let arrived = link.counters().cross_arrived.packets;
                (arrived - std::mem::replace(&mut before, arrived)) as f64
            })
            .collect::<Vec<_>>()
    };
    let constant = counts(CrossSpec::Constant { rate_bps, packet_bytes });
    let poisson = counts(CrossSpec::Poisson { rate_bps, packet_bytes });
    let mean = super::mean(&poisson);
    let variance =
        poisson.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (poisson.len() - 1) as f64;
    // 1000 packets/s are 10 in 10 ms; the index of dispersion of n Poisson counts varies by √(2/n).
    vec![
        ModelCheck::new("cross constant", "packets in 10 ms", 10.0, super::mean(&constant), 1.0 / 20_000.0),
        ModelCheck::new("cross poisson", "packets in 10 ms", 10.0, mean, 5.0 * (10.0_f64 / 20_000.0).sqrt()),
        ModelCheck::new(
            "cross poisson",
            "variance over mean",
            1.0,
            variance / mean,
            5.0 * (2.0_f64 / 20_000.0).sqrt(),
        ),
    ]
}
