// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a sender and its congestion control share: the fields of the kernel's `tcp_sock` that a control reads and
//! writes.

use onramp_algorithm::{Sock, ack_flag};

use super::round_trip::RoundTrip;
use crate::link::Nanos;

/// A threshold that is none.
pub use onramp_algorithm::NO_THRESHOLD;

/// States of congestion control, in the kernel's order and meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nothing is wrong.
    Open,
    /// Something arrived out of order; it may be a loss.
    Disorder,
    /// The window was reduced without a repair, as after a probe that has repaired a loss.
    Reduced,
    /// A loss is being repaired (fast recovery).
    Recovery,
    /// The retransmission timer fired.
    Loss,
}

/// The fields of a socket that its congestion control reads and writes.
#[derive(Clone, Debug)]
pub struct Socket {
    /// Bytes of a full segment.
    pub mss: u32,
    /// The clock at the packet or timer that is being worked on, microseconds.
    pub now_us: u64,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow start threshold, segments.
    pub ssthresh: u32,
    /// Acknowledged segments that have not yet grown the window by one.
    pub cwnd_count: u32,
    /// Window before the last reduction.
    pub prior_cwnd: u32,
    /// State of congestion control.
    pub state: State,
    /// In [`State::Loss`]: the timeout may have been none (F-RTO).
    pub in_doubt: bool,
    /// Segments sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Of these, how many have arrived out of order.
    pub sacked_out: u32,
    /// Of these, how many are believed lost.
    pub lost_out: u32,
    /// Segments that were believed lost, each as often as it was.
    pub lost: u32,
    /// Retransmissions on their way.
    pub retrans_out: u32,
    /// Segments delivered, in order or not, the handshake included.
    pub delivered: u32,
    /// When the last was, microseconds.
    pub delivered_us: u64,
    /// The value of `delivered` up to which the application had less to send than the window allowed; 0: it has more.
    pub app_limited: u32,
    /// The last rate sample that counts: segments delivered.
    pub rate_delivered: u32,
    /// The time in which they were, microseconds; 0: there is none yet.
    pub rate_interval_us: u32,
    /// Whether it was taken in such a time.
    pub rate_app_limited: bool,
    /// Whether the window was used up lately.
    pub cwnd_limited: bool,
    /// Most segments out in the last window.
    pub max_packets_out: u32,
    /// Bytes acknowledged in order.
    pub bytes_acked: u64,
    /// Bytes sent, each counted once.
    pub bytes_sent: u64,
    /// Bytes that the application has written.
    pub bytes_written: u64,
    /// Bytes that the receiver offers, from what is acknowledged.
    pub receive_window: u32,
    /// The receiver's clock in the newest acknowledgment, milliseconds.
    pub receiver_ms: u32,
    /// Round-trip times.
    pub round_trip: RoundTrip,
    /// Rate at which data may leave, bytes per second: computed on each acknowledgment, or set by the control.
    pub pacing_rate: u64,
    /// Whether data are held back to that rate.
    pub paced: bool,
    /// For how long the next burst is still held back.
    pub departs_in: Nanos,
}

/// Bytes of the largest burst that is handed to a device at once.
pub const BURST_BYTES: u32 = 65_536;

impl Socket {
    /// Before anything was sent.
    pub fn new(mss: u32, initial_window: u32) -> Self {
        Self {
            mss,
            now_us: 0,
            cwnd: initial_window,
            ssthresh: NO_THRESHOLD,
            cwnd_count: 0,
            prior_cwnd: 0,
            state: State::Open,
            in_doubt: false,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            lost: 0,
            retrans_out: 0,
            // The handshake.
            delivered: 1,
            delivered_us: 0,
            app_limited: 1,
            rate_delivered: 0,
            rate_interval_us: 0,
            rate_app_limited: false,
            cwnd_limited: false,
            max_packets_out: 0,
            bytes_acked: 0,
            bytes_sent: 0,
            bytes_written: 0,
            receiver_ms: 0,
            receive_window: 0,
            round_trip: RoundTrip::default(),
            pacing_rate: 0,
            paced: false,
            departs_in: 0,
        }
    }

