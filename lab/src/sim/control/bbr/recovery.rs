// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The window while losses are repaired: in the first round as much leaves as arrives, and afterwards the window is what it was
//! before (`bbr_set_cwnd_to_recover_or_restore`).

use crate::sim::socket::{Socket, State};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Recovery {
    /// At the acknowledgment before.
    pub state: State,
    /// The window to come back to, segments.
    pub window: u32,
    /// As much leaves as arrives.
    conserves: bool,
}

/// The window by the losses alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// It is this one, whatever the path holds.
    Conserved(u32),
    /// From this one it goes on to what the path holds.
    Open(u32),
}

impl Recovery {
    /// Nothing is lost.
    pub fn new() -> Self {
        Self { state: State::Open, window: 0, conserves: false }
    }

    /// Keeps the window to come back to (`bbr_save_cwnd`); `cut`: it is reduced, but not by a loss.
    pub fn keep(&mut self, cwnd: u32, cut: bool) {
        let good = self.state < State::Recovery && !cut;
        self.window = if good { cwnd } else { self.window.max(cwnd) };
    }

    /// A round begins.
    pub fn end_round(&mut self) {
        self.conserves = false;
    }

    /// Segments are acknowledged, and others were found lost. Whether a round begins with them, and the window.
    pub fn adapt(&mut self, socket: &Socket, acked: u32, lost: u32) -> (bool, Window) {
        let (before, state) = (self.state, socket.state);
        let mut cwnd = socket.cwnd;
        if lost > 0 {
            cwnd = cwnd.saturating_sub(lost).max(1);
        }
        let begins = state == State::Recovery && before != State::Recovery;
        if begins {
            self.conserves = true;
            cwnd = socket.in_flight() + acked;
        } else if before >= State::Recovery && state < State::Recovery {
            cwnd = cwnd.max(self.window);
            self.conserves = false;
        }
        self.state = state;
        let window = if self.conserves {
            Window::Conserved(cwnd.max(socket.in_flight() + acked))
        } else {
            Window::Open(cwnd)
        };
        (begins, window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(state: State, cwnd: u32, in_flight: u32) -> Socket {
        Socket { state, cwnd, packets_out: in_flight, ..Socket::new(1_448, 10) }
    }

    #[test]
    fn as_much_leaves_as_arrives_for_a_round_and_afterwards_the_window_is_what_it_was() {
        let mut recovery = Recovery::new();
        recovery.keep(100, false);
        let (begins, window) = recovery.adapt(&socket(State::Recovery, 100, 80), 2, 5);
        assert_eq!((begins, window), (true, Window::Conserved(82)));
        let (begins, window) = recovery.adapt(&socket(State::Recovery, 82, 80), 2, 1);
        assert_eq!((begins, window), (false, Window::Conserved(82)));
        recovery.end_round();
        // What is lost is deducted, and the window may grow.
        assert_eq!(recovery.adapt(&socket(State::Recovery, 82, 80), 2, 4).1, Window::Open(78));
        assert_eq!(recovery.adapt(&socket(State::Open, 84, 60), 2, 0).1, Window::Open(100));
    }

    #[test]
    fn a_window_that_is_reduced_is_not_the_one_to_come_back_to() {
        let mut recovery = Recovery::new();
        recovery.keep(100, false);
        recovery.keep(4, true);
        assert_eq!(recovery.window, 100);
        recovery.state = State::Loss;
        recovery.keep(1, false);
        assert_eq!(recovery.window, 100);
        recovery.state = State::Open;
        recovery.keep(50, false);
        assert_eq!(recovery.window, 50);
    }
}
