// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Models of what a description names.

use super::Limit;
use super::access::Access;
use super::aggregate::Aggregate;
use super::aqm::Aqm;
use super::bandwidth_on_demand::BandwidthOnDemand;
use super::codel::CoDel;
use super::flow_queue::FlowQueues;
use super::micros;
use super::on_demand::OnDemand;
use super::policer::Policer;
use super::queue::Queue;
use super::random::Random;
use super::random_drop::RandomDrop;
use super::spec::{AqmSpec, ScheduleSpec};

/// A queue, as it is managed.
pub(super) fn queue<P>(limit: Limit, spec: Option<&AqmSpec>, random: Random) -> Queue<P> {
    let Some(spec) = spec else { return Queue::new(limit, None) };
    let aqm: Box<dyn Aqm> = match *spec {
        AqmSpec::RandomDrop { above_fraction, drop_probability } => {
            Box::new(RandomDrop { above_fraction, drop_probability, random })
        }
        AqmSpec::CoDel { target_us, interval_us, ecn } => {
            Box::new(CoDel::new(micros(target_us), micros(interval_us), ecn))
        }
        AqmSpec::FqCodel { target_us, interval_us, ecn } => {
            return Queue::of_flows(limit, FlowQueues::new(micros(target_us), micros(interval_us), ecn));
        }
        AqmSpec::Policer { rate_bps, burst_bytes } => Box::new(Policer::new(rate_bps, burst_bytes)),
    };
    Queue::new(limit, Some(aqm))
}

/// A schedule.
pub(crate) fn access(spec: &ScheduleSpec, random: Random) -> Box<dyn Access> {
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
