// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Experiments: downloads with real kernel TCP over an emulated link, one congestion control against another.
//!
//! Every run has namespaces, an emulator, a source and a sink of its own. Arms take turns, and all arms of a repetition meet
//! the same seed, so that what varies between them is the congestion control. The lab knows congestion controls by
//! name; a caller that knows more about them (where flows record their exit) says so in [`Arm`].

mod arm;
mod builtin;
mod clock;
mod cpu;
mod files;
mod flow;
mod iperf3;
mod job;
mod manifest;
mod measures;
mod parallel;
mod plan;
mod process;
mod regret;
mod result;
mod run;
mod sampler;
mod side_by_side;
mod store;
mod trace;
mod transfer;
mod turns;
mod veth;
mod warm;

use std::path::PathBuf;
use std::sync::Arc;

use onramp_net::NamespaceError;
use onramp_net::sock_diag::{SockDiagError, TcpInfo};
use thiserror::Error;

pub use arm::{
    AFTER_EXIT, Arm, BASE, Decode, Exit, ExitSource, FlowStorage, KnownPath, MakeReady, Ready, START,
};
pub use builtin::BuiltinError;
pub(crate) use builtin::{BLOCK, may_wait};
pub use clock::{Clock, Guests, Origin, Shard};
pub use cpu::{busy_seconds, process_seconds};
pub(crate) use files::directory_name;
pub use flow::{Flow, FlowSample};
pub use job::{Job, PATH as JOB_PATH};
pub use measures::{Measures, ObjectTime};
pub use parallel::{Parallel, parallel_over_veth};
pub use plan::{Amount, Competitor, DEFAULT_BYTES, LinkChange, PathChange, Plan, Tool};
pub use process::Iperf3Error;
pub use regret::LinkRegret;
pub use result::{ArmResult, Comparison, CompetitorRun, FlowRun, Paired, Run, WarmRun};
pub(crate) use run::{compete, jain};
pub use transfer::PORT;
pub use veth::{VethRun, over_veth, veth_pair};

use crate::figure::FigureError;
use crate::guest::GuestError;
use crate::host::HostError;
use crate::link::RangeError;
use crate::plot::{self, Curve};

/// What can go wrong with an experiment.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// The hosts or the link could not be made.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A guest could not be made, or broke off.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// What the program in the guest said when it gave up.
    #[error("in the guest: {0}")]
    Inside(String),
    /// A namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A transfer failed.
    #[error(transparent)]
    Builtin(#[from] BuiltinError),
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
        /// Reason.
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
    /// Processor time could not be read.
    #[error("cannot read processor time from {path}: {source}")]
    ProcessorTime {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// A figure could not be drawn.
    #[error(transparent)]
    Figure(#[from] FigureError),
    /// A value of the profile is out of range.
    #[error("profile {name}: {source}")]
    Profile {
        /// The profile.
        name: String,
        /// Which value.
        source: RangeError,
    },
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
    /// Whether it was asked for wrongly.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Guest(error) => error.is_usage(),
            Self::Profile { .. } | Self::Plan { .. } => true,
            _ => false,
        }
    }

    /// Whether a transfer took longer than the limit: as far as it came it counts.
    fn is_over_the_limit(&self) -> bool {
        matches!(
            self,
            Self::Builtin(BuiltinError::Timeout { .. }) | Self::Iperf3(Iperf3Error::Timeout { .. })
        )
    }

    /// Whether only this run is spoilt, so that others may still succeed.
    fn spoils_one_run(&self) -> bool {
        match self {
            Self::Iperf3(error) => !matches!(error, Iperf3Error::Missing(_)),
            Self::Builtin(_) | Self::NoFlow => true,
            Self::Host(HostError::Emulator(_)) => true,
            _ => false,
        }
    }
}

/// Follows a flow while it runs; called every 10 ms from another thread, so it must be quick.
#[derive(Clone)]
pub struct Watch(pub Arc<dyn Fn(&LiveSample<'_>) + Send + Sync>);

impl std::fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Watch")
    }
}

/// One look at a running flow.
#[derive(Clone, Copy, Debug)]
pub struct LiveSample<'a> {
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
/// [`ExperimentError`]: no root, no TUN, or a download that failed.
pub fn run_once(plan: &Plan, arm: &Arm, seed: u64) -> Result<Run, ExperimentError> {
    plan.validate()?;
    run::run(plan, arm, seed, plan.directory.as_deref()).map(|(run, _)| run)
}

/// What [`compare`] has left in the plan's directory, if that was the same experiment (profile, amount, arms and their
/// parameters, repetitions, seed) by this version on this kernel, and went to its end.
pub fn kept(plan: &Plan, arms: &[Arm]) -> Option<Comparison> {
    manifest::kept(plan.directory.as_deref()?, plan, arms)
}

/// All arms, `plan.repetitions` times each, taking turns, up to `plan.jobs` at once. Files go to a directory of their
/// own, which the result names.
///
/// A run that fails by itself (the transfer breaks, the emulator falls behind) is kept as invalid and the rest goes on; where
/// the emulator fell behind, the run is tried again, [`Plan::retries`] times.
///
/// # Errors
/// [`ExperimentError`] for what no other run could do better: no root, no TUN, no iperf3 where it is wanted, an unknown control. Runs that
/// have begun are completed first.
pub fn compare(
    plan: &Plan,
    arms: &[Arm],
    progress: impl FnMut(Progress<'_>),
) -> Result<Comparison, ExperimentError> {
    plan.validate()?;
    let root = plan.directory.clone().unwrap_or_else(|| files::default_directory(plan, arms));
    files::create(&root)?;
    manifest::write(&root, plan, arms)?;
    let attempts = side_by_side::run(plan, arms, &root, progress)?;
    // One curve per arm: its first valid run.
    let first = |at| attempts.iter().find_map(|one| one.curve.as_ref().filter(|_| one.turn.arm == at));
    let curves: Vec<Curve> = (0..arms.len()).filter_map(first).cloned().collect();
    plot::write(&root, &plan.profile, &curves)?;
    let mut runs = vec![Vec::new(); arms.len()];
    for attempt in attempts {
        runs[attempt.turn.arm].push(attempt.run);
    }
    let results = arms.iter().zip(runs).map(|(arm, runs)| ArmResult::from_runs(arm, runs)).collect();
    let comparison =
        Comparison { directory: Some(root.clone()), ..Comparison::new(plan, plan.clock.origin(), results) };
    files::write_json(root.join(manifest::RESULT), &comparison)?;
    files::write(root.join("table.tex"), crate::table::latex(&comparison))?;
    Ok(comparison)
}
