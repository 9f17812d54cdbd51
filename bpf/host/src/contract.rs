//! What crosses the seam between an algorithm and its driver: `bpf/algorithm/algorithm.h` in Rust.

/// One acknowledgement, seen before the data that it releases is sent. Counters run from the start of the connection.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Arrival on a monotonic clock, microseconds.
    pub now_us: u64,
    /// Bytes cumulatively acknowledged; selective ACKs do not count.
    pub bytes_acked: u64,
    /// Bytes sent, retransmissions not counted again.
    pub bytes_sent: u64,
    /// Pacing rate in force, bytes per second, computed by the sender or capped; 0: not yet.
    pub pacing_rate: u64,
    /// `snd_nxt - snd_una`, bytes.
    pub bytes_outstanding: u32,
    /// Segments delivered, selective ACKs included; wraps.
    pub delivered: u32,
    /// Segments newly acknowledged by this ACK.
    pub acked: u32,
    /// RTT sample of this ACK in microseconds; negative: none.
    pub rtt_us: i32,
    /// Smoothed RTT in microseconds; 0: none yet.
    pub smoothed_rtt_us: u32,
    /// Minimum RTT in microseconds; 0: none yet.
    pub min_rtt_us: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow start threshold, segments.
    pub ssthresh: u32,
    /// Segments in flight.
    pub in_flight: u32,
    /// Maximum segment size in bytes, never 0.
    pub mss: u32,
    /// Largest burst handed to the device at once, bytes.
    pub gso_max_size: u32,
    /// Bits of [`ack_flag`].
    pub flags: u32,
    /// The receiver's clock when it acknowledged, in its own ticks (RFC 7323: TSval); 0: not told.
    pub receiver_clock: u32,
    /// For the alignment.
    pub unused: u32,
}

/// Bits of [`Ack::flags`].
pub mod ack_flag {
    /// The sender had less to send than the window allowed.
    pub const APP_LIMITED: u32 = 1 << 0;
    /// The rate sample that this ACK completes is application limited.
    pub const RATE_APP_LIMITED: u32 = 1 << 1;
    /// The sender used the whole window lately.
    pub const CWND_LIMITED: u32 = 1 << 2;
    /// The sender spaces its packets.
    pub const PACED: u32 = 1 << 3;
}

/// What an algorithm wants. All zero: go on doubling, unpaced. Windows in segments; 0 leaves a value as it is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Rate at which data leave until the next verdict, bytes per second; 0: as the host has it.
    pub pacing_rate: u64,
    /// Why: one of [`outcome`] or of the algorithm's own, see [`crate::Algorithm::outcomes`].
    pub outcome: u32,
    /// How the window grows on this ACK, see [`growth`].
    pub growth: u32,
    /// Segments by which the window may grow on this ACK, with [`growth::LIMITED`].
    pub growth_limit: u32,
    /// New congestion window, segments.
    pub cwnd: u32,
    /// New slow start threshold, segments; at or below the window this is the exit.
    pub ssthresh: u32,
    /// Window that the undo of a spurious loss restores at most, segments; 0: no limit.
    pub undo_limit: u32,
}

/// Values of [`Verdict::growth`].
pub mod growth {
    /// As the base does: in slow start by one segment for each acknowledged.
    pub const BASE: u32 = 0;
    /// As the base does, but at most by [`super::Verdict::growth_limit`]; 0 holds the window.
    pub const LIMITED: u32 = 1;
}

/// The outcomes that all algorithms share; an algorithm's own follow, by number, in its outcome table.
pub mod outcome {
    /// Nothing to decide, slow start goes on.
    pub const GROW: u32 = 0;
    /// Slow start is left.
    pub const EXIT: u32 = 1;
    /// The ACK carries no usable RTT sample.
    pub const NO_RTT_SAMPLE: u32 = 2;
    /// The sender is limited by the application.
    pub const APP_LIMITED: u32 = 3;
    /// Too little history to judge.
    pub const WARMING_UP: u32 = 4;
    /// Judged, and the link still takes more.
    pub const BELOW_THRESHOLD: u32 = 5;
    /// First of the algorithm's own.
    pub const OWN: u32 = 6;
    /// Counters that a flow keeps.
    pub const MAX: usize = 16;
}
