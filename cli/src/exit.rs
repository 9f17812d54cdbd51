//! Exit codes.

use crate::failure;

/// The exit code of an error: that of wrong usage, or the loader's.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    failure::code(error, onramp_loader::Error::exit_code)
}
