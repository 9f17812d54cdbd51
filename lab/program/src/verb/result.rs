//! Results of the lab, read back.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use onramp_files::bounded;
use onramp_lab::experiment::Comparison;
use onramp_terminal::output::SCHEMA;
use serde::Deserialize;
use serde_json::error::Category;

use crate::failure::{self, Usage};

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
    let text = bounded::read_text(&file).map_err(|error| failure::unread(&name, &error))?;
    if text.trim().is_empty() {
        return Err(Usage::error(format!("{name} is no result of the lab: it is empty")));
    }
    #[derive(Deserialize)]
    struct Versioned {
        schema: Option<u64>,
    }
    let refuse = |error| {
        let what = not_read(&error);
        Usage::error(format!(
            "{name} is no result of the lab ({RESULT} of `onramp lab run` or `compare`): {what}"
        ))
    };
    let Versioned { schema } = serde_json::from_str(&text).map_err(refuse)?;
    check_schema(&name, schema)?;
    serde_json::from_str(&text).map_err(refuse)
}

/// Refuses a file that another version has written in another form.
pub(super) fn check_schema(name: impl Display, schema: Option<u64>) -> anyhow::Result<()> {
    match schema.filter(|schema| *schema != u64::from(SCHEMA)) {
        None => Ok(()),
        Some(found) => Err(Usage::error(format!(
            "{name} has schema {found}, and this build of onramp reads schema {SCHEMA}: use the build that wrote it"
        ))),
    }
}

/// Why JSON could not be read.
pub(super) fn not_read(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Eof => "it ends within its JSON".into(),
        Category::Syntax | Category::Io => {
            format!("it is not JSON, from line {}, column {} on", error.line(), error.column())
        }
        Category::Data => format!("it has another form: {error}"),
    }
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

    #[test]
    fn what_is_none_is_refused_with_what_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result.json");
        for (text, says) in [
            (r#"{"schema": 9, "arms": []}"#, "schema 9, and this build of onramp reads schema 1"),
            (r#"{"schema": 1, "arms": []"#, "ends within"),
            ("\nno", "line 2, column 2"),
            (r#"{"schema": 1}"#, "missing field"),
            (" ", "empty"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("result.json"), "{text}: {error}");
        }
    }
}
