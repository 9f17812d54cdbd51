//! What another algorithm would have done in a recorded flow, by a replay of its ACKs.

use std::collections::BTreeMap;

use onramp_loader::algorithm;
use onramp_recording::replay::{Candidate, Finding, FlowReport, Options, Replay, replay};
use onramp_recording::{Origin, Recording};
use serde::Serialize;

use crate::units::{show_bytes, show_us};

/// The default algorithm over the ACKs of a flow that ran another. Replay is open loop: the windows are the flow's.
#[derive(Clone, Debug, Serialize)]
pub(super) struct WouldHave {
    pub algorithm: &'static str,
    /// `left`: it would have ended slow start before the flow did; `gone_on`: it would not have by then.
    pub slow_start: &'static str,
    /// Since the flow's begin; none where it would have gone on, as the next.
    pub at_us: Option<u64>,
    pub window_bytes: Option<u64>,
    /// Below 1 is early; none: what the path gave is not known.
    pub window_to_bdp: Option<f64>,
    /// Time that this exit would have cost.
    pub lost_us: Option<u64>,
}

/// Of each flow of a recording or a capture, by its number; of qlog too little is known.
pub(super) fn of_flows(recording: &mut Recording) -> BTreeMap<u64, WouldHave> {
    if let Origin::Qlog { .. } = recording.origin {
        return BTreeMap::new();
    }
    let algorithm = algorithm::default();
    let candidate = Candidate { algorithm, settings: Vec::new() };
    let options = Options { regret: true, ..Options::default() };
    let flows = replay(recording, Replay::new(vec![candidate], options));
    let ran_another = |flow: &FlowReport| flow.known.algorithm.as_deref() != Some(algorithm.name());
    let would_have = |flow: FlowReport| Some((flow.flow, WouldHave::new(flow.findings.first()?)?));
    flows.into_iter().filter(ran_another).filter_map(would_have).collect()
}

impl WouldHave {
    /// `None`: it was not asked once.
    fn new(finding: &Finding) -> Option<Self> {
        let (exit, regret) = (finding.exit.as_ref(), finding.regret);
        (finding.evaluated > 0).then(|| Self {
            algorithm: finding.algorithm,
            slow_start: if exit.is_some() { "left" } else { "gone_on" },
            at_us: exit.map(|exit| exit.since_start_us),
            window_bytes: exit.map(|exit| exit.window_bytes),
            window_to_bdp: regret.map(|regret| regret.window_to_bdp),
            lost_us: regret.map(|regret| regret.early_us),
        })
    }

    /// A line of a report.
    pub fn text(&self) -> String {
        let name = self.algorithm;
        let (Some(at_us), Some(bytes)) = (self.at_us, self.window_bytes) else {
            return format!("{name} would have gone on in slow start then");
        };
        let mut text = format!("{name} would have left at {}, {}", show_us(at_us), show_bytes(bytes));
        if let Some(ratio) = self.window_to_bdp {
            text += &format!(" ({ratio:.2} BDP)");
        }
        text
    }
}
