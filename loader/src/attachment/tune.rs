//! Changing parameters of what is attached, under running flows.

use std::time::Duration;

use onramp_algorithm::Algorithm;

use crate::object::level::Level;
use crate::pins::LOCK_TIMEOUT;
use crate::pins::parameters::{ParameterSet, hold_while, sets, write};
use crate::system::error::Error;
use crate::system::kernel;
use crate::telemetry::Shared;

/// What to change of a parameter set; all else stays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes<'a> {
    /// Parameters, as `name=value`.
    pub settings: &'a [String],
    /// Maximum telemetry level for its flows, whatever consumers subscribe to; [`Level::Ack`]: no limit.
    pub telemetry_max: Option<Level>,
    /// How long to wait for other commands; by default a minute.
    pub lock_timeout: Option<Duration>,
}

/// What a change did.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The set before.
    pub before: ParameterSet,
    /// The set now; for a dry run what it would be, with the generation that it has.
    pub after: ParameterSet,
}

/// Changes one parameter set (`None`: the first), all that is asked for or nothing. Running flows read the new values
/// with their next ACK, and their maximum telemetry level; what an algorithm latches when slow start begins, new slow starts
/// read.
///
/// # Errors
/// [`Error::NotAttached`], [`Error::UnknownProfile`], [`Error::Parameter`], [`Error::OtherBuild`]; nothing is changed
/// then.
pub fn tune(
    algorithm: Algorithm,
    profile: Option<&str>,
    changes: &Changes<'_>,
    dry_run: bool,
) -> Result<Tuned, Error> {
    kernel::require_privilege("tune")?;
    let timeout = changes.lock_timeout.unwrap_or(LOCK_TIMEOUT);
    let (_lock, pins) = hold_while(algorithm, &|waited| waited < timeout)?;
    let sets = sets(&pins)?;
    let before = find(algorithm, &sets, profile)?.clone();
    let mut after = before.clone();
    after.parameters.assign(changes.settings)?;
    after.telemetry_max = changes.telemetry_max.unwrap_or(before.telemetry_max);
    if !dry_run && after != before {
        let telemetry = Shared::of_attached()?;
        if after.parameters != before.parameters {
            after.generation = before.generation.wrapping_add(1);
        }
        write(&pins, &after)?;
        telemetry.announce();
    }
    Ok(Tuned { before, after })
}

/// A parameter set by its name; `None`: the first.
fn find<'a>(
    algorithm: Algorithm,
    sets: &'a [ParameterSet],
    profile: Option<&str>,
) -> Result<&'a ParameterSet, Error> {
    let found = sets.iter().find(|set| profile.is_none_or(|name| set.profile == name));
    found.ok_or_else(|| Error::UnknownProfile {
        algorithm: algorithm.name(),
        profile: profile.unwrap_or_default().into(),
        known: sets.iter().map(|set| set.profile.clone()).collect::<Vec<_>>().join(", "),
    })
}
