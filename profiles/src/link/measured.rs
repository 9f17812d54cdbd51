// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Rates over time that others have measured, in their own formats.

use super::rate::RateStep;
use super::{LATEST_US, RATES_BPS};

/// What a mahimahi trace sends at each of its times: a packet of so many bytes (mm-link(1)).
const PACKET_BITS: u64 = 1_500 * 8;

/// Most intervals over which packets are counted.
const INTERVALS_MAX: u64 = 1_000_000;

/// Formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Of mahimahi (Netravali et al. 2015), Pantheon and Sprout: on each line the millisecond at which one packet of 1,500
    /// bytes may be sent. It begins anew after its last line.
    Mahimahi,
    /// Of Pensieve (Mao et al. 2017): on each line the seconds since some moment and Mbit/s from then on.
    Pensieve,
}

/// A measured rate over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// In which format it was written.
    pub format: Format,
    /// The rates, in order of time, the first at 0, neighbours different. A rate of 0 is an outage.
    pub steps: Vec<RateStep>,
    /// When it begins anew, microseconds.
    pub repeat_us: u64,
}

impl Format {
    /// By the numbers of a line; `None`: it is of neither.
    fn of(line: &str) -> Option<Self> {
        let numbers = line.split_whitespace().map(str::parse::<f64>).collect::<Result<Vec<_>, _>>();
        match numbers.ok()?.len() {
            1 => Some(Self::Mahimahi),
            2 => Some(Self::Pensieve),
            _ => None,
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mahimahi => "mahimahi",
            Self::Pensieve => "Pensieve",
        }
    }
}

impl Measured {
    /// Reads a trace. Of packets at their times the rate is counted over intervals of `interval_us`, 1,000 to 10,000,000.
    ///
    /// # Errors
    /// The line, and what is wrong with it; or that the text is of neither format.
    pub fn read(text: &str, interval_us: u64) -> Result<Self, String> {
        let lines: Vec<(usize, &str)> = (1..)
            .zip(text.lines().map(str::trim))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .collect();
        let (number, first) = lines.first().ok_or("it has no line with a number")?;
        let format = Format::of(first).ok_or_else(|| {
            format!(
                "{} is neither a time in ms, as traces of mahimahi have it, nor seconds and Mbit/s separated by blanks, as \
                 those of Pensieve{}",
                shown(*number, first),
                looks_like(first)
            )
        })?;
        let (steps, repeat_us) = match format {
            Format::Mahimahi => packets(&lines, interval_us)?,
            Format::Pensieve => rates(&lines)?,
        };
        if repeat_us > LATEST_US {
            return Err(format!("it lasts {repeat_us} us: expected {LATEST_US} at most"));
        }
        if steps.iter().all(|step| step.rate_bps == 0) {
            return Err("it has no rate above 0".into());
        }
        let mut measured = Self { format, steps, repeat_us };
        measured.steps.dedup_by_key(|step| step.rate_bps);
        Ok(measured)
    }
}

/// Characters of a line that are quoted.
const QUOTED: usize = 60;

/// A line by its number, and as it begins.
pub(super) fn shown(number: usize, line: &str) -> String {
    let rest = if line.chars().count() > QUOTED { "…" } else { "" };
    let begin: String = line.chars().take(QUOTED).collect();
    format!("line {number}: {begin:?}{rest}")
}

/// What it may be in place of a trace.
fn looks_like(line: &str) -> &'static str {
    if line.starts_with(['{', '[']) {
        "; it looks like JSON"
    } else if line.contains(',') {
        "; it looks like CSV"
    } else {
        ""
    }
}

/// The rate of packets that leave at times in milliseconds, over intervals of this length; the last may be shorter.
fn packets(lines: &[(usize, &str)], interval_us: u64) -> Result<(Vec<RateStep>, u64), String> {
    let mut times_us: Vec<u64> = Vec::with_capacity(lines.len());
    for (number, line) in lines {
        let ms: u64 =
            line.parse().map_err(|_| format!("{} is not a whole number of ms", shown(*number, line)))?;
        let at_us = ms.saturating_mul(1_000);
        if at_us > LATEST_US {
            return Err(format!(
                "line {number}: {ms} ms is out of range: expected {} at most",
                LATEST_US / 1_000
            ));
        }
        if times_us.last().is_some_and(|last| at_us < *last) {
            return Err(format!("line {number}: {ms} ms is before the line above"));
        }
        times_us.push(at_us);
    }
    let end_us = times_us.last().copied().unwrap_or_default();
    if end_us == 0 {
        return Err("its last time is 0 ms, so it has no length".into());
    }
    let intervals = end_us.div_ceil(interval_us);
    if intervals > INTERVALS_MAX {
        return Err(format!(
            "it has {intervals} intervals of {interval_us} us: expected {INTERVALS_MAX} at most, so give a longer --interval"
        ));
    }
    let mut counts = vec![0; intervals as usize];
    let last = counts.len() - 1;
    for at_us in times_us {
        // What is sent at the very end is of the last interval.
        counts[((at_us / interval_us) as usize).min(last)] += 1;
    }
    let step = |(number, count): (u64, u64)| {
        let at_us = number * interval_us;
        let length_us = interval_us.min(end_us - at_us);
        RateStep { at_us, rate_bps: in_range(count * PACKET_BITS * 1_000_000 / length_us) }
    };
    Ok(((0..).zip(counts).map(step).collect(), end_us))
}

