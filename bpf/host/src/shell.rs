//! What the shell decides (`bpf/shell`), over a plain sender: the same C as in the kernel. Who drives it has the
//! algorithm, through [`Policy`], and the base, which it calls between the two parts of an operation.

use crate::contract::{
    Ack, AckPayload, AckStep, ExitRecord, Fast, FlowHeader, LossPayload, LossStep, Path, ShellFlow, Sock,
    Start, StartupStep, Suss, Verdict, flow_flag, start_phase,
};
use crate::{ExitReason, Flow, StartPolicies, StartPolicy};

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

/// What a reduction comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// The threshold, segments.
    pub ssthresh: u32,
    /// The algorithm was called, because it ended slow start.
    pub called: bool,
}

/// One flow of the shell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shell {
    flow: ShellFlow,
}

impl Shell {
    /// A new connection under an algorithm with these traits ([`crate::Algorithm::traits`]).
    pub fn new(traits: u32) -> Self {
        let start = Start { phase: start_phase::OVER, ..Start::default() };
        Self { flow: ShellFlow { traits, start, ..ShellFlow::default() } }
    }

    /// The same with what is done at the start where no path is remembered.
    pub fn starting(self, policies: StartPolicies) -> Self {
        let faster = [StartPolicy::Fast, StartPolicy::Suss].into_iter().find(|one| policies.has(*one));
        Self { flow: ShellFlow { faster: faster.map_or(0, |one| one as u32), ..self.flow } }
    }

    /// The same over a path that is remembered, `rate` in bytes per second and its minimum RTT, with what is done at the start.
    pub fn remembering(self, policies: StartPolicies, rate: u64, rtt_us: u32) -> Self {
        let mut flow = self.flow;
        // SAFETY: see `acked`.
        unsafe { onramp_start_remembers(&mut flow.start, rate, rtt_us, policies.bits()) }
        Self { flow }
    }

    /// The same under a claim on the path that is void from `late_us` on, of the clock of [`Sock::now_us`].
    pub fn claiming(self, late_us: u64) -> Self {
        let start = Start { claim_ns: 1, late_us, ..self.flow.start };
        Self { flow: ShellFlow { start, ..self.flow } }
    }

    /// The same over a path as connections before have learned it, with what is done at the start; without memory where nothing
    /// is known that may still be used. Times are since boot.
    pub fn recalling(self, policies: StartPolicies, path: &Path, now_ns: u64, lifetime_ns: u64) -> Self {
        let mut flow = self.flow;
        // SAFETY: see `acked`.
        unsafe { onramp_path_recall(path, now_ns, lifetime_ns, policies.bits(), &mut flow.start) }
        Self { flow }
    }

    /// Remembers of the path what the flow has seen of it: once its exit record is there, and where it `ends`. Whether that
    /// changes anything.
    pub fn learn(&self, sock: &Sock, ends: bool, path: &mut Path, now_ns: u64, lifetime_ns: u64) -> bool {
        // SAFETY: see `acked`.
        unsafe { onramp_path_learn(&self.flow, sock, ends.into(), path, now_ns, lifetime_ns) != 0 }
    }

    /// The start from memory, as far as it has come.
    pub fn start(&self) -> &Start {
        &self.flow.start
    }

    /// The start that is faster than doubling, as far as it has come.
    pub fn fast(&self) -> &Fast {
        &self.flow.fast
    }

    /// The start by SUSS, as far as it has come.
    pub fn suss(&self) -> &Suss {
        &self.flow.suss
    }

    /// The connection begins, before anything is sent: `init`.
    pub fn begin(&mut self, sock: &mut Sock) {
        // SAFETY: see `acked`.
        unsafe { onramp_shell_begin(&mut self.flow, sock) }
    }

    /// The same, called from the first acknowledgment on: what is no algorithm of onramp's has no state to wait for.
    pub fn from_the_first_ack(self) -> Self {
        Self { flow: ShellFlow { has_state: 1, ..self.flow } }
    }

