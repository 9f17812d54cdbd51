//! Exit codes.

use crate::failure;

/// The exit code of an error: that of wrong usage, also of a recording that is none, or the loader's.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    if error.downcast_ref().is_some_and(onramp_recording::Error::is_usage) {
        return failure::USAGE;
    }
    failure::code(error, onramp_loader::Error::exit_code)
}
