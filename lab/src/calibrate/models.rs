// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Do the link models do what their closed forms say? In virtual time, so on every machine with the same result.
//!
//! Where a model is random, the tolerance is five standard deviations of the measured mean; where it is not, it is the
//! size of one packet or one step.

mod delay;
mod drops;
mod rate;
mod schedule;

use serde::Serialize;

use super::Measured;
use crate::link::{Delivery, Direction, DirectionSpec, Limit, Nanos};

/// One property of one model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelCheck {
    /// The model, as profiles name it.
    pub model: &'static str,
    /// What was measured, with its unit.
    pub quantity: &'static str,
    /// The closed form's value and the model's.
    pub value: Measured,
}

impl ModelCheck {
    fn new(
        model: &'static str,
        quantity: &'static str,
        expected: f64,
        measured: f64,
        tolerance: f64,
    ) -> Self {
        Self { model, quantity, value: Measured { expected, measured, tolerance } }
    }
}

/// One line for people.
impl std::fmt::Display for ModelCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Measured { expected, measured, tolerance } = self.value;
        let verdict = if self.value.holds() { "good" } else { "OFF" };
        let (model, quantity) = (self.model, self.quantity);
        write!(
            f,
            "{model:<22} {quantity:<42} {measured:>14.4} of {expected:>14.4} ± {tolerance:<10.4} {verdict}"
        )
    }
}

/// Every model against its closed form, with randomness from `seed`.
pub fn models(seed: u64) -> Vec<ModelCheck> {
    [rate::checks(seed), delay::checks(seed), drops::checks(seed), schedule::checks(seed)].concat()
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
    // The descriptions of the checks are constants; the test below builds each of them.
    Direction::new(spec, "model", seed, 0).unwrap_or_else(|error| panic!("{error}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_agrees_with_its_closed_form() {
        for seed in [1, 2] {
            let checks = models(seed);
            checks.iter().for_each(|check| println!("{check}"));
            let off: Vec<_> = checks.iter().filter(|check| !check.value.holds()).collect();
            assert!(off.is_empty(), "seed {seed}: {off:#?}");
        }
    }

    #[test]
    fn a_model_that_is_off_shows() {
        let check = ModelCheck::new("random", "loss, share", 0.1, 0.2, 0.01);
        assert!(!check.value.holds() && check.to_string().ends_with("OFF"));
        // Nothing measured is not agreement.
        assert!(!ModelCheck::new("random", "loss, share", 0.1, f64::NAN, 0.01).value.holds());
    }
}
