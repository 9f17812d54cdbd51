//! Exits made up for the tests of claims, and what claims say of them.

use onramp_algorithm::ExitReason;
use onramp_lab::experiment::{Exit, ExitSource};
use onramp_lab::question::{Evaluation, Evidence};

use crate::Claim;

/// An exit at so many seconds and bytes.
pub(crate) fn exit(seconds: f64, window_bytes: u64) -> Option<Exit> {
    let source = ExitSource::Record;
    Some(Exit { reason: ExitReason::Algorithm, seconds, window_bytes, acks: Some(18), source })
}

/// The evaluation, which must be possible; its figure must be drawable.
pub(crate) fn evaluate(claim: &Claim, evidence: &Evidence) -> Evaluation {
    let evaluation = (claim.evaluate)(evidence).unwrap();
    let directory = tempfile::tempdir().unwrap();
    evaluation.figure.write(&directory.path().join("figure.svg")).unwrap();
    evaluation
}

/// What does not hold.
pub(crate) fn failing(claim: &Claim, evidence: &Evidence) -> Vec<String> {
    evaluate(claim, evidence)
        .checks
        .into_iter()
        .filter(|check| !check.holds)
        .map(|check| check.what)
        .collect()
}
