//! A recorded or watched flow under an algorithm and the shell. Open loop: the ACKs are those of the real flow, and what the
//! shell writes to the sender is dropped. So the shell is attached to observe.

use crate::Flow;
use crate::contract::{Ack, ExitRecord, NO_THRESHOLD, Sock, Verdict, ack_flag};
use crate::shell::Shell;

/// Where the flow stood at an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// In slow start if the window is below the threshold.
    ByThreshold,
    /// In slow start whatever the threshold says.
    SlowStart,
    /// Past it, or in recovery.
    Past,
}

/// One flow and one algorithm.
#[derive(Clone, Debug)]
pub struct OpenLoop {
    flow: Flow,
    shell: Shell,
    sock: Sock,
}

impl OpenLoop {
    /// `flow` after so many slow starts; 0: at its beginning.
    pub fn new(flow: Flow, slow_starts: u32) -> Self {
        let shell = Shell::observing(flow.algorithm().traits()).from_the_first_ack();
        Self { shell: shell.after(slow_starts), flow, sock: Sock::default() }
    }

    /// The algorithm's state.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// The same, to change its parameters.
    pub fn flow_mut(&mut self) -> &mut Flow {
        &mut self.flow
    }

    /// The exit that the algorithm would have made first, at its detection; `window_after` is the threshold that it wants.
    pub fn exit(&self) -> Option<&ExitRecord> {
        self.shell.observed()
    }

    /// The time of that exit, monotonic clock, microseconds.
    pub fn exit_us(&self) -> Option<u64> {
        self.exit().map(|record| self.shell.header().start_us.wrapping_add(record.at_us))
    }

    /// The window has grown to `cwnd` segments since the previous acknowledgment.
    pub fn grow(&mut self, cwnd: u32) {
        self.sock.cwnd = cwnd;
        self.shell.grown(&mut self.sock);
    }

    /// An acknowledgment in the slow start of this number. Returns the verdict if the algorithm was called.
    pub fn ack(&mut self, ack: &Ack, slow_starts: u32, stage: Stage) -> Option<Verdict> {
        self.sock = Sock { startup: (stage == Stage::SlowStart).into(), ..Sock::seen(ack) };
        let verdict = if stage == Stage::Past {
            None
        } else {
            self.shell.enter(slow_starts);
            let rtt_us = u32::try_from(ack.rtt_us).ok();
            self.shell.acked(&mut self.sock, ack.acked, rtt_us, &mut self.flow)
        };
        if verdict.is_none() {
            self.shell.left();
        }
        verdict
    }

    /// The algorithm is called with later acknowledgments, too, although it would have exited slow start.
    pub fn go_on(&mut self) {
        self.shell.go_on();
    }

    /// A reduction, for which the base would set a threshold of `base_ssthresh` segments.
    pub fn loss(&mut self, ack: &Ack, base_ssthresh: u32) -> u32 {
        self.sock = Sock::seen(ack);
        self.shell.reduced(&mut self.sock, base_ssthresh, &mut self.flow);
        self.shell.left();
        // The shell calls no algorithm that only observes, but the state has to become the recorded one.
        self.flow.on_loss(ack, base_ssthresh)
    }
}

impl Sock {
    /// A sender that shows an algorithm this acknowledgment, with more to send and no other limits.
    pub fn seen(ack: &Ack) -> Self {
        Self {
            now_us: ack.now_us,
            bytes_acked: ack.bytes_acked,
            bytes_sent: ack.bytes_sent,
            bytes_transmitted: ack.bytes_sent,
            max_pacing_rate: u64::MAX,
            bytes_outstanding: ack.bytes_outstanding,
            bytes_unsent: u32::MAX,
            delivered: ack.delivered,
            in_flight: ack.in_flight,
            srtt_eighths_us: ack.smoothed_rtt_us.saturating_mul(8),
            min_rtt_us: ack.min_rtt_us,
            cwnd_clamp: NO_THRESHOLD,
            prior_cwnd: ack.cwnd,
            mss: ack.mss,
            gso_max_size: ack.gso_max_size,
            limited_by: ack.flags & !ack_flag::PACED,
            receiver_clock: ack.receiver_clock,
            receive_window: ack.receive_window,
            paced: u32::from(ack.flags & ack_flag::PACED != 0),
            cwnd: ack.cwnd,
            ssthresh: ack.ssthresh,
            pacing_rate: ack.pacing_rate,
            ..Self::default()
        }
    }
}
