// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A recorded flow, as far as its path shows in it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use onramp_recording::replay::{FlowReport, Options, Replay, candidates, replay_with};
use onramp_recording::rows::{AckRow, FlowRow, ParameterRow};
use onramp_recording::{ACKS_ARE_RECORDED, Recording};
use serde::Serialize;
use thiserror::Error;

use super::way_back;
use crate::link::RangeError;

/// Fewer ACKs show nothing.
const LEAST_ACKS: usize = 100;

/// What a packet can carry, bytes.
const SEGMENTS: RangeInclusive<u32> = 1..=65_535;

/// Longest flow, microseconds: as long as links are described.
const LONGEST_US: u64 = 1_000_000_000_000;

/// Largest window, bytes: a scale of 14 (RFC 7323, section 2.3).
const LARGEST_WINDOW: u64 = 65_535 << 14;

/// Segments that arrived beyond a gap and make it a loss (RFC 5681, section 3.2).
const DUPLICATES: u64 = 3;

/// Why there is no path.
#[derive(Debug, Error)]
pub enum FitError {
    /// The recording has no acknowledgments at all.
    #[error("no acknowledgments were recorded: record {ACKS_ARE_RECORDED}")]
    NoAcks,
    /// There is no such flow.
    #[error("there are no acknowledgments of flow {flow}: the recording has {there}")]
    NoFlow {
        /// Number of the connection.
        flow: u64,
        /// Those that there are.
        there: String,
    },
    /// Several flows could be meant.
    #[error("the recording has {count} flows that a path can be fitted to: choose one with --flow: {there}")]
    Several {
        /// How many.
        count: usize,
        /// Which.
        there: String,
    },
    /// The flow is too short.
    #[error(
        "flow {flow} has {acks} acknowledgments with a round-trip time: a path needs {LEAST_ACKS} at least"
    )]
    Short {
        /// Number of the connection.
        flow: u64,
        /// Of those with a round-trip time.
        acks: usize,
    },
    /// What was recorded makes no link.
    #[error("what flow {flow} recorded makes no path: {reason}")]
    Nonsense {
        /// Number of the connection.
        flow: u64,
        /// Reason.
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

/// What drove a flow, as far as the recording says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Driver {
    /// Algorithm, by its short name.
    pub algorithm: String,
    /// Base; none: it was not recorded.
    pub base: Option<String>,
    /// Parameters at the flow's begin, as they are typed.
    pub parameters: BTreeMap<String, String>,
}

/// A recorded flow's ACKs and rounds, as far as they show its path.
#[derive(Clone, Debug)]
pub struct RecordedFlow {
    /// Number of the connection.
    pub flow: u64,
    /// Its acknowledgments, in order.
    pub acks: Vec<Seen>,
    /// When a loss first showed: more was outstanding than in flight, by more than three segments.
    pub lost_us: Option<u64>,
    /// Share of the waits that were on the way back; none: that is not known.
    pub waited_back: Option<f64>,
    /// How often it set another slow start threshold.
    pub reductions: usize,
    /// What drove it; none: the recording does not say.
    pub driver: Option<Driver>,
    /// What the detectors make of its first slow start, and how it really ended.
    pub replayed: Option<FlowReport>,
}

impl RecordedFlow {
    /// The flow of this number, or the only one that is long enough.
    ///
    /// # Errors
    /// [`FitError::NoAcks`], [`FitError::NoFlow`], [`FitError::Several`], [`FitError::Short`].
    pub fn read(recording: &mut Recording, number: Option<u64>) -> Result<Self, FitError> {
        let flow = choose(recording, number)?;
        let mut rows = Vec::new();
        recording.read::<AckRow>(&[], |batch| rows.extend(batch.rows().filter(|row| row.flow == flow)));
        rows.sort_by_key(|row| row.sequence);
        let driver = Driver::read(recording, flow, rows.first().map_or(0, |row| row.parameters_generation));
        let mut replayed = replay_with(recording, detector(), |run| run.flow == flow);
        Ok(Self { driver, replayed: replayed.pop(), ..Self::new(flow, &rows)? })
    }

    fn new(flow: u64, rows: &[AckRow]) -> Result<Self, FitError> {
        let syn = rows.iter().find(|row| row.event == "ack").map_or(0, syn_bytes);
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
                // The FIN counts, too, and is no data either.
                bytes_acked: row.acknowledged_bytes.saturating_sub(syn).min(row.sent_bytes),
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
        if acks.iter().any(|ack| ack.bytes_sent - ack.bytes_acked > LARGEST_WINDOW) {
            return Err(FitError::Nonsense {
                flow,
                reason: "more than TCP's largest window, 1 GiB, is outstanding",
            });
        }
        if acks.iter().any(|ack| !SEGMENTS.contains(&ack.mss)) {
            return Err(FitError::Nonsense { flow, reason: "its segments are not of 1 to 65535 bytes" });
        }
        if acks.last().zip(acks.first()).is_some_and(|(last, first)| last.at_us - first.at_us > LONGEST_US) {
            return Err(FitError::Nonsense { flow, reason: "it lasts more than 11 days" });
        }
        let thresholds = rows.iter().filter(|row| row.event == "ack").map(|row| row.ssthresh_segments);
        let (waited_back, reductions) = (way_back::share(rows), reductions(thresholds));
        Ok(Self { flow, acks, lost_us, waited_back, reductions, driver: None, replayed: None })
    }

