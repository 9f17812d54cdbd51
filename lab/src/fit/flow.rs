// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A recorded flow, as far as its path shows in it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use onramp_recording::Recording;
use onramp_recording::rows::AckRow;
use thiserror::Error;

use crate::link::RangeError;

/// Fewer acknowledgements tell nothing.
const LEAST_ACKS: usize = 100;

/// What a packet can carry, bytes.
const SEGMENTS: RangeInclusive<u32> = 1..=65_535;

/// Longest flow, microseconds: as long as links are described.
const LONGEST_US: u64 = 1_000_000_000_000;

/// Segments that arrived beyond a gap and make it a loss (RFC 5681, section 3.2).
const DUPLICATES: u64 = 3;

/// Why there is no path.
#[derive(Debug, Error)]
pub enum FitError {
    /// The recording has no acknowledgements at all.
    #[error("no acknowledgements were recorded: record with --level ack")]
    NoAcks,
    /// There is no such flow.
    #[error("there are no acknowledgements of flow {flow}: the recording has {there}")]
    NoFlow {
        /// Number of the connection.
        flow: u64,
        /// Those that there are.
        there: String,
    },
    /// The flow is too short.
    #[error(
        "flow {flow} has {acks} acknowledgements with a round-trip time: a path needs {LEAST_ACKS} at least"
    )]
    Short {
        /// Number of the connection.
        flow: u64,
        /// Of those that tell a round-trip time.
        acks: usize,
    },
    /// What was recorded makes no link.
    #[error("what flow {flow} recorded makes no path: {reason}")]
    Nonsense {
        /// Number of the connection.
        flow: u64,
        /// Why.
        reason: &'static str,
    },
    /// The fitted link is out of the lab's ranges.
    #[error("the fitted path is out of range: {0}")]
    Range(RangeError),
}

/// One acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Arrival, microseconds of the recording's clock.
    pub at_us: u64,
    /// Its sample.
    pub rtt_us: Option<u64>,
    /// Bytes acknowledged in order.
    pub bytes_acked: u64,
    /// Bytes sent before it arrived, each counted once.
    pub bytes_sent: u64,
    /// Segments delivered since the first acknowledgment.
    pub delivered: u64,
    /// Payload of a segment, bytes.
    pub mss: u32,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFlow {
    /// Number of the connection.
    pub flow: u64,
    /// Its acknowledgements, in order.
    pub acks: Vec<Seen>,
    /// When a loss first showed: more was outstanding than in flight, by more than three segments.
    pub lost_us: Option<u64>,
}

impl RecordedFlow {
    /// The flow of this number, or the one with most acknowledgements.
    ///
    /// # Errors
    /// [`FitError::NoAcks`], [`FitError::NoFlow`], [`FitError::Short`].
    pub fn read(recording: &mut Recording, number: Option<u64>) -> Result<Self, FitError> {
        let mut flows: BTreeMap<u64, Vec<AckRow>> = BTreeMap::new();
        recording.read::<AckRow>(&[], |batch| {
            for row in batch.rows().filter(|row| number.is_none_or(|number| number == row.flow)) {
                flows.entry(row.flow).or_default().push(row);
            }
        });
        let most = flows.into_iter().max_by_key(|(_, rows)| rows.len());
        let Some((flow, mut rows)) = most else {
            return Err(match number {
                Some(flow) => FitError::NoFlow { flow, there: numbers(recording)? },
                None => FitError::NoAcks,
            });
        };
        rows.sort_by_key(|row| row.sequence);
        Self::of(flow, &rows)
    }

    fn of(flow: u64, rows: &[AckRow]) -> Result<Self, FitError> {
        let lost = |row: &&AckRow| {
            let in_flight = (u64::from(row.in_flight_segments) + DUPLICATES) * u64::from(row.mss_bytes);
            row.event == "loss" || u64::from(row.outstanding_bytes) > in_flight
        };
        let lost_us = rows.iter().find(lost).map(|row| row.at_us);
        let (mut acks, mut delivered, mut last) = (Vec::<Seen>::new(), 0_u64, None::<u32>);
        for row in rows.iter().filter(|row| row.event == "ack") {
            // It wraps.
            delivered += last.map_or(0, |last| u64::from(row.delivered_segments.wrapping_sub(last)));
            last = Some(row.delivered_segments);
            acks.push(Seen {
                at_us: row.at_us,
                rtt_us: u64::try_from(row.rtt_us).ok().filter(|rtt| *rtt > 0),
                bytes_acked: row.acknowledged_bytes,
                bytes_sent: row.sent_bytes,
                delivered,
                mss: row.mss_bytes,
            });
        }
        let samples = acks.iter().filter(|ack| ack.rtt_us.is_some()).count();
        if samples < LEAST_ACKS {
            return Err(FitError::Short { flow, acks: samples });
        }
        if acks.windows(2).any(|pair| pair[1].at_us < pair[0].at_us) {
            return Err(FitError::Nonsense { flow, reason: "its times go backwards" });
        }
        if acks.windows(2).any(|pair| pair[1].bytes_acked < pair[0].bytes_acked) {
            return Err(FitError::Nonsense { flow, reason: "what is acknowledged shrinks" });
        }
        if acks.iter().any(|ack| !SEGMENTS.contains(&ack.mss)) {
            return Err(FitError::Nonsense { flow, reason: "its segments are not of 1 to 65535 bytes" });
        }
        if acks.last().zip(acks.first()).is_some_and(|(last, first)| last.at_us - first.at_us > LONGEST_US) {
            return Err(FitError::Nonsense { flow, reason: "it lasts more than 11 days" });
        }
        Ok(Self { flow, acks, lost_us })
    }

    /// When the first data was sent, microseconds of the recording's clock.
    pub fn began_us(&self) -> u64 {
        let first = self.acks.iter().find_map(|ack| Some(ack.at_us.saturating_sub(ack.rtt_us?)));
        first.unwrap_or(0).min(self.acks[0].at_us)
    }
}

/// The flows that there are, for who asked for another.
fn numbers(recording: &mut Recording) -> Result<String, FitError> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    recording
        .read::<AckRow>(&[], |batch| batch.rows().for_each(|row| *counts.entry(row.flow).or_default() += 1));
    if counts.is_empty() {
        return Err(FitError::NoAcks);
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, acks)| std::cmp::Reverse(*acks));
    let named: Vec<_> =
        counts.iter().take(5).map(|(flow, acks)| format!("{flow} ({acks} acknowledgements)")).collect();
    let more = counts.len().saturating_sub(5);
    Ok(if more > 0 { format!("{} and {more} more", named.join(", ")) } else { named.join(", ") })
}
