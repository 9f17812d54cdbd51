// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Columns of a table in text.

/// The fields of a line, each of which may be quoted.
pub(super) fn fields(line: &str, separator: char) -> impl Iterator<Item = &str> {
    line.split(separator).map(|field| field.trim().trim_matches('"'))
}

/// The names of columns in a heading, in lower case.
pub(super) fn names(heading: &str, separator: char) -> Vec<String> {
    fields(heading, separator).map(str::to_ascii_lowercase).collect()
}
