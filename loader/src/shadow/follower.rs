//! From a flow's snapshots to its acknowledgments and to the real end of its first slow start.

use onramp_algorithm::{Ack, ExitReason};

use super::snapshot::state;
use crate::object::abi::{SocketSnapshot, snapshot_kind};

/// How a flow really left its first slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealExit {
    /// Why; [`ExitReason::Algorithm`]: its own control has set the threshold at which its window is, as HyStart does.
    pub reason: ExitReason,
    /// Since the first data was sent, microseconds.
    pub at_us: u64,
    /// Bytes acknowledged by then.
    pub bytes_acked: u64,
    /// Segments.
    pub window: u32,
    /// Bytes.
    pub mss: u32,
    /// Smoothed, microseconds.
    pub rtt_us: u32,
}

/// What algorithms are called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An acknowledgment in slow start.
    Ack {
        /// As the algorithm would see it.
        ack: Ack,
        /// Times slow start was entered, this one included.
        slow_starts: u32,
    },
    /// An acknowledgment past slow start, where these are followed, too.
    Past {
        /// As an algorithm would see it.
        ack: Ack,
    },
    /// Slow start was left by loss, ECN or timeout.
    Loss {
        /// As the algorithm would see it.
        ack: Ack,
        /// Threshold of the flow's own control, segments.
        ssthresh: u32,
    },
}

/// Follows one flow through its first slow start. Two snapshots make an acknowledgment: the one taken when it arrived
/// and the next, which has what its processing has changed.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    /// Taken when an acknowledgment arrived that is not complete yet.
    pending: Option<SocketSnapshot>,
    sequence: u32,
    start_us: Option<u64>,
    slow_starts: u32,
    starting: bool,
    /// Segments, at the last acknowledgment and before the loss that ended slow start.
    window: u32,
    ssthresh: u32,
    /// Segments, when it was seen first.
    first_ssthresh: Option<u32>,
    /// Acknowledgments past slow start are asked for, too.
    past: bool,
    /// How the first slow start ended.
    pub exit: Option<RealExit>,
    /// Exits by a loss that proved spurious.
    pub undone: u32,
    /// Acknowledgments in slow start.
    pub acks: u64,
    /// Snapshots that were lost.
    pub lost: u64,
    /// The sending end was closed while data were outstanding: their acknowledgments are not seen.
    pub shut_early: bool,
    /// Congestion control that drove it last.
    pub control: String,
}

impl Follower {
    /// One that also follows what comes after slow start.
    pub fn past() -> Self {
        Self { past: true, ..Self::default() }
    }

    /// Takes the flow's next snapshot; returns what follows from it, at most an acknowledgment and a loss.
    pub fn take(&mut self, snapshot: &SocketSnapshot) -> Vec<Step> {
        self.first_ssthresh.get_or_insert(snapshot.ssthresh);
        let mut steps = Vec::new();
        let gap = snapshot.sequence.wrapping_sub(self.sequence).wrapping_sub(1);
        self.sequence = snapshot.sequence;
        if gap > 0 {
            // What was lost would have completed it.
            self.pending = None;
            self.lost += u64::from(gap);
        }
        if self.acks == 0 {
            self.control = snapshot.control();
        }
        let before = self.pending.take();
        if let Some(before) = before {
            steps.extend(self.complete(&before, snapshot));
        }
        match snapshot.kind {
            snapshot_kind::ACK => {
                self.take_back(snapshot);
                self.reach_threshold(before.as_ref(), snapshot);
                let followed = self.past || self.exit.is_none();
                self.pending = Some(*snapshot).filter(|now| followed && now.packets_out > 0);
            }
            snapshot_kind::STATE => steps.extend(self.reduce(before.as_ref(), snapshot)),
            snapshot_kind::SHUT => {
                self.reach_threshold(before.as_ref(), snapshot);
                self.shut_early = self.exit.is_none() && snapshot.packets_out > 0;
            }
            _ => {}
        }
        steps
    }

    /// The acknowledgment that arrived at `before`, if the algorithm would have been asked about it.
    fn complete(&mut self, before: &SocketSnapshot, after: &SocketSnapshot) -> Option<Step> {
        let delivered = after.delivered.wrapping_sub(before.delivered);
        let fresh = delivered != 0 || after.snd_una != before.snd_una;
        // A segment with data of the peer that acknowledges nothing.
        if !fresh && after.rcv_nxt != before.rcv_nxt {
            return None;
        }
        let ack = describe(before, after, delivered);
        if !before.in_slow_start() || self.exit.is_some() {
            return self.past.then_some(Step::Past { ack });
        }
        if self.starting && before.cwnd < self.window {
            // Only an idle time shrinks the window within slow start.
            self.starting = false;
        }
        if !self.starting {
            self.starting = true;
            self.slow_starts += 1;
        }
        self.window = before.cwnd;
        self.acks += 1;
        let rtt_us = if ack.rtt_us > 0 { ack.rtt_us as u32 } else { ack.smoothed_rtt_us };
        self.start_us.get_or_insert(ack.now_us.saturating_sub(rtt_us.into()));
        Some(Step::Ack { ack, slow_starts: self.slow_starts })
    }

