// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What stands before the rows: whether it is CSV at all, and what separates its columns.

use std::io::{self, Cursor, Read};

use super::header;
use crate::bounded::BYTE_ORDER_MARK;
use crate::kind;

/// What may separate columns; where several would do, the first.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Of these many bytes the line with the names is found.
const BEGIN: usize = 1 << 16;

/// What separates the columns, and the source from its beginning.
///
/// # Errors
/// What it is in place of CSV.
pub(super) fn read<R: Read>(mut source: R) -> Result<(u8, impl Read), String> {
    let mut begin = Vec::new();
    let failed = |error: io::Error| error.to_string();
    source.by_ref().take(BEGIN as u64).read_to_end(&mut begin).map_err(failed)?;
    if let Some(what) = kind::not_csv(&begin) {
        return Err(format!("it is {what}"));
    }
    if begin.starts_with(BYTE_ORDER_MARK) {
        begin.drain(..BYTE_ORDER_MARK.len());
    }
    let separator = separator(&mut begin)?;
    Ok((separator, Cursor::new(begin).chain(source)))
}

/// Finds it in the line with the names, and blanks what belongs neither to this nor to a row.
fn separator(begin: &mut [u8]) -> Result<u8, String> {
    let mut stated = None;
    for line in begin.split_mut(|byte| *byte == b'\n' || *byte == b'\r') {
        let text = line.trim_ascii();
        // Spreadsheets write and read `sep=;` before the names.
        if let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', separator] = text {
            stated = Some(*separator);
            // A comment, so that lines keep their numbers.
            line.fill(b'#');
            continue;
        }
        // Some comment out the names, too.
        let commented = text.starts_with(b"#");
        if text.is_empty() || (commented && names(text, SEPARATORS[0]) == 0 && best(text).is_none()) {
            continue;
        }
        let found = stated.or_else(|| best(text));
        if found.is_none() && names(text, b' ') > 1 {
            return Err(
                "its columns are separated by blanks: separate them by commas, semicolons or tabs".into()
            );
        }
        if commented && let Some(mark) = line.iter_mut().find(|byte| **byte == b'#') {
            *mark = b' ';
        }
        return Ok(found.unwrap_or(SEPARATORS[0]));
    }
    Ok(stated.unwrap_or(SEPARATORS[0]))
}

/// What makes the most names of the line, if there are two.
fn best(line: &[u8]) -> Option<u8> {
    let found = SEPARATORS.into_iter().rev().max_by_key(|separator| names(line, *separator))?;
    (names(line, found) > 1).then_some(found)
}

/// How many names of columns the line has.
fn names(line: &[u8], separator: u8) -> usize {
    let line = String::from_utf8_lossy(line);
    let parts = line.trim_start_matches('#').split(char::from(separator));
    parts.filter(|part| header::known_as(part.trim().trim_matches(['"', '\''])).is_some()).count()
}
