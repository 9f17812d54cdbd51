// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How well a link explains a flow: the recorded packets go through the link's model at the times at which they were sent, and
//! what their round-trip times would have been is compared with what they were. Nothing reacts: no TCP is modelled.

use serde::Serialize;

use super::flow::{FitError, RecordedFlow, Seen};
use crate::host::HEADER_BYTES;
use crate::link::{Direction, LinkSpec, Nanos};
use crate::sim::opening_us;

/// Packets that are compared at most; what follows says nothing new, and takes memory.
const PACKETS: usize = 1 << 22;
/// Bytes of an acknowledgment.
const ACK_BYTES: u32 = 52;

/// See the module. Up to the first loss, because retransmissions are not recorded one by one.
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

/// What became of the packets that a link was given.
#[derive(Clone, Debug, Default)]
pub(super) struct Passed {
    /// Those whose round-trip time was recorded, in order.
    pub acks: Vec<Passage>,
    /// Largest queue, bytes.
    pub max_queue_bytes: u64,
    dropped: u64,
}

/// A packet, and its acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    /// When it arrived at the receiver, microseconds since the first data was sent.
    pub arrived_us: u64,
    /// Round-trip time over the link, microseconds.
    pub made_us: f64,
    /// Recorded round-trip time, microseconds.
    pub rtt_us: f64,
}

/// How far round-trip times over a link are from those recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Errors {
    /// Median, either way, microseconds.
    pub median_us: f64,
    /// Median deviation from their median, microseconds.
    pub spread_us: f64,
}

/// When packets were sent. Samples of the round-trip time say it of those that they are of. The others left with the
/// acknowledgment before, or between the two of which it is known: paced packets leave between acknowledgments.
struct SendTimes<'a> {
    acks: &'a [Seen],
    last_us: u64,
}

impl<'a> SendTimes<'a> {
    fn new(acks: &'a [Seen]) -> Self {
        Self { acks, last_us: 0 }
    }

    /// Of the packet that ends at this byte, after those before; microseconds of the recording's clock.
    fn of(&mut self, end: u64, acknowledged_us: u64) -> u64 {
        let known = |ack: &&Seen| ack.rtt_us.is_some() && ack.bytes_acked >= end;
        while self.acks.first().is_some_and(|ack| !known(&ack)) {
            self.acks = &self.acks[1..];
        }
        let next =
            self.acks.first().and_then(|ack| Some((ack.bytes_acked, ack.at_us.checked_sub(ack.rtt_us?)?)));
        let at_us = match next {
            Some((of, at_us)) if of == end => at_us,
            Some((_, at_us)) => acknowledged_us.min(at_us),
            None => acknowledged_us,
        };
        self.last_us = self.last_us.max(at_us);
        self.last_us
    }
}

