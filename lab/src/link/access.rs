// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! When a transmitter may use its medium.

use super::Nanos;
use super::rate::Stretch;

/// The packet about to be sent and what is known at this moment.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Size of the packet, bytes.
    pub bytes: u32,
    /// When it arrived at the queue.
    pub arrived: Nanos,
    /// Packets in the queue, this one included.
    pub waiting: usize,
    /// When the packet before it had left; `None` for the first.
    pub free_since: Option<Nanos>,
}

/// A schedule. Times are from the start of the link and never decrease.
pub trait Access: Send {
    /// Packets of so many bytes reach the queue, whether they fit or not.
    fn arrived(&mut self, _now: Nanos, _bytes: u32) {}

    /// It is this packet's turn.
    fn begin(&mut self, _now: Nanos, _head: Head) {}

    /// For how long all of the medium would have carried what was assigned from the start of the link to `now`; `None` where
    /// nothing is assigned.
    fn assigned(&mut self, _now: Nanos) -> Option<Nanos> {
        None
    }

    /// What this packet may use of a medium of `bps` bit/s from now on.
    fn allows(&mut self, now: Nanos, bps: u64) -> Stretch;
}