    /// A flow that goes on from what the shell has kept of it.
    pub fn resumed(traits: u32, header: FlowHeader) -> Self {
        Self { flow: ShellFlow { header, traits, has_state: 1, ..ShellFlow::default() } }
    }

    /// The same attached to observe: the algorithm is called until it would have exited slow start, without effect.
    pub fn observing(traits: u32) -> Self {
        Self { flow: ShellFlow { traits, observing: 1, ..ShellFlow::default() } }
    }

    /// The same in the slow start of this number.
    pub fn after(mut self, slow_starts: u32) -> Self {
        self.flow.header.slow_starts = slow_starts.try_into().unwrap_or(u16::MAX);
        self
    }

    /// Attached to observe: the exit that the algorithm would have made first.
    pub fn observed(&self) -> Option<&ExitRecord> {
        Some(&self.flow.kept.observed).filter(|record| record.reason != 0)
    }

    /// The next acknowledgment is in the slow start of this number; in a new one the algorithm is restarted.
    pub fn enter(&mut self, slow_starts: u32) {
        let header = &mut self.flow.header;
        if u32::from(header.slow_starts) == slow_starts {
            header.flags |= (flow_flag::SLOW_START | flow_flag::STARTED) as u16;
        } else {
            header.flags &= !(flow_flag::SLOW_START as u16);
            header.slow_starts = slow_starts.saturating_sub(1).try_into().unwrap_or(u16::MAX);
        }
    }

    /// Attached to observe: the flow is past slow start. A threshold that the algorithm wanted in it counts no more.
    pub fn left(&mut self) {
        self.flow.header.flags &= !(flow_flag::SLOW_START as u16);
        if self.observed().is_none() {
            self.flow.kept.observed.window_after = 0;
        }
    }

    /// Attached to observe: the window has grown.
    pub fn grown(&mut self, sock: &mut Sock) {
        // SAFETY: see `acked`.
        unsafe { onramp_shell_grown(&mut self.flow, sock) }
    }

    /// Attached to observe: the algorithm is called although it would have exited this slow start.
    pub fn go_on(&mut self) {
        self.flow.header.flags &= !(flow_flag::OBSERVED as u16);
    }

    /// The connection was established before it came under the shell.
    pub fn adopted(&mut self) {
        self.flow.header.flags |= flow_flag::ADOPTED as u16;
    }

    /// The algorithm itself has set the sender's threshold.
    pub fn ssthresh_set(&mut self) {
        self.flow.header.flags |= flow_flag::SSTHRESH_SET as u16;
    }

    /// What the shell keeps of the flow.
    pub fn header(&self) -> &FlowHeader {
        &self.flow.header
    }

