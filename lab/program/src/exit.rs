//! Exit codes.

use onramp_lab::experiment::ExperimentError;
use onramp_lab::guest::GuestError;
use onramp_lab::sim::SimError;
use onramp_lab::sim::sweep::SweepError;

use crate::failure;

/// The exit code of an error: that of wrong usage, or what the libraries say.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    let usage = error.downcast_ref().is_some_and(GuestError::is_usage)
        || error.downcast_ref().is_some_and(ExperimentError::is_usage)
        || error.downcast_ref().is_some_and(SimError::is_usage)
        || error.downcast_ref().is_some_and(SweepError::is_usage)
        || error.downcast_ref().is_some_and(onramp_recording::Error::is_usage);
    if usage { failure::USAGE } else { failure::code(error, onramp_loader::Error::exit_code) }
}

#[cfg(test)]
mod tests {
    use onramp_lab::guest::Series;

    use super::*;

    #[test]
    fn what_was_named_wrongly_is_wrong_usage_however_deep_it_was_found() {
        let unknown = || Series::find("5.10").unwrap_err();
        assert_eq!(code(&unknown().into()), failure::USAGE);
        assert_eq!(code(&anyhow::Error::from(unknown()).context("while trying")), failure::USAGE);
        assert_eq!(code(&ExperimentError::from(unknown()).into()), failure::USAGE);
        let plan = ExperimentError::Plan { name: "jobs", value: 17, range: "1 to 16" };
        assert_eq!(code(&SimError::from(plan).into()), failure::USAGE);
        assert_eq!(code(&GuestError::NoCache.into()), failure::FAILURE);
    }
}
