// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What round-trip times have beyond propagation and queue, over time: the way back is scheduled, frames are repeated below IP,
//! others' traffic comes between. It is kept as it was, because what decides a slow start is when it was, and for how many
//! packets in a row: HyStart leaves where the least excess of a round is above its threshold.

use super::explain::Passage;
use crate::link::spec::DelayStep;

/// Steps at most; finer variation is left out.
const STEPS: usize = 4_096;
/// Finest variation that is kept, microseconds.
const FINEST_US: u64 = 200;
/// Least that is distinguished from the time that hosts take, microseconds.
const LEAST_US: u64 = 1_000;
/// Largest extra delay of a link, microseconds.
const MOST_US: f64 = 10_000_000.0;

/// Extra delays from times on, since the first data was sent; none where they show nothing.
pub(super) fn steps(acks: &[Passage]) -> Vec<DelayStep> {
    let extra = |ack: &Passage| (ack.rtt_us - ack.made_us).clamp(0.0, MOST_US).round() as u64;
    let extras: Vec<u64> = acks.iter().map(extra).collect();
    // A receiver that waits for a second segment delays one acknowledgment alone: that is the host, not the path.
    let alone = |at: usize| {
        let neighbours = [at.checked_sub(1), at.checked_add(1)];
        let neighbours = neighbours.into_iter().flatten().filter_map(|at| extras.get(at)).max();
        neighbours.map_or(extras[at], |neighbours| extras[at].min(*neighbours))
    };
    let points: Vec<(u64, u64)> = (0..).zip(acks).map(|(at, ack)| (ack.arrived_us, alone(at))).collect();
    if points.iter().all(|(_, extra)| *extra < LEAST_US) {
        return Vec::new();
    }
    let mut finest = FINEST_US;
    loop {
        let steps = stepped(&points, finest);
        if steps.len() <= STEPS {
            return steps;
        }
        finest = finest * 3 / 2;
    }
}

/// A step for each point that differs by more. It begins in the middle between the point and the one before, because packets
/// of another flow come somewhat earlier or later.
fn stepped(points: &[(u64, u64)], finest: u64) -> Vec<DelayStep> {
    let mut steps = Vec::<DelayStep>::new();
    let mut before = 0;
    for &(at_us, extra_us) in points {
        match steps.last_mut() {
            None => steps.push(DelayStep { at_us: 0, extra_us }),
            Some(last) if last.extra_us.abs_diff(extra_us) > finest => {
                let middle = before + at_us.saturating_sub(before) / 2;
                if middle > last.at_us {
                    steps.push(DelayStep { at_us: middle, extra_us });
                } else {
                    last.extra_us = last.extra_us.max(extra_us);
                }
            }
            Some(_) => {}
        }
        before = before.max(at_us);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acks(extras: &[u64]) -> Vec<Passage> {
        let ack = |(number, extra): (u64, &u64)| Passage {
            arrived_us: number * 1_000,
            made_us: 50_000.0,
            rtt_us: (50_000 + extra) as f64,
        };
        (0..).zip(extras).map(ack).collect()
    }

    #[test]
    fn a_delay_begins_half_way_from_the_packet_before() {
        let found = steps(&acks(&[0, 0, 5_000, 5_100, 0, 40_000, 0]));
        let expected = [(0, 0), (1_500, 5_000), (3_500, 0)];
        assert_eq!(found, expected.map(|(at_us, extra_us)| DelayStep { at_us, extra_us }));
    }

    #[test]
    fn what_hosts_take_is_no_variation_and_steps_are_bounded() {
        assert_eq!(steps(&acks(&[0, 900, 0, 700])), []);
        let wild: Vec<u64> = (0..100_000).map(|number| number / 2 % 2 * 5_000 + number % 7 * 900).collect();
        assert!(steps(&acks(&wild)).len() <= STEPS);
    }
}
