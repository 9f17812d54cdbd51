//! What the shell decides (`bpf/shell`), over a plain sender: the same C as in the kernel. Who drives it has the
//! algorithm, through [`Policy`], and the base, which it calls between the two parts of an operation.

use crate::contract::{Ack, ExitRecord, ShellFlow, Sock, Verdict, shell_ack};
use crate::{ExitReason, Flow};

/// What decides a slow start: an algorithm, or a model of one.
pub trait Policy {
    /// Slow start begins, or begins anew.
    fn restart(&mut self);
    /// One acknowledgment.
    fn on_ack(&mut self, ack: &Ack) -> Verdict;
    /// Slow start is left by a reduction: the threshold, where the base would have this one, segments.
    fn on_loss(&mut self, ack: &Ack, base_ssthresh: u32) -> u32;
}

impl Policy for Flow {
    fn restart(&mut self) {
        Flow::restart(self);
    }

    fn on_ack(&mut self, ack: &Ack) -> Verdict {
        Flow::on_ack(self, ack)
    }

    fn on_loss(&mut self, ack: &Ack, base_ssthresh: u32) -> u32 {
        Flow::on_loss(self, ack, base_ssthresh)
    }
}

/// One flow of the shell.
#[derive(Clone, Copy, Debug)]
pub struct Shell {
    flow: ShellFlow,
}

impl Shell {
    /// A new connection under an algorithm with these traits ([`crate::Algorithm::traits`]).
    pub fn new(traits: u32) -> Self {
        Self { flow: ShellFlow { traits, ..ShellFlow::default() } }
    }

    /// The same, called from the first acknowledgment on: what is no algorithm of onramp's has no state to wait for.
    pub fn from_the_first_ack(self) -> Self {
        Self { flow: ShellFlow { has_state: 1, ..self.flow } }
    }

    /// The exit record, once the first slow start is left; its `window_after` is 0 while a drain is in progress.
    pub fn exit(&self) -> Option<(ExitReason, &ExitRecord)> {
        let record = &self.flow.header.exit;
        ExitReason::from_number(record.reason.into()).map(|reason| (reason, record))
    }

    /// How often slow start was entered.
    pub fn slow_starts(&self) -> u16 {
        self.flow.header.slow_starts
    }

    /// Segments are acknowledged, before the window grows: `pkts_acked`. Returns the verdict, if `policy` was called.
    pub fn acked(
        &mut self,
        sock: &mut Sock,
        acked: u32,
        rtt_us: Option<u32>,
        policy: &mut impl Policy,
    ) -> Option<Verdict> {
        let (mut ack, mut verdict) = (Ack::default(), Verdict::default());
        // SAFETY: here and below: both structures are made of the headers that shell.c is compiled with, and the
        // functions keep no pointer.
        let needs = unsafe {
            onramp_shell_before_ack(&mut self.flow, sock, acked, sample(rtt_us), &mut ack, &mut verdict)
        };
        if needs & shell_ack::RESTARTS != 0 {
            policy.restart();
        }
        if needs & (shell_ack::CALLS | shell_ack::DRAINED) == 0 {
            return None;
        }
        if needs & shell_ack::CALLS != 0 {
            verdict = policy.on_ack(&ack);
        }
        // SAFETY: see above.
        unsafe { onramp_shell_after_ack(&mut self.flow, sock, needs, &ack, &verdict) }
        (needs & shell_ack::CALLS != 0).then_some(verdict)
    }

    /// The window may grow: `cong_avoid`. `base` grows it, for the segments that it is given.
    pub fn grow<B>(&mut self, sock: &mut Sock, acked: u32, base: B)
    where
        B: FnOnce(&mut Sock, u32),
    {
        // SAFETY: see `acked`.
        let acked = unsafe { onramp_shell_before_growth(&mut self.flow, sock, acked) };
        if acked == 0 {
            return;
        }
        base(sock, acked);
        // SAFETY: see `acked`.
        unsafe { onramp_shell_after_growth(&mut self.flow, sock) }
    }

