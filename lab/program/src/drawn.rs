//! Figures as files.

use std::path::Path;

use anyhow::anyhow;
use onramp_lab::figure::Figure;

use crate::target;

/// Writes a figure as SVG; `-` is standard output.
pub(crate) fn write(path: &Path, figure: &Figure) -> anyhow::Result<()> {
    let svg = figure.svg().map_err(|error| anyhow!("cannot draw {}: {error}", path.display()))?;
    target::write(Some(path), |output| output.write_all(svg.as_bytes()))
}
