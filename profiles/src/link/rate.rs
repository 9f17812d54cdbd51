// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Description of how the rate varies.

use serde::{Deserialize, Serialize};

use super::trace::Row;
use super::{DirectionSpec, PERIODS_US, RATES_BPS, RangeError, series, within};

/// How the rate of a transmitter varies. The direction's `rate_bps` must be the mean, within 1 %; of steps and traces
/// that hold their last rate, which have no mean, it must be a rate between the lowest and the highest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RateSpec {
    /// The given rates at the given times.
    Steps {
        /// In order of time, the first at 0.
        steps: Vec<RateStep>,
        /// When the first follows the last again, microseconds; the last holds if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repeat_us: Option<u64>,
    },
    /// The same from a file of lines `time_us,rate_bps` or `time_us,rate_bps,delay_us`. Times count from the start of
    /// the link, the first is 0, each is later than the one before. A rate of 0 is an outage. The delay is that of
    /// propagation, at least the direction's `delay_us`. Empty lines and lines that begin with `#` mean nothing, nor
    /// does a first line that begins with `time_us`.
    Trace {
        /// Path, relative to the profile's directory.
        file: String,
        /// When the first row follows the last again, microseconds; the last holds if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repeat_us: Option<u64>,
        /// What the file says, once [`super::LinkSpec::load_traces`] has read it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rows: Vec<Row>,
    },
    /// The delivery opportunities of a mahimahi trace (mm-link(1)): on each line of the file the millisecond at which a packet
    /// of 1,500 bytes may be sent. In each millisecond the rate is that of its packets; after the last line the trace begins
    /// anew.
    Mahimahi {
        /// Path, relative to the profile's directory.
        file: String,
        /// What the file says, once [`super::LinkSpec::load_traces`] has read it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steps: Vec<RateStep>,
        /// When it begins anew, microseconds, from the file too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repeat_us: Option<u64>,
    },
    /// A new rate at fixed intervals, uniform and independent of the last.
    Redraw {
        /// Length of an interval, microseconds, 1 000 to 1 000 000 000.
        every_us: u64,
        /// Lowest rate, bit/s, 1 000 to `max_bps`.
        min_bps: u64,
        /// Highest rate, bit/s, to 100 000 000 000.
        max_bps: u64,
    },
    /// A random walk: at fixed intervals up or down by a uniform step, reflected at both ends; it starts anywhere.
    Walk {
        /// Length of an interval, microseconds, 1 000 to 1 000 000 000.
        every_us: u64,
        /// Lowest rate, bit/s, 1 000 to `max_bps`.
        min_bps: u64,
        /// Highest rate, bit/s, to 100 000 000 000.
        max_bps: u64,
        /// Largest step, bit/s, 1 to `max_bps - min_bps`.
        max_step_bps: u64,
    },
}

/// A rate from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// Microseconds from the start of the link.
    pub at_us: u64,
    /// Rate from then on, bit/s, 1 000 to 100 000 000 000, or 0 for an outage.
    pub rate_bps: u64,
}

impl RateSpec {
    /// Rates by time, for those that follow a list.
    pub fn steps(&self) -> Option<(Vec<RateStep>, Option<u64>)> {
        match self {
            Self::Steps { steps, repeat_us } | Self::Mahimahi { steps, repeat_us, .. } => {
                Some((steps.clone(), *repeat_us))
            }
            Self::Trace { rows, repeat_us, .. } => {
                let step = |row: &Row| RateStep { at_us: row.at_us, rate_bps: row.rate_bps };
                Some((rows.iter().map(step).collect(), *repeat_us))
            }
            Self::Redraw { .. } | Self::Walk { .. } => None,
        }
    }

