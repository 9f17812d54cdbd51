//! A socket at a moment.

use onramp_net::sock_diag::{Socket, SocketMemory, TcpInfo, ca_state};

use super::limit::Limit;

/// Smoothed RTT over the minimum RTT from which on a queue stands, percent: in slow start each round has a queue of its
/// own burst (the half that HyStart and SEARCH tolerate), later none.
const QUEUE_IN_SLOW_START_PERCENT: u64 = 150;
const QUEUE_PERCENT: u64 = 112;
/// And times the RTT's mean deviation: jitter is no queue.
const DEVIATIONS: u64 = 2;

/// What the kernel says of a socket at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// Any clock, microseconds.
    pub at_us: u64,
    /// `INET_DIAG_INFO`.
    pub info: TcpInfo,
    /// `INET_DIAG_SKMEMINFO`.
    pub memory: SocketMemory,
    /// The control paces at its own estimate of the path's rate: BBR. Its ssthresh is infinite until its startup is over.
    pub models_path: bool,
}

impl Sample {
    /// `None`: a socket without a congestion control.
    pub fn new(at_us: u64, socket: &Socket) -> Option<Self> {
        let control = socket.congestion_control.as_deref()?;
        Some(Self {
            at_us,
            info: socket.info?,
            memory: socket.memory.unwrap_or_default(),
            models_path: control.starts_with("bbr"),
        })
    }

    pub fn in_slow_start(&self) -> bool {
        if self.models_path { self.info.snd_ssthresh.is_none() } else { self.info.in_slow_start() }
    }

    /// Whether the window is being reduced.
    pub fn is_reduced(&self) -> bool {
        self.info.ca_state >= ca_state::CWR
    }

    /// The limit now, but for what the kernel counts: in flight are what fills the congestion window, or less and then
    /// something else holds the rest.
    pub fn limit(&self) -> Limit {
        let info = &self.info;
        if self.is_reduced() {
            // What is retransmitted leaves a full queue full.
            return if info.ca_state < ca_state::LOSS && self.path_is_full() {
                Limit::Path
            } else {
                Limit::Recovery
            };
        }
        let in_flight = u64::from(info.in_flight());
        let unsent = info.notsent_bytes > 0;
        // TSO defers up to a third of the window, until the next ACK.
        let full =
            in_flight >= info.snd_cwnd.into() || unsent && 3 * in_flight >= 2 * u64::from(info.snd_cwnd);
        match (full, unsent) {
            (true, _) => self.of_window(),
            (false, true) => self.holding_back(),
            (false, false) if self.send_buffer_is_full() => Limit::SendBuffer,
            (false, false) => Limit::Application,
        }
    }

    /// Of a full window.
    pub fn of_window(&self) -> Limit {
        if self.path_is_full() {
            Limit::Path
        } else if self.in_slow_start() {
            Limit::SlowStart
        } else {
            Limit::CongestionAvoidance
        }
    }

    /// The window has room, and there are data.
    fn holding_back(&self) -> Limit {
        let info = &self.info;
        let pacing_rate = info.pacing_rate_bytes_per_s;
        // TSQ: a millisecond at the pacing rate, at least two packets (tcp_small_queue_check, net/ipv4/tcp_output.c).
        let small_queue = (pacing_rate.unwrap_or(0) / 1_024).max(2 * u64::from(info.snd_mss));
        let is_capped = pacing_rate.is_some_and(|rate| info.max_pacing_rate_bytes_per_s == Some(rate));
        if is_capped {
            Limit::Pacing
        } else if self.fills_receive_window() {
            Limit::ReceiveWindow
        } else if self.models_path && !self.in_slow_start() {
            Limit::Path
        } else if u64::from(self.memory.in_host_queue_bytes) > small_queue {
            Limit::HostQueue
        } else if self.in_slow_start() && !self.uses_pacing_rate() {
            Limit::SlowStart
        } else {
            Limit::Pacing
        }
    }

    /// Whether three quarters of the pacing rate are delivered.
    pub fn uses_pacing_rate(&self) -> bool {
        let info = &self.info;
        info.pacing_rate_bytes_per_s.is_some_and(|rate| info.delivery_rate_bytes_per_s >= rate / 4 * 3)
    }

    /// Whether three quarters of what the receiver takes are outstanding.
    pub fn fills_receive_window(&self) -> bool {
        let info = &self.info;
        let outstanding = u64::from(info.unacked) * u64::from(info.snd_mss);
        info.snd_wnd_bytes > 0 && 4 * outstanding >= 3 * u64::from(info.snd_wnd_bytes)
    }

    /// Whether a queue stands, or BBR has found the path full.
    pub fn path_is_full(&self) -> bool {
        let info = &self.info;
        let Some(min_us) = info.min_rtt_us.map(u64::from).filter(|us| *us > 0) else { return false };
        if self.models_path && !self.in_slow_start() {
            return true;
        }
        let percent = if self.in_slow_start() { QUEUE_IN_SLOW_START_PERCENT } else { QUEUE_PERCENT };
        let rtt_us = u64::from(info.rtt_us);
        100 * rtt_us >= percent * min_us
            && rtt_us.saturating_sub(min_us) >= DEVIATIONS * u64::from(info.rttvar_us)
    }

    /// A writer waits from two thirds on (`sk_stream_is_writeable`, include/net/sock.h).
    fn send_buffer_is_full(&self) -> bool {
        let limit = u64::from(self.memory.send_buffer_bytes);
        limit > 0 && 3 * u64::from(self.memory.queued_bytes) > 2 * limit
    }
}
