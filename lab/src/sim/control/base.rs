// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What grows the window apart from the algorithm: the kernel's CUBIC or Reno, or Tahoe, which the documents' simulations had.

use super::super::socket::{Socket, State};
use super::cubic::Cubic;

/// What grows the window apart from the algorithm.
#[derive(Clone, Debug)]
pub enum Base {
    /// CUBIC, without a HyStart of its own.
    Cubic(Cubic),
    /// Reno (RFC 5681).
    Reno,
    /// Tahoe (Jacobson 1988): grows as Reno, and starts anew from one segment after every loss.
    Tahoe,
}

impl Base {
    /// CUBIC at the begin of a connection.
    pub fn cubic() -> Self {
        Self::Cubic(Cubic::default())
    }

    pub(super) fn acked(&mut self, socket: &Socket, rtt_us: Option<u32>) {
        if let (Self::Cubic(cubic), Some(rtt_us)) = (self, rtt_us) {
            cubic.acked(socket, rtt_us);
        }
    }

    pub(super) fn grow(&mut self, socket: &mut Socket, acked: u32) {
        if !socket.is_cwnd_limited() {
            return;
        }
        // A segment for every acknowledgment that is no duplicate, however much it acknowledges: the one that fills a gap
        // must not open the window at once.
        let acked = if matches!(self, Self::Tahoe) { acked.min(1) } else { acked };
        let acked = if socket.in_slow_start() { socket.slow_start(acked) } else { acked };
        if acked == 0 {
            return;
        }
        match self {
            Self::Cubic(cubic) => cubic.grow(socket, acked),
            Self::Reno | Self::Tahoe => socket.additive_increase(socket.cwnd, acked),
        }
    }

    pub(super) fn threshold(&mut self, socket: &Socket) -> u32 {
        match self {
            Self::Cubic(cubic) => cubic.threshold(socket),
            Self::Reno | Self::Tahoe => (socket.cwnd / 2).max(2),
        }
    }

    /// It levels off at this window.
    pub(super) fn level_off(&mut self, window: u32) {
        if let Self::Cubic(cubic) = self {
            cubic.level_off(window);
        }
    }

    pub(super) fn state(&mut self, new: State) {
        if let Self::Cubic(cubic) = self {
            cubic.state(new);
        }
    }

    pub(super) fn resumed(&mut self, now_us: u64, idle_us: u64) {
        if let Self::Cubic(cubic) = self {
            cubic.resumed(now_us, idle_us);
        }
    }
}
