// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How well a link explains a flow: the recorded packets go through the link's model at the times at which they were sent, and
//! what their round-trip times would have been is compared with what they were. Nothing reacts: no TCP is modelled.

use serde::Serialize;

use super::flow::{FitError, RecordedFlow};
use crate::host::HEADER_BYTES;
use crate::link::{Direction, LinkSpec, Nanos};

/// Packets that are compared at most; what follows says nothing new, and takes memory.
const PACKETS: usize = 1 << 24;

/// See the module. Up to the first loss, because repetitions are not recorded one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Explained {
    /// Round-trip times compared.
    pub samples: usize,
    /// Median of the differences, either way, microseconds.
    pub rtt_error_us: f64,
    /// The same over the mean round-trip time.
    pub rtt_error_share: f64,
    /// Share of the round-trip times' variance that the link explains, 1 at most; none where they vary by less than 1 %.
    pub rtt_variance: Option<f64>,
    /// Packets that the link would have dropped.
    pub dropped: u64,
}

/// `jitter_us` is the largest on the way back; packets have half of it on average.
pub(super) fn explain(flow: &RecordedFlow, link: &LinkSpec, jitter_us: u64) -> Result<Explained, FitError> {
    let mut forward = Direction::<u64>::new(&link.forward, "link.forward", 0, 0)?;
    forward.start(0);
    let began_us = flow.began_us();
    let back_us = (link.back.delay_us + jitter_us / 2) as f64;
    let until_us = flow.lost_us.unwrap_or(u64::MAX);
    // By the end of each packet in the stream of bytes: sent, and arrived at the receiver.
    let (mut sent, mut arrived) = (Vec::<(u64, Nanos)>::new(), Vec::<(u64, Nanos)>::new());
    let mut dropped = 0;
    let (mut bytes, mut when_us) = (0, began_us);
    for ack in flow.acks.iter().take_while(|ack| ack.at_us <= until_us) {
        let now = (when_us - began_us) * 1_000;
        while bytes < ack.bytes_sent && sent.len() < PACKETS {
            let payload = u64::from(ack.mss).min(ack.bytes_sent - bytes);
            bytes += payload;
            collect(&mut forward, now, &mut arrived);
            sent.push((bytes, now));
            dropped += u64::from(forward.arrive(now, bytes, payload as u32 + HEADER_BYTES).is_err());
        }
        when_us = ack.at_us;
    }
    collect(&mut forward, Nanos::MAX / 2, &mut arrived);
    let mut errors = Vec::new();
    let mut recorded = Vec::new();
    for ack in flow.acks.iter().take_while(|ack| ack.at_us <= until_us) {
        let Some(rtt_us) = ack.rtt_us else { continue };
        let find = |packets: &[(u64, Nanos)]| {
            let at = packets.binary_search_by_key(&ack.bytes_acked, |packet| packet.0).ok()?;
            Some(packets[at].1)
        };
        let (Some(sent), Some(arrived)) = (find(&sent), find(&arrived)) else { continue };
        let made_us = (arrived - sent) as f64 / 1e3 + back_us;
        errors.push(made_us - rtt_us as f64);
        recorded.push(rtt_us as f64);
    }
    Ok(summary(&errors, &recorded, dropped))
}

fn collect(forward: &mut Direction<u64>, now: Nanos, arrived: &mut Vec<(u64, Nanos)>) {
    while let Some(delivery) = forward.deliver(now) {
        arrived.push((delivery.packet, delivery.due));
    }
}

fn summary(errors: &[f64], recorded: &[f64], dropped: u64) -> Explained {
    if errors.is_empty() {
        return Explained { dropped, ..Explained::default() };
    }
    let count = errors.len() as f64;
    let mean = recorded.iter().sum::<f64>() / count;
    let variance = recorded.iter().map(|rtt| (rtt - mean).powi(2)).sum::<f64>() / count;
    let unexplained = errors.iter().map(|error| error.powi(2)).sum::<f64>() / count;
    let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let median = sizes[sizes.len() / 2];
    Explained {
        samples: errors.len(),
        rtt_error_us: median,
        rtt_error_share: median / mean,
        rtt_variance: (variance.sqrt() > 0.01 * mean).then(|| 1.0 - unexplained / variance),
        dropped,
    }
}
