// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Round-trip times over time that others have measured, as tables with names of their columns.

use super::columns::{fields, names};
use super::measured::shown;
use super::{DELAYS_US, LATEST_US};

/// Microseconds.
const SECOND_US: f64 = 1e6;
/// What separates columns.
const SEPARATORS: [char; 3] = [',', ';', '\t'];
/// Names of columns with times, and how many microseconds one of their units has; the first that is there is used.
const TIMES: [(&str, f64); 7] = [
    ("relative_seconds", SECOND_US),
    ("seconds", SECOND_US),
    ("time_us", 1.0),
    ("time_ms", 1e3),
    ("time_s", SECOND_US),
    ("since", SECOND_US),
    ("timestamp", SECOND_US),
];
/// The same of round-trip times.
const ROUND_TRIPS: [(&str, f64); 3] = [("rtt_us", 1.0), ("rtt_ms", 1e3), ("rtt", 1e3)];

/// Times since 1970 in another unit than seconds are at least so large, and how many microseconds one of it has.
const OF_DATES: [(f64, f64); 3] = [(1e17, 1e-3), (1e14, 1.0), (1e11, 1e3)];

/// The round-trip time of the empty path over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundTrips {
    /// From which time on it is how long, microseconds: the least of each interval. In order of time, the first at 0,
    /// neighbours different.
    pub steps: Vec<(u64, u64)>,
    /// When it begins anew, microseconds.
    pub repeat_us: u64,
}

impl RoundTrips {
    /// Whether a text is a table; no trace of rates is one.
    pub fn are_in(text: &str) -> bool {
        let is_head = |line: &str| line.contains(SEPARATORS) && line.contains(char::is_alphabetic);
        text.lines().next().is_some_and(is_head)
    }

    /// Reads a table: `relative_seconds,rtt`, in seconds and milliseconds, and what other columns there are, separated by commas,
    /// semicolons or tabs. Times since 1970 may be in ms, us or ns as well, which their size shows. Fields that are blank or
    /// below 0 are probes that were lost. Of each interval of `interval_us` the least counts, for what is above it waited for
    /// other traffic.
    ///
    /// # Errors
    /// The line, and what is wrong with it.
    pub fn read(text: &str, interval_us: u64) -> Result<Self, String> {
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let (_, head) = lines.next().ok_or("it is empty")?;
        let known = |of: &[(&str, f64)]| of.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let separator = SEPARATORS.into_iter().find(|one| head.contains(*one)).unwrap_or(',');
        let columns = names(head, separator);
        let wanted = |what: &str, of: &[(&str, f64)]| {
            let column = column(&columns, of)?;
            column.ok_or_else(|| format!("it has no column of {what}: name it one of {}", known(of)))
        };
        let (time, mut time_unit) = wanted("times", &TIMES)?;
        let (rtt, rtt_unit) = wanted("RTTs", &ROUND_TRIPS)?;
        let (mut steps, mut begin, mut end_us): (Vec<(u64, u64)>, f64, u64) = (Vec::new(), 0.0, 0);
        for (number, line) in lines {
            let fields: Vec<&str> = fields(line, separator).collect();
            let value = |at: usize, unit: f64| {
                let text = fields.get(at).copied().unwrap_or_default();
                text.parse::<f64>()
                    .map(|value| value * unit)
                    .map_err(|_| format!("line {number}: {text:?} is no number"))
            };
            if fields.get(rtt).is_none_or(|field| field.is_empty()) {
                continue;
            }
            if steps.is_empty() && time_unit == SECOND_US {
                let first = value(time, 1.0)?;
                let of_date = OF_DATES.into_iter().find(|(least, _)| first >= *least);
                time_unit = of_date.map_or(SECOND_US, |(_, unit)| unit);
            }
            let (at_us, rtt_us) = (value(time, time_unit)?, value(rtt, rtt_unit)?);
            if rtt_us < 0.0 {
                continue;
            }
            if steps.is_empty() {
                begin = at_us;
            }
            let at_us = at_us - begin;
            if !(0.0..=LATEST_US as f64).contains(&at_us)
                || !(1.0..=*DELAYS_US.end() as f64).contains(&rtt_us)
            {
                return Err(format!(
                    "{} is out of range: expected up to {} s after the first line, and RTTs of 1 to {} us",
                    shown(number, line),
                    LATEST_US / 1_000_000,
                    DELAYS_US.end()
                ));
            }
            let (at_us, rtt_us) = (at_us.round() as u64, rtt_us.round() as u64);
            if at_us < end_us {
                return Err(format!("{} is before the line above", shown(number, line)));
            }
            end_us = at_us;
            let interval = at_us / interval_us * interval_us;
            match steps.last_mut() {
                Some((at, least)) if *at == interval => *least = rtt_us.min(*least),
                _ => steps.push((interval, rtt_us)),
            }
        }
        if steps.is_empty() {
            return Err("it has no line with a round-trip time".into());
        }
        // The last interval is a whole one.
        let repeat_us = end_us / interval_us * interval_us + interval_us;
        steps.dedup_by_key(|(_, rtt_us)| *rtt_us);
        Ok(Self { steps, repeat_us })
    }

