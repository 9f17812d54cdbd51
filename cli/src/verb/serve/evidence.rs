//! What is reported of an open flow next to its row.

use onramp_recording::replay::{Exit, Finding, PathEstimate, Regret};
use serde::Serialize;

use crate::live::{Flow, Picture, Track, picture, track};
use crate::output::Named;
use crate::settings::Value;
use crate::verb::flows::{ExportValue, named};

/// What its algorithm knows.
#[derive(Serialize)]
pub(super) struct Evidence {
    parameters: Named<Value>,
    exports: Named<ExportValue>,
    units: Named<&'static str>,
    picture: Option<Picture>,
    /// What `watched` and `limit` of its past are.
    track: Option<Track>,
}

impl Evidence {
    /// Of a flow as it is now.
    pub fn new(flow: &Flow) -> Self {
        let parameters = flow.parameters.iter().map(|(one, value)| (one.name, Value::new(&one, value)));
        Self {
            parameters: Named(parameters.collect()),
            exports: named(flow.exports()),
            units: Named(flow.exports().iter().map(|(export, _)| (export.name, export.unit)).collect()),
            picture: picture(flow),
            track: track(flow),
        }
    }
}

/// What every algorithm would have done, open loop.
#[derive(Serialize)]
pub(super) struct Shadow<'a> {
    /// What the path gave.
    given: Option<PathEstimate>,
    findings: Vec<Opinion<'a>>,
}

/// What one would have done.
#[derive(Serialize)]
struct Opinion<'a> {
    algorithm: &'a str,
    /// `None`: it would not have left before the flow did.
    exit: Option<&'a Exit>,
    regret: Option<Regret>,
    /// The windows to which CUBIC would have grown after that exit until the path was full: microseconds since the first
    /// data, bytes. Empty: it was full, or the path is not known.
    continuation: Vec<(u64, u64)>,
    last_outcome: &'a str,
}

impl<'a> Shadow<'a> {
    /// Of a flow whose path gave this.
    pub fn new(given: Option<PathEstimate>, findings: &'a [Finding]) -> Self {
        let opinion = |finding: &'a Finding| Opinion {
            algorithm: finding.algorithm,
            exit: finding.exit.as_ref(),
            regret: finding.regret,
            continuation: given
                .zip(finding.exit.as_ref())
                .map_or_else(Vec::new, |(given, exit)| given.continuation_of(exit)),
            last_outcome: finding.last_outcome,
        };
        Self { given, findings: findings.iter().map(opinion).collect() }
    }
}
