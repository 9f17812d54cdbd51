// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which column holds what.

use onramp_algorithm::did_you_mean;

use crate::rows::{ACK_FLAGS, AckRow};
use crate::table::Row;

/// Columns that every file needs; the last may be given as `flags`.
pub(super) const REQUIRED: [&str; 8] = [
    "at_us",
    "acknowledged_bytes",
    "sent_bytes",
    "rtt_us",
    "cwnd_segments",
    "in_flight_segments",
    "mss_bytes",
    "app_limited",
];
/// Names that are quoted where columns are missing, at most.
const GIVEN: usize = 12;
/// Columns of a recording's table with the answers of then, not with the arguments.
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
            let known = known_as(name);
            if let Some(known) = known.filter(|known| header.has(known)) {
                return Err(format!("column {known} is there twice"));
            }
            // Rows' numbers of pandas and R have no name.
            let unnamed = name.is_empty() || name == "Unnamed: 0";
            if known.is_none() && !unnamed && !name.starts_with("verdict_") {
                header.ignored.push(name.to_owned());
            }
            header
                .names
                .push(known.filter(|known| !ANSWERS.contains(known) && !known.starts_with("verdict_")));
        }
        let stated = |name: &&str| header.has(name) || (*name == "app_limited" && header.has("flags"));
        let missing: Vec<_> = REQUIRED.into_iter().filter(|name| !stated(name)).collect();
        if !missing.is_empty() {
            let given: Vec<&str> = header.ignored.iter().map(String::as_str).take(GIVEN).collect();
            let given =
                if given.is_empty() { String::new() } else { format!("; it has {}", given.join(", ")) };
            return Err(format!(
                "its first line lacks the columns {}{given}; needed are {} (or flags in place of the last)",
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
            let hint = header.ignored.iter().map(|name| meant(name)).find(|hint| !hint.is_empty());
            return Err(format!(
                "columns {} are not known{}; known are {}. To ignore them: --ignore-unknown",
                header.ignored.join(", "),
                hint.unwrap_or_default(),
                known().filter(|name| !name.starts_with("verdict_")).collect::<Vec<_>>().join(", ")
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

/// The column of this name, in capitals or not.
pub(super) fn known_as(name: &str) -> Option<&'static str> {
    known().find(|known| known.eq_ignore_ascii_case(name))
}

/// What may have been meant by a name: where only the unit is missing, the column with it.
fn meant(name: &str) -> String {
    let units = known().filter(|known| known.strip_prefix(name).is_some_and(|rest| rest.starts_with('_')));
    let quantities: Vec<&str> = units.filter(|known| !ACK_FLAGS.contains(known)).collect();
    if quantities.is_empty() { did_you_mean(name, known()) } else { did_you_mean(name, quantities) }
}

/// Names of columns. A flag of [`ACK_FLAGS`] may have a column of its own.
fn known() -> impl Iterator<Item = &'static str> {
    AckRow::COLUMNS.iter().map(|spec| spec.name).chain(ACK_FLAGS)
}
