// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is compared: congestion controls by their kernel names.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use onramp_algorithm::{ExitReason, Named, Options};
use serde::{Deserialize, Serialize};

use crate::host::HostSpec;

/// Name of the base among an arm's parameters.
pub const BASE: &str = "base";
/// Name of the base's options among them.
pub const AFTER_EXIT: &str = "after_exit";
/// Name among them of what connections do at their start with what is remembered of their path.
pub const START: &str = "start";

/// What a connection knows of its path before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPath {
    /// The rate that it can have, kbit/s.
    pub kbps: u32,
    /// The RTT of the empty path, microseconds.
    pub rtt_us: u32,
}

/// One arm of an experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Arm {
    /// What tables and files call it; no two arms of an experiment share it.
    pub name: String,
    /// The kernel's name of the congestion control, 1 to 15 bytes.
    pub congestion_control: String,
    /// Parameters of the congestion control, by name, for the manifest; empty for the kernel's own.
    pub parameters: BTreeMap<String, String>,
    /// Hosts for this arm alone; `None` for the profile's.
    pub host: Option<HostSpec>,
    /// What its flows know of the path; `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_path: Option<KnownPath>,
    /// Whether its flows record their own exit; that of others is found by sampling.
    pub records_exit: bool,
    /// What has to be done before each of its runs, where they are made in this kernel; `None` for the kernel's own
    /// controls.
    #[serde(skip)]
    pub ready: Option<Ready>,
}

impl Arm {
    /// One of the kernel's own controls, such as `cubic`.
    pub fn stock(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            congestion_control: name.to_owned(),
            parameters: BTreeMap::new(),
            host: None,
            known_path: None,
            records_exit: false,
            ready: None,
        }
    }

    /// The set of options that it has by this name, [`AFTER_EXIT`] or [`START`]; `None`: it says nothing of it.
    ///
    /// # Errors
    /// What is no such set.
    pub fn options<T: Named>(&self, name: &str) -> Result<Option<Options<T>>, String> {
        self.parameters.get(name).map(|names| names.parse()).transpose()
    }
}

/// Makes a congestion control ready and says where its flows record their exit. Called before each run of the arm,
/// because names of controls are the host's: arms that use one control with different parameters take turns.
#[derive(Clone)]
pub struct Ready(pub Arc<MakeReady>);

/// See [`Ready`].
pub type MakeReady = dyn Fn() -> Result<FlowStorage, Box<dyn Error + Send + Sync>> + Send + Sync;

impl fmt::Debug for Ready {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Ready")
    }
}

/// Turns the value of a socket storage into an exit, `None` while there is none. The source it sets is ignored; the ACKs are
/// those of all flows of the arm.
pub type Decode = dyn Fn(&[u8]) -> Option<Exit> + Send + Sync;

/// A BPF socket storage that holds the exit record of each flow.
#[derive(Clone)]
pub struct FlowStorage {
    /// The map (`BPF_MAP_TYPE_SK_STORAGE`).
    pub map: Arc<OwnedFd>,
    /// How to read its values.
    pub decode: Arc<Decode>,
}

impl fmt::Debug for FlowStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowStorage").field("map", &self.map).finish_non_exhaustive()
    }
}

/// How a flow's slow start ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exit {
    /// Why. A control of the kernel's own whose exit is sampled has `algorithm` where it was not by loss or mark.
    pub reason: ExitReason,
    /// When, seconds since the flow's first data was sent.
    pub seconds: f64,
    /// Congestion window at detection, bytes.
    pub window_bytes: u64,
    /// ACKs with which the algorithm had been called by then, where its flows count them.
    pub acks: Option<u64>,
    /// Where this is known from.
    pub source: ExitSource,
}

/// Where an exit is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitSource {
    /// The flow's own record.
    Record,
    /// Looking at the connection every 10 ms: late by up to that, and blind to a threshold that was there before.
    Sampled,
    /// The simulated sender.
    Simulated,
}
