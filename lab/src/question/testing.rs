// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Made-up results for the tests of evaluations and tables.

use super::Evidence;
use crate::experiment::{Amount, ArmResult, Comparison, Origin, Run};

/// A valid run.
pub fn run(seconds: f64, retransmitted: u64) -> Run {
    let run = Run::failed(1, String::new());
    Run {
        valid: true,
        invalid_reason: None,
        seconds,
        retransmitted_segments: retransmitted,
        goodput_bps: 640e6 / seconds,
        ..run
    }
}

/// Downloads of 80 MB over the GEO link.
pub fn comparison(arms: Vec<ArmResult>) -> Comparison {
    Comparison {
        schema: onramp_terminal::output::SCHEMA,
        origin: Origin::default(),
        plan: None,
        profile: "geo".into(),
        amount: Amount::Bytes(80_000_000),
        bdp_bytes: 11_250_000,
        base_rtt_us: 600_000,
        rate_bps: 150_000_000,
        seed: 1,
        arms,
        paired: None,
        directory: None,
    }
}

/// Adds a trial with one run per arm.
pub fn add(evidence: &mut Evidence, trial: &str, arms: Vec<(&str, Run)>) {
    let arms = arms.into_iter().map(|(name, run)| ArmResult::new(name, name, vec![run])).collect();
    evidence.trials.insert(trial.to_owned(), comparison(arms));
}
