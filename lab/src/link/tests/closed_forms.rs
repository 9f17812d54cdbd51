// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Do the link models do what their closed forms say? In virtual time, so on every machine with the same result.
//!
//! Where a model is random, the tolerance is five standard deviations of the measured mean; where it is not, it is the
//! size of one packet or one step.

mod delay;
mod drops;
mod rate;
mod schedule;

use crate::link::{Delivery, Direction, DirectionSpec, Limit, Nanos};

/// One property of one model.
#[derive(Clone, Debug)]
struct ModelCheck {
    /// The model, as profiles name it.
    model: &'static str,
    /// What was measured, with its unit.
    quantity: &'static str,
    /// The closed form's value.
    expected: f64,
    /// The model's.
    measured: f64,
    /// By how much they may differ.
    tolerance: f64,
}

impl ModelCheck {
    fn new(
        model: &'static str,
        quantity: &'static str,
        expected: f64,
        measured: f64,
        tolerance: f64,
    ) -> Self {
        Self { model, quantity, expected, measured, tolerance }
    }

    /// Nothing measured, which is not a number, does not agree.
    fn holds(&self) -> bool {
        (self.measured - self.expected).abs() <= self.tolerance
    }
}

const SECOND: Nanos = 1_000_000_000;
const MS: Nanos = 1_000_000;
/// Size of the packets, bytes.
const BYTES: u32 = 1_250;
/// Their transmission time at [`RATE_BPS`] is 1 ms.
const RATE_BPS: u64 = 10_000_000;

/// 10 Mb/s without delay, and room for every packet of a check.
fn plain() -> DirectionSpec {
    DirectionSpec::new(RATE_BPS, 0, Limit::Packets(10_000_000))
}

fn direction(spec: &DirectionSpec, seed: u64) -> Direction<u64> {
    Direction::new(spec, "model", seed, 0).unwrap()
}

fn drain(link: &mut Direction<u64>, until: Nanos) -> impl Iterator<Item = Delivery<u64>> {
    std::iter::from_fn(move || link.deliver(until))
}

/// Times at which packets of a saturated link arrive at the far end, until `until`.
fn saturated(spec: &DirectionSpec, seed: u64, until: Nanos) -> Vec<Nanos> {
    let mut link = direction(spec, seed);
    let mut dues = Vec::new();
    let step = 10 * MS;
    for now in (0..=until).step_by(step as usize) {
        // More than any rate here sends in a step.
        while link.depth().packets < 2_000 {
            if link.arrive(now, 0, BYTES).is_err() {
                break;
            }
        }
        dues.extend(drain(&mut link, now).map(|delivery| delivery.due));
    }
    dues
}

/// Rate of a saturated link, bit/s.
fn throughput(spec: &DirectionSpec, seed: u64, until: Nanos) -> f64 {
    saturated(spec, seed, until).len() as f64 * f64::from(BYTES) * 8e9 / until as f64
}

/// Delays, less transmission, of `count` packets that are `spacing` apart.
fn delays(spec: &DirectionSpec, seed: u64, count: u64, spacing: Nanos) -> Vec<f64> {
    let mut link = direction(spec, seed);
    let mut delays = Vec::with_capacity(count as usize);
    for number in 0..count {
        let now = number * spacing;
        let _ = link.arrive(now, now, BYTES);
        delays.extend(drain(&mut link, now).map(|delivery| (delivery.due - delivery.packet - MS) as f64));
    }
    delays.extend(
        drain(&mut link, Nanos::MAX / 2).map(|delivery| (delivery.due - delivery.packet - MS) as f64),
    );
    delays
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[test]
fn every_model_agrees_with_its_closed_form() {
    for seed in [1, 2] {
        let checks =
            [rate::checks(seed), delay::checks(seed), drops::checks(seed), schedule::checks(seed)].concat();
        let said = |check: &ModelCheck| {
            let ModelCheck { model, quantity, expected, measured, tolerance } = check;
            format!("{model}, {quantity}: {measured} of {expected} ± {tolerance}")
        };
        let off: Vec<_> = checks.iter().filter(|check| !check.holds()).map(said).collect();
        assert!(checks.len() > 30 && off.is_empty(), "seed {seed}: {off:#?}");
    }
}

#[test]
fn what_is_off_or_was_not_measured_does_not_hold() {
    for measured in [0.2, f64::NAN] {
        assert!(!ModelCheck::new("random", "loss, fraction", 0.1, measured, 0.01).holds());
    }
}
