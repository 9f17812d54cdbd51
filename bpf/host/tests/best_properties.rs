//! best and threshold: what holds for every input. Seeds are fixed; ONRAMP_TEST_SEED sets another.

mod common;

use common::arbitrary::{any_parameters, arbitrary_ack, check_origins};
use common::pair_traffic::paired_acks;
use common::random::{Random, check};
use onramp_algorithm::{Flow, Verdict, outcome};
use proptest::prelude::*;

/// Any ACKs, any parameters: it returns (no division fault), every verdict has a name, a window is only reduced, and
/// thresholds keep their floors.
#[test]
fn extremes_are_survived() {
    check(41, 3_000, any::<u64>(), |seed| {
        let mut random = Random(seed);
        let mut best = Flow::new(any_parameters("best", &mut random));
        let mut threshold = Flow::new(any_parameters("threshold", &mut random));
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
    check_origins(42, paired_acks, |random, acks, moved| {
        for name in ["best", "threshold"] {
            let mut flow = Flow::new(any_parameters(name, random));
            let mut other = flow.clone();
            for (ack, moved) in acks.iter().zip(moved) {
                prop_assert_eq!(flow.on_ack(ack), other.on_ack(moved), "{}", name);
                prop_assert_eq!(flow.on_loss(ack, 99), other.on_loss(moved, 99), "{}", name);
            }
        }
        Ok(())
    });
}
