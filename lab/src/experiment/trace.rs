// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a run leaves for files and figures.

use super::flow::Flow;
use crate::emulator::Report;

/// The flows of a run, and its link.
pub(super) struct Trace {
    /// At least one.
    pub flows: Vec<Flow>,
    pub competitor: Option<Flow>,
    pub link: Report,
}

impl Trace {
    /// When the first flow sent its first data.
    pub fn began_ns(&self) -> u64 {
        self.flows.first().and_then(Flow::began_ns).unwrap_or(0)
    }
}
