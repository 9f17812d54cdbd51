// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Experiments: downloads with real kernel TCP over an emulated link, one congestion control against another.
//!
//! Every run has namespaces, an emulator and an iperf3 of its own. Arms take turns, and all arms of a repetition meet
//! the same seed, so that what varies between them is the congestion control. The lab knows congestion controls by
//! name; whoever knows more about them (where flows record their exit) says so in [`Arm`].

mod arm;
mod cpu;
mod files;
mod flow;
mod iperf3;
mod measures;
mod plan;
mod process;
mod result;
mod run;
mod sampler;
mod veth;

use std::path::PathBuf;
use std::sync::Arc;

use onramp_net::NamespaceError;
use onramp_net::sock_diag::{SockDiagError, TcpInfo};
use thiserror::Error;

pub use arm::{Arm, Decode, Exit, ExitSource, FlowStorage, MakeReady, Ready};
pub use flow::{Flow, FlowSample};
pub use iperf3::Iperf3Error;
pub use measures::{Measures, ObjectTime};
pub use plan::{Amount, Competitor, DEFAULT_BYTES, LinkChange, Plan};
pub use result::{ArmResult, Comparison, CompetitorRun, FlowRun, Run, SCHEMA};
pub use veth::{VethRun, over_veth};

use crate::host::HostError;
use crate::plot::{self, Curve};

/// What can go wrong with an experiment.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// The hosts or the link could not be made.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// iperf3 failed.
    #[error(transparent)]
    Iperf3(#[from] Iperf3Error),
    /// The sender's sockets could not be read.
    #[error(transparent)]
    SockDiag(#[from] SockDiagError),
    /// The sampler could not be started.
    #[error("cannot start the sampler's thread: {0}")]
    Sampler(#[source] std::io::Error),
    /// An arm's control could not be made ready.
    #[error("arm {arm}: {source}")]
    Arm {
        /// Name of the arm.
        arm: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No connection carried data.
    #[error("no TCP connection was seen to carry data; was the download too short to be sampled (10 ms)?")]
    NoFlow,
    /// The flow ran under another control than asked for.
    #[error(
        "the flow ran under {found:?} instead of {expected:?}; is it attached, and may this namespace use it?"
    )]
    WrongControl {
        /// What was asked for.
        expected: String,
        /// What the kernel said.
        found: String,
    },
    /// A file could not be written.
    #[error("cannot write {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A figure could not be drawn.
    #[error(transparent)]
    Plot(#[from] plot::PlotError),
    /// A plan asks for nothing.
    #[error("{name} = {value} is out of range: expected {range}")]
    Plan {
        /// Field of the plan.
        name: &'static str,
        /// Its value.
        value: u64,
        /// What is allowed.
        range: &'static str,
    },
}

impl ExperimentError {
    /// Whether only this run is spoilt, so that others may still succeed.
    fn spoils_one_run(&self) -> bool {
        match self {
            Self::Iperf3(error) => !matches!(error, Iperf3Error::Missing(_)),
            Self::NoFlow => true,
            Self::Host(HostError::Emulator(_)) => true,
            _ => false,
        }
    }
}

/// Whoever follows a flow while it runs; called every 10 ms from another thread, so it must be quick.
#[derive(Clone)]
pub struct Watch(pub Arc<dyn Fn(&Sight<'_>) + Send + Sync>);

impl std::fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Watch")
    }
}

/// One look at a running flow.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// Name of the arm.
    pub arm: &'a str,
    /// Time since the first data, seconds.
    pub seconds: f64,
    /// What the kernel says.
    pub info: &'a TcpInfo,
    /// Value of the arm's socket storage, if it has one.
    pub storage: Option<&'a [u8]>,
}

/// What happens, as it happens.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A run begins.
    Started {
        /// Number of the run, from 0.
        index: usize,
        /// Number of runs, without further attempts.
        total: usize,
        /// Number of the attempt, from 0.
        attempt: u32,
        /// Name of the arm.
        arm: &'a str,
        /// Seed of the link.
        seed: u64,
    },
    /// A run has ended.
    Finished {
        /// Number of the run, from 0.
        index: usize,
        /// Number of runs, without further attempts.
        total: usize,
        /// Number of the attempt, from 0.
        attempt: u32,
        /// Name of the arm.
        arm: &'a str,
        /// What it yielded.
        run: &'a Run,
    },
}

