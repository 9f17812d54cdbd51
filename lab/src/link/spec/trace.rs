// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Trace files: see [`super::RateSpec::Trace`] for the format.

use std::path::{Path, PathBuf};

use onramp_recording::bounded;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One row of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Number of its line, from 1.
    pub line: usize,
    /// Microseconds from the start of the link.
    pub at_us: u64,
    /// Rate from then on, bit/s.
    pub rate_bps: u64,
    /// Propagation delay from then on, microseconds, if the row has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_us: Option<u64>,
}

/// What can be wrong with a trace file.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read trace {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is not a row.
    #[error("trace {path}, line {line}: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// There is no row.
    #[error("trace {path} has no row: expected lines of time_us,rate_bps[,delay_us]")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Reads a trace file.
pub(super) fn load(path: &Path) -> Result<Vec<Row>, TraceError> {
    let text = bounded::read_text(path).map_err(|source| TraceError::Read { path: path.into(), source })?;
    parse(&text, path)
}

fn parse(text: &str, path: &Path) -> Result<Vec<Row>, TraceError> {
    let mut rows: Vec<Row> = Vec::new();
    for (line, content) in (1..).zip(text.lines().map(str::trim)) {
        let heading = rows.is_empty() && content.starts_with("time_us");
        if content.is_empty() || content.starts_with('#') || heading {
            continue;
        }
        let failed = |reason| TraceError::Line { path: path.into(), line, reason };
        rows.push(row(line, content, rows.last()).map_err(failed)?);
    }
    if rows.is_empty() {
        return Err(TraceError::Empty { path: path.into() });
    }
    Ok(rows)
}

fn row(line: usize, content: &str, last: Option<&Row>) -> Result<Row, String> {
    let number = |name: &str, text: &str| {
        let text = text.trim();
        text.parse::<u64>().map_err(|_| format!("{name} = {text:?} is not a whole number of at least 0"))
    };
    let fields: Vec<_> = content.split(',').collect();
    let (at_us, rate_bps, delay_us) = match fields[..] {
        [at, rate] => (at, rate, None),
        [at, rate, delay] => (at, rate, Some(number("delay_us", delay)?)),
        _ => return Err(format!("{} fields: expected time_us,rate_bps[,delay_us]", fields.len())),
    };
    let (at_us, rate_bps) = (number("time_us", at_us)?, number("rate_bps", rate_bps)?);
    let within = |name: &str, value, range| {
        super::within(name.to_owned(), value, range).map_err(|error| error.to_string())
    };
    within("time_us", at_us, 0..=super::LATEST_US)?;
    match last {
        None if at_us != 0 => Err(format!("time_us = {at_us}: expected 0 in the first row")),
        Some(last) if at_us <= last.at_us => {
            Err(format!("time_us = {at_us}: expected more than {}, that of the row before", last.at_us))
        }
        Some(last) if last.delay_us.is_some() != delay_us.is_some() => {
            Err("delay_us must be in every row or in none".into())
        }
        _ if rate_bps != 0 && !super::RATES_BPS.contains(&rate_bps) => {
            let (low, high) = (super::RATES_BPS.start(), super::RATES_BPS.end());
            Err(format!("rate_bps = {rate_bps} is out of range: expected 0 or {low} to {high}"))
        }
        _ => {
            within("delay_us", delay_us.unwrap_or_default(), super::DELAYS_US)?;
            Ok(Row { line, at_us, rate_bps, delay_us })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text, Path::new("x.csv")).unwrap_err().to_string()
    }

    #[test]
    fn rows_comments_and_a_heading_are_read() {
        let rows =
            parse("# Tuesday\ntime_us,rate_bps\n0,1000\n\n 10 , 0 \n20,2000\n", Path::new("x")).unwrap();
        let row = |line, at_us, rate_bps| Row { line, at_us, rate_bps, delay_us: None };
        assert_eq!(rows, [row(3, 0, 1_000), row(5, 10, 0), row(6, 20, 2_000)]);
        assert_eq!(parse("0,1000,5", Path::new("x")).unwrap()[0].delay_us, Some(5));
    }

    #[test]
    fn a_bad_row_is_named_by_its_line() {
        assert_eq!(
            error("0,1000\n#\n5"),
            "trace x.csv, line 3: 1 fields: expected time_us,rate_bps[,delay_us]"
        );
        assert!(error("0,1000\n5,-3").contains("line 2: rate_bps = \"-3\" is not a whole number"));
        assert!(error("0,1000\n5,1e9").contains("line 2: rate_bps = \"1e9\""));
        assert!(error("5,1000").contains("line 1: time_us = 5: expected 0"));
        assert!(error("0,1000\n0,1000").contains("line 2: time_us = 0: expected more than 0"));
        assert!(error("0,1000\n1,1000,3").contains("line 2: delay_us must be in every row or in none"));
        assert!(error("0,999").contains("line 1: rate_bps = 999 is out of range: expected 0 or 1000 to"));
        assert!(error("0,1000\ntime_us,rate_bps").contains("line 2: time_us = \"time_us\""));
        assert!(
            error("0,1000\n1000000000001,1000").contains("line 2: time_us = 1000000000001 is out of range")
        );
        assert!(
            error("0,1000,10000001")
                .contains("line 1: delay_us = 10000001 is out of range: expected 0 to 10000000")
        );
        assert!(error("# nothing\n").contains("has no row"));
    }
}
