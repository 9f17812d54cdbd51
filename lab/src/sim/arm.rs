// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Congestion controls by their kernel names, as arms have them.

use onramp_algorithm::{Flow, Parameters, find, find_control};

use super::SimError;
use super::control::{Base, Control};
use crate::experiment::Arm;

/// Name of the base among an arm's parameters.
const BASE: &str = "base";

/// The control of an arm at the begin of a connection.
///
/// # Errors
/// [`SimError::Control`] for one that is not modelled, [`SimError::Parameter`].
pub(super) fn control(arm: &Arm) -> Result<Control, SimError> {
    if let Some(algorithm) = find_control(&arm.congestion_control) {
        let settings = arm.parameters.iter().filter(|(name, _)| *name != BASE);
        let settings: Vec<_> = settings.map(|(name, value)| format!("{name}={value}")).collect();
        let mut parameters = algorithm.parameters();
        parameters.assign(&settings)?;
        let base = match arm.parameters.get(BASE).map(String::as_str) {
            Some("reno") => Base::Reno,
            Some("tahoe") => Base::Tahoe,
            _ => Base::cubic(),
        };
        return Ok(Control::new(base, Some(Flow::new(parameters))));
    }
    match arm.congestion_control.as_str() {
        // The kernel's HyStart is the algorithm's model, and leaves on the same acknowledgment.
        "cubic" => Ok(Control::new(Base::cubic(), defaults("hystart").map(Flow::new))),
        "reno" => Ok(Control::new(Base::Reno, None)),
        other => Err(SimError::Control { name: other.to_owned() }),
    }
}

fn defaults(name: &str) -> Option<Parameters> {
    find(name).map(|algorithm| algorithm.parameters())
}
