// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which column holds what.

use crate::rows::{ACK_FLAGS, AckRow};
use crate::table::Row;

/// Columns that every file needs; the last may be given as `flags`.
const REQUIRED: [&str; 8] = [
    "at_us",
    "acknowledged_bytes",
    "sent_bytes",
    "rtt_us",
    "cwnd_segments",
    "in_flight_segments",
    "mss_bytes",
    "app_limited",
];
/// Columns of a recording's table that say what was answered then, not what was asked.
const ANSWERS: [&str; 1] = ["sequence"];

/// Position of every column that is used.
pub(super) struct Header {
    names: Vec<Option<&'static str>>,
    /// Columns of no known name.
    pub ignored: Vec<String>,
}

impl Header {
    /// From the names in the first line.
    pub fn new<'a>(given: impl Iterator<Item = &'a str>, ignore_unknown: bool) -> Result<Self, String> {
        let mut header = Self { names: Vec::new(), ignored: Vec::new() };
        for name in given {
            let name = name.trim_start_matches('\u{feff}');
            let known =
                known().find(|(known, former)| [*known, *former].contains(&name)).map(|(known, _)| known);
            if let Some(known) = known.filter(|known| header.has(known)) {
                return Err(format!("column {known} is there twice"));
            }
            if known.is_none() && !name.starts_with("verdict_") {
                header.ignored.push(name.to_owned());
            }
            header
                .names
                .push(known.filter(|known| !ANSWERS.contains(known) && !known.starts_with("verdict_")));
        }
        let stated = |name: &&str| header.has(name) || (*name == "app_limited" && header.has("flags"));
        let missing: Vec<_> = REQUIRED.into_iter().filter(|name| !stated(name)).collect();
        if !missing.is_empty() {
            return Err(format!(
                "its first line lacks the columns {}; needed are {} (or flags in place of the last)",
                missing.join(", "),
                REQUIRED.join(", ")
            ));
        }
        if header.has("flags") && ACK_FLAGS.iter().any(|flag| header.has(flag)) {
            return Err(format!(
                "it has both flags and one of {}: give one or the other",
                ACK_FLAGS.join(", ")
            ));
        }
        if !header.ignored.is_empty() && !ignore_unknown {
            return Err(format!(
                "columns {} are not known; known are {}. To ignore them: --ignore-unknown",
                header.ignored.join(", "),
                known()
                    .map(|(name, _)| name)
                    .filter(|name| !name.starts_with("verdict_"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
        }
        Ok(header)
    }

    /// Whether there is a column of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(&Some(name))
    }

    /// The columns in the order of the file; none: not used.
    pub fn columns(&self) -> &[Option<&'static str>] {
        &self.names
    }
}

/// Names, each with that of schema 1. A flag of [`ACK_FLAGS`] may have a column of its own.
fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    let columns = AckRow::COLUMNS.iter().map(|spec| (spec.name, spec.former));
    columns.chain(ACK_FLAGS.map(|flag| (flag, flag)))
}