    /// What the shell sees of it.
    pub fn view(&self) -> Sock {
        let flags = [
            (self.app_limited > 0, ack_flag::APP_LIMITED),
            (self.rate_app_limited, ack_flag::RATE_APP_LIMITED),
            (self.cwnd_limited, ack_flag::CWND_LIMITED),
        ];
        Sock {
            now_us: self.now_us,
            bytes_acked: self.bytes_acked,
            bytes_sent: self.bytes_sent,
            bytes_transmitted: self.bytes_sent,
            max_pacing_rate: u64::MAX,
            bytes_outstanding: (self.bytes_sent - self.bytes_acked) as u32,
            bytes_unsent: self.bytes_written.saturating_sub(self.bytes_sent) as u32,
            delivered: self.delivered,
            in_flight: self.in_flight(),
            srtt_eighths_us: self.round_trip.smoothed_eighths_us,
            min_rtt_us: self.round_trip.least_us().unwrap_or(0),
            cwnd_clamp: u32::MAX,
            prior_cwnd: self.prior_cwnd,
            mss: self.mss,
            gso_max_size: BURST_BYTES,
            limited_by: flags.into_iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag),
            receiver_clock: self.receiver_ms,
            receive_window: self.receive_window,
            rate_delivered: self.rate_delivered,
            rate_interval_us: self.rate_interval_us,
            startup: 0,
            options: 0,
            plateau: 0,
            in_doubt: u32::from(self.in_doubt),
            lost: self.lost,
            lost_out: self.lost_out,
            controls: 0,
            state: self.state as u32,
            ecn: 0,
            stamped_ahead: u32::from(self.departs_in > 0),
            paced: u32::from(self.paced),
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            pacing_rate: self.pacing_rate,
        }
    }

    /// What the shell has written to that view.
    pub fn update(&mut self, sock: &Sock) {
        self.cwnd = sock.cwnd;
        self.ssthresh = sock.ssthresh;
        self.pacing_rate = sock.pacing_rate;
        self.paced = sock.paced != 0;
    }

    /// Segments on their way.
    pub fn in_flight(&self) -> u32 {
        (self.packets_out + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    /// Whether the window is below the threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether the window is what limits the sender; in slow start it may grow to twice what was used.
    pub fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited || (self.in_slow_start() && self.cwnd < 2 * self.max_packets_out)
    }

    /// Grows the window by a segment for each that was acknowledged, up to the threshold; returns what is left of them.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let grown = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let left = acked - (grown - self.cwnd);
        self.cwnd = grown;
        left
    }

    /// Grows the window by a segment for each `every` that were acknowledged.
    pub fn additive_increase(&mut self, every: u32, acked: u32) {
        if self.cwnd_count >= every {
            self.cwnd_count = 0;
            self.cwnd += 1;
        }
        self.cwnd_count += acked;
        if self.cwnd_count >= every {
            let more = self.cwnd_count / every;
            self.cwnd_count -= more * every;
            self.cwnd += more;
        }
    }

    /// The threshold to go on with after an idle time, or a reduction that is undone.
    pub fn current_threshold(&self) -> u32 {
        if self.state == State::Recovery {
            self.ssthresh
        } else {
            self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2))
        }
    }

    /// The rate that pacing would have: twice what the window gives in slow start, 1.2 times in congestion avoidance.
    pub fn update_pacing_rate(&mut self) {
        let percent = if self.cwnd < self.ssthresh / 2 { 200 } else { 120 };
        let window = u64::from(self.cwnd.max(self.packets_out)) * u64::from(self.mss);
        let bytes = window * percent * 80_000;
        self.pacing_rate = bytes.checked_div(u64::from(self.round_trip.smoothed_eighths_us)).unwrap_or(bytes);
    }
}