    /// The congestion state changes. Where that reduces the window, slow start is over.
    fn reduce(&mut self, before: Option<&SocketSnapshot>, now: &SocketSnapshot) -> Option<Step> {
        let reason = match now.new_state {
            state::RECOVERY => ExitReason::Loss,
            state::LOSS => ExitReason::Timeout,
            state::CWR if now.ecn != 0 => ExitReason::Ecn,
            state::CWR => ExitReason::LocalCongestion,
            _ => return None,
        };
        if !std::mem::take(&mut self.starting) || self.exit.is_some() {
            return None;
        }
        let earlier =
            before.copied().unwrap_or(SocketSnapshot { cwnd: self.window, ssthresh: u32::MAX, ..*now });
        self.ssthresh = earlier.ssthresh;
        self.leave(reason, &earlier, now);
        let mut ack = describe(&earlier, now, now.delivered.wrapping_sub(earlier.delivered));
        ack.now_us = now.time_ns / 1_000;
        (ack.acked, ack.rtt_us) = (0, -1);
        Some(Step::Loss { ack, ssthresh: now.ssthresh })
    }

    /// The window is at its threshold: what set it came with the acknowledgment before, or with the connection.
    fn reach_threshold(&mut self, before: Option<&SocketSnapshot>, now: &SocketSnapshot) {
        if self.exit.is_none() && self.starting && !now.below_threshold() {
            self.starting = false;
            let reason = match self.first_ssthresh {
                Some(first) if first != now.ssthresh => ExitReason::Algorithm,
                _ if now.is_established() => ExitReason::Ssthresh,
                _ => ExitReason::CachedSsthresh,
            };
            self.leave(reason, before.unwrap_or(now), now);
        }
    }

    /// The loss proved spurious: window and threshold are as before it.
    fn take_back(&mut self, now: &SocketSnapshot) {
        let by_loss = self.exit.is_some_and(|exit| !at_threshold(exit.reason));
        if by_loss && now.state == state::OPEN && now.below_threshold() && now.ssthresh >= self.ssthresh {
            self.exit = None;
            self.undone += 1;
            self.window = now.cwnd;
        }
    }

    fn leave(&mut self, reason: ExitReason, at: &SocketSnapshot, now: &SocketSnapshot) {
        let time_us = if at_threshold(reason) { at.time_ns } else { now.time_ns } / 1_000;
        self.exit = Some(RealExit {
            reason,
            at_us: time_us.saturating_sub(self.start_us.unwrap_or(time_us)),
            bytes_acked: now.bytes_acked,
            window: at.cwnd,
            mss: now.mss,
            rtt_us: now.srtt >> 3,
        });
    }
}

/// Whether the window had come to a threshold.
fn at_threshold(reason: ExitReason) -> bool {
    matches!(reason, ExitReason::Algorithm | ExitReason::Ssthresh | ExitReason::CachedSsthresh)
}

/// The acknowledgment as the kernel's shell would have described it: what was sent and the window as they were when it
/// arrived, what it acknowledged and the RTT as they were once it was processed.
fn describe(before: &SocketSnapshot, after: &SocketSnapshot, delivered: u32) -> Ack {
    let smoothed_rtt_us = after.srtt >> 3;
    // Segments delivered out of order and selectively acknowledged are not acknowledged yet; that comes later, when it is not delivered any more.
    let acked = delivered.wrapping_add(before.sacked_out).wrapping_sub(after.sacked_out);
    // Connections without selective ACKs have no sample of this kind.
    let sample = if after.rack_rtt_us != 0 { after.rack_rtt_us } else { smoothed_rtt_us };
    Ack {
        now_us: before.time_ns / 1_000,
        bytes_acked: after.bytes_acked,
        bytes_sent: before.bytes_sent.wrapping_sub(before.bytes_retransmitted),
        pacing_rate: before.pacing_rate,
        bytes_outstanding: before.snd_nxt.wrapping_sub(after.snd_una),
        delivered: after.delivered,
        acked,
        rtt_us: if delivered == 0 { -1 } else { sample as i32 },
        smoothed_rtt_us,
        min_rtt_us: after.min_rtt(),
        cwnd: before.cwnd,
        ssthresh: before.ssthresh,
        in_flight: before.in_flight().saturating_sub(delivered),
        mss: before.mss.max(1),
        gso_max_size: before.gso_max_size,
        flags: before.flags,
        receiver_clock: after.receiver_clock,
        receive_window: after.receive_window,
    }
}
