// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Arms over a population of paths: what each did on each path ([`RunRow`]), what that cost compared with the best ([`Sweep`]),
//! and which arms no other one beats ([`front`]).

pub mod front;
pub(in crate::sim) mod pareto;
mod row;
mod store;
mod summary;
mod text;

pub use row::RunRow;
pub use store::{Definition, Store, SweepError, program};
pub use summary::{ArmSummary, ClassSummary, Sweep, Worst};

use super::{SimError, run};
use crate::experiment::Arm;
use crate::population::Path;

/// Simulates all arms over a path, one after the other on the same seed.
///
/// # Errors
/// [`SimError`]: an arm that is not modelled.
pub fn path(path: &Path, arms: &[Arm]) -> Result<Vec<RunRow>, SimError> {
    let plan = path.plan();
    arms.iter().map(|arm| Ok(RunRow::new(path, arm, &run(&plan, arm, path.seed, path.source)?))).collect()
}
