// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Active queue management and loss.

use super::{BYTES, MS, ModelCheck, direction, drain, plain};
use crate::link::{AqmSpec, DirectionSpec, DropCause, LossSpec, Nanos};

pub(super) fn checks(seed: u64) -> Vec<ModelCheck> {
    let mut checks = loss(seed);
    checks.push(random_drop(seed));
    checks.push(codel(seed));
    checks.push(policer(seed));
    checks
}

/// Which of `count` packets are lost.
fn lost(loss: LossSpec, seed: u64, count: u64) -> Vec<bool> {
    let mut link = direction(&DirectionSpec { loss: Some(loss), ..plain() }, seed);
    let mut lost = vec![true; count as usize];
    for number in 0..count {
        let _ = link.arrive(number * MS, number, BYTES);
        drain(&mut link, number * MS).for_each(|delivery| lost[delivery.packet as usize] = false);
    }
    drain(&mut link, Nanos::MAX / 2).for_each(|delivery| lost[delivery.packet as usize] = false);
    lost
}

fn share(lost: &[bool]) -> f64 {
    lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64
}

fn loss(seed: u64) -> Vec<ModelCheck> {
    let count = 400_000;
    let random = LossSpec::Random { probability: 0.02 };
    let random_sigma = (0.02_f64 * 0.98 / count as f64).sqrt();
    let bursts = LossSpec::GilbertElliott { to_bad: 0.01, to_good: 0.2, good_loss: 0.0, bad_loss: 1.0 };
    let burst_share = bursts.share();
    let outcome = lost(bursts, seed, count);
    let runs = outcome.chunk_by(|one, next| one == next).filter(|run| run[0]).count() as f64;
    let run_length = share(&outcome) * count as f64 / runs;
    // Neighbours are alike: the variance grows by (1 + r) / (1 - r), r = 1 - to_bad - to_good.
    let share_sigma = (burst_share * (1.0 - burst_share) / count as f64 * 1.79 / 0.21).sqrt();
    // Lengths are geometric: variance (1 - p) / p².
    let run_sigma = (0.8_f64 / 0.04 / runs).sqrt();
    let mixed = LossSpec::GilbertElliott { to_bad: 0.05, to_good: 0.2, good_loss: 0.01, bad_loss: 0.3 };
    let mixed_share = mixed.share();
    let mixed_sigma = (mixed_share * (1.0 - mixed_share) / count as f64 * 1.75 / 0.25).sqrt();
    vec![
        ModelCheck::new(
            "loss random",
            "share of packets",
            0.02,
            share(&lost(random, seed, count)),
            5.0 * random_sigma,
        ),
        // 0.01 / 0.21
        ModelCheck::new(
            "loss gilbert-elliott",
            "share of packets",
            burst_share,
            share(&outcome),
            5.0 * share_sigma,
        ),
        ModelCheck::new("loss gilbert-elliott", "packets of a burst", 5.0, run_length, 5.0 * run_sigma),
        // (0.2·0.01 + 0.05·0.3) / 0.25
        ModelCheck::new(
            "loss gilbert-elliott",
            "share, loss in both states",
            0.068,
            share(&lost(mixed, seed, count)),
            5.0 * mixed_sigma,
        ),
    ]
}

/// A queue kept just above half.
fn random_drop(seed: u64) -> ModelCheck {
    let aqm = Some(AqmSpec::RandomDrop { above_fraction: 0.5, drop_probability: 0.25 });
    let mut link = direction(&DirectionSpec { aqm, queue_packets: Some(200), ..plain() }, seed);
    let (mut arrived, mut dropped) = (0.0, 0.0);
    for number in 0..200_000 {
        let now = number * MS;
        drain(&mut link, now).for_each(drop);
        while link.depth().packets <= 100 {
            let _ = link.arrive(now, number, BYTES);
        }
        arrived += 1.0;
        dropped += f64::from(u8::from(matches!(link.arrive(now, number, BYTES), Err((_, DropCause::Aqm)))));
    }
    let sigma = (0.25_f64 * 0.75 / 200_000.0).sqrt();
    ModelCheck::new("aqm random-drop", "share above the threshold", 0.25, dropped / arrived, 5.0 * sigma)
}

/// Under an overload that never lets the queue shrink, drop n + 1 follows drop n after interval/√n.
fn codel(seed: u64) -> ModelCheck {
    let aqm = Some(AqmSpec::CoDel { target_us: 5_000, interval_us: 100_000, ecn: false });
    let mut link = direction(&DirectionSpec { aqm, ..plain() }, seed);
    let mut drops = Vec::new();
    let mut now = 0;
    while drops.len() < 200 {
        now += MS / 4;
        let _ = link.arrive(now, 0, BYTES);
        drain(&mut link, now).for_each(drop);
        let dropped = link.counters().dropped_aqm.packets as usize;
        drops.resize(dropped, now);
    }
    let law: f64 = (1..200).map(|n| 100.0 / f64::from(n).sqrt()).sum();
    // Packets are asked about once per transmission time, 1 ms.
    ModelCheck::new(
        "aqm codel",
        "drop 1 to drop 200, ms",
        law,
        (drops[199] - drops[0]) as f64 / MS as f64,
        1.5,
    )
}

/// Under an overload a policer lets its rate pass, and its bucket once.
fn policer(seed: u64) -> ModelCheck {
    let aqm = Some(AqmSpec::Policer { rate_bps: 1_000_000, burst_bytes: 100_000 });
    let mut link = direction(&DirectionSpec { aqm, ..plain() }, seed);
    // Four times its rate for a hundred seconds.
    let interval = u64::from(BYTES) * 2_000;
    let count = 100_000 * MS / interval;
    let passed = (0..count).filter(|number| link.arrive(number * interval, *number, BYTES).is_ok()).count();
    let megabytes = (passed as u64 * u64::from(BYTES)) as f64 / 1e6;
    ModelCheck::new("aqm policer", "passed in 100 s, MB", 12.6, megabytes, f64::from(BYTES) * 2.0 / 1e6)
}
