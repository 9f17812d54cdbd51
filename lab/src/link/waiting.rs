// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A packet that waits for the transmitter.

use super::Nanos;
use super::aqm::Turn;

/// A packet in the queue.
pub(super) struct Waiting<P> {
    /// `None` for cross traffic.
    pub packet: Option<P>,
    pub bytes: u32,
    /// Which flow it is of; cross traffic is one of its own.
    pub flow: u64,
    pub arrived: Nanos,
    /// Its sender takes part in explicit congestion notification.
    pub capable: bool,
    /// What its flow has of delay behind the link.
    pub own_delay: Nanos,
    /// Active queue management has marked it.
    pub marked: bool,
}

/// What active queue management learns of the first packet of a queue of so many bytes.
pub(super) fn turn<P>(head: &Waiting<P>, now: Nanos, queued_bytes: u64) -> Turn {
    let Waiting { bytes, arrived, .. } = *head;
    Turn { bytes, sojourn: now - arrived, behind_bytes: queued_bytes - u64::from(bytes) }
}

/// Marks the first packet of a queue, if its management `marks` and its sender takes part.
pub(super) fn marked<P>(marks: bool, head: Option<&mut Waiting<P>>) -> bool {
    let Some(head) = head.filter(|head| marks && head.capable) else { return false };
    head.marked = true;
    true
}
