// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Experiments that claims and evaluations need.

use std::time::Duration;

use crate::experiment::{Amount, Competitor, DEFAULT_BYTES, LinkChange};
use crate::profile::Profile;

/// What a path has that is not in its profile.
pub type Adapt = fn(&mut Profile);

/// An experiment: several arms over one link. Two trials of one name are the same.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Its name, also that of its directory.
    pub name: String,
    /// Name of a profile.
    pub profile: &'static str,
    /// What is different from that profile.
    pub adapt: Adapt,
    /// Arms as they are written on the command line.
    pub arms: Vec<String>,
    /// How much each flow transfers.
    pub amount: Amount,
    /// Flows of each run.
    pub flows: u16,
    /// Time from the start of one flow to that of the next.
    pub stagger: Duration,
    /// A flow that is there besides, if any.
    pub competitor: Option<Competitor>,
    /// Changes of the link in each run.
    pub changes: Vec<LinkChange>,
    /// What each flow has of RTT besides that of the link, and last the competitor, microseconds; none: no flow has any.
    pub extra_rtt_us: Vec<u64>,
    /// Paths that follow, and what is different there from the profile as it is adapted.
    pub paths: Vec<(Duration, Adapt)>,
    /// Sizes whose time is read off each transfer.
    pub objects: Vec<u64>,
    /// Runs of each arm.
    pub repetitions: u32,
    /// The same with `--quick`.
    pub quick: u32,
    /// Also collect the rates of ACK pairs by round, from flows of `best`.
    pub pairs: bool,
}

impl Trial {
    /// Ten downloads of 80 MB over a profile as it is; three with `--quick`.
    pub fn new(name: impl Into<String>, profile: &'static str, arms: &[&str]) -> Self {
        Self {
            name: name.into(),
            profile,
            adapt: |_| {},
            arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
            amount: Amount::Bytes(DEFAULT_BYTES),
            flows: 1,
            stagger: Duration::ZERO,
            competitor: None,
            changes: Vec::new(),
            extra_rtt_us: Vec::new(),
            paths: Vec::new(),
            objects: Vec::new(),
            repetitions: 10,
            quick: 3,
            pairs: false,
        }
    }
}