    /// A reduction, while the window is whole: `ssthresh`. The threshold, where the base would have this one; `None`: it is
    /// not in slow start, and the base's stands.
    pub fn reduced(&mut self, sock: &mut Sock, base_ssthresh: u32, policy: &mut impl Policy) -> Option<u32> {
        let mut ack = Ack::default();
        // SAFETY: see `acked`.
        if unsafe { onramp_shell_before_loss(&mut self.flow, sock, &mut ack) } == 0 {
            return None;
        }
        let ssthresh = policy.on_loss(&ack, base_ssthresh);
        // SAFETY: see `acked`.
        unsafe { onramp_shell_after_loss(&mut self.flow, sock, &ack, ssthresh) }
        Some(ssthresh)
    }

    /// The state of congestion control changes to `new`, a number of [`crate::CongestionState`]: `set_state`.
    pub fn state(&mut self, sock: &Sock, new: u32) {
        // SAFETY: see `acked`.
        unsafe { onramp_shell_state(&mut self.flow, sock, new) }
    }

    /// The window is reduced after an idle time: `cwnd_event`.
    pub fn idle(&mut self) {
        // SAFETY: see `acked`.
        unsafe { onramp_shell_idle(&mut self.flow) }
    }

    /// The loss was none: the window to restore, where the base would restore this one, segments: `undo_cwnd`.
    pub fn undo(&mut self, sock: &Sock, window: u32) -> u32 {
        // SAFETY: see `acked`.
        unsafe { onramp_shell_undo(&mut self.flow, sock, window) }
    }

    /// Before data is sent, where the rate is set in place of the host's: `min_tso_segs`.
    pub fn pace(&mut self, sock: &mut Sock) {
        // SAFETY: see `acked`.
        unsafe { onramp_shell_pace(&mut self.flow, sock) }
    }
}

/// What an algorithm sees of a sender at an acknowledgment of so many segments.
pub fn describe(sock: &Sock, acked: u32, rtt_us: Option<u32>) -> Ack {
    let mut ack = Ack::default();
    // SAFETY: see `Shell::acked`.
    unsafe { onramp_shell_describe(sock, acked, sample(rtt_us), &mut ack) }
    ack
}

fn sample(rtt_us: Option<u32>) -> i32 {
    rtt_us.and_then(|rtt| i32::try_from(rtt).ok()).unwrap_or(-1)
}

unsafe extern "C" {
    fn onramp_shell_describe(sk: *const Sock, acked: u32, rtt_us: i32, ack: *mut Ack);
    fn onramp_shell_before_ack(
        flow: *mut ShellFlow,
        sk: *mut Sock,
        acked: u32,
        rtt_us: i32,
        ack: *mut Ack,
        verdict: *mut Verdict,
    ) -> u32;
    fn onramp_shell_after_ack(
        flow: *mut ShellFlow,
        sk: *mut Sock,
        needs: u32,
        ack: *const Ack,
        verdict: *const Verdict,
    );
    fn onramp_shell_before_growth(flow: *mut ShellFlow, sk: *const Sock, acked: u32) -> u32;
    fn onramp_shell_after_growth(flow: *mut ShellFlow, sk: *mut Sock);
    fn onramp_shell_before_loss(flow: *mut ShellFlow, sk: *const Sock, ack: *mut Ack) -> u32;
    fn onramp_shell_after_loss(flow: *mut ShellFlow, sk: *mut Sock, ack: *const Ack, ssthresh: u32);
    fn onramp_shell_state(flow: *mut ShellFlow, sk: *const Sock, new_state: u32);
    fn onramp_shell_idle(flow: *mut ShellFlow);
    fn onramp_shell_undo(flow: *mut ShellFlow, sk: *const Sock, window: u32) -> u32;
    fn onramp_shell_pace(flow: *mut ShellFlow, sk: *mut Sock);
}
