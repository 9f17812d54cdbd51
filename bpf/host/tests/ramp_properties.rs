//! ramp: what holds for every input. Seeds are fixed; ONRAMP_TEST_SEED sets another.

mod common;

use common::arbitrary::{any_parameters, arbitrary_ack, check_origins};
use common::pair_traffic::paired_acks;
use common::random::{Random, check};
use onramp_algorithm::{Ack, Flow, outcome};
use proptest::prelude::*;

/// Any ACKs, any parameters: it returns (no division fault), every verdict has a name, the window is left alone, and an exit
/// has a threshold that the window has reached.
#[test]
fn extremes_are_survived() {
    check(51, 3_000, any::<u64>(), |seed| {
        let mut random = Random(seed);
        let mut flow = Flow::new(any_parameters("ramp", &mut random));
        for _ in 0..150 {
            let ack = arbitrary_ack(&mut random);
            let ack = Ack { cwnd: ack.cwnd.max(1), ..ack };
            if random.once_in(50) {
                flow.restart();
            }
            let verdict = flow.on_ack(&ack);
            let name = flow.algorithm().outcome_name(verdict.outcome);
            prop_assert!(!name.is_empty(), "{verdict:?}");
            prop_assert_eq!(verdict.cwnd, 0);
            let exits = verdict.ssthresh > 0 && verdict.ssthresh <= ack.cwnd;
            prop_assert_eq!(verdict.outcome == outcome::EXIT, exits, "{:?} {:?}", verdict, ack);
            let base = 2 + random.below(1 << 31) as u32;
            prop_assert_eq!(flow.on_loss(&ack, base), base);
        }
        Ok(())
    });
}

/// Neither when a flow runs nor what its connection had carried before changes a verdict, wherever a counter wraps.
#[test]
fn origins_of_time_and_counters_do_not_matter() {
    check_origins(52, paired_acks, |random, acks, moved| {
        let mut flow = Flow::new(any_parameters("ramp", random));
        let mut other = flow.clone();
        for (ack, moved) in acks.iter().zip(moved) {
            prop_assert_eq!(flow.on_ack(ack), other.on_ack(moved));
        }
        Ok(())
    });
}
