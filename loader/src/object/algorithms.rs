//! Algorithms by their names.

use onramp_algorithm::Algorithm;

use crate::system::error::Error;

/// Names of all algorithms, separated by commas.
pub(crate) fn known() -> String {
    onramp_algorithm::all().map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(", ")
}

/// The algorithm of this name; its congestion control's name (`onramp_…`) is understood too.
///
/// # Errors
/// [`Error::UnknownAlgorithm`].
pub fn find(name: &str) -> Result<Algorithm, Error> {
    onramp_algorithm::find(name).ok_or_else(|| Error::UnknownAlgorithm { name: name.into(), known: known() })
}
