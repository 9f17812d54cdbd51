//! Results of the lab, read back.

use std::path::{Path, PathBuf};

use anyhow::Context;
use onramp_files::bounded;
use onramp_lab::experiment::Comparison;

use crate::failure::Usage;

/// The result in a run's directory.
const RESULT: &str = "result.json";
/// What lies next to it, and says how it was made.
const MANIFEST: &str = "manifest.json";

/// Where a directory, or what lies in it, has the result.
pub(super) fn file(given: &Path) -> PathBuf {
    if given.is_dir() {
        given.join(RESULT)
    } else if given.file_name().is_some_and(|name| name == MANIFEST) {
        given.with_file_name(RESULT)
    } else {
        given.to_owned()
    }
}

/// Whether a directory, or what lies in it, has a result, or a file may be one.
pub(crate) fn is_at(given: &Path) -> bool {
    let file = file(given);
    if file == given { file.extension().is_some_and(|extension| extension == "json") } else { file.exists() }
}

/// A result: its file, the directory that it is in, or the manifest next to it; `-` is standard input.
pub(crate) fn read(given: &Path) -> anyhow::Result<Comparison> {
    let file = file(given);
    let name = bounded::name(&file);
    let text = bounded::read_text(&file).with_context(|| format!("cannot read {name}"))?;
    if text.trim().is_empty() {
        return Err(Usage::error(format!("{name} is no result of the lab: it is empty")));
    }
    serde_json::from_str(&text).map_err(|error| {
        Usage::error(format!(
            "{name} is no result of the lab ({RESULT} of `onramp lab run` or `compare`): {error}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_and_its_manifest_stand_for_the_result_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        for given in [path.to_owned(), path.join(MANIFEST), path.join(RESULT)] {
            assert_eq!(file(&given), path.join(RESULT));
        }
        assert_eq!(file(&path.join("other.json")), path.join("other.json"));
    }
}
