//! From a flow's snapshots to its acknowledgments and to the real end of its first slow start.

use onramp_algorithm::shell::{Policy, Shell};
use onramp_algorithm::{Ack, ExitReason, ExitRecord, Sock, Verdict};

use super::snapshot::state;
use crate::object::abi::{SocketSnapshot, snapshot_kind};

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

/// The flow's own control. It sets the sender's threshold itself.
struct Own;

impl Policy for Own {
    fn restart(&mut self) {}

    fn on_ack(&mut self, _: &Ack) -> Verdict {
        Verdict::default()
    }

    fn on_loss(&mut self, _: &Ack, base_ssthresh: u32) -> u32 {
        base_ssthresh
    }
}

/// Follows one flow through its first slow start, as the shell does in the kernel. Two snapshots make an acknowledgment: the
/// one taken when it arrived and the next, which has what its processing has changed.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    /// Taken when an acknowledgment arrived that is not complete yet.
    pending: Option<SocketSnapshot>,
    sequence: u32,
    shell: Shell,
    /// At the last acknowledgment in slow start, or before the loss that ended it.
    sock: Sock,
    /// Segments, when it was seen first.
    first_ssthresh: Option<u32>,
    /// Acknowledgments past slow start are asked for, too.
    past: bool,
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
                self.undo(snapshot);
                self.grow(before.as_ref().unwrap_or(snapshot), snapshot);
                let followed = self.past || self.exit().is_none();
                self.pending = Some(*snapshot).filter(|now| followed && now.packets_out > 0);
            }
            snapshot_kind::STATE => steps.extend(self.reduce(before.as_ref(), snapshot)),
            snapshot_kind::SHUT => {
                self.grow(before.as_ref().unwrap_or(snapshot), snapshot);
                self.shut_early = self.exit().is_none() && snapshot.packets_out > 0;
            }
            _ => {}
        }
        steps
    }

    /// The acknowledgment that arrived at `before`, if the algorithm would have been called with it.
    fn complete(&mut self, before: &SocketSnapshot, after: &SocketSnapshot) -> Option<Step> {
        // A segment with data of the peer that acknowledges nothing.
        if after.delivered == before.delivered
            && after.snd_una == before.snd_una
            && after.rcv_nxt != before.rcv_nxt
        {
            return None;
        }
        let ack = describe(before, after);
        if self.exit().is_some() || !self.is_called(before.state, &ack) {
            return self.past.then_some(Step::Past { ack });
        }
        self.acks += 1;
        Some(Step::Ack { ack, slow_starts: self.shell.slow_starts().into() })
    }

    fn is_called(&mut self, state: u32, ack: &Ack) -> bool {
        self.sock = Sock { state, ..Sock::seen(ack) };
        self.shell.acked(&mut self.sock, ack.acked, u32::try_from(ack.rtt_us).ok(), &mut Own).is_some()
    }

    /// The window `now`, after the acknowledgment that arrived at `before`: it may have come to its threshold.
    fn grow(&mut self, before: &SocketSnapshot, now: &SocketSnapshot) {
        if self.exit().is_some() {
            return;
        }
        if now.cwnd < self.sock.cwnd {
            // Only an idle time shrinks the window within slow start.
            self.shell.idle();
        }
        if now.is_established() {
            self.shell.adopted();
        }
        if self.first_ssthresh.is_some_and(|first| first != now.ssthresh) {
            self.shell.ssthresh_set();
        }
        let ack = Ack { cwnd: now.cwnd, ssthresh: now.ssthresh, ..describe(before, now) };
        self.shell.grow(&mut self.sock, 1, |sock, _| *sock = Sock::seen(&ack));
    }

    /// The congestion state changes. Where that reduces the window, slow start is over.
    fn reduce(&mut self, before: Option<&SocketSnapshot>, now: &SocketSnapshot) -> Option<Step> {
        let reduces = matches!(now.new_state, state::RECOVERY | state::LOSS | state::CWR);
        if !reduces || self.exit().is_some() {
            return None;
        }
        let whole =
            before.copied().unwrap_or(SocketSnapshot { cwnd: self.sock.cwnd, ssthresh: u32::MAX, ..*now });
        let ack = Ack { now_us: now.time_ns / 1_000, acked: 0, rtt_us: -1, ..describe(&whole, now) };
        let mut sock = Sock { ecn: now.ecn, state: whole.state, ..Sock::seen(&ack) };
        let reduction = self.shell.reduced(&mut sock, now.ssthresh, &mut Own);
        if !reduction.called {
            return None;
        }
        self.shell.state(&mut sock, now.new_state);
        self.sock = sock;
        Some(Step::Loss { ack, ssthresh: reduction.ssthresh })
    }

    /// The loss proved spurious: window and threshold are as before it.
    fn undo(&mut self, now: &SocketSnapshot) {
        if self.exit().is_some()
            && now.state == state::OPEN
            && now.cwnd < now.ssthresh
            && now.ssthresh >= self.sock.ssthresh
        {
            self.sock.cwnd = self.shell.undo(&mut self.sock, now.cwnd);
            self.undone += u32::from(self.exit().is_none());
        }
    }

    /// How the first slow start ended. [`ExitReason::Algorithm`]: at a threshold that the flow's own control has set, as
    /// HyStart does.
    pub fn exit(&self) -> Option<(ExitReason, &ExitRecord)> {
        self.shell.exit()
    }
}

/// The acknowledgment as the kernel's shell would have described it: what was sent and the window as they were when it
/// arrived, what it acknowledged and the RTT as they were once it was processed.
fn describe(before: &SocketSnapshot, after: &SocketSnapshot) -> Ack {
    let delivered = after.delivered.wrapping_sub(before.delivered);
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
