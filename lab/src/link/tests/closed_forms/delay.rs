// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Delays that vary.

use super::{MS, ModelCheck, SECOND, delays, mean, plain};
use crate::link::spec::{DelayStep, HandoverSpec};
use crate::link::{DirectionSpec, JitterSpec, ReorderingSpec};

pub(super) fn checks(seed: u64) -> Vec<ModelCheck> {
    // So far apart that none waits for another.
    let millis = |jitter: JitterSpec, spacing| {
        let spec = DirectionSpec { jitter: vec![jitter], ..plain() };
        mean(&delays(&spec, seed, 20_000, spacing)) / MS as f64
    };
    let uniform = millis(JitterSpec::Uniform { max_us: 40_000 }, 100 * MS);
    let wave = millis(JitterSpec::Wave { period_us: 2_000_000, peak_to_peak_us: 30_000 }, 101 * MS);
    let steps = [(0, 0), (2_000_000, 9_000), (3_000_000, 3_000)];
    let steps = steps.map(|(at_us, extra_us)| DelayStep { at_us, extra_us }).to_vec();
    let steps = millis(JitterSpec::Steps { steps, repeat_us: Some(4_000_000) }, 100 * MS);
    let (probability, delay_us, max_retries) = (0.1, 8_000, 3);
    let retried = millis(JitterSpec::Retransmission { probability, delay_us, max_retries }, 100 * MS);
    let attempts = 0.1 + 0.01 + 0.001;
    // Nearly geometric: variance p / (1 - p)².
    let retried_sigma = 8.0 * (0.1_f64 / 0.81 / 20_000.0).sqrt();
    let handover = HandoverSpec { period_us: 15_000_000, max_extra_us: 20_000, outage_us: 0 };
    let handover = DirectionSpec { handover: Some(handover), ..plain() };
    // One packet for each satellite.
    let handover = mean(&delays(&handover, seed, 20_000, 15 * SECOND)) / MS as f64;
    let uniform_sigma = |max: f64| max / (12.0_f64 * 20_000.0).sqrt();
    let later = ReorderingSpec { probability: 0.02, later_us: 3_000 };
    let later = DirectionSpec { reordering: Some(later), ..plain() };
    let later = mean(&delays(&later, seed, 20_000, 100 * MS)) / MS as f64;
    vec![
        ModelCheck::new("jitter uniform", "mean, ms", 20.0, uniform, 5.0 * uniform_sigma(40.0)),
        ModelCheck::new("jitter wave", "mean, ms", 15.0, wave, 0.02),
        // (0·2 + 9·1 + 3·1) / 4
        ModelCheck::new("jitter steps", "mean, ms", 3.0, steps, 0.01),
        ModelCheck::new("jitter retransmission", "mean, ms", 8.0 * attempts, retried, 5.0 * retried_sigma),
        // 3 · 0.02
        ModelCheck::new(
            "reordering",
            "mean, ms",
            0.06,
            later,
            5.0 * 3.0 * (0.02_f64 * 0.98 / 20_000.0).sqrt(),
        ),
        ModelCheck::new("handover", "mean extra delay, ms", 10.0, handover, 5.0 * uniform_sigma(20.0)),
    ]
}
