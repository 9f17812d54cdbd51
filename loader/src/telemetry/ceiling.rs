//! The most that consumers may be told of the flows of a parameter set, whatever they want.

use onramp_algorithm::Algorithm;

use super::level::Level;
use super::shared::Shared;
use crate::error::Error;
use crate::kernel;
use crate::pins::Lock;
use crate::tune;

/// Sets the ceiling of one parameter set (`None`: the first) and returns the former; flows under way follow with their
/// next ACK. It is [`Level::Ack`] unless set.
///
/// # Errors
/// [`Error::NotAttached`], [`Error::UnknownProfile`], [`Error::Privilege`], or a map that cannot be written.
pub fn set_ceiling(algorithm: Algorithm, profile: Option<&str>, level: Level) -> Result<Level, Error> {
    kernel::require_privilege("telemetry")?;
    let _lock = Lock::take()?;
    let pins = tune::attached(algorithm)?;
    let index = tune::profile_index(algorithm, profile)? as u32;
    let failed = pins.failed("write", "params");
    let mut slots = pins.parameter_slots()?;
    let mut slot = slots.get(&index, 0).map_err(&failed)?;
    let before = Level::from_number(slot.telemetry_max);
    slot.telemetry_max = level as u32;
    slots.set(index, slot, 0).map_err(&failed)?;
    if let Some(shared) = Shared::open()? {
        shared.announce();
    }
    Ok(before)
}
