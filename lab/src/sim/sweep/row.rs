// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One run of one arm over one path, as Parquet files have it.

use onramp_recording::{Text, table};

use crate::experiment::{Arm, Run};
use crate::link::{AqmSpec, CrossSpec, DirectionSpec, JitterSpec, LossSpec, ScheduleSpec};
use crate::population::Path;
use crate::sim::SourceSpec;

table! {
    /// A run, with its path. All times in microseconds but for the run's own.
    RunRow = "runs" {
        /// number of the path in the population
        path: u64,
        /// name of the path: its class and number
        name: Text => most 4096,
        /// class of the path
        class: Text => most 4096,
        /// seed of the link's randomness
        seed: u64,
        /// rate of the transmitter, bit/s
        rate_bps: u64,
        /// what policer and traffic of others leave of it, bit/s
        available_bps: u64,
        /// round-trip time of the empty path
        base_rtt_us: u64,
        /// limit of the queue
        queue_bytes: u64,
        /// `tail-drop`, `codel`, `fq-codel`, `random-drop` or `policer`
        aqm: Text,
        /// largest variation of the round-trip time
        jitter_us: u64,
        /// longest time between acknowledgments' opportunities
        aggregation_us: u64,
        /// rate of the way back, bit/s
        return_rate_bps: u64,
        /// traffic of others, bit/s
        cross_bps: u64,
        /// packets lost at random of 10^9
        loss_ppb: u64,
        /// `bulk`, `requests` or `blocks`
        source: Text,
        /// bytes of the transfer, all objects or blocks together
        bytes: u64,
        /// doubling limit; 0: the application is the limit
        limit_us: u64,
        /// what no sender can beat that obeys the receiver's window; 0: the application is the limit
        receiver_limit_us: u64,
        /// name of the arm
        arm: Text => most 4096,
        /// 1: all bytes arrived before the run was given up
        complete: u32,
        /// from the begin to the last byte, or until the run was given up, nanoseconds
        duration_ns: u64,
        /// time in which the receiver's window was the limit
        receive_window_limited_us: u64,
        /// segments retransmitted
        retransmitted_segments: u64,
        /// packets that the bottleneck dropped
        queue_drops: u64,
        /// why slow start ended; empty: it did not
        exit: Text,
        /// when, from the first data on
        exit_us: u64,
        /// congestion window then
        exit_window_bytes: u64,
        /// mean of the smoothed round-trip time
        mean_rtt_us: u64,
        /// largest smoothed round-trip time
        max_rtt_us: u64,
        /// most that the queue held
        max_queue_bytes: u64,
        /// of all that crossed the link, as `onramp sim run` has it
        digest: Text => most 80,
    }
}

impl RunRow {
    /// Of a run of an arm.
    pub fn new(path: &Path, arm: &Arm, run: &Run) -> Self {
        let link = &path.profile.link;
        let exit = run.exit.as_ref();
        Self {
            path: path.number,
            name: path.profile.name.clone().into(),
            class: path.class.clone().into(),
            seed: path.seed,
            rate_bps: link.forward.rate_bps,
            available_bps: link.available_bps(),
            base_rtt_us: link.base_rtt_us(),
            queue_bytes: link.forward.queue_bytes.unwrap_or(0),
            aqm: aqm(&link.forward).into(),
            jitter_us: jitter_us(&link.forward) + jitter_us(&link.back),
            aggregation_us: match link.back.schedule {
                Some(ScheduleSpec::Aggregate { max_gap_us, .. }) => max_gap_us,
                _ => 0,
            },
            return_rate_bps: link.back.rate_bps,
            cross_bps: link.forward.cross.as_ref().map_or(0, CrossSpec::rate_bps),
            loss_ppb: (link.forward.loss.as_ref().map_or(0.0, LossSpec::share) * 1e9).round() as u64,
            source: source(path.source).into(),
            bytes: path.bytes,
            limit_us: path.limit().map_or(0, |limit| limit.as_micros() as u64),
            receiver_limit_us: path.receiver_limit().map_or(0, |limit| limit.as_micros() as u64),
            arm: arm.name.clone().into(),
            complete: run.valid.into(),
            duration_ns: (run.seconds * 1e9).round() as u64,
            receive_window_limited_us: (run.receive_window_limited_seconds * 1e6).round() as u64,
            retransmitted_segments: run.retransmitted_segments,
            queue_drops: run.queue_drops,
            exit: exit.map_or("", |exit| exit.reason.name()).into(),
            exit_us: exit.map_or(0, |exit| (exit.seconds * 1e6).round() as u64),
            exit_window_bytes: exit.map_or(0, |exit| exit.window_bytes),
            mean_rtt_us: run.mean_rtt_us.round() as u64,
            max_rtt_us: run.max_rtt_us.into(),
            max_queue_bytes: run.max_queue_bytes,
            digest: run.digest.clone().unwrap_or_default().into(),
        }
    }

    /// Seconds that it took.
    pub fn seconds(&self) -> f64 {
        self.duration_ns as f64 / 1e9
    }
}

fn aqm(forward: &DirectionSpec) -> &'static str {
    match forward.aqm {
        None => "tail-drop",
        Some(AqmSpec::CoDel { .. }) => "codel",
        Some(AqmSpec::FqCodel { .. }) => "fq-codel",
        Some(AqmSpec::RandomDrop { .. }) => "random-drop",
        Some(AqmSpec::Policer { .. }) => "policer",
    }
}

fn source(source: SourceSpec) -> &'static str {
    match source {
        SourceSpec::Bulk => "bulk",
        SourceSpec::Requests { .. } => "requests",
        SourceSpec::Periodic { .. } => "blocks",
    }
}

fn jitter_us(direction: &DirectionSpec) -> u64 {
    let uniform = |jitter: &JitterSpec| match jitter {
        JitterSpec::Uniform { max_us } => *max_us,
        _ => 0,
    };
    direction.jitter.iter().map(uniform).sum()
}
