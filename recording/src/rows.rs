// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The tables of a recording, one row structure each: name, type, unit and meaning of every column, from which files,
//! exports and the tables of `docs/recording.md` come. Times are those of the monotonic clock.

use onramp_algorithm::{Ack, RoundTold, Verdict};

use crate::column::{Spec, Text};
use crate::table;
use crate::table::Row;

table! {
    /// A connection: when its algorithm took it, what the recorder learnt of it later, and its end.
    FlowRow = "flows" {
        /// monotonic clock
        at_us: u64 => "µs",
        /// number of the connection, the same in all tables
        flow: u64,
        /// number of the event among those of the connection
        sequence: u32,
        /// `start`, `again` (under way when recording began, or its parameters changed) or `end`
        event: Text,
        /// address at this host; empty at the end
        local_address: Text,
        /// port at this host
        local_port: u32,
        /// address of the peer; empty at the end
        remote_address: Text,
        /// port of the peer
        remote_port: u32,
        /// algorithm
        algorithm: Text,
        /// number of the parameter set
        profile: u32,
        /// of the parameters
        generation: u32,
        /// 1: it had sent data before the algorithm took it
        adopted: u32,
        /// when the first data was sent; 0: not yet, or not known at the end
        start_us: u64 => "µs",
        /// times slow start was entered
        slow_starts: u32,
        /// inode of the network namespace
        netns: u32,
        /// the kernel's id of the socket; 0: none yet
        cookie: u64,
        /// acknowledged, at the end
        bytes_acked: u64 => "bytes",
        /// sent, retransmissions not counted again, at the end
        bytes_sent: u64 => "bytes",
        /// retransmitted, at the end
        bytes_retransmitted: u64 => "bytes",
        /// state of the algorithm in hexadecimal; empty at the end
        state: Text,
    }
}

table! {
    /// An acknowledgement as the algorithm saw it, and its verdict; or a loss on which it was asked.
    AckRow = "acks" {
        /// arrival, monotonic clock
        now_us: u64 => "µs",
        /// number of the connection
        flow: u64,
        /// number of the event among those of the connection
        sequence: u32,
        /// `ack` or `loss` (loss, ECN or timeout in slow start)
        event: Text,
        /// 1: the algorithm was asked
        asked: u32,
        /// times slow start was entered, this acknowledgement included
        slow_starts: u32,
        /// generation of the parameters that were in force
        generation: u32,
        /// cumulatively acknowledged
        bytes_acked: u64 => "bytes",
        /// sent, retransmissions not counted again
        bytes_sent: u64 => "bytes",
        /// in force; 0: not yet
        pacing_rate: u64 => "bytes/s",
        /// between snd_una and snd_nxt
        bytes_outstanding: u32 => "bytes",
        /// delivered, selective acknowledgements included; wraps
        delivered: u32 => "segments",
        /// newly acknowledged
        acked: u32 => "segments",
        /// sample of this acknowledgement; negative: none
        rtt_us: i32 => "µs",
        /// 0: none yet
        smoothed_rtt_us: u32 => "µs",
        /// 0: none yet
        min_rtt_us: u32 => "µs",
        /// congestion window
        cwnd: u32 => "segments",
        /// slow start threshold
        ssthresh: u32 => "segments",
        /// in flight
        in_flight: u32 => "segments",
        /// maximum segment size
        mss: u32 => "bytes",
        /// largest burst handed to the device at once
        gso_max_size: u32 => "bytes",
        /// bits: 1 application limited, 2 rate sample application limited, 4 window limited, 8 paced
        flags: u32,
        /// the receiver's clock when it acknowledged, in its own ticks (RFC 7323: TSval); 0: not told
        receiver_clock: u32,
        /// name of the verdict
        verdict_outcome: Text,
        /// 0: as the base, 1: by `verdict_growth_limit` at most
        verdict_growth: u32,
        /// largest growth
        verdict_growth_limit: u32 => "segments",
        /// new window; 0: as it is
        verdict_cwnd: u32 => "segments",
        /// new threshold; 0: as it is
        verdict_ssthresh: u32 => "segments",
        /// cap; 0: none
        verdict_pacing_rate: u64 => "bytes/s",
        /// that an undo restores at most; 0: no limit
        verdict_undo_limit: u32 => "segments",
        /// threshold that the base would set; with `loss` only
        base_ssthresh: u32 => "segments",
    }
}

table! {
    /// The end of a first slow start, or that it was taken back because the loss was none.
    ExitRow = "exits" {
        /// monotonic clock
        at_us: u64 => "µs",
        /// number of the connection
        flow: u64,
        /// number of the event among those of the connection
        sequence: u32,
        /// `exit`, or `undone`: the exit before is taken back
        event: Text,
        /// why: `algorithm`, `loss`, `ecn`, `timeout`, `local_congestion` or `threshold`; empty if undone, and all that follows 0
        reason: Text,
        /// since the first data was sent
        since_start_us: u64 => "µs",
        /// at detection
        bytes_acked: u64 => "bytes",
        /// at detection
        window: u32 => "segments",
        /// when slow start was over
        window_after: u32 => "segments",
        /// at detection
        in_flight: u32 => "segments",
        /// maximum segment size
        mss: u32 => "bytes",
        /// sample at detection, else the smoothed RTT
        rtt_us: u32 => "µs",
        /// at detection
        min_rtt_us: u32 => "µs",
        /// exits before this one that proved spurious
        undone: u32,
    }
}