/// Sends what the flow has sent over the link.
pub(super) fn pass(flow: &RecordedFlow, link: &LinkSpec) -> Result<Passed, FitError> {
    let [mut forward, mut back] = Direction::<u64>::pair(link, 0, 0)?;
    forward.start(0);
    back.start(0);
    let began_us = flow.began_us();
    let opening = opening_us(link.base_rtt_us()) * 1_000;
    let until_us = flow.lost_us.unwrap_or(u64::MAX);
    // By the end of each packet in the stream of bytes: sent, and arrived at the receiver.
    let (mut sent, mut arrived) = (Vec::<(u64, Nanos)>::new(), Vec::<(u64, Nanos)>::new());
    let mut passed = Passed::default();
    let (mut bytes, mut when_us, mut times) = (0, began_us, SendTimes::new(&flow.acks));
    for ack in flow.acks.iter().take_while(|ack| ack.at_us <= until_us) {
        while bytes < ack.bytes_sent && sent.len() < PACKETS {
            let payload = u64::from(ack.mss).min(ack.bytes_sent - bytes);
            bytes += payload;
            let now = (times.of(bytes, when_us).max(began_us) - began_us) * 1_000 + opening;
            collect(&mut forward, now, &mut arrived);
            sent.push((bytes, now));
            passed.dropped += u64::from(forward.arrive(now, bytes, payload as u32 + HEADER_BYTES).is_err());
        }
        when_us = ack.at_us;
    }
    collect(&mut forward, Nanos::MAX / 2, &mut arrived);
    passed.max_queue_bytes = forward.counters().max_queue_bytes;
    let mut back_arrivals = Vec::new();
    for ack in flow.acks.iter().take_while(|ack| ack.at_us <= until_us) {
        let Some(rtt_us) = ack.rtt_us else { continue };
        // The packet that holds the last byte.
        let find = |packets: &[(u64, Nanos)]| {
            let at = packets.partition_point(|packet| packet.0 < ack.bytes_acked);
            packets.get(at).copied()
        };
        let (Some((end, sent)), Some((there, arrived))) = (find(&sent), find(&arrived)) else { continue };
        if end != there {
            continue;
        }
        collect(&mut back, arrived, &mut back_arrivals);
        let number = passed.acks.len() as u64;
        if back.arrive(arrived, number, ACK_BYTES).is_err() {
            continue;
        }
        passed.acks.push(Passage {
            arrived_us: (arrived - opening) / 1_000,
            // Until its way back is known, when it was sent.
            made_us: sent as f64 / 1e3,
            rtt_us: rtt_us as f64,
        });
    }
    collect(&mut back, Nanos::MAX / 2, &mut back_arrivals);
    for (number, due) in back_arrivals {
        let passage = &mut passed.acks[number as usize];
        passage.made_us = due as f64 / 1e3 - passage.made_us;
    }
    Ok(passed)
}

/// 0 of none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn collect(direction: &mut Direction<u64>, now: Nanos, arrived: &mut Vec<(u64, Nanos)>) {
    while let Some(delivery) = direction.deliver(now) {
        arrived.push((delivery.packet, delivery.due));
    }
}

impl Passed {
    /// How far round-trip times are from what was recorded.
    pub fn errors(&self) -> Errors {
        let errors = || self.acks.iter().map(|ack| ack.made_us - ack.rtt_us);
        let middle = median(errors());
        Errors {
            median_us: median(errors().map(f64::abs)),
            spread_us: median(errors().map(|error| (error - middle).abs())),
        }
    }

    /// How near that is to what was recorded.
    pub fn explained(&self) -> Explained {
        if self.acks.is_empty() {
            return Explained { dropped: self.dropped, ..Explained::default() };
        }
        let count = self.acks.len() as f64;
        let mean = self.acks.iter().map(|ack| ack.rtt_us).sum::<f64>() / count;
        let variance = self.acks.iter().map(|ack| (ack.rtt_us - mean).powi(2)).sum::<f64>() / count;
        let errors = || self.acks.iter().map(|ack| ack.made_us - ack.rtt_us);
        let unexplained = errors().map(|error| error.powi(2)).sum::<f64>() / count;
        let median = self.errors().median_us;
        Explained {
            samples: self.acks.len(),
            rtt_error_us: median,
            rtt_error_share: median / mean,
            rtt_variance: (variance.sqrt() > 0.01 * mean).then(|| 1.0 - unexplained / variance),
            dropped: self.dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_were_sent_when_their_samples_say_and_the_others_between() {
        let ack = |at_us, rtt_us, bytes_acked| Seen {
            at_us,
            rtt_us,
            bytes_acked,
            bytes_sent: 10_000,
            delivered: bytes_acked / 1_000,
            mss: 1_000,
        };
        let acks = [
            ack(50_000, Some(50_000), 1_000),
            ack(55_000, None, 2_000),
            ack(60_000, Some(20_000), 3_000),
            ack(95_000, Some(20_000), 5_000),
        ];
        let mut times = SendTimes::new(&acks);
        // By the acknowledgment before; not after the packet that follows and not before the one ahead.
        let sent =
            [(1_000, 0), (2_000, 50_000), (3_000, 50_000), (4_000, 60_000), (5_000, 60_000), (6_000, 80_000)];
        let sent: Vec<u64> = sent.into_iter().map(|(end, before)| times.of(end, before)).collect();
        assert_eq!(sent, [0, 40_000, 40_000, 60_000, 75_000, 80_000]);
    }
}
