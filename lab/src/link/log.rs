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
    pub(super) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// Totals of a direction. `arrived` = `delivered` + `dropped_*` + what is queued or on its way.
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
    /// Most the queue held, bytes.
    pub max_queue_bytes: u64,
    /// Most the queue held, packets.
    pub max_queue_packets: u64,
}

impl Counters {
    /// Packets dropped, whatever the cause.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped_queue_full.packets + self.dropped_aqm.packets
    }

    pub(super) fn dropped(&mut self, cause: DropCause) -> &mut Count {
        match cause {
            DropCause::QueueFull => &mut self.dropped_queue_full,
            DropCause::Aqm => &mut self.dropped_aqm,
        }
    }
}

/// The state of a direction at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LinkSample {
    /// When, on the clock that drives the model.
    pub at_ns: Nanos,
    /// Bytes in the queue, the packet being transmitted included.
    pub queue_bytes: u64,
    /// Packets in the queue.
    pub queue_packets: u64,
    /// Bytes delivered so far.
    pub delivered_bytes: u64,
    /// Packets dropped so far, tail drop.
    pub dropped_queue_full: u64,
    /// Packets dropped so far, AQM.
    pub dropped_aqm: u64,
    /// One-way delay of the packet that left the transmitter last (queue, transmission, propagation, jitter);
    /// 0 before the first.
    pub delay_ns: Nanos,
}
