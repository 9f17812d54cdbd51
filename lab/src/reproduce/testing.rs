// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Made-up results for the tests of evaluations and tables.

use onramp_algorithm::ExitReason;

use super::{Claim, Evaluation, Evidence};
use crate::experiment::{Amount, ArmResult, Comparison, Exit, ExitSource, Origin, Run};

/// A valid run.
pub(crate) fn run(seconds: f64, retransmitted: u64) -> Run {
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

/// An exit at so many seconds and bytes.
pub(super) fn exit(seconds: f64, window_bytes: u64) -> Option<Exit> {
    let source = ExitSource::Record;
    Some(Exit { reason: ExitReason::Algorithm, seconds, window_bytes, acks: Some(18), source })
}

/// Downloads of 80 MB over the GEO link.
pub(crate) fn comparison(arms: Vec<ArmResult>) -> Comparison {
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
pub(crate) fn add(evidence: &mut Evidence, trial: &str, arms: Vec<(&str, Run)>) {
    let arms = arms.into_iter().map(|(name, run)| ArmResult::new(name, name, vec![run])).collect();
    evidence.trials.insert(trial.to_owned(), comparison(arms));
}

/// The evaluation, which must be possible; its figure must be drawable.
pub(super) fn evaluate(claim: &Claim, evidence: &Evidence) -> Evaluation {
    let evaluation = (claim.evaluate)(evidence).unwrap();
    let path = std::env::temp_dir().join(format!("onramp-{}-{}.svg", claim.id, std::process::id()));
    evaluation.figure.write(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    evaluation
}

/// What does not hold.
pub(super) fn failing(claim: &Claim, evidence: &Evidence) -> Vec<String> {
    evaluate(claim, evidence)
        .checks
        .into_iter()
        .filter(|check| !check.holds)
        .map(|check| check.what)
        .collect()
}
