// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a direction counts and logs.

use serde::Serialize;

use super::Nanos;

/// Why a packet was dropped. There is no other way to lose one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DropCause {
    /// It did not fit into the queue.
    QueueFull,
    /// Active queue management chose it.
    Aqm,
    /// It was lost after the transmitter.
    Loss,
}

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes of IP packets.
    pub bytes: u64,
}

impl Count {
    fn is_none(&self) -> bool {
        self.packets == 0
    }

    pub(super) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// Totals of a direction. `arrived` = `delivered` + `dropped_*` + what is queued or on its way; `cross_arrived` =
/// `cross_sent` + `cross_dropped` + what is queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Packets that reached the queue.
    pub arrived: Count,
    /// Packets handed over at the far end.
    pub delivered: Count,
    /// [`DropCause::QueueFull`].
    pub dropped_queue_full: Count,
    /// [`DropCause::Aqm`].
    pub dropped_aqm: Count,
    /// [`DropCause::Loss`].
    pub dropped_loss: Count,
    /// Packets that were sent on with a mark of congestion.
    #[serde(skip_serializing_if = "Count::is_none")]
    pub marked: Count,
    /// Packets of cross traffic that reached the queue. They are in none of the above.
    pub cross_arrived: Count,
    /// Packets of cross traffic that were transmitted.
    pub cross_sent: Count,
    /// Packets of cross traffic that were dropped, whatever the cause.
    pub cross_dropped: Count,
    /// Most the queue held, bytes.
    pub max_queue_bytes: u64,
    /// Most the queue held, packets.
    pub max_queue_packets: u64,
}

impl Counters {
    /// Packets dropped or lost, whatever the cause; none of cross traffic.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped_queue_full.packets + self.dropped_aqm.packets + self.dropped_loss.packets
    }

    /// Packets of cross traffic in the queue.
    pub fn cross_queued(&self) -> u64 {
        self.cross_arrived.packets - self.cross_sent.packets - self.cross_dropped.packets
    }

    /// Both together.
    pub(super) fn and(self, other: Self) -> Self {
        let both = |one: Count, other: Count| Count {
            packets: one.packets + other.packets,
            bytes: one.bytes + other.bytes,
        };
        Self {
            arrived: both(self.arrived, other.arrived),
            delivered: both(self.delivered, other.delivered),
            dropped_queue_full: both(self.dropped_queue_full, other.dropped_queue_full),
            dropped_aqm: both(self.dropped_aqm, other.dropped_aqm),
            dropped_loss: both(self.dropped_loss, other.dropped_loss),
            marked: both(self.marked, other.marked),
            cross_arrived: both(self.cross_arrived, other.cross_arrived),
            cross_sent: both(self.cross_sent, other.cross_sent),
            cross_dropped: both(self.cross_dropped, other.cross_dropped),
            max_queue_bytes: self.max_queue_bytes.max(other.max_queue_bytes),
            max_queue_packets: self.max_queue_packets.max(other.max_queue_packets),
        }
    }

    pub(super) fn dropped(&mut self, cause: DropCause) -> &mut Count {
        match cause {
            DropCause::QueueFull => &mut self.dropped_queue_full,
            DropCause::Aqm => &mut self.dropped_aqm,
            DropCause::Loss => &mut self.dropped_loss,
        }
    }
}

/// The state of a direction at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LinkSample {
    /// When, on the clock that drives the model.
    pub at_ns: Nanos,
    /// Bytes in the queue, the packet being transmitted and cross traffic included.
    pub queue_bytes: u64,
    /// Packets in the queue.
    pub queue_packets: u64,
    /// Bytes delivered so far.
    pub delivered_bytes: u64,
    /// Packets dropped so far, tail drop.
    pub dropped_queue_full: u64,
    /// Packets dropped so far, AQM.
    pub dropped_aqm: u64,
    /// Packets lost so far after the transmitter.
    pub dropped_loss: u64,
    /// One-way delay of the packet that left the transmitter last (queue, transmission, propagation, jitter), without what
    /// its flow has of its own; 0 before the first.
    pub delay_ns: Nanos,
}