    /// Bytes of the transfer, as far as it was recorded.
    pub fn bytes(&self) -> u64 {
        self.acks.last().map_or(0, |ack| ack.bytes_acked)
    }

    /// When the first data was sent, microseconds of the recording's clock.
    pub fn began_us(&self) -> u64 {
        let first = self.acks.iter().find_map(|ack| Some(ack.at_us.saturating_sub(ack.rtt_us?)));
        first.unwrap_or(0).min(self.acks[0].at_us)
    }
}

impl Driver {
    /// A control with its defaults.
    pub fn named(algorithm: String) -> Self {
        Self { algorithm, base: None, parameters: BTreeMap::new() }
    }

    fn read(recording: &mut Recording, flow: u64, generation: u32) -> Option<Self> {
        let of =
            recording.rows::<FlowRow>().into_iter().find(|row| row.flow == flow && row.event != "end")?;
        // A packet capture does not say.
        if of.algorithm.is_empty() {
            return None;
        }
        let attached = recording.manifest.as_ref().map_or(&[][..], |manifest| &manifest.algorithms);
        let base = attached.iter().find(|one| one.algorithm == *of.algorithm).map(|one| one.base.clone());
        let parameters = recording.rows::<ParameterRow>().into_iter().filter(|row| {
            row.algorithm == of.algorithm
                && row.parameter_set == of.parameter_set
                && row.parameters_generation == generation
        });
        let parameters = parameters.map(|row| (row.name.into_owned(), row.value.into_owned())).collect();
        Some(Self { algorithm: of.algorithm.into_owned(), base, parameters })
    }
}

/// A replay through the algorithm of the kernel's own CUBIC: over the flow, and over its path when it is simulated.
pub(super) fn detector() -> Replay {
    let names = [onramp_algorithm::of_cubic().name().to_owned()];
    Replay::new(candidates(&names, &[], &[]).unwrap_or_default(), Options::default())
}

/// Bytes by which the kernel's count of what is acknowledged exceeds the data. The SYN of a connection that this end opened
/// counts as one, so more has been sent and acknowledged than there are data.
fn syn_bytes(first: &AckRow) -> u64 {
    let counted = first.acknowledged_bytes.wrapping_add(first.outstanding_bytes.into());
    u64::from(counted == first.sent_bytes.wrapping_add(1))
}

/// How often a slow start threshold is another than before.
pub(super) fn reductions(thresholds: impl Iterator<Item = u32>) -> usize {
    let mut last = None;
    thresholds.filter(|threshold| last.replace(*threshold).is_some_and(|last| last != *threshold)).count()
}

/// The flow that is meant.
fn choose(recording: &mut Recording, number: Option<u64>) -> Result<u64, FitError> {
    // Acknowledgments and, of these, with a round-trip time.
    let mut counts: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    recording.read::<AckRow>(&[], |batch| {
        for row in batch.rows() {
            let count = counts.entry(row.flow).or_default();
            count.0 += 1;
            count.1 += usize::from(row.rtt_us > 0 && row.event == "ack");
        }
    });
    let long: Vec<u64> =
        counts.iter().filter(|(_, count)| count.1 >= LEAST_ACKS).map(|(flow, _)| *flow).collect();
    match (number, &long[..]) {
        (_, _) if counts.is_empty() => Err(FitError::NoAcks),
        (Some(flow), _) if counts.contains_key(&flow) => Ok(flow),
        (Some(flow), _) => Err(FitError::NoFlow { flow, there: numbers(&counts) }),
        (None, [flow]) => Ok(*flow),
        (None, []) => {
            // The longest says best what is missing.
            let longest = counts.iter().max_by_key(|(_, count)| count.1);
            longest.map_or(Err(FitError::NoAcks), |(flow, count)| {
                Err(FitError::Short { flow: *flow, acks: count.1 })
            })
        }
        (None, long) => {
            counts.retain(|flow, _| long.contains(flow));
            Err(FitError::Several { count: counts.len(), there: numbers(&counts) })
        }
    }
}

/// The flows that there are, those with most acknowledgments first.
fn numbers(counts: &BTreeMap<u64, (usize, usize)>) -> String {
    let mut counts: Vec<_> = counts.iter().map(|(flow, count)| (flow, count.0)).collect();
    counts.sort_by_key(|(_, acks)| std::cmp::Reverse(*acks));
    let named: Vec<_> =
        counts.iter().take(5).map(|(flow, acks)| format!("{flow} ({acks} acknowledgments)")).collect();
    let more = counts.len().saturating_sub(5);
    if more > 0 { format!("{} and {more} more", named.join(", ")) } else { named.join(", ") }
}
