// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Round-trip times over time that others have measured, as tables with names of their columns.

use super::measured::shown;
use super::{DELAYS_US, LATEST_US};

/// Names of columns with times, and how many microseconds one of their units has; the first that is there is used.
const TIMES: [(&str, f64); 7] = [
    ("relative_seconds", 1e6),
    ("seconds", 1e6),
    ("time_us", 1.0),
    ("time_ms", 1e3),
    ("time_s", 1e6),
    ("since", 1e6),
    ("timestamp", 1e6),
];
/// The same of round-trip times.
const ROUND_TRIPS: [(&str, f64); 3] = [("rtt_us", 1.0), ("rtt_ms", 1e3), ("rtt", 1e3)];

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
        text.lines().next().is_some_and(|head| head.contains(','))
    }

    /// Reads a table: `relative_seconds,rtt`, in seconds and milliseconds, and what other columns there are. Fields that are
    /// blank or below 0 are probes that were lost. Of each interval of `interval_us` the least counts, for what is above it
    /// waited for other traffic.
    ///
    /// # Errors
    /// The line, and what is wrong with it.
    pub fn read(text: &str, interval_us: u64) -> Result<Self, String> {
        let mut lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
        let (_, head) = lines.next().ok_or("it is empty")?;
        let names = |of: &[(&str, f64)]| of.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let wanted = |what: &str, of: &[(&str, f64)]| {
            format!("it has no column of {what}: name it one of {}", names(of))
        };
        let (time, time_unit) = column(head, &TIMES).ok_or_else(|| wanted("times", &TIMES))?;
        let (rtt, rtt_unit) = column(head, &ROUND_TRIPS).ok_or_else(|| wanted("RTTs", &ROUND_TRIPS))?;
        let (mut steps, mut begin, mut end_us): (Vec<(u64, u64)>, f64, u64) = (Vec::new(), 0.0, 0);
        for (number, line) in lines {
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            let value = |at: usize, unit: f64| {
                let text = fields.get(at).copied().unwrap_or_default();
                text.parse::<f64>()
                    .map(|value| value * unit)
                    .map_err(|_| format!("line {number}: {text:?} is no number"))
            };
            if fields.get(rtt).is_none_or(|field| field.is_empty()) {
                continue;
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

/// Where a line has the first of these names.
fn column(head: &str, names: &[(&str, f64)]) -> Option<(usize, f64)> {
    let columns: Vec<String> = head.split(',').map(|name| name.trim().to_ascii_lowercase()).collect();
    names.iter().find_map(|(name, unit)| Some((columns.iter().position(|column| column == name)?, *unit)))
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