/// Rates in Mbit/s from times in seconds on; the last holds as long as the one before it.
fn rates(lines: &[(usize, &str)]) -> Result<(Vec<RateStep>, u64), String> {
    let mut steps: Vec<RateStep> = Vec::with_capacity(lines.len());
    let mut begin = 0.0;
    for (number, line) in lines {
        let numbers = line.split_whitespace().map(str::parse::<f64>).collect::<Result<Vec<_>, _>>();
        let Ok([seconds, mbps]) = numbers.as_deref() else {
            return Err(format!("{} is not seconds and Mbit/s", shown(*number, line)));
        };
        if steps.is_empty() {
            begin = *seconds;
        }
        let (at_us, bps) = ((seconds - begin) * 1e6, mbps * 1e6);
        if !(0.0..=LATEST_US as f64).contains(&at_us) || !(0.0..=*RATES_BPS.end() as f64).contains(&bps) {
            return Err(format!(
                "{} is out of range: expected up to {} s after the first line, and 0 to {} Mbit/s",
                shown(*number, line),
                LATEST_US / 1_000_000,
                RATES_BPS.end() / 1_000_000
            ));
        }
        let (at_us, rate_bps) = (at_us.round() as u64, in_range(bps.round() as u64));
        if steps.last().is_some_and(|last| at_us <= last.at_us) {
            return Err(format!("line {number}: {seconds} s is not after the line above"));
        }
        steps.push(RateStep { at_us, rate_bps });
    }
    let [.., before, last] = &steps[..] else { return Err("it has one line: expected two or more".into()) };
    let end_us = last.at_us + (last.at_us - before.at_us);
    Ok((steps, end_us))
}

/// A rate that links can have: less than the least is none.
fn in_range(bps: u64) -> u64 {
    if bps < *RATES_BPS.start() { 0 } else { bps.min(*RATES_BPS.end()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> (Format, Vec<(u64, u64)>, u64) {
        let Measured { format, steps, repeat_us } = Measured::read(text, 100_000).unwrap();
        (format, steps.iter().map(|step| (step.at_us, step.rate_bps)).collect(), repeat_us)
    }

    #[test]
    fn packets_at_their_milliseconds_become_rates() {
        // Ten packets in 100 ms, none in the next, five in the half of an interval that is left.
        let text: String = (0..10).map(|n| format!("{}\n", n * 10)).collect();
        let text = text + "200\n210\n220\n230\n250\n";
        let expected = vec![(0, 1_200_000), (100_000, 0), (200_000, 1_200_000)];
        assert_eq!(steps(&text), (Format::Mahimahi, expected, 250_000));
        // Several at once, and neighbours of one rate.
        assert_eq!(steps("0\n0\n100\n100\n200").1, [(0, 240_000), (100_000, 360_000)]);
    }

    #[test]
    fn seconds_and_megabits_become_rates() {
        let expected = vec![(0, 2_500_000), (500_000, 0), (1_500_000, 1_000_000)];
        assert_eq!(
            steps("# of a train\n10.0 2.5\n10.5\t0.0\n11.5 1\n"),
            (Format::Pensieve, expected, 2_500_000)
        );
    }

    #[test]
    fn what_cannot_be_a_trace_is_refused_with_its_line() {
        for (text, what) in [
            ("", "no line"),
            ("5\n4\n", "line 2: 4 ms is before"),
            ("0\n", "no length"),
            ("1\nx\n", "line 2: \"x\""),
            ("1\n-1\n", "line 2"),
            ("1\n99999999999999999999\n", "line 2"),
            ("1\n99999999999999\n", "line 2: 99999999999999 ms is out of range"),
            ("1\n999999999\n", "intervals"),
            ("0 1\n", "one line"),
            ("0 1\n1\n", "line 2"),
            ("0 1\n0 2\n", "line 2: 0 s is not after"),
            ("0 1\n-1 2\n", "line 2"),
            ("0 1\n1 nan\n", "line 2"),
            ("0 1\n1 1e99\n", "line 2"),
            ("0 0\n1 0\n", "no rate above 0"),
            ("time rtt rate\n", "line 1"),
            ("0,1000,2\n1,2,3\n", "line 1"),
            ("time_us,rate_bps\n0,1\n", "looks like CSV"),
            ("{\"flows\": []}", "looks like JSON"),
            ("0 1\n1 1e99\n", "0 to 100000 Mbit/s"),
        ] {
            let error = Measured::read(text, 100_000).unwrap_err();
            assert!(error.contains(what), "{text:?}: {error}");
        }
    }
}