table! {
    /// A change of the kernel's congestion state.
    StateRow = "states" {
        /// monotonic clock
        at_us: u64 => "µs",
        /// number of the connection
        flow: u64,
        /// number of the event among those of the connection
        sequence: u32,
        /// `open`, `disorder`, `cwr`, `recovery` or `loss`
        from_state: Text,
        /// the same
        to_state: Text,
        /// congestion window
        cwnd: u32 => "segments",
        /// slow start threshold
        ssthresh: u32 => "segments",
        /// in flight
        in_flight: u32 => "segments",
        /// so far
        bytes_retransmitted: u64 => "bytes",
    }
}

table! {
    /// A round: from one acknowledgement to the first that acknowledges what was sent after it.
    RoundRow = "rounds" {
        /// its end, monotonic clock
        at_us: u64 => "µs",
        /// number of the connection
        flow: u64,
        /// number of the event among those of the connection
        sequence: u32,
        /// of the round, from 0
        round: u32,
        /// how long it was
        duration_us: u64 => "µs",
        /// acknowledged in it
        bytes: u64 => "bytes" as "acknowledged_bytes",
        /// delivered in it, selective acknowledgements included
        delivered: u32 => "segments" as "delivered_segments",
        /// acknowledgements
        acks: u32,
        /// of its samples; 0: none
        min_rtt_us: u32 => "µs" or Zero,
        /// at its end
        smoothed_rtt_us: u32 => "µs" or Zero,
        /// congestion window at its end, as all that follows
        cwnd: u32 => "segments" as "cwnd_segments",
        /// slow start threshold
        ssthresh: u32 => "segments" as "ssthresh_segments" or Threshold,
        /// in flight
        in_flight: u32 => "segments" as "in_flight_segments",
        /// maximum segment size
        mss: u32 => "bytes" as "mss_bytes",
    }
}

table! {
    /// Events that were lost because the recorder was too slow.
    DropRow = "drops" {
        /// when it was noticed, monotonic clock
        at_us: u64 => "µs",
        /// events lost since the last row
        events: u64,
        /// time since the last row in which nothing was told at all: the recorder was frozen or starved
        unobserved_us: u64 => "µs",
    }
}

table! {
    /// A parameter's value, whenever the recorder saw a generation for the first time.
    ParameterRow = "parameters" {
        /// when it was seen, monotonic clock
        at_us: u64 => "µs",
        /// algorithm
        algorithm: Text,
        /// number of the parameter set
        profile: u32,
        /// generation
        generation: u32,
        /// name
        name: Text,
        /// as it is typed: the name of a choice, else the number
        value: Text,
    }
}

impl AckRow {
    /// From an acknowledgement and the verdict on it, whose outcome has this name; what else there is to say of it,
    /// the caller adds.
    pub fn new(flow: u64, ack: &Ack, verdict: &Verdict, outcome: Text) -> Self {
        Self {
            now_us: ack.now_us,
            flow,
            event: "ack".into(),
            asked: 1,
            bytes_acked: ack.bytes_acked,
            bytes_sent: ack.bytes_sent,
            pacing_rate: ack.pacing_rate,
            bytes_outstanding: ack.bytes_outstanding,
            delivered: ack.delivered,
            acked: ack.acked,
            rtt_us: ack.rtt_us,
            smoothed_rtt_us: ack.smoothed_rtt_us,
            min_rtt_us: ack.min_rtt_us,
            cwnd: ack.cwnd,
            ssthresh: ack.ssthresh,
            in_flight: ack.in_flight,
            mss: ack.mss,
            gso_max_size: ack.gso_max_size,
            flags: ack.flags,
            receiver_clock: ack.receiver_clock,
            verdict_outcome: outcome,
            verdict_growth: verdict.growth,
            verdict_growth_limit: verdict.growth_limit,
            verdict_cwnd: verdict.cwnd,
            verdict_ssthresh: verdict.ssthresh,
            verdict_pacing_rate: verdict.pacing_rate,
            verdict_undo_limit: verdict.undo_limit,
            ..Self::default()
        }
    }
}

impl RoundRow {
    /// From what is told of it.
    pub fn new(at_us: u64, flow: u64, sequence: u32, told: &RoundTold) -> Self {
        Self {
            at_us,
            flow,
            sequence,
            round: told.number,
            duration_us: told.duration_us,
            bytes: told.bytes,
            delivered: told.delivered,
            acks: told.acks,
            min_rtt_us: told.min_rtt_us,
            smoothed_rtt_us: told.smoothed_rtt_us,
            cwnd: told.cwnd,
            ssthresh: told.ssthresh,
            in_flight: told.in_flight,
            mss: told.mss,
        }
    }
}

/// Every table with its columns, in the order of the documentation.
pub const TABLES: &[(&str, &[Spec])] = &[
    (FlowRow::TABLE, FlowRow::COLUMNS),
    (AckRow::TABLE, AckRow::COLUMNS),
    (RoundRow::TABLE, RoundRow::COLUMNS),
    (ExitRow::TABLE, ExitRow::COLUMNS),
    (StateRow::TABLE, StateRow::COLUMNS),
    (DropRow::TABLE, DropRow::COLUMNS),
    (ParameterRow::TABLE, ParameterRow::COLUMNS),
];
