// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A congestion control: an algorithm of `bpf/algorithm` in slow start, a base for everything else, and between the two the
//! shell itself (`bpf/shell`), over the sender's [`Socket`].

mod base;
mod bbr;
mod cubic;
mod oracle;
mod sample;
mod start;

use onramp_algorithm::shell::{Policy, Shell, describe};
use onramp_algorithm::startup;
use onramp_algorithm::{
    Ack, AfterExitOptions, ExitReason, ExitRecord, MIN_WINDOW, Path, Sock, StartPolicies, StartupStep,
};

pub use base::Base;
pub use oracle::Oracle;
pub use sample::RateSample;
pub use start::Start;

use super::socket::{Socket, State};
use bbr::Bbr;

/// Segments of a burst at least, where the control says nothing of it.
const LEAST_BURST: u32 = 2;
/// What is learned is used at once, in any lifetime: the longest that ages, which have a sign, can be compared with.
const FRESH_NS: u64 = i64::MAX as u64;

/// A congestion control: an algorithm or an oracle, over a base.
#[derive(Clone, Debug)]
pub struct Control {
    base: Base,
    /// Options of the base.
    after_exit: AfterExitOptions,
    start: Start,
    shell: Shell,
    /// Acknowledgments that the algorithm was called with.
    calls: u64,
    /// Every acknowledgment as an algorithm would see it, where they are kept.
    kept: Option<Vec<Ack>>,
    /// What it has learned of its path, where it is asked for.
    learned: Option<Path>,
}

impl Control {
    /// A base, and what decides its slow starts.
    pub fn new(base: Base, start: Start) -> Self {
        let shell = start.shell();
        let after_exit = AfterExitOptions::default();
        Self { base, after_exit, start, shell, calls: 0, kept: None, learned: None }
    }

    /// The same with options of the base.
    pub fn after_exit(self, after_exit: AfterExitOptions) -> Self {
        Self { after_exit, ..self }
    }

    fn view(&self, socket: &Socket) -> Sock {
        let sock = Sock { options: self.after_exit.bits(), ..socket.view() };
        match &self.base {
            Base::Bbr(bbr) => {
                let startup = if self.has_start() { bbr.shown() } else { startup::NONE };
                Sock { controls: 1, startup, ..sock }
            }
            _ => sock,
        }
    }

    /// Something but the base decides slow start.
    fn has_start(&self) -> bool {
        !matches!(self.start, Start::Base)
    }

    /// What the shell has written to that view.
    fn update(&mut self, socket: &mut Socket, sock: &Sock) {
        socket.update(sock);
        if sock.plateau > 0 {
            self.base.level_off(sock.plateau);
        }
        if let Base::Bbr(bbr) = &mut self.base {
            bbr.make(sock.startup);
        }
        if self.shell.exit().is_some() && self.learned.is_some_and(|path| path == Path::default()) {
            self.learn(sock, false);
        }
    }

    fn learn(&mut self, sock: &Sock, ends: bool) {
        if let Some(path) = &mut self.learned {
            self.shell.learn(sock, ends, path, sock.now_us * 1_000, FRESH_NS);
        }
    }

    /// The same where the kernel's own control decides, which looks at every acknowledgment from the first on.
    pub fn stock(self) -> Self {
        Self { shell: self.shell.from_the_first_ack(), ..self }
    }

    /// The same with every acknowledgment kept, as recordings have them.
    pub fn keeping(self) -> Self {
        Self { kept: Some(Vec::new()), ..self }
    }

    /// The same with what is done at the start where no path is remembered.
    pub fn starting(self, policies: StartPolicies) -> Self {
        Self { shell: self.shell.starting(policies), ..self }
    }

    /// The same over a path that is remembered, `rate` in bytes per second and its minimum RTT, with what is done at the start.
    pub fn remembering(self, policies: StartPolicies, rate: u64, rtt_us: u32) -> Self {
        Self { shell: self.shell.remembering(policies, rate, rtt_us), ..self }
    }

    /// The same over a path as a connection has just learned it, with what is done at the start.
    pub fn recalling(self, policies: StartPolicies, path: &Path) -> Self {
        Self { shell: self.shell.recalling(policies, path, path.learned_ns, FRESH_NS), ..self }
    }

    /// The same asked what it learns of its path.
    pub fn learning(self) -> Self {
        Self { learned: Some(Path::default()), ..self }
    }

    /// What it has learned of its path; the connection ends, and the newest sample of its delivery rate is that of a FIN alone.
    pub fn take_learned(&mut self, socket: &Socket) -> Option<Path> {
        let sock = Sock {
            rate_delivered: 1,
            rate_interval_us: socket.round_trip.smoothed_us().max(1),
            ..self.view(socket)
        };
        self.learn(&sock, true);
        self.learned.take()
    }

    /// The acknowledgments that were kept.
    pub fn take_kept(&mut self) -> Vec<Ack> {
        self.kept.take().unwrap_or_default()
    }

    /// The threshold of a new connection.
    pub fn first_threshold(&self) -> u32 {
        self.start.first_threshold().max(MIN_WINDOW)
    }

    /// Whether every loss begins slow start anew.
    pub fn starts_anew(&self) -> bool {
        matches!(self.base, Base::Tahoe)
    }

    /// Whether it keeps a record of how its first slow start ended: not where BBR does all by itself.
    pub fn records(&self) -> bool {
        self.has_start() || !self.controls()
    }

    /// How the first slow start ended.
    pub fn record(&self) -> Option<(ExitReason, &ExitRecord)> {
        self.shell.exit()
    }

    /// Acknowledgments that the algorithm was called with, where they are those of a single slow start.
    pub fn calls(&self) -> Option<u64> {
        (self.shell.slow_starts() <= 1).then_some(self.calls)
    }