    /// The exit record, once the first slow start ends; its `window_after` is 0 while a drain is in progress.
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
        let (mut step, mut payload) = (AckStep::default(), AckPayload::default());
        // SAFETY: here and below: all structures are made of the headers that shell.c is compiled with, and the functions
        // keep no pointer.
        let acts = unsafe {
            onramp_shell_ack_before(&mut self.flow, sock, acked, sample(rtt_us), &mut step, &mut payload)
        };
        if acts == 0 {
            return None;
        }
        if step.begins != 0 {
            policy.restart();
        }
        if step.called != 0 {
            payload.verdict = policy.on_ack(&payload.ack);
            payload.called = 1;
        }
        // SAFETY: see above.
        unsafe { onramp_shell_ack_after(&mut self.flow, sock, &step, &mut payload) }
        (step.called != 0).then_some(payload.verdict)
    }

    /// The window may grow: `cong_avoid`. `base` grows it, for the segments that it is given.
    pub fn grow<B>(&mut self, sock: &mut Sock, acked: u32, base: B)
    where
        B: FnOnce(&mut Sock, u32),
    {
        // SAFETY: see `acked`.
        let acked = unsafe { onramp_shell_growth_before(&mut self.flow, sock, acked) };
        if acked == 0 {
            return;
        }
        base(sock, acked);
        // SAFETY: see `acked`.
        unsafe { onramp_shell_growth_after(&mut self.flow, sock) }
    }

    /// A reduction, while the window is whole: `ssthresh`. The base would have the threshold `base_ssthresh`, segments.
    pub fn reduced(&mut self, sock: &mut Sock, base_ssthresh: u32, policy: &mut impl Policy) -> Reduction {
        let mut payload = LossPayload::default();
        // SAFETY: see `acked`.
        let step = unsafe { onramp_shell_loss_before(&mut self.flow, sock, base_ssthresh, &mut payload) };
        if step.called != 0 {
            payload.ssthresh = policy.on_loss(&payload.ack, payload.base_ssthresh);
            payload.called = 1;
        }
        // SAFETY: see `acked`.
        unsafe { onramp_shell_loss_after(&mut self.flow, sock, step, &mut payload) }
        Reduction { ssthresh: payload.ssthresh, called: step.called != 0 }
    }

    /// The state of congestion control changes to `new`, a number of [`crate::CongestionState`]: `set_state`.
    pub fn state(&mut self, sock: &mut Sock, new: u32) {
        // SAFETY: see `acked`.
        unsafe { onramp_shell_state(&mut self.flow, sock, new) }
    }

    /// The window is reduced after an idle time: `cwnd_event`.
    pub fn idle(&mut self) {
        // SAFETY: see `acked`.
        unsafe { onramp_shell_idle(&mut self.flow) }
    }

    /// The loss was none: the window to restore, where the base would restore this one, segments: `undo_cwnd`.
    pub fn undo(&mut self, sock: &mut Sock, window: u32) -> u32 {
        // SAFETY: see `acked`.
        unsafe { onramp_shell_undo(&mut self.flow, sock, window) }
    }

    /// Whether the start of a base that controls the window is the shell's; else that base does all by itself.
    pub fn starts(&self) -> bool {
        // SAFETY: see `acked`.
        unsafe { onramp_shell_starts(&self.flow) != 0 }
    }

    /// Whether what the window allows has been sent since slow start was left, as far as is known.
    pub fn is_filled(&self, sock: &Sock) -> bool {
        // SAFETY: see `acked`.
        unsafe { onramp_shell_is_filled(&self.flow, sock) != 0 }
    }

    /// An acknowledgment in that start, after the base's turn: `cong_control`. Whether the window may grow.
    pub fn startup(&mut self, sock: &mut Sock, step: &StartupStep) -> bool {
        // SAFETY: see `acked`.
        unsafe { onramp_shell_startup(&mut self.flow, sock, step) != 0 }
    }

    /// That base has found its pipe full by itself.
    pub fn full(&mut self, sock: &mut Sock) {
        // SAFETY: see `acked`.
        unsafe { onramp_shell_full(&mut self.flow, sock) }
    }

    /// Before data is sent, where the rate is set in place of the host's: `min_tso_segs`.
    pub fn pace(&mut self, sock: &mut Sock) {
        // SAFETY: see `acked`.
        unsafe { onramp_shell_pace(&mut self.flow, sock) }
    }
}

/// Whether a sender is in slow start.
pub fn in_slow_start(sock: &Sock) -> bool {
    // SAFETY: see `Shell::acked`.
    unsafe { onramp_shell_in_slow_start(sock) != 0 }
}

/// Of a round after the exit of a base that controls: whether it has raised the rate.
pub fn has_raised(before: u32, rate: u32) -> bool {
    // SAFETY: it has no memory.
    unsafe { onramp_startup_raised(before, rate) != 0 }
}

