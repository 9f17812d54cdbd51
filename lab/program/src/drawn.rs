//! Figures as files.

use std::path::Path;

use anyhow::anyhow;
use onramp_files::bounded;
use onramp_lab::figure::Figure;

use crate::failure::Usage;
use crate::target;

/// Writes a figure as SVG, with its points and its script beside it; `-` is standard output, and has the SVG alone.
pub(crate) fn write(path: &Path, figure: &Figure) -> anyhow::Result<()> {
    if !bounded::is_standard(path) {
        if path.extension().is_none_or(|suffix| suffix != "svg") {
            let script = path.with_extension("py");
            return Err(Usage::error(format!(
                "{}: a figure is written as NAME.svg; {} then draws it as PDF or PNG",
                path.display(),
                script.display()
            )));
        }
        return Ok(figure.write(path)?);
    }
    let svg = figure.svg().map_err(|error| anyhow!("cannot draw {}: {error}", path.display()))?;
    target::write(Some(path), |output| output.write_all(svg.as_bytes()))
}
