// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! BBR's STARTUP in the hands of onramp's shell, as `bpf/kernel/bbr.bpf.h` holds it: BBR's own judgment that its pipe is full is put
//! off until the exit, and so on until a round has not raised the rate. What becomes of window and rate is the shell's
//! (`bpf/shell/startup.h`).

use onramp_algorithm::{shell, startup};

use super::{Bbr, Mode, RateSample};
use crate::sim::socket::{Socket, State};

/// Rounds without growth of a pipe, where STARTUP has been left.
const LEFT: u32 = 2;

impl Bbr {
    /// Whether its pipe has not been found full yet; not while it looks for the minimum RTT.
    pub fn in_startup(&self) -> bool {
        self.mode == Mode::Startup && !self.full.reached
    }

    /// Whether it has found its pipe full.
    pub fn is_full(&self) -> bool {
        self.full.reached
    }

    /// Whether what is left of STARTUP is to measure.
    pub fn has_left(&self) -> bool {
        self.full.rounds == LEFT && self.full.rate > 0
    }

    /// Whether it saw a loss that was being repaired, at the acknowledgment before.
    pub fn was_recovering(&self) -> bool {
        self.recovery.state == State::Recovery
    }

    /// What the shell sees of its start, a number of `startup`.
    pub fn shown(&self) -> u32 {
        if self.in_startup() && !self.has_left() { startup::ON } else { startup::NONE }
    }

    /// What the shell makes of it, likewise.
    pub fn make(&mut self, startup: u32) {
        match startup {
            startup::LEFT => self.leave(),
            startup::AGAIN => {
                (self.full.rate, self.full.reached) = (0, false);
                self.mode = Mode::Startup;
            }
            startup::FULL => self.full.reached = true,
            _ => {}
        }
    }

    /// STARTUP is left, and goes on to measure.
    fn leave(&mut self) {
        if self.in_startup() {
            (self.full.rate, self.full.rounds) = (self.rates.get().max(1), LEFT);
            self.raised = 0;
        }
    }

    /// An acknowledgment before the exit.
    pub fn control_held(&mut self, socket: &mut Socket, sample: &RateSample) {
        self.full.rounds = 0;
        self.control(socket, sample);
    }

    /// One after it; `filled`: the window has been, else the round begins now. Returns the window of the next round, of which
    /// there is none where the last has not raised the rate: 0.
    pub fn control_measuring(&mut self, socket: &mut Socket, sample: &RateSample, filled: bool) -> u32 {
        let (before, window) = (self.full.rate, socket.cwnd);
        if !filled {
            self.rounds.ends = socket.delivered;
        }
        self.full.rate = u64::MAX / 5;
        self.control_held(socket, sample);
        let rate = self.rates.get();
        (self.full.rate, self.full.rounds) = (before, LEFT);
        if !filled || !self.rounds.begins || sample.app_limited {
            return window;
        }
        let [before, now] = [before, rate].map(|rate| u32::try_from(rate).unwrap_or(u32::MAX));
        if !shell::has_raised(before, now) {
            return 0;
        }
        self.raised += 1;
        self.full.rate = rate;
        shell::grown(window, self.raised, u32::MAX)
    }

    /// A reduction was needless: the window to restore, which BBR would not after a timeout in what was the shell's.
    pub fn undo_of_start(&mut self, socket: &Socket) -> u32 {
        let (ours, left) = (self.in_startup(), self.has_left());
        let window = self.undo(socket);
        if left {
            self.leave();
        }
        if ours { socket.cwnd.max(socket.prior_cwnd) } else { window }
    }
}
