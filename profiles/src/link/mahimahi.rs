// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Traces of mahimahi: see [`super::RateSpec::Mahimahi`].

use std::path::Path;

use onramp_files::bounded;

use super::measured::{Format, Measured};
use super::trace::TraceError;

/// Reads a trace of mahimahi, millisecond by millisecond.
pub(super) fn load(path: &Path) -> Result<Measured, TraceError> {
    let text = bounded::read_text(path).map_err(|source| TraceError::Read { path: path.into(), source })?;
    let foreign = |reason| TraceError::Foreign { path: path.into(), reason };
    let measured = Measured::read(&text, 1_000).map_err(foreign)?;
    if measured.format != Format::Mahimahi {
        let reason = format!(
            "it is one of {}: `onramp lab profile import` makes a profile of it",
            measured.format.name()
        );
        return Err(foreign(reason));
    }
    Ok(measured)
}
