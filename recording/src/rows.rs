// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The tables of a recording, one row structure each: name with its unit, type and meaning of every column, from which files,
//! exports and the tables of `docs/recording.md` come. Times are those of the monotonic clock.

use onramp_algorithm::{Ack, RoundTold, Verdict};

use crate::column::{Spec, Text};
use crate::table;
use crate::table::Row;

/// Names of the flags of an acknowledgement, lowest bit first (`enum ack_flag` in `algorithm.h`).
pub const ACK_FLAGS: [&str; 4] = ["app_limited", "rate_app_limited", "cwnd_limited", "paced"];

table! {
    /// A connection: when its algorithm took it, what the recorder learnt of it later, and its end.
    FlowRow = "flows" {
        /// monotonic clock
        at_us: u64,
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
        parameter_set: u32,
        /// of the parameters
        parameters_generation: u32,
        /// 1: it had sent data before the algorithm took it
        adopted: u32 => read Flag,
        /// when the first data was sent; 0: not yet, or not known at the end
        started_us: u64 => read Zero,
        /// times slow start was entered
        slow_starts: u32,
        /// inode of the network namespace
        netns: u32,
        /// the kernel's id of the socket; 0: none yet
        cookie: u64 => read Zero,
        /// acknowledged, at the end
        acknowledged_bytes: u64,
        /// sent, retransmissions not counted again, at the end
        sent_bytes: u64,
        /// retransmitted, at the end
        retransmitted_bytes: u64,
        /// state of the algorithm in hexadecimal; empty at the end
        state: Text => most 8192,
    }
}

table! {
    /// An acknowledgement as the algorithm saw it, and its verdict; or a loss on which it was asked.
    AckRow = "acks" {
        /// arrival, monotonic clock
        at_us: u64,
        /// number of the connection
        flow: u64,
        /// number of the event among those of the connection
        sequence: u32,
        /// `ack` or `loss` (loss, ECN or timeout in slow start)
        event: Text,
        /// 1: the algorithm was asked
        asked: u32 => read Flag,
        /// times slow start was entered, this acknowledgement included
        slow_starts: u32,
        /// generation of the parameters that were in force
        parameters_generation: u32,
        /// cumulatively acknowledged; of a connection that this host opened with its SYN, and at the end with its FIN, one byte each
        acknowledged_bytes: u64,
        /// sent, retransmissions not counted again
        sent_bytes: u64,
        /// in force; 0: not yet
        pacing_rate_bytes_per_s: u64 => read Zero,
        /// between snd_una and snd_nxt
        outstanding_bytes: u32,
        /// delivered, selective acknowledgements included; wraps
        delivered_segments: u32,
        /// newly acknowledged
        newly_acknowledged_segments: u32,
        /// sample of this acknowledgement; negative: none
        rtt_us: i32 => read Negative,
        /// 0: none yet
        smoothed_rtt_us: u32 => read Zero,
        /// 0: none yet
        min_rtt_us: u32 => read Zero,
        /// congestion window
        cwnd_segments: u32,
        /// slow start threshold
        ssthresh_segments: u32 => read Threshold,
        /// in flight
        in_flight_segments: u32,
        /// maximum segment size
        mss_bytes: u32,
        /// largest burst handed to the device at once
        gso_max_bytes: u32,
        /// bits: 1 application limited, 2 rate sample application limited, 4 window limited, 8 paced
        flags: u32 => read Bits(&ACK_FLAGS),
        /// the receiver's clock when it acknowledged, in its own ticks (RFC 7323: TSval); 0: not told
        receiver_clock: u32 => read Zero,
        /// from what is acknowledged, offered by the receiver; 0: none, or not told
        receive_window_bytes: u32 => read Zero,
        /// name of the verdict
        verdict_outcome: Text => read Empty,
        /// 0: as the base, 1: by `verdict_growth_limit_segments` at most
        verdict_growth: u32,
        /// largest growth
        verdict_growth_limit_segments: u32 => read Zero,
        /// new window; 0: as it is
        verdict_cwnd_segments: u32 => read Zero,
        /// new threshold; 0: as it is
        verdict_ssthresh_segments: u32 => read Zero,
        /// cap; 0: none
        verdict_pacing_rate_bytes_per_s: u64 => read Zero,
        /// that an undo restores at most; 0: no limit
        verdict_undo_limit_segments: u32 => read Zero,
        /// threshold that the base would set; with `loss` only
        base_ssthresh_segments: u32 => read Zero,
    }
}

