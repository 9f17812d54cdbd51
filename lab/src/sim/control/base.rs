// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What sets the window apart from the algorithm: the kernel's CUBIC, Reno or BBR, or Tahoe, which the documents' simulations had.

use super::super::socket::{NO_THRESHOLD, Socket, State};
use super::bbr::Bbr;
use super::cubic::Cubic;

/// What sets the window apart from the algorithm.
#[derive(Clone, Debug)]
pub enum Base {
    /// CUBIC, without a HyStart of its own.
    Cubic(Cubic),
    /// Reno (RFC 5681).
    Reno,
    /// Tahoe (Jacobson 1988): grows as Reno, and starts anew from one segment after every loss.
    Tahoe,
    /// BBR version 1, which sets it with every acknowledgment.
    Bbr(Box<Bbr>),
}

impl Base {
    /// CUBIC at the begin of a connection.
    pub fn cubic() -> Self {
        Self::Cubic(Cubic::default())
    }

    /// BBR, of flow `number` in a run of this seed.
    pub fn bbr(seed: u64, number: u64) -> Self {
        Self::Bbr(Box::new(Bbr::new(seed, number)))
    }

    pub(super) fn begin(&mut self, socket: &mut Socket) {
        if let Self::Bbr(bbr) = self {
            bbr.begin(socket);
        }
    }

    pub(super) fn acked(&mut self, socket: &Socket, rtt_us: Option<u32>) {
        if let (Self::Cubic(cubic), Some(rtt_us)) = (self, rtt_us) {
            cubic.acked(socket, rtt_us);
        }
    }

    /// Segments are acknowledged. The window of BBR grows here in the shell's start alone.
    pub(super) fn grow(&mut self, socket: &mut Socket, acked: u32) {
        match self {
            Self::Cubic(cubic) => {
                let acked = slow_start(socket, acked);
                if acked > 0 {
                    cubic.grow(socket, acked);
                }
            }
            Self::Reno => reno(socket, acked),
            // A segment for every acknowledgment that is no duplicate, however much it acknowledges: the one that fills a gap
            // must not open the window at once.
            Self::Tahoe => reno(socket, acked.min(1)),
            Self::Bbr(_) => {
                // A threshold that is reached is of an exit that was undone.
                if !socket.in_slow_start() {
                    socket.ssthresh = NO_THRESHOLD;
                }
                reno(socket, acked);
            }
        }
    }

    pub(super) fn threshold(&mut self, socket: &Socket) -> u32 {
        match self {
            Self::Cubic(cubic) => cubic.threshold(socket),
            Self::Reno | Self::Tahoe => (socket.cwnd / 2).max(2),
            Self::Bbr(bbr) => bbr.threshold(socket),
        }
    }

    /// It levels off at this window.
    pub(super) fn level_off(&mut self, window: u32) {
        if let Self::Cubic(cubic) = self {
            cubic.level_off(window);
        }
    }

    pub(super) fn state(&mut self, socket: &Socket, new: State) {
        match self {
            Self::Cubic(cubic) => cubic.state(new),
            Self::Bbr(bbr) => bbr.state(socket, new),
            Self::Reno | Self::Tahoe => {}
        }
    }

    pub(super) fn resumed(&mut self, now_us: u64, idle_us: u64) {
        if let Self::Cubic(cubic) = self {
            cubic.resumed(now_us, idle_us);
        }
    }
}

/// Up to the threshold the window grows by what is acknowledged, if it is used; what is left of that.
fn slow_start(socket: &mut Socket, acked: u32) -> u32 {
    match (socket.is_cwnd_limited(), socket.in_slow_start()) {
        (false, _) => 0,
        (true, true) => socket.slow_start(acked),
        (true, false) => acked,
    }
}

fn reno(socket: &mut Socket, acked: u32) {
    let acked = slow_start(socket, acked);
    if acked > 0 {
        socket.additive_increase(socket.cwnd, acked);
    }
}
