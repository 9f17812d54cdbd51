//! hystart: what holds for every input. Seeds are fixed; ONRAMP_TEST_SEED sets another.

mod common;

use common::arbitrary::{any_parameters, check_origins};
use common::differential::Settings as _;
use common::hystart_model::Settings;
use common::random::{Random, check};
use common::rounds::{Rounds, slow_start_acks};
use onramp_algorithm::{Ack, Flow, Verdict, outcome};
use proptest::prelude::*;

/// Every number anything.
fn any_ack() -> impl Strategy<Value = Ack> {
    let numbers = (any::<[u64; 3]>(), any::<[u32; 7]>(), any::<i32>(), 1..u32::MAX);
    numbers.prop_map(|([now_us, bytes_acked, pacing_rate], words, rtt_us, mss)| Ack {
        now_us,
        bytes_acked,
        pacing_rate,
        bytes_outstanding: words[0],
        acked: words[1],
        cwnd: words[2],
        ssthresh: words[3],
        in_flight: words[4],
        gso_max_size: words[5],
        flags: words[6],
        rtt_us,
        mss,
        ..Ack::default()
    })
}

/// Whatever it is given, it asks for nothing, or for the window to be the threshold; and the exit says who it was.
#[test]
fn it_leaves_or_does_nothing() {
    let inputs = (any::<u64>(), prop::collection::vec(any_ack(), 1..60));
    check(21, 4_000, inputs, |(seed, acks)| {
        let mut random = Random(seed);
        let mut flow = Flow::new(any_parameters("hystart", &mut random));
        for ack in &acks {
            let verdict = flow.on_ack(ack);
            let ssthresh = if verdict.outcome == outcome::EXIT { ack.cwnd } else { 0 };
            prop_assert_eq!(verdict, Verdict { outcome: verdict.outcome, ssthresh, ..Verdict::default() });
            if verdict.outcome == outcome::EXIT {
                prop_assert!((1..=3).contains(&flow.export("detected")[0]));
            }
        }
        Ok(())
    });
}

/// Neither when a flow runs nor what its connection had carried before changes a verdict, wherever a counter wraps.
#[test]
fn origins_of_time_and_counters_do_not_matter() {
    check_origins(22, slow_start_acks, |random, acks, moved| {
        let mut here = Flow::new(Settings::random(random).parameters());
        let mut there = here.clone();
        for (ack, moved) in acks.iter().zip(moved) {
            prop_assert_eq!(here.on_ack(ack), there.on_ack(moved));
        }
        Ok(())
    });
}

/// Where the RTT of no round comes to more than the floor above the minimum, delay alone never leaves, by any rule.
#[test]
fn a_delay_within_the_floor_never_leaves() {
    let paths = (1..3_000_000_i32, any::<u64>(), 0..3_usize);
    check(23, 300, paths, |(rtt_us, seed, rule)| {
        let rule = format!("delay_rule={}", ["clamp", "ewma", "deviation"][rule]);
        let mut flow = Rounds::new("hystart", &["detect=delay", &rule]);
        let mut random = Random(seed);
        for number in 0..400 {
            flow.ack.rtt_us = rtt_us + random.below(4_001) as i32;
            let verdict = if number % 20 == 0 { flow.begin(100) } else { flow.next(100) };
            prop_assert_ne!(verdict.outcome, outcome::EXIT);
        }
        Ok(())
    });
}

/// ACKs further apart than a train's, at an RTT that stays: no window, no path leaves.
#[test]
fn sparse_acks_at_a_steady_rtt_never_leave() {
    check(24, 300, (1..3_000_000_i32, 2_001..100_000_u64), |(rtt_us, gap_us)| {
        let mut flow = Rounds::new("hystart", &[]);
        flow.ack.rtt_us = rtt_us;
        for number in 0..400 {
            let verdict = if number % 20 == 0 { flow.begin(gap_us) } else { flow.next(gap_us) };
            prop_assert_ne!(verdict.outcome, outcome::EXIT);
        }
        Ok(())
    });
}
