// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! When a transmitter may use its medium.

use super::aggregate::Aggregate;
use super::bandwidth_on_demand::BandwidthOnDemand;
use super::on_demand::OnDemand;
use super::random::Random;
use super::rate::Stretch;
use super::spec::ScheduleSpec;
use super::{Nanos, micros};

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

/// The model of a description.
pub(crate) fn build(spec: &ScheduleSpec, random: Random) -> Box<dyn Access> {
    match *spec {
        ScheduleSpec::OnDemand {
            opportunity_us,
            guaranteed_bps,
            request_packets,
            grant_after_us,
            release_after_us,
        } => Box::new(OnDemand {
            opportunity: micros(opportunity_us),
            guaranteed_bps,
            request_packets,
            grant_after: micros(grant_after_us),
            release_after: micros(release_after_us),
            random,
            requested_at: None,
            regular: false,
            open_at: 0,
        }),
        ScheduleSpec::BandwidthOnDemand {
            request_every_us,
            grant_every_us,
            propagation_us,
            factor,
            frame_slots,
            frame_us,
        } => Box::new(BandwidthOnDemand::new(
            micros(request_every_us),
            micros(grant_every_us),
            micros(propagation_us),
            factor,
            frame_slots,
            micros(frame_us),
            random,
        )),
        ScheduleSpec::Aggregate { min_gap_us, max_gap_us, max_packets, max_bytes } => Box::new(Aggregate {
            min_gap: micros(min_gap_us),
            spread: micros(max_gap_us - min_gap_us),
            max_packets,
            max_bytes,
            random,
            opened: 0,
            packets: 0,
            bytes: 0,
        }),
    }
}
