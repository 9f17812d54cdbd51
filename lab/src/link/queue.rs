// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The queue before the transmitter.

use std::collections::VecDeque;

use super::aqm::{Aqm, Depth};
use super::flow_queue::FlowQueues;
use super::waiting::{Waiting, marked, turn};
use super::{DropCause, Limit, Nanos};

/// Packets that wait for the transmitter, the one in it included.
pub(super) struct Queue<P> {
    limit: Limit,
    order: Order<P>,
}

/// In which they are sent.
enum Order<P> {
    /// As they came.
    Arrival { aqm: Option<Box<dyn Aqm>>, packets: VecDeque<Waiting<P>>, bytes: u64 },
    /// Flows take turns.
    Flows(FlowQueues<P>),
}

impl<P> Queue<P> {
    pub fn new(limit: Limit, aqm: Option<Box<dyn Aqm>>) -> Self {
        Self { limit, order: Order::Arrival { aqm, packets: VecDeque::new(), bytes: 0 } }
    }

    pub fn of_flows(limit: Limit, flows: FlowQueues<P>) -> Self {
        Self { limit, order: Order::Flows(flows) }
    }

    pub fn depth(&self) -> Depth {
        match &self.order {
            Order::Arrival { packets, bytes, .. } => Depth { packets: packets.len() as u64, bytes: *bytes },
            Order::Flows(flows) => flows.depth(),
        }
    }

    /// A packet that has to go so that one of so many bytes fits; `None`: it fits, or none goes for it.
    pub fn evict(&mut self, bytes: u32) -> Option<Waiting<P>> {
        if self.fits(bytes) {
            return None;
        }
        match &mut self.order {
            Order::Arrival { .. } => None,
            Order::Flows(flows) => flows.evict(),
        }
    }

    /// Why an arriving packet is dropped; `None` if it is taken.
    pub fn refuses(&mut self, now: Nanos, bytes: u32) -> Option<DropCause> {
        if !self.fits(bytes) {
            return Some(DropCause::QueueFull);
        }
        let (limit, depth) = (self.limit, self.depth());
        match &mut self.order {
            Order::Arrival { aqm, .. } => {
                aqm.as_mut()?.drops_arriving(now, bytes, depth, limit).then_some(DropCause::Aqm)
            }
            Order::Flows(_) => None,
        }
    }

    fn fits(&self, bytes: u32) -> bool {
        let depth = self.depth();
        match self.limit {
            Limit::Bytes(limit) => depth.bytes + u64::from(bytes) <= limit,
            Limit::Packets(limit) => depth.packets < limit,
        }
    }

    pub fn push(&mut self, waiting: Waiting<P>) {
        match &mut self.order {
            Order::Arrival { packets, bytes, .. } => {
                *bytes += u64::from(waiting.bytes);
                packets.push_back(waiting);
            }
            Order::Flows(flows) => flows.push(waiting),
        }
    }

    /// Decides whose turn it is, for the calls that follow; false: no packet waits.
    pub fn next_turn(&mut self) -> bool {
        match &mut self.order {
            Order::Arrival { packets, .. } => !packets.is_empty(),
            Order::Flows(flows) => flows.next_turn(),
        }
    }

    /// The packet whose turn it is.
    pub fn head(&self) -> Option<&Waiting<P>> {
        match &self.order {
            Order::Arrival { packets, .. } => packets.front(),
            Order::Flows(flows) => flows.head(),
        }
    }

    /// Whether active queue management wants that packet dropped, now that it is its turn.
    pub fn drops_head(&mut self, now: Nanos) -> bool {
        match &mut self.order {
            Order::Arrival { aqm, packets, bytes } => {
                let (Some(aqm), Some(head)) = (aqm, packets.front()) else { return false };
                aqm.drops_head(now, turn(head, now, *bytes))
            }
            Order::Flows(flows) => flows.drops_head(now),
        }
    }

    /// Marks that packet instead, if it may be.
    pub fn marks_head(&mut self) -> bool {
        match &mut self.order {
            Order::Arrival { aqm, packets, .. } => {
                marked(aqm.as_ref().is_some_and(|aqm| aqm.marks()), packets.front_mut())
            }
            Order::Flows(flows) => flows.marks_head(),
        }
    }

    /// Drops that packet.
    pub fn drop_head(&mut self) -> Option<Waiting<P>> {
        match &mut self.order {
            Order::Arrival { .. } => self.pop(),
            Order::Flows(flows) => flows.pop(false),
        }
    }

    /// That packet has been sent.
    pub fn pop(&mut self) -> Option<Waiting<P>> {
        match &mut self.order {
            Order::Arrival { packets, bytes, .. } => {
                let waiting = packets.pop_front()?;
                *bytes -= u64::from(waiting.bytes);
                Some(waiting)
            }
            Order::Flows(flows) => flows.pop(true),
        }
    }
}
