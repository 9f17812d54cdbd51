// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Trace files: see [`super::RateSpec::Trace`] for the format.

use std::path::{Path, PathBuf};

use onramp_files::bounded;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::columns::names;

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
        /// Reason.
        source: std::io::Error,
    },
    /// A line is not a row.
    #[error("trace {path}, line {line}: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Reason.
        reason: String,
    },
    /// It is no trace of mahimahi.
    #[error("{path} is no trace of mahimahi: {reason}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Reason.
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
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let failed = |reason| TraceError::Line { path: path.into(), line, reason };
        if rows.is_empty() && is_heading(content) {
            let columns = names(content, ',');
            if columns != COLUMNS[..2] && columns != COLUMNS {
                return Err(failed(format!(
                    "its columns are {content}; expected time_us,rate_bps[,delay_us]"
                )));
            }
            continue;
        }
        if rows.is_empty()
            && let Some(other) = of_others(text)
        {
            return Err(failed(format!("this is {other}; expected time_us,rate_bps[,delay_us]")));
        }
        rows.push(row(line, content, rows.last()).map_err(failed)?);
    }
    if rows.is_empty() {
        return Err(TraceError::Empty { path: path.into() });
    }
    Ok(rows)
}

/// The columns of a trace, of which the last may be missing.
const COLUMNS: [&str; 3] = ["time_us", "rate_bps", "delay_us"];

fn is_heading(line: &str) -> bool {
    names(line, ',').first().is_some_and(|first| first == COLUMNS[0])
}

/// Lines by which the form of a trace is recognised.
const SAMPLE: usize = 8;

/// The form of other people's traces.
fn of_others(text: &str) -> Option<&'static str> {
    let ours = |line: &str| line.is_empty() || line.starts_with('#') || is_heading(line);
    let lines = text.lines().map(str::trim).filter(|line| !ours(line));
    let lines: Vec<&str> = lines.take(SAMPLE).collect();
    let all = |holds: fn(&str) -> bool| lines.iter().all(|line| holds(line));
    let first = lines.first()?;
    let by_blanks =
        |line: &str| line.split_whitespace().map(str::parse::<f64>).collect::<Result<Vec<_>, _>>();
    let commas_are_missing = |separator: char| first.contains(separator) && !first.contains(',');
    if all(|line| line.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(
            "a trace of mahimahi, a time in ms for each packet that may be sent: `kind = \"mahimahi\"` takes it, and `onramp lab profile \
             import` makes a profile of it",
        )
    } else if lines.iter().all(|line| by_blanks(line).is_ok_and(|fields| fields.len() == 2)) {
        Some(
            "two numbers separated by blanks, as traces of Pensieve have them (seconds and Mbit/s): `onramp lab profile import` makes a profile of it",
        )
    } else if commas_are_missing(';') || commas_are_missing('\t') {
        Some("separated by semicolons or tabs: separate by commas")
    } else if first.to_ascii_lowercase().contains("rtt") {
        Some(
            "a series of round-trip times, which says no rate: `onramp lab profile import --rate` makes a profile of it",
        )
    } else if first.contains(',') && first.chars().any(char::is_alphabetic) {
        Some("a table with columns of other names")
    } else {
        None
    }
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
        let quoted = parse("\"Time_us\", \"rate_bps\",\"delay_us\"\n0,1000,5", Path::new("x")).unwrap();
        assert_eq!(quoted[0].delay_us, Some(5));
    }

    #[test]
    fn a_heading_with_other_columns_is_refused_with_them() {
        for heading in [
            "time_us,rate_bps,foo",
            "time_us,rate_bps,rate_bps",
            "time_us",
            "time_us,delay_us",
            "time_us,rate_bps,delay_us,x",
        ] {
            let error = error(&format!("{heading}\n0,1000,5\n"));
            assert!(
                error.contains("line 1") && error.contains(&format!("columns are {heading};")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_byte_order_mark_is_passed_over_and_utf_16_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rates.csv");
        std::fs::write(&path, "\u{feff}time_us,rate_bps\r\n0,10000000\r\n1000000,20000000\r\n").unwrap();
        assert_eq!(load(&path).unwrap().len(), 2);
        std::fs::write(&path, b"\xff\xfe0\0,\x001\0\n\0").unwrap();
        assert!(load(&path).unwrap_err().to_string().contains("UTF-16"));
    }

    #[test]
    fn traces_of_others_are_named() {
        for (text, named) in [
            ("0\n3\n3\n7\n", "line 1: this is a trace of mahimahi"),
            (
                "0.0\t1.15\n0.5\t0.98\n",
                "line 1: this is two numbers separated by blanks, as traces of Pensieve",
            ),
            (
                "since,relative_seconds,rtt\n1700000000.000,0.00,35.662\n",
                "line 1: this is a series of round-trip",
            ),
            ("# of today\ntime_us;rate_bps\n0;1000\n", "separated by semicolons"),
            ("seconds,mbit\n0,3\n", "line 1: this is a table with columns of other names"),
        ] {
            let said = error(text);
            assert!(said.contains(named) && said.contains("expected time_us,rate_bps"), "{said}");
        }
        assert_eq!(parse("TIME_US,RATE_BPS\n0,1000\n", Path::new("x")).unwrap().len(), 1);
    }

    #[test]
    fn a_bad_row_is_named_by_its_line() {
        assert_eq!(
            error("0,1000\n#\n5"),
            "trace x.csv, line 3: 1 fields: expected time_us,rate_bps[,delay_us]"
        );
        assert!(error("0,1000\n5,-3").contains("line 2: rate_bps = \"-3\""));
        assert!(error("0,1000\n5,1e9").contains("line 2: rate_bps = \"1e9\""));
        assert!(error("5,1000").contains("line 1: time_us = 5"));
        assert!(error("0,1000\n0,1000").contains("line 2: time_us = 0"));
        assert!(error("0,1000\n1,1000,3").contains("line 2: delay_us"));
        assert!(error("0,999").contains("line 1: rate_bps = 999"));
        assert!(error("0,1000\ntime_us,rate_bps").contains("line 2: time_us = \"time_us\""));
        assert!(error("0,1000\n1000000000001,1000").contains("line 2: time_us = 1000000000001"));
        assert!(error("0,1000,10000001").contains("line 1: delay_us = 10000001"));
        assert!(error("# nothing\n").contains("has no row"));
    }
}
