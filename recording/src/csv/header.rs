// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which column holds what.

use crate::rows::AckRow;
use crate::table::Row;

/// Columns that every file needs; the last may be given as `flags`.
const REQUIRED: [&str; 8] =
    ["now_us", "bytes_acked", "bytes_sent", "rtt_us", "cwnd", "in_flight", "mss", "app_limited"];
/// Bits of `flags` that may have a column each, lowest bit first.
pub(super) const FLAGS: [&str; 4] = ["app_limited", "rate_app_limited", "cwnd_limited", "paced"];
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
            let known = known().find(|known| *known == name);
            if known.is_some_and(|known| header.has(known)) {
                return Err(format!("column {name} is there twice"));
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
        if header.has("flags") && FLAGS.iter().any(|flag| header.has(flag)) {
            return Err(format!("it has both flags and one of {}: give one or the other", FLAGS.join(", ")));
        }
        if !header.ignored.is_empty() && !ignore_unknown {
            return Err(format!(
                "columns {} are not known; known are {}. To ignore them: --ignore-unknown",
                header.ignored.join(", "),
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

fn known() -> impl Iterator<Item = &'static str> {
    AckRow::COLUMNS.iter().map(|spec| spec.name).chain(FLAGS)
}
