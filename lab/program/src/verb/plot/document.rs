//! Results and reports as documents.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use onramp_files::bounded;
use onramp_lab::page::{self, Opened, Shown};
use serde_json::Value;

use crate::failure::{self, Usage};
use crate::verb::result;

/// The document of these files: results next to each other, or one report.
pub(super) fn of_files(files: &[PathBuf]) -> anyhow::Result<String> {
    let mut opened = files.iter().map(|file| open(file)).collect::<anyhow::Result<Vec<_>>>()?;
    let reports = opened.iter().filter(|one| is_report(&one.json)).count();
    let shown = match (reports, opened.len()) {
        (0, _) => Shown::Results(opened),
        (1, 1) => Shown::Report(opened.remove(0)),
        _ => return Err(Usage::error("a report has a document of its own: give it alone")),
    };
    document(&shown)
}

/// Writes the document of a result next to it; none where this program was built without its page.
pub(in crate::verb) fn write(directory: &Path) -> anyhow::Result<Option<PathBuf>> {
    if !page::is_built() {
        return Ok(None);
    }
    let file = directory.join("results.html");
    let text = document(&Shown::Results(vec![open(directory)?]))?;
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(Some(file))
}

fn document(shown: &Shown) -> anyhow::Result<String> {
    page::document(shown)?.ok_or_else(|| {
        anyhow!("this onramp-lab was built without its page: build it with `make build`, which needs Node.js")
    })
}

fn open(given: &Path) -> anyhow::Result<Opened> {
    let file = result::file(given);
    let name = bounded::name(&file);
    let text = bounded::read_text(&file).map_err(|error| failure::unread(&name, &error))?;
    let refuse = |why: String| {
        Usage::error(format!(
            "{name} is neither a result of the lab or the simulator nor a report of `onramp replay` or `onramp shadow`: {why}"
        ))
    };
    let json: Value = serde_json::from_str(&text).map_err(|error| refuse(result::not_read(&error)))?;
    result::check_schema(&name, json["schema"].as_u64())?;
    if !is_result(&json) && !is_report(&json) {
        return Err(refuse("it has no `arms` with `runs`, and no `flows` with `findings`".into()));
    }
    let arms: Vec<&str> = array(&json, "arms").filter_map(|arm| arm["arm"].as_str()).collect();
    let flows = if given.is_dir() {
        page::flows(given, &arms).with_context(|| format!("cannot read the flows in {}", given.display()))?
    } else {
        std::collections::BTreeMap::new()
    };
    Ok(Opened { name: bounded::name(given).to_string(), flows, json })
}

fn array<'a>(json: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    json[name].as_array().into_iter().flatten()
}

/// What `lab run`, `lab compare` and `sim compare` print.
fn is_result(json: &Value) -> bool {
    let mut arms = array(json, "arms").peekable();
    let is_arm = |arm: &Value| arm["arm"].is_string() && arm["runs"].is_array();
    json["bdp_bytes"].is_number() && arms.peek().is_some() && arms.all(is_arm)
}

/// What `replay` and `shadow` print.
fn is_report(json: &Value) -> bool {
    let mut flows = array(json, "flows").peekable();
    flows.peek().is_some() && flows.all(|flow| flow["findings"].is_array())
}
