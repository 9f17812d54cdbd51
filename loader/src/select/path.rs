//! Whether connections can start from what a rule says of their path.

use std::collections::BTreeSet;

use onramp_algorithm::{Algorithm, StartPolicies};

use super::rule::Rule;
use crate::object::abi::Base;
use crate::object::algorithms;
use crate::object::open;
use crate::pins::{Pins, parameters};
use crate::system::error::Error;

/// Fails unless connections of an algorithm that is attached can start from what a rule says of their path.
///
/// # Errors
/// What [`check_start`] fails with, [`Error::NotAttached`], [`Error::OtherBuild`].
pub fn require_start(algorithm: Algorithm) -> Result<(), Error> {
    let (_lock, pins) = parameters::hold(algorithm)?;
    of_pins(&pins)
}

/// The same of an algorithm that will be attached with this base, if it is known, and start.
///
/// # Errors
/// [`Error::NotOfBase`], [`Error::CannotStart`].
pub fn check_start(algorithm: Algorithm, base: Option<Base>, start: StartPolicies) -> Result<(), Error> {
    if base == Some(Base::Bbr) {
        let bases = "cubic or reno".into();
        return Err(Error::NotOfBase { option: "resume", by: "--resume", base: Base::Bbr.name(), bases });
    }
    if open::paces(algorithm, Base::Cubic, start) {
        return Ok(());
    }
    Err(Error::CannotStart { algorithm: algorithm.name() })
}

/// The controls of rules that say what is known of a path, whose connections start without it nonetheless, as far as they are
/// attached.
pub fn missing_starts(rules: &[Rule]) -> BTreeSet<String> {
    let controls: BTreeSet<_> =
        rules.iter().filter(|rule| rule.choice.resume.is_some()).map(|rule| &rule.choice.control).collect();
    let cannot = |control: &&&String| {
        let pins = algorithms::find_control(control).map(Pins::new);
        pins.filter(|pins| pins.exist().unwrap_or(false)).is_some_and(|pins| of_pins(&pins).is_err())
    };
    controls.iter().filter(cannot).map(|control| (*control).clone()).collect()
}

fn of_pins(pins: &Pins) -> Result<(), Error> {
    let attachment = pins.attachment()?;
    check_start(pins.algorithm, Base::known(attachment.base), attachment.start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_paces_can_start_by_a_rule_and_what_does_not_needs_a_start_policy() {
        let double = StartPolicies::default();
        let resume = StartPolicies::from_bits(1);
        for algorithm in onramp_algorithm::all() {
            assert_eq!(check_start(algorithm, Some(Base::Reno), double).is_ok(), algorithm.paces());
            check_start(algorithm, None, resume).unwrap();
            let over_bbr = check_start(algorithm, Some(Base::Bbr), double).unwrap_err();
            assert!(matches!(over_bbr, Error::NotOfBase { .. }), "{over_bbr}");
        }
        let plain = onramp_algorithm::find("plain").unwrap();
        let error = check_start(plain, None, double).unwrap_err();
        assert!(matches!(error, Error::CannotStart { algorithm: "plain" }), "{error}");
    }
}