    /// Mean rate in the long run, bit/s; `None` for one that holds its last step.
    pub fn mean_bps(&self) -> Option<u64> {
        match self {
            Self::Steps { .. } | Self::Trace { .. } | Self::Mahimahi { .. } => {
                let (steps, repeat_us) = self.steps()?;
                let end = repeat_us?;
                let ends = steps.iter().skip(1).map(|step| step.at_us).chain([end]);
                let sum: u128 = steps
                    .iter()
                    .zip(ends)
                    .map(|(step, until)| u128::from(step.rate_bps) * u128::from(until - step.at_us))
                    .sum();
                Some((sum / u128::from(end)) as u64)
            }
            Self::Redraw { min_bps, max_bps, .. } | Self::Walk { min_bps, max_bps, .. } => {
                Some(min_bps.midpoint(*max_bps))
            }
        }
    }

    pub(super) fn validate(&self, key: &str, direction: &DirectionSpec) -> Result<(), RangeError> {
        let rate = format!("{key}.rate");
        let of = |name: &str| format!("{rate}.{name}");
        match self {
            Self::Steps { .. } => {}
            Self::Mahimahi { file, steps, .. } => is_read(&of("file"), file, steps)?,
            Self::Trace { file, rows, .. } => {
                is_read(&of("file"), file, rows)?;
                let delays = rows.iter().filter_map(|row| Some((row.line, row.delay_us?)));
                for (line, delay) in delays {
                    let place = format!("{} line {line}, delay_us", of("file"));
                    within(place, delay, direction.delay_us..=10_000_000)?;
                }
            }
            Self::Redraw { every_us, min_bps, max_bps } => range(&rate, *every_us, *min_bps, *max_bps)?,
            Self::Walk { every_us, min_bps, max_bps, max_step_bps } => {
                range(&rate, *every_us, *min_bps, *max_bps)?;
                within(of("max_step_bps"), *max_step_bps, 1..=max_bps - min_bps)?;
            }
        }
        if let Some((steps, repeat_us)) = self.steps() {
            validate_steps(&rate, &steps, repeat_us)?;
        }
        self.validate_mean(key, direction.rate_bps)
    }

    fn validate_mean(&self, key: &str, rate_bps: u64) -> Result<(), RangeError> {
        let (lowest, highest) = match (self.mean_bps(), self.steps()) {
            (Some(mean), _) => (mean - mean / 100, mean + mean / 100),
            (None, steps) => {
                let rates = steps.map(|(steps, _)| steps).unwrap_or_default();
                let rates = || rates.iter().map(|step| step.rate_bps);
                (rates().min().unwrap_or(0), rates().max().unwrap_or(0))
            }
        };
        within(format!("{key}.rate_bps"), rate_bps, lowest..=highest).map_err(|error| {
            let why = if self.mean_bps().is_some() { "the mean" } else { "a rate" };
            RangeError { range: format!("{}, {why} of {key}.rate", error.range), ..error }
        })
    }
}

/// That the file of a trace was read.
fn is_read<T>(key: &str, file: &str, rows: &[T]) -> Result<(), RangeError> {
    if rows.is_empty() {
        let range = "expected a trace file next to a profile that is read from a file";
        return Err(RangeError::new(key, format!("{file:?}"), range));
    }
    Ok(())
}

fn range(key: &str, every_us: u64, min_bps: u64, max_bps: u64) -> Result<(), RangeError> {
    within(format!("{key}.every_us"), every_us, PERIODS_US)?;
    within(format!("{key}.max_bps"), max_bps, RATES_BPS)?;
    within(format!("{key}.min_bps"), min_bps, 1_000..=max_bps)
}

fn validate_steps(key: &str, steps: &[RateStep], repeat_us: Option<u64>) -> Result<(), RangeError> {
    series(key, "steps", steps.iter().map(|step| step.at_us), repeat_us)?;
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.rate_bps != 0) {
        within(format!("{key}.steps[{at}].rate_bps"), step.rate_bps, RATES_BPS)?;
    }
    // What never sends again would never end.
    let silent = match repeat_us {
        Some(_) => steps.iter().all(|step| step.rate_bps == 0),
        None => steps.last().is_none_or(|step| step.rate_bps == 0),
    };
    if silent {
        return Err(RangeError::new(format!("{key}.steps"), "silence", "expected a rate above 0 at the end"));
    }
    Ok(())
}
