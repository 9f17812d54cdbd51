//! hystartpp: what holds for every input. Seeds are fixed; ONRAMP_TEST_SEED sets another.

mod common;

use common::arbitrary::check_origins;
use common::differential::Settings as _;
use common::hystartpp_model::Settings;
use common::random::{Random, check};
use common::rounds::{Rounds, slow_start_acks};
use onramp_algorithm::{Flow, Verdict, ack_flag, growth, outcome};
use proptest::prelude::*;

/// It never sets a window or a rate, never lets one grow by more than was acknowledged or than L, and sets a threshold
/// only to leave, to the window.
#[test]
fn it_slows_down_or_leaves_and_nothing_else() {
    check(31, 3_000, any::<u64>(), |seed| {
        let mut random = Random(seed);
        let settings = Settings::random(&mut random);
        let mut flow = Flow::new(settings.parameters());
        let (mut acked, mut granted) = (0, 0);
        for ack in slow_start_acks(&mut random, 120) {
            let conservative = flow.export("phase")[0] == 1;
            let verdict = flow.on_ack(&ack);
            let ssthresh = if verdict.outcome == outcome::EXIT { ack.cwnd } else { 0 };
            let Verdict { outcome, growth, growth_limit, .. } = verdict;
            prop_assert_eq!(
                verdict,
                Verdict { outcome, growth, growth_limit, ssthresh, ..Verdict::default() }
            );
            if growth == growth::LIMITED && ack.flags & ack_flag::PACED == 0 {
                prop_assert!(u64::from(growth_limit) <= settings.l);
            }
            if conservative && growth == growth::LIMITED {
                acked += u64::from(ack.acked);
                granted += u64::from(growth_limit) * settings.css_growth_divisor;
                prop_assert!(granted <= acked, "{} for {}", granted, acked);
            }
        }
        Ok(())
    });
}

/// In Conservative Slow Start an unlimited ACK stream grows by its part exactly, but for one segment.
#[test]
fn conservative_growth_loses_nothing() {
    let streams = (prop::collection::vec(0..9_u32, 1..200), 1..20_u64);
    check(32, 1_000, streams, |(acks, divisor)| {
        let set = [format!("css_growth_divisor={divisor}"), "css_rounds=1000".into()];
        let mut flow = Rounds::new("hystartpp", &[&set[0], &set[1]]);
        flow.round(50_000, 8);
        prop_assert_eq!(flow.round(90_000, 8), "css_entered");
        let mut granted = 0;
        for acked in &acks {
            flow.ack.acked = *acked;
            granted += u64::from(flow.next(10_000).growth_limit);
        }
        let acked: u64 = acks.iter().map(|acked| u64::from((*acked).min(8))).sum();
        prop_assert_eq!(granted, acked / divisor);
        Ok(())
    });
}

/// A steady RTT never slows down, nor one that stays within 4 ms.
#[test]
fn a_steady_rtt_never_slows_down() {
    check(33, 300, (1..3_000_000_i32, any::<u64>()), |(rtt_us, seed)| {
        let mut flow = Rounds::new("hystartpp", &[]);
        let mut random = Random(seed);
        for number in 0..400 {
            flow.ack.rtt_us = rtt_us + random.below(4_000) as i32;
            if number % 20 == 0 {
                flow.begin(100)
            } else {
                flow.next(100)
            };
            prop_assert_eq!(flow.read("css_entries"), 0);
        }
        Ok(())
    });
}

/// Neither when a flow runs nor what its connection had carried before changes a verdict, wherever a counter wraps.
#[test]
fn origins_of_time_and_counters_do_not_matter() {
    check_origins(34, slow_start_acks, |random, acks, moved| {
        let mut here = Flow::new(Settings::random(random).parameters());
        let mut there = here.clone();
        for (ack, moved) in acks.iter().zip(moved) {
            prop_assert_eq!(here.on_ack(ack), there.on_ack(moved));
        }
        Ok(())
    });
}
