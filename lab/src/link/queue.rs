// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The queue before the transmitter.

use std::collections::VecDeque;

use super::aqm::{Aqm, Depth, Turn};
use super::{DropCause, Limit, Nanos};

/// A packet in the queue.
pub(super) struct Waiting<P> {
    /// `None` for cross traffic.
    pub packet: Option<P>,
    pub bytes: u32,
    pub arrived: Nanos,
    /// Its sender takes part in explicit congestion notification.
    pub capable: bool,
    /// What its flow has of delay behind the link.
    pub own_delay: Nanos,
    /// Active queue management has marked it.
    pub marked: bool,
}

/// Packets in order; the first is the one being transmitted.
pub(super) struct Queue<P> {
    limit: Limit,
    aqm: Option<Box<dyn Aqm>>,
    packets: VecDeque<Waiting<P>>,
    bytes: u64,
}

impl<P> Queue<P> {
    pub fn new(limit: Limit, aqm: Option<Box<dyn Aqm>>) -> Self {
        Self { limit, aqm, packets: VecDeque::new(), bytes: 0 }
    }

    pub fn depth(&self) -> Depth {
        Depth { packets: self.packets.len() as u64, bytes: self.bytes }
    }

    /// Why an arriving packet is dropped; `None` if it is taken.
    pub fn refuses(&mut self, now: Nanos, bytes: u32) -> Option<DropCause> {
        let depth = self.depth();
        let fits = match self.limit {
            Limit::Bytes(limit) => depth.bytes + u64::from(bytes) <= limit,
            Limit::Packets(limit) => depth.packets < limit,
        };
        if !fits {
            return Some(DropCause::QueueFull);
        }
        self.aqm.as_mut()?.drops_arriving(now, bytes, depth, self.limit).then_some(DropCause::Aqm)
    }

    pub fn push(&mut self, waiting: Waiting<P>) {
        self.bytes += u64::from(waiting.bytes);
        self.packets.push_back(waiting);
    }

    /// The packet whose turn it is.
    pub fn head(&self) -> Option<&Waiting<P>> {
        self.packets.front()
    }

    /// Whether active queue management wants that packet dropped, now that it is its turn.
    pub fn drops_head(&mut self, now: Nanos) -> bool {
        let (Some(aqm), Some(head)) = (&mut self.aqm, self.packets.front()) else { return false };
        let behind_bytes = self.bytes - u64::from(head.bytes);
        aqm.drops_head(now, Turn { bytes: head.bytes, sojourn: now - head.arrived, behind_bytes })
    }

    /// Marks that packet instead, if it may be.
    pub fn marks_head(&mut self) -> bool {
        let marks = self.aqm.as_ref().is_some_and(|aqm| aqm.marks());
        let Some(head) = self.packets.front_mut().filter(|head| marks && head.capable) else { return false };
        head.marked = true;
        true
    }

    pub fn pop(&mut self) -> Option<Waiting<P>> {
        let waiting = self.packets.pop_front()?;
        self.bytes -= u64::from(waiting.bytes);
        Some(waiting)
    }
}
