//! best and threshold: what holds for every input. Seeds are fixed; ONRAMP_TEST_SEED sets another.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::pair_traffic::paired_acks;
use common::random::{Random, check};
use onramp_algorithm::{Ack, Flow, Parameters, Verdict, find, outcome};
use proptest::prelude::*;

/// Random values within the declared ranges.
fn settings(name: &str, random: &mut Random) -> Parameters {
    let algorithm = find(name).unwrap();
    let words: Vec<u64> = algorithm
        .declarations()
        .map(|row| row.minimum + random.below(row.maximum - row.minimum + 1))
        .collect();
    Parameters::from_words(algorithm, &words).unwrap()
}

/// Numbers at the ends of their types and around powers of two.
fn number(random: &mut Random) -> u64 {
    match random.below(6) {
        0 => 0,
        1 => random.below(100),
        2 => u64::MAX - random.below(100),
        3 => (1 << random.below(64)) - random.below(2),
        _ => random.bits() >> random.below(64),
    }
}

/// ACKs with values that no sender would produce.
fn arbitrary_ack(random: &mut Random) -> Ack {
    Ack {
        now_us: number(random),
        bytes_acked: number(random),
        bytes_sent: number(random),
        bytes_outstanding: number(random) as u32,
        rtt_us: number(random) as i32,
        smoothed_rtt_us: number(random) as u32,
        min_rtt_us: number(random) as u32,
        cwnd: number(random) as u32,
        ssthresh: number(random) as u32,
        mss: (number(random) as u32).max(1),
        flags: if random.once_in(2) { 0 } else { number(random) as u32 },
        ..Ack::default()
    }
}

/// Any ACKs, any parameters: it returns (no division fault), every verdict has a name, a window is only reduced, and
/// thresholds keep their floors.
#[test]
fn extremes_are_survived() {
    check(41, 3_000, any::<u64>(), |seed| {
        let mut random = Random(seed);
        let mut best = Flow::new(settings("best", &mut random));
        let mut threshold = Flow::new(settings("threshold", &mut random));
        for _ in 0..150 {
            let ack = arbitrary_ack(&mut random);
            if random.once_in(50) {
                best.restart();
                threshold.restart();
            }
            let verdict = best.on_ack(&ack);
            let name = best.algorithm().outcome_name(verdict.outcome);
            prop_assert!(!name.is_empty(), "{verdict:?}");
            prop_assert!(verdict.cwnd <= ack.cwnd, "{verdict:?} {ack:?}");
            prop_assert!(verdict.ssthresh == 0 || verdict.ssthresh >= 10, "{verdict:?} {ack:?}");
            let exits = verdict.ssthresh > 0 && verdict.ssthresh <= ack.cwnd;
            prop_assert_eq!(verdict.outcome == outcome::EXIT, exits, "{:?} {:?}", verdict, ack);
            let verdict = threshold.on_ack(&ack);
            prop_assert_eq!(verdict, Verdict { outcome: verdict.outcome, ..Verdict::default() });
            let base = 2 + random.below(1 << 31) as u32;
            let after = threshold.on_loss(&ack, base);
            prop_assert!(after >= 2, "{after}");
            prop_assert!(after == base || after <= (ack.cwnd / 2).max(2), "{after} {ack:?}");
        }
        Ok(())
    });
}

/// Neither when a flow runs nor what its connection had carried before changes a verdict, wherever a counter wraps.
#[test]
fn origins_of_time_and_counters_do_not_matter() {
    let origins = (any::<u64>(), any::<[u64; 2]>(), any::<[bool; 2]>(), 0..120_usize);
    check(42, 1_500, origins, |(seed, [time, bytes], wraps, at)| {
        let mut random = Random(seed);
        let acks = paired_acks(&mut random, 120);
        let time = if wraps[0] { acks[at].now_us.wrapping_neg() } else { time };
        let bytes = if wraps[1] { acks[at].bytes_acked.wrapping_neg() } else { bytes };
        for name in ["best", "threshold"] {
            let mut flow = Flow::new(settings(name, &mut random));
            let mut other = flow.clone();
            for ack in &acks {
                let moved = Ack {
                    now_us: ack.now_us.wrapping_add(time),
                    bytes_acked: ack.bytes_acked.wrapping_add(bytes),
                    bytes_sent: ack.bytes_sent.wrapping_add(bytes),
                    ..*ack
                };
                prop_assert_eq!(flow.on_ack(ack), other.on_ack(&moved), "{}", name);
                prop_assert_eq!(flow.on_loss(ack, 99), other.on_loss(&moved, 99), "{}", name);
            }
        }
        Ok(())
    });
}
