// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Congestion controls by their kernel names, as arms have them.

use onramp_algorithm::{Flow, Parameters, find, find_control};

use super::SimError;
use super::control::{Base, Control};
use crate::experiment::Arm;
use crate::host::HostSpec;
use crate::link::LinkSpec;

/// Name of the base among an arm's parameters.
const BASE: &str = "base";

/// What leaves slow start exactly at the bandwidth-delay product: it is told the link.
pub const ORACLE: &str = "oracle";

/// The control of an arm at the begin of a connection over this link.
///
/// # Errors
/// [`SimError::Control`] for one that is not modelled, [`SimError::Parameter`].
pub(super) fn control(arm: &Arm, host: &HostSpec, link: &LinkSpec) -> Result<Control, SimError> {
    if let Some(algorithm) = find_control(&arm.congestion_control) {
        let settings = arm.parameters.iter().filter(|(name, _)| *name != BASE);
        let settings: Vec<_> = settings.map(|(name, value)| format!("{name}={value}")).collect();
        let mut parameters = algorithm.parameters();
        parameters.assign(&settings)?;
        let base = match arm.parameters.get(BASE).map(String::as_str) {
            Some("reno") => Base::Reno,
            Some(name @ "bbr") => {
                return Err(SimError::Control { name: format!("{}:base={name}", algorithm.name()) });
            }
            Some("tahoe") => Base::Tahoe,
            _ => Base::cubic(),
        };
        return Ok(Control::new(base, Some(Flow::new(parameters))));
    }
    match arm.congestion_control.as_str() {
        // The kernel's HyStart is the algorithm's model, and leaves on the same acknowledgment.
        "cubic" => Ok(Control::new(Base::cubic(), defaults("hystart").map(Flow::new))),
        ORACLE => Ok(Control::new(Base::cubic(), None).leaving_at(bdp_segments(host, link))),
        "reno" => Ok(Control::new(Base::Reno, None)),
        other => Err(SimError::Control { name: other.to_owned() }),
    }
}

/// Full packets that fill the path: the rate that it has for a flow, times its smallest round-trip time.
fn bdp_segments(host: &HostSpec, link: &LinkSpec) -> u32 {
    let bits = u128::from(link.available_bps()) * u128::from(link.base_rtt_us()) / 1_000_000;
    u32::try_from(bits / (8 * u128::from(host.mtu_bytes))).unwrap_or(u32::MAX)
}

fn defaults(name: &str) -> Option<Parameters> {
    find(name).map(|algorithm| algorithm.parameters())
}