    /// The least of all, microseconds.
    pub fn least_us(&self) -> u64 {
        self.steps.iter().map(|(_, rtt_us)| *rtt_us).min().unwrap_or_default()
    }
}

/// Where the first of these names is; an error if it is there twice.
fn column(columns: &[String], names: &[(&str, f64)]) -> Result<Option<(usize, f64)>, String> {
    let at = |name: &str| columns.iter().position(|column| column == name);
    let Some((name, at, unit)) = names.iter().find_map(|(name, unit)| Some((name, at(name)?, *unit))) else {
        return Ok(None);
    };
    if columns[at + 1..].iter().any(|column| column == name) {
        return Err(format!("it has two columns {name}: leave one of them out"));
    }
    Ok(Some((at, unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_interval_the_least_counts_and_lost_probes_do_not() {
        let text = "since,relative_seconds,rtt\n1700000000.0,0.00,35.6\n1700000000.01,0.01,28.9\n,0.02,\n,0.05,-1\n\
            ,0.10,30\n,0.20,30\n,0.31,41.5\n";
        assert!(RoundTrips::are_in(text) && !RoundTrips::are_in("0 2.5\n0.5 3\n"));
        let read = RoundTrips::read(text, 100_000).unwrap();
        assert_eq!(read.steps, [(0, 28_900), (100_000, 30_000), (300_000, 41_500)]);
        assert_eq!((read.repeat_us, read.least_us()), (400_000, 28_900));
        for unlike in [text.replace(',', ";"), text.replace(',', "\t"), text.replace("rtt", "\"rtt\"")] {
            assert!(RoundTrips::are_in(&unlike) && !RoundTrips::are_in("0\t2.5\n0.5\t3\n"));
            assert_eq!(RoundTrips::read(&unlike, 100_000).as_ref(), Ok(&read));
        }
        for unit in ["", "000", "000000", "000000000"] {
            let text = format!("timestamp,rtt\n1700000000{unit},30\n1700000002{unit},40\n");
            assert_eq!(RoundTrips::read(&text, 100_000).unwrap().steps, [(0, 30_000), (2_000_000, 40_000)]);
        }
        let read = RoundTrips::read("time_us,rtt_us\n500,1000\n", 1_000).unwrap();
        assert_eq!((read.steps, read.repeat_us), (vec![(0, 1_000)], 1_000));
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_line() {
        for (text, what) in [
            ("", "empty"),
            ("rtt\n1\n", "no column of times: name it one of relative_seconds"),
            ("time_us,delay\n", "no column of RTTs: name it one of rtt_us, rtt_ms, rtt"),
            ("seconds,rtt\n", "no line with"),
            ("seconds,rtt,rtt\n0,5,7\n", "two columns rtt"),
            ("seconds,rtt\n0,x\n", "line 2: \"x\""),
            ("seconds,rtt\n,5\n", "line 2: \"\""),
            ("seconds,rtt\n1,5\n0,5\n", "line 3"),
            ("seconds,rtt\n1,5\n2,5\n1.5,5\n", "line 4: \"1.5,5\" is before"),
            ("seconds,rtt\n1,99999999\n", "line 2: \"1,99999999\" is out of range: expected"),
            ("seconds,rtt\nnan,5\n", "line 2"),
        ] {
            let error = RoundTrips::read(text, 100_000).unwrap_err();
            assert!(error.contains(what), "{text:?}: {error}");
        }
    }
}