    /// The connection begins, before anything is sent: `init`.
    pub fn begin(&mut self, socket: &mut Socket) {
        self.base.begin(socket);
        let mut sock = socket.view();
        self.shell.begin(&mut sock);
        socket.update(&sock);
    }

    /// Segments are acknowledged, before the window grows: `pkts_acked`.
    pub fn acked(&mut self, socket: &mut Socket, acked: u32, rtt_us: Option<u32>) {
        let mut sock = self.view(socket);
        if let Some(kept) = &mut self.kept {
            kept.push(describe(&sock, acked, rtt_us));
        }
        let verdict = self.shell.acked(&mut sock, acked, rtt_us, &mut self.start);
        self.calls += u64::from(verdict.is_some());
        self.update(socket, &sock);
        self.base.acked(socket, rtt_us);
    }

    /// Before data are sent: `min_tso_segs`, where the rate is set in place of the kernel's own.
    pub fn before_sending(&mut self, socket: &mut Socket) {
        if socket.paced {
            let mut sock = socket.view();
            self.shell.pace(&mut sock);
            socket.update(&sock);
        }
    }

    /// The window may grow: `cong_avoid`.
    pub fn grow(&mut self, socket: &mut Socket, acked: u32) {
        let mut sock = self.view(socket);
        let base = &mut self.base;
        self.shell.grow(&mut sock, acked, |sock, acked| {
            base.grow(socket, acked);
            (sock.cwnd, sock.ssthresh) = (socket.cwnd, socket.ssthresh);
        });
        self.update(socket, &sock);
    }

    /// Whether the base sets the window itself, with every acknowledgment, and in recovery, too.
    pub fn controls(&self) -> bool {
        matches!(self.base, Base::Bbr(_))
    }

    /// An acknowledgment, where it does, after what that says of losses: `cong_control`. `retransmitted`: segments, in the last
    /// recovery, that have not proved needless.
    pub fn control(&mut self, socket: &mut Socket, sample: &RateSample, retransmitted: i32) {
        let starts = self.has_start() && self.shell.starts();
        let sock = self.view(socket);
        let Base::Bbr(bbr) = &mut self.base else { return };
        let (startup, left) = (bbr.in_startup(), bbr.has_left());
        if !startup || !starts {
            bbr.control(socket, sample);
            if startup && bbr.is_full() {
                self.base_is_full(socket);
            }
            return;
        }
        let (before, recovering) = (socket.cwnd, bbr.was_recovering());
        let window = if left {
            bbr.control_measuring(socket, sample, self.shell.is_filled(&sock))
        } else {
            bbr.control_held(socket, sample);
            before
        };
        if !bbr.in_startup() {
            return;
        }
        let recovering = recovering || socket.state == State::Recovery;
        let step = StartupStep {
            before,
            window,
            lost: retransmitted,
            left: left.into(),
            recovering: recovering.into(),
        };
        let mut sock = self.view(socket);
        let grows = self.shell.startup(&mut sock, &step);
        self.update(socket, &sock);
        if grows {
            self.grow(socket, sample.acked);
        }
    }

    /// By itself, before the flow has state or where the algorithm only observes.
    fn base_is_full(&mut self, socket: &mut Socket) {
        let mut sock = self.view(socket);
        self.shell.full(&mut sock);
        self.update(socket, &sock);
    }

    /// Something is sent while nothing is on its way.
    pub fn transmission_starts(&mut self, socket: &mut Socket) {
        if let Base::Bbr(bbr) = &mut self.base {
            bbr.transmission_starts(socket);
        }
    }

    /// Segments of a burst at least: `min_tso_segs`.
    pub fn least_burst(&self, socket: &Socket) -> u32 {
        if self.controls() { Bbr::least_burst(socket) } else { LEAST_BURST }
    }

    /// Windows for which the send buffer has room: `sndbuf_expand`. BBR's may double while losses are repaired.
    pub fn buffered_windows(&self) -> u64 {
        if self.controls() { 3 } else { 2 }
    }

    /// Loss or timeout, which of them comes with the state that follows: the threshold.
    pub fn threshold(&mut self, socket: &mut Socket) -> u32 {
        let threshold = self.base.threshold(socket);
        let mut sock = self.view(socket);
        let reduction = self.shell.reduced(&mut sock, threshold, &mut self.start);
        self.update(socket, &sock);
        match self.base {
            // No kernel's: each loss begins slow start anew, so the algorithm answers each.
            Base::Tahoe if !reduction.called => {
                self.start.on_loss(&describe(&sock, 0, None), reduction.ssthresh)
            }
            _ => reduction.ssthresh,
        }
    }

    /// The state changes.
    pub fn state(&mut self, socket: &mut Socket, new: State) {
        self.base.state(socket, new);
        let mut sock = self.view(socket);
        self.shell.state(&mut sock, new as u32);
        self.update(socket, &sock);
    }

    /// The window was reduced because the connection was idle.
    pub fn restarted(&mut self) {
        self.shell.idle();
    }

    /// Sending begins again after `idle_us` without anything on its way.
    pub fn resumed(&mut self, now_us: u64, idle_us: u64) {
        self.base.resumed(now_us, idle_us);
    }

    /// The loss was none: the window to restore.
    pub fn undo(&mut self, socket: &mut Socket) -> u32 {
        let ours = self.has_start();
        let window = match &mut self.base {
            Base::Bbr(bbr) if ours => bbr.undo_of_start(socket),
            Base::Bbr(bbr) => bbr.undo(socket),
            _ => socket.cwnd.max(socket.prior_cwnd),
        };
        let mut sock = self.view(socket);
        let window = self.shell.undo(&mut sock, window);
        self.update(socket, &sock);
        window
    }
}