table! {
    /// The end of a first slow start, or that it was taken back because the loss was none.
    ExitRow = "exits" {
        /// monotonic clock
        at_us: u64,
        /// number of the connection
        flow: u64,
        /// number of the event among those of the connection
        sequence: u32,
        /// `exit`, or `undone`: the exit before is taken back
        event: Text,
        /// why: `algorithm`, `loss`, `ecn`, `timeout`, `local_congestion`, `ssthresh` or `cached_ssthresh`; empty if undone, and all that follows 0
        reason: Text => read Empty,
        /// since the first data was sent
        since_start_us: u64,
        /// at detection
        acknowledged_bytes: u64,
        /// at detection
        cwnd_segments: u32,
        /// when slow start was over
        cwnd_after_segments: u32 => read Zero,
        /// at detection
        in_flight_segments: u32,
        /// maximum segment size
        mss_bytes: u32,
        /// sample at detection, else the smoothed RTT
        rtt_us: u32,
        /// at detection
        min_rtt_us: u32,
        /// exits before this one that proved spurious
        undone: u32,
    }
}

table! {
    /// A change of the kernel's congestion state.
    StateRow = "states" {
        /// monotonic clock
        at_us: u64,
        /// number of the connection
        flow: u64,
        /// number of the event among those of the connection
        sequence: u32,
        /// `open`, `disorder`, `cwr`, `recovery` or `loss`
        from_state: Text,
        /// the same
        to_state: Text,
        /// congestion window
        cwnd_segments: u32,
        /// slow start threshold
        ssthresh_segments: u32 => read Threshold,
        /// in flight
        in_flight_segments: u32,
        /// so far
        retransmitted_bytes: u64,
    }
}

table! {
    /// A round: from one acknowledgement to the first that acknowledges what was sent after it.
    RoundRow = "rounds" {
        /// its end, monotonic clock
        at_us: u64,
        /// number of the connection
        flow: u64,
        /// number of the event among those of the connection
        sequence: u32,
        /// of the round, from 0
        round: u32,
        /// how long it was
        duration_us: u64,
        /// acknowledged in it
        acknowledged_bytes: u64,
        /// delivered in it, selective acknowledgements included
        delivered_segments: u32,
        /// acknowledgements
        acks: u32,
        /// how long of this the window kept the sender from sending more: between acknowledgements of which the later says so
        cwnd_limited_us: u32,
        /// of its samples; 0: none
        min_rtt_us: u32 => read Zero,
        /// at its end
        smoothed_rtt_us: u32 => read Zero,
        /// congestion window at its end, as all that follows
        cwnd_segments: u32,
        /// slow start threshold
        ssthresh_segments: u32 => read Threshold,
        /// in flight
        in_flight_segments: u32,
        /// maximum segment size
        mss_bytes: u32,
        /// from what is acknowledged, offered by the receiver; 0: none, or not told
        receive_window_bytes: u32 => read Zero,
    }
}

table! {
    /// Events that were lost because the recorder was too slow.
    DropRow = "drops" {
        /// when it was noticed, monotonic clock
        at_us: u64,
        /// events lost since the last row
        events: u64,
        /// time since the last row in which nothing was told at all: the recorder was frozen or starved
        unobserved_us: u64,
    }
}

table! {
    /// A parameter's value, whenever the recorder saw a generation for the first time.
    ParameterRow = "parameters" {
        /// when it was seen, monotonic clock
        at_us: u64,
        /// algorithm
        algorithm: Text,
        /// number of the parameter set
        parameter_set: u32,
        /// generation
        parameters_generation: u32,
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
            at_us: ack.now_us,
            flow,
            event: "ack".into(),
            asked: 1,
            acknowledged_bytes: ack.bytes_acked,
            sent_bytes: ack.bytes_sent,
            pacing_rate_bytes_per_s: ack.pacing_rate,
            outstanding_bytes: ack.bytes_outstanding,
            delivered_segments: ack.delivered,
            newly_acknowledged_segments: ack.acked,
            rtt_us: ack.rtt_us,
            smoothed_rtt_us: ack.smoothed_rtt_us,
            min_rtt_us: ack.min_rtt_us,
            cwnd_segments: ack.cwnd,
            ssthresh_segments: ack.ssthresh,
            in_flight_segments: ack.in_flight,
            mss_bytes: ack.mss,
            gso_max_bytes: ack.gso_max_size,
            flags: ack.flags,
            receiver_clock: ack.receiver_clock,
            verdict_outcome: outcome,
            verdict_growth: verdict.growth,
            verdict_growth_limit_segments: verdict.growth_limit,
            verdict_cwnd_segments: verdict.cwnd,
            verdict_ssthresh_segments: verdict.ssthresh,
            verdict_pacing_rate_bytes_per_s: verdict.pacing_rate,
            verdict_undo_limit_segments: verdict.undo_limit,
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
            acknowledged_bytes: told.bytes,
            delivered_segments: told.delivered,
            acks: told.acks,
            cwnd_limited_us: told.cwnd_limited_us,
            min_rtt_us: told.min_rtt_us,
            smoothed_rtt_us: told.smoothed_rtt_us,
            cwnd_segments: told.cwnd,
            ssthresh_segments: told.ssthresh,
            in_flight_segments: told.in_flight,
            mss_bytes: told.mss,
            receive_window_bytes: told.receive_window,
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