/// One download in namespaces of its own, no files unless the plan names a directory.
///
/// # Errors
/// [`ExperimentError`]: no root, no TUN, no iperf3, or a download that failed.
pub fn run_once(plan: &Plan, arm: &Arm, seed: u64) -> Result<Run, ExperimentError> {
    plan.validate()?;
    run::run(plan, arm, seed, plan.directory.as_deref()).map(|(run, _)| run)
}

/// Which arm runs with which seed, in order. Whoever is first in one repetition is last in another.
fn turns(arms: usize, plan: &Plan) -> impl Iterator<Item = (usize, u64)> {
    let seed = plan.seed;
    (0..plan.repetitions as usize).flat_map(move |repetition| {
        (0..arms).map(move |turn| ((repetition + turn) % arms, seed.wrapping_add(repetition as u64)))
    })
}

/// All arms, `plan.repetitions` times each, taking turns. Files go to a directory of their own, which the result names.
///
/// A run that fails by itself (iperf3 dies, the emulator falls behind) is kept as invalid and the rest goes on; where
/// the emulator fell behind, the run is tried again, [`Plan::retries`] times.
///
/// # Errors
/// [`ExperimentError`] for what no other run could do better: no root, no TUN, no iperf3, an unknown control.
pub fn compare(
    plan: &Plan,
    arms: &[Arm],
    mut progress: impl FnMut(Progress<'_>),
) -> Result<Comparison, ExperimentError> {
    plan.validate()?;
    let root = plan.directory.clone().unwrap_or_else(|| files::default_directory(plan, arms));
    files::create(&root)?;
    files::write_manifest(&root, plan, arms)?;
    let total = arms.len() * plan.repetitions as usize;
    let mut runs = vec![Vec::new(); arms.len()];
    let mut curves = Vec::new();
    for (index, (at, seed)) in turns(arms.len(), plan).enumerate() {
        let arm = &arms[at];
        for attempt in 0..=plan.retries {
            progress(Progress::Started { index, total, attempt, arm: &arm.name, seed });
            let directory = files::run_directory(&root, index, attempt, arm);
            let run = match run::run(plan, arm, seed, Some(&directory)) {
                Ok((run, trace)) => {
                    // One curve per arm: its first valid run.
                    if run.valid && !curves.iter().any(|(of, _)| *of == at) {
                        curves.push((at, Curve::new(&arm.name, &trace.flows[0], run.exit.as_ref())));
                    }
                    run
                }
                Err(error) if error.spoils_one_run() => Run::failed(seed, error.to_string()),
                Err(error) => return Err(error),
            };
            progress(Progress::Finished { index, total, attempt, arm: &arm.name, run: &run });
            // Only lateness is worth another try: it comes from outside and says nothing about the arm.
            let again = !run.valid && run.health.is_some();
            runs[at].push(run);
            if !again {
                break;
            }
        }
    }
    let link = &plan.profile.link;
    let comparison = Comparison {
        schema: SCHEMA,
        profile: plan.profile.name.clone(),
        amount: plan.amount,
        bdp_bytes: link.bdp_bytes(),
        base_rtt_us: link.base_rtt_us(),
        rate_bps: link.forward.rate_bps,
        seed: plan.seed,
        arms: arms
            .iter()
            .zip(runs)
            .map(|(arm, runs)| ArmResult::new(&arm.name, &arm.congestion_control, runs))
            .collect(),
        directory: Some(root.clone()),
    };
    files::write_json(root.join("result.json"), &comparison)?;
    curves.sort_by_key(|(at, _)| *at);
    let curves: Vec<_> = curves.into_iter().map(|(_, curve)| curve).collect();
    plot::write(&root, &plan.profile, &curves)?;
    Ok(comparison)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    #[test]
    fn arms_take_turns_and_share_seeds() {
        let text = include_str!("../../../profiles/geo.toml");
        let profile = Profile::parse(text, "geo.toml").unwrap();
        let plan = Plan { repetitions: 3, seed: 7, ..Plan::new(profile) };
        let turns: Vec<_> = turns(2, &plan).collect();
        assert_eq!(turns, [(0, 7), (1, 7), (1, 8), (0, 8), (0, 9), (1, 9)]);
    }
}
