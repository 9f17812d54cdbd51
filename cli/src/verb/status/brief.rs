//! Status by pins alone, for `onramp serve`.

use onramp_loader::algorithm::Algorithm;
use onramp_loader::cost::Callback;
use onramp_loader::{Pinned, State};
use serde::Serialize;

use super::{Attached, Listener, listeners, standing};

/// Attached algorithms and consumers: the part of the report for which no look into other processes is needed.
#[derive(Default, Serialize)]
pub(in crate::verb) struct Brief {
    algorithms: Vec<BriefRow>,
    consumers: Vec<Listener>,
    /// Why the consumers cannot be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    consumers_unknown: Option<String>,
}

/// An algorithm without its sockets.
#[derive(Serialize)]
struct BriefRow {
    algorithm: &'static str,
    congestion_control: String,
    state: &'static str,
    explanation: Option<String>,
    #[serde(flatten)]
    attached: Option<Attached>,
}

impl From<Pinned> for Brief {
    fn from(Pinned { algorithms, consumers }: Pinned) -> Self {
        let row = |(algorithm, state): (Algorithm, State)| {
            let (state, explanation, attached) = standing(algorithm, state, &[], true);
            let congestion_control = algorithm.congestion_control();
            BriefRow { algorithm: algorithm.name(), congestion_control, state, explanation, attached }
        };
        let (consumers, consumers_unknown) = listeners(consumers);
        Self { algorithms: algorithms.into_iter().map(row).collect(), consumers, consumers_unknown }
    }
}

/// What the calls of an operation took.
#[derive(Serialize)]
pub(in crate::verb) struct Cost {
    congestion_control: String,
    callback: &'static str,
    calls: u64,
    nanoseconds: u64,
}

impl From<(Algorithm, Callback)> for Cost {
    fn from((algorithm, Callback { name, calls, nanoseconds }): (Algorithm, Callback)) -> Self {
        Self { congestion_control: algorithm.congestion_control(), callback: name, calls, nanoseconds }
    }
}
