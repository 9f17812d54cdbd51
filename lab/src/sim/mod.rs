// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The simulator: the emulator's link models and the algorithms' own headers in virtual time, with as much of Linux's TCP
//! between them as decides when slow start ends and what becomes of it.
//!
//! * [`run`], [`compare`]: what a plan of [`crate::experiment`] asks for, with results of the same form.
//! * [`sweep`]: arms over a population of paths.
//! * [`tune`]: parameters of an algorithm that suit a population, or some paths.
//! * [`agreement`]: how far results are from those of the kernel.

pub mod agreement;
mod arm;
mod connection;
mod control;
mod digest;
mod host_time;
mod network;
mod opening;
mod outstanding;
mod receiver;
mod round_trip;
mod run;
mod segment;
mod sender;
mod socket;
mod source;
pub mod sweep;
pub mod tune;
mod workers;

use onramp_algorithm::ParameterError;
use thiserror::Error;

pub use arm::ORACLE;
pub(crate) use connection::opening_us;
pub use receiver::receiver_limit;
pub use run::{record, run};
pub use source::SourceSpec;

use crate::experiment::{Arm, ArmResult, Comparison, ExperimentError, Flow, Origin, Plan, Run};
use crate::link::RangeError;

/// The clock that results of simulations say.
pub const SIMULATED: &str = "simulated";

/// What can go wrong with a simulation.
#[derive(Debug, Error)]
pub enum SimError {
    /// A value is out of range.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// A plan asks for what there is not.
    #[error(transparent)]
    Plan(#[from] ExperimentError),
    /// A parameter was refused.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// An option of the base was refused.
    #[error("after_exit: {0}")]
    AfterExit(String),
    /// A start that there is not.
    #[error("start: {0}")]
    Start(String),
    /// A start from what an earlier connection has learned, of which there is none.
    #[error(
        "{name}: start={start} needs what is known of the path: have a transfer before it learn that (--warm 2M), or add \
         resume_pct=100 or resume=RATE/RTT"
    )]
    Unlearned {
        /// The arm.
        name: String,
        /// Its start.
        start: String,
    },
    /// The control is not modelled.
    #[error(
        "{name} is not simulated: give an algorithm, cubic, reno, bbr or oracle, or measure it with `onramp lab run {name}`"
    )]
    Control {
        /// The kernel's name of it.
        name: String,
    },
    /// An algorithm that bounds the window after its exit, over a base that sets it itself.
    #[error(
        "{name}: {algorithm} acts after its exit, too, where BBR sets the window: give base=cubic or base=reno"
    )]
    AfterExitOverBbr {
        /// The arm.
        name: String,
        /// Its algorithm.
        algorithm: &'static str,
    },
    /// Its caller does not want it any more.
    #[error("stopped")]
    Stopped,
    /// The hosts take part in explicit congestion notification.
    #[error("host.tcp_ecn is not simulated: leave it out, or measure it with `onramp lab run`")]
    Ecn,
    /// Packets take another path, on which they may overtake each other.
    #[error("a change to another path is not simulated: leave it out, or measure it with `onramp lab run`")]
    Path,
    /// Packets overtake each other.
    #[error("{key} is not simulated: leave it out, or measure it with `onramp lab run`")]
    Reordering {
        /// Where it stands.
        key: &'static str,
    },
}

impl SimError {
    /// Whether it was asked for wrongly.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Plan(error) => error.is_usage(),
            Self::Stopped => false,
            _ => true,
        }
    }
}

/// Simulates all arms, `plan.repetitions` times each, with the seeds that the lab gives them. Arms of a repetition meet
/// the same link.
///
/// # Errors
/// [`SimError`]; nothing is half done then.
pub fn compare(plan: &Plan, arms: &[Arm], source: SourceSpec) -> Result<Comparison, SimError> {
    compare_watched(plan, arms, source, |_, _, _, _| Ok(()))
}

/// As [`compare`]; shows `each` every run once it is over, with the number of its repetition and what was seen of its first
/// flow every 10 ms.
///
/// # Errors
/// As [`compare`], and those of `each`, after which nothing more is simulated.
pub fn compare_watched(
    plan: &Plan,
    arms: &[Arm],
    source: SourceSpec,
    mut each: impl FnMut(&Arm, u32, &Run, &Flow) -> Result<(), SimError>,
) -> Result<Comparison, SimError> {
    plan.validate()?;
    let mut results = Vec::new();
    for arm in arms {
        let mut runs = Vec::new();
        for repetition in 0..plan.repetitions {
            let seed = plan.seed.wrapping_add(repetition.into());
            let (run, flow) = run::watched(plan, arm, seed, source)?;
            each(arm, repetition, &run, &flow)?;
            runs.push(run);
        }
        results.push(ArmResult::from_runs(arm, runs));
    }
    Ok(Comparison::new(plan, Origin { clock: SIMULATED.into(), ..Origin::default() }, results))
}
