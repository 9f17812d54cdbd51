// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Congestion controls by their kernel names, as arms have them.

use onramp_algorithm::{Algorithm, Flow, Named, Options, Path, StartPolicies, find_control, of_cubic};

use super::SimError;
use super::control::{Base, Control, Oracle, Start};
use crate::experiment::{AFTER_EXIT, Arm, BASE, START};
use crate::host::HostSpec;
use crate::link::LinkSpec;

/// The arm that knows the link: it paces slow start and exits as `ramp` would with a perfect estimate.
pub const ORACLE: &str = "oracle";

/// Which connection of which run: what a control draws at random depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    /// Of the run.
    pub seed: u64,
    /// Of the connection in it.
    pub number: u64,
}

/// The control of an arm at the begin of a connection over this link, of which `learned` is what an earlier one has learned.
///
/// # Errors
/// [`SimError::Control`] for one that is not modelled, [`SimError::Parameter`].
pub(super) fn control(
    arm: &Arm,
    host: &HostSpec,
    link: &LinkSpec,
    learned: Option<&Path>,
    Identity { seed, number }: Identity,
) -> Result<Control, SimError> {
    if let Some(algorithm) = find_control(&arm.congestion_control) {
        let settings =
            arm.parameters.iter().filter(|(name, _)| ![BASE, AFTER_EXIT, START].contains(&name.as_str()));
        let settings: Vec<_> = settings.map(|(name, value)| format!("{name}={value}")).collect();
        let mut parameters = algorithm.parameters();
        parameters.assign(&settings)?;
        let base = match arm.parameters.get(BASE).map(String::as_str) {
            Some("reno") => Base::Reno,
            Some("bbr") if algorithm.is_always_called() => {
                return Err(SimError::AfterExitOverBbr {
                    name: arm.name.clone(),
                    algorithm: algorithm.name(),
                });
            }
            Some("bbr") => Base::bbr(seed, number),
            Some("tahoe") => Base::Tahoe,
            _ => Base::cubic(),
        };
        let control = Control::new(base, Start::Algorithm(Flow::new(parameters)));
        let control = control.after_exit(options(arm, algorithm, AFTER_EXIT).map_err(SimError::AfterExit)?);
        let policies: StartPolicies = options(arm, algorithm, START).map_err(SimError::Start)?;
        let control = control.starting(policies);
        let Some(path) = arm.known_path else {
            return match learned.filter(|_| policies.remembers()) {
                Some(path) => Ok(control.recalling(policies, path)),
                None if policies.remembers() => {
                    Err(SimError::Unlearned { name: arm.name.clone(), start: policies.to_string() })
                }
                None => Ok(control),
            };
        };
        // What is known without such a policy is known from a rule.
        let policies = if policies.remembers() { policies } else { StartPolicies::of_memory() };
        return Ok(control.remembering(policies, u64::from(path.kbps) * 125, path.rtt_us));
    }
    match arm.congestion_control.as_str() {
        // The kernel's HyStart is the algorithm's model, and leaves on the same acknowledgment.
        "cubic" => {
            let start = Start::Algorithm(Flow::new(of_cubic().parameters()));
            Ok(Control::new(Base::cubic(), start).stock())
        }
        ORACLE => Ok(Control::new(Base::cubic(), Start::Oracle(Oracle::new(host, link)))),
        "reno" => Ok(Control::new(Base::Reno, Start::Base)),
        "bbr" => Ok(Control::new(Base::bbr(seed, number), Start::Base)),
        other => Err(SimError::Control { name: other.to_owned() }),
    }
}

/// The set of options that an arm has under this name, asked for or not; what is wrong with it.
fn options<T: Named>(arm: &Arm, algorithm: Algorithm, name: &str) -> Result<Options<T>, String> {
    let base = arm.parameters.get(BASE).map_or("cubic", String::as_str);
    let options: Options<T> = arm.options(name)?.unwrap_or_else(|| Options::usual(algorithm, base));
    match options.missing_from(base) {
        Some(option) => Err(format!("base {base} has no option {}", option.name())),
        None => Ok(options),
    }
}
