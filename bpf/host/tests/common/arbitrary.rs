//! Inputs that no sender would produce, and properties that hold for those of any sender.

use onramp_algorithm::{Ack, Parameters, find};
use proptest::prelude::*;

use super::random::{Random, check};

/// Numbers at the ends of their types and around powers of two.
pub fn number(random: &mut Random) -> u64 {
    match random.below(6) {
        0 => 0,
        1 => random.below(100),
        2 => u64::MAX - random.below(100),
        3 => (1 << random.below(64)) - random.below(2),
        _ => random.bits() >> random.below(64),
    }
}

/// An ACK of such numbers.
pub fn arbitrary_ack(random: &mut Random) -> Ack {
    Ack {
        now_us: number(random),
        bytes_acked: number(random),
        bytes_sent: number(random),
        bytes_outstanding: number(random) as u32,
        delivered: number(random) as u32,
        acked: number(random) as u32,
        rtt_us: if random.once_in(10) { i32::MIN } else { number(random) as i32 & i32::MAX },
        smoothed_rtt_us: number(random) as u32,
        min_rtt_us: number(random) as u32,
        cwnd: number(random) as u32,
        ssthresh: number(random) as u32,
        in_flight: number(random) as u32,
        mss: (number(random) as u32).max(1),
        flags: if random.once_in(2) { 0 } else { number(random) as u32 },
        gso_max_size: number(random) as u32,
        pacing_rate: number(random),
        receiver_clock: number(random) as u32,
        receive_window: 0,
    }
}

/// Parameters anywhere in their ranges, at the ends as often as between.
pub fn any_parameters(algorithm: &str, random: &mut Random) -> Parameters {
    let algorithm = find(algorithm).unwrap();
    let values = algorithm.declarations().map(|row| match random.below(3) {
        0 => row.minimum,
        1 => row.maximum,
        _ => row.minimum + random.below(row.maximum - row.minimum + 1),
    });
    Parameters::from_words(algorithm, &values.collect::<Vec<_>>()).unwrap()
}

/// A connection's counters and clock: anything, and what lies just below a power of two.
pub fn counter() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..10_000_000_u64,
        (16..64_u32, 0..10_000_000_u64).prop_map(|(power, below)| (1_u64 << power).wrapping_sub(below)),
    ]
}

/// Checks that neither when a flow runs nor what its connection had carried before changes anything, wherever a counter
/// wraps: in every second run each wraps at some ACK of the flow. `same` compares the ACKs of two such connections.
pub fn check_origins(
    seed: u64,
    acks: impl Fn(&mut Random, usize) -> Vec<Ack>,
    same: impl Fn(&mut Random, &[Ack], &[Ack]) -> Result<(), TestCaseError>,
) {
    const LENGTH: usize = 120;
    let origins = (any::<u64>(), counter(), counter(), any::<u32>(), any::<[bool; 2]>(), 0..LENGTH);
    check(seed, 1_500, origins, |(seed, time, bytes, segments, wraps, at)| {
        let mut random = Random(seed);
        let acks = acks(&mut random, LENGTH);
        let time = if wraps[0] { acks[at].now_us.wrapping_neg() } else { time };
        let bytes = if wraps[1] { acks[at].bytes_acked.wrapping_neg() } else { bytes };
        let moved = |ack: &Ack| Ack {
            now_us: ack.now_us.wrapping_add(time),
            bytes_acked: ack.bytes_acked.wrapping_add(bytes),
            bytes_sent: ack.bytes_sent.wrapping_add(bytes),
            delivered: ack.delivered.wrapping_add(segments),
            ..*ack
        };
        same(&mut random, &acks, &acks.iter().map(moved).collect::<Vec<_>>())
    });
}
