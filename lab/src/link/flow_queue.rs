// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A queue for each flow, as FQ-CoDel has them (RFC 8290).
//!
//! Flows take turns: each may send a quantum of bytes (deficit round robin), and flows that had nothing waiting come before those
//! that had. Every queue has a CoDel of its own. A packet that does not fit has the longest queue lose its first. Flows share
//! no queue by chance, as they would where a hash chooses one of 1,024 (section 4.1).
//!
//! ```text
//!            new flow                    quantum used, or nothing left
//!  arrive ─────────────► new flows ──────────────────────────────────► old flows ─┐ quantum used
//!     │ flow has packets     │ first                                       │  ▲    │
//!     ▼                      ▼ first                                       ▼  └────┘
//!  its queue             transmitter ◄──────────────────────── where no flow is new; nothing left: forgotten
//! ```

use std::collections::{BTreeMap, VecDeque};

use super::Nanos;
use super::aqm::{Aqm, Depth};
use super::codel::CoDel;
use super::waiting::{Waiting, marked, turn};

/// Bytes that a flow may send in its turn: a packet with its Ethernet header (RFC 8290, section 5.2).
const QUANTUM: i64 = 1_514;

/// The packets of one flow.
struct Flow<P> {
    packets: VecDeque<Waiting<P>>,
    bytes: u64,
    /// What it may still send in its turn.
    deficit: i64,
    codel: CoDel,
}

/// Queues by flow, for which there is room together.
pub(super) struct FlowQueues<P> {
    target: Nanos,
    interval: Nanos,
    ecn: bool,
    /// All that have packets, or had some since their last turn.
    flows: BTreeMap<u64, Flow<P>>,
    new: VecDeque<u64>,
    old: VecDeque<u64>,
    /// Whose turn it is; its first packet is in the transmitter once it has been asked about.
    turn: Option<u64>,
    depth: Depth,
}

impl<P> FlowQueues<P> {
    pub fn new(target: Nanos, interval: Nanos, ecn: bool) -> Self {
        Self {
            target,
            interval,
            ecn,
            flows: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            turn: None,
            depth: Depth::default(),
        }
    }

    pub fn depth(&self) -> Depth {
        self.depth
    }

    pub fn push(&mut self, waiting: Waiting<P>) {
        let id = waiting.flow;
        let (target, interval, ecn) = (self.target, self.interval, self.ecn);
        let flow = self.flows.entry(id).or_insert_with(|| {
            self.new.push_back(id);
            let codel = CoDel::new(target, interval, ecn);
            Flow { packets: VecDeque::new(), bytes: 0, deficit: QUANTUM, codel }
        });
        flow.bytes += u64::from(waiting.bytes);
        self.depth.packets += 1;
        self.depth.bytes += u64::from(waiting.bytes);
        flow.packets.push_back(waiting);
    }

    /// The first packet of the longest queue, which makes room for another; not the one in the transmitter.
    pub fn evict(&mut self) -> Option<Waiting<P>> {
        let sending = self.turn;
        let first = |id: u64| usize::from(sending == Some(id));
        let longest = self.flows.iter().filter(|(id, flow)| flow.packets.len() > first(**id));
        let id = *longest.max_by_key(|(_, flow)| flow.bytes)?.0;
        let flow = self.flows.get_mut(&id)?;
        let waiting = flow.packets.remove(first(id))?;
        flow.bytes -= u64::from(waiting.bytes);
        self.left(&waiting);
        Some(waiting)
    }

    /// Whose turn it is from now on; false: no packet waits (RFC 8290, section 4.2).
    pub fn next_turn(&mut self) -> bool {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            self.turn = list.front().copied();
            let Some(id) = self.turn else { return false };
            let Some(flow) = self.flows.get_mut(&id) else {
                list.pop_front();
                continue;
            };
            if flow.deficit <= 0 {
                flow.deficit += QUANTUM;
            } else if !flow.packets.is_empty() {
                return true;
            } else if !is_new {
                list.pop_front();
                self.flows.remove(&id);
                continue;
            }
            // So that no flow stays a new one by sending one packet at a time.
            list.pop_front();
            self.old.push_back(id);
        }
    }

    pub fn head(&self) -> Option<&Waiting<P>> {
        self.flows.get(&self.turn?)?.packets.front()
    }

    pub fn drops_head(&mut self, now: Nanos) -> bool {
        let Some(flow) = self.turn.and_then(|id| self.flows.get_mut(&id)) else { return false };
        let Some(head) = flow.packets.front() else { return false };
        flow.codel.drops_head(now, turn(head, now, flow.bytes))
    }

    pub fn marks_head(&mut self) -> bool {
        let Some(flow) = self.turn.and_then(|id| self.flows.get_mut(&id)) else { return false };
        marked(flow.codel.marks(), flow.packets.front_mut())
    }

    /// Takes the packet whose turn it is; `sent`: it counts for the flow's quantum.
    pub fn pop(&mut self, sent: bool) -> Option<Waiting<P>> {
        let flow = self.flows.get_mut(&self.turn?)?;
        let waiting = flow.packets.pop_front()?;
        flow.bytes -= u64::from(waiting.bytes);
        if sent {
            flow.deficit -= i64::from(waiting.bytes);
            self.turn = None;
        }
        self.left(&waiting);
        Some(waiting)
    }

    fn left(&mut self, waiting: &Waiting<P>) {
        self.depth.packets -= 1;
        self.depth.bytes -= u64::from(waiting.bytes);
    }
}