/// The window of the round after so many that have, at most `most`; segments.
pub fn grown(window: u32, raised: u32, most: u32) -> u32 {
    // SAFETY: it has no memory.
    unsafe { onramp_startup_grown(window, raised, most) }
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

impl Path {
    /// Counts a start over it that is over, by a number of `start_end`.
    pub fn judge(&mut self, end: u32) {
        // SAFETY: see `Shell::acked`.
        unsafe { onramp_path_judge(self, end) }
    }

    /// How long the claim of a connection holds, which `begins` or has more to send than an initial window; nanoseconds.
    pub fn claim_lasts_ns(&self, begins: bool) -> u64 {
        // SAFETY: see `Shell::acked`.
        unsafe { onramp_path_claim_lasts_ns(self, begins.into()) }
    }

    /// Whether a connection has claimed it.
    pub fn is_claimed(&self, now_ns: u64) -> bool {
        // SAFETY: see `Shell::acked`.
        unsafe { onramp_path_is_claimed(self, now_ns) != 0 }
    }
}

unsafe extern "C" {
    fn onramp_start_remembers(start: *mut Start, rate: u64, rtt_us: u32, policies: u32);
    fn onramp_path_recall(path: *const Path, now_ns: u64, lifetime_ns: u64, policies: u32, start: *mut Start);
    fn onramp_path_learn(
        flow: *const ShellFlow,
        sk: *const Sock,
        ends: u32,
        path: *mut Path,
        now_ns: u64,
        lifetime_ns: u64,
    ) -> u32;
    fn onramp_path_judge(path: *mut Path, end: u32);
    fn onramp_path_claim_lasts_ns(path: *const Path, begins: u32) -> u64;
    fn onramp_path_is_claimed(path: *const Path, now_ns: u64) -> u32;
    fn onramp_shell_in_slow_start(sk: *const Sock) -> u32;
    fn onramp_shell_describe(sk: *const Sock, acked: u32, rtt_us: i32, ack: *mut Ack);
    fn onramp_shell_begin(flow: *mut ShellFlow, sk: *mut Sock);
    fn onramp_shell_ack_before(
        flow: *mut ShellFlow,
        sk: *mut Sock,
        acked: u32,
        rtt_us: i32,
        step: *mut AckStep,
        payload: *mut AckPayload,
    ) -> u32;
    fn onramp_shell_ack_after(
        flow: *mut ShellFlow,
        sk: *mut Sock,
        step: *const AckStep,
        payload: *mut AckPayload,
    );
    fn onramp_shell_growth_before(flow: *mut ShellFlow, sk: *const Sock, acked: u32) -> u32;
    fn onramp_shell_growth_after(flow: *mut ShellFlow, sk: *mut Sock);
    fn onramp_shell_grown(flow: *mut ShellFlow, sk: *mut Sock);
    fn onramp_shell_loss_before(
        flow: *mut ShellFlow,
        sk: *mut Sock,
        base_ssthresh: u32,
        payload: *mut LossPayload,
    ) -> LossStep;
    fn onramp_shell_loss_after(
        flow: *mut ShellFlow,
        sk: *mut Sock,
        step: LossStep,
        payload: *mut LossPayload,
    );
    fn onramp_shell_state(flow: *mut ShellFlow, sk: *mut Sock, new_state: u32);
    fn onramp_shell_idle(flow: *mut ShellFlow);
    fn onramp_shell_undo(flow: *mut ShellFlow, sk: *mut Sock, window: u32) -> u32;
    fn onramp_shell_starts(flow: *const ShellFlow) -> u32;
    fn onramp_shell_is_filled(flow: *const ShellFlow, sk: *const Sock) -> u32;
    fn onramp_startup_raised(before: u32, rate: u32) -> u32;
    fn onramp_startup_grown(window: u32, raised: u32, most: u32) -> u32;
    fn onramp_shell_startup(flow: *mut ShellFlow, sk: *mut Sock, step: *const StartupStep) -> u32;
    fn onramp_shell_full(flow: *mut ShellFlow, sk: *mut Sock);
    fn onramp_shell_pace(flow: *mut ShellFlow, sk: *mut Sock);
}
