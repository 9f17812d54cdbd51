//! search: what holds for every input. Seeds are fixed; ONRAMP_TEST_SEED sets another.

mod common;

use common::arbitrary::{arbitrary_ack, check_origins, counter, number};
use common::differential::Settings as _;
use common::ramp::Ramp;
use common::random::{Random, check};
use common::settings::Settings;
use common::traffic::plausible_acks;
use common::{READINGS, parameters};
use onramp_algorithm::{Ack, Flow, Parameters, Verdict, growth, outcome};
use proptest::prelude::*;

/// The first verdict on a ramp that is not to grow, and why.
fn stumble(flow: &mut Flow, acks: &[Ack]) -> Option<String> {
    let calm = ["warming_up", "bin_open", "below_threshold"];
    let calm: Vec<bool> = flow.algorithm().outcomes().map(|outcome| calm.contains(&outcome.name)).collect();
    acks.iter().find_map(|ack| {
        let verdict = flow.on_ack(ack);
        if calm[verdict.outcome as usize]
            && verdict == (Verdict { outcome: verdict.outcome, ..Verdict::default() })
        {
            return None;
        }
        Some(format!("norm {} {verdict:?} {ack:?}", flow.export("norm_pct")[0]))
    })
}

fn survives(ramp: &Ramp, factor: u64) -> Result<(), TestCaseError> {
    let acks = ramp.acks();
    for [form, look_back] in READINGS {
        let parameters = parameters(&[form, look_back, &format!("window_factor_pct={factor}")]);
        let stumbled = stumble(&mut Flow::new(parameters), &acks);
        prop_assert_eq!(stumbled, None, "{} {}", form, look_back);
    }
    Ok(())
}

/// Doublings that keep the window below 1 GiB, the most that TCP can have.
fn rounds(window: u64) -> u32 {
    (1_u64 << 30).div_euclid(window * 1_500).ilog2() - 1
}

/// A first ACK may come at any phase: ACKs that are dropped from the start of the ramp move it.
fn clean_ramp() -> impl Strategy<Value = (Ramp, usize)> {
    (1..=3_000_000_u64, 10..200_u64, counter(), counter(), any::<usize>()).prop_map(
        |(rtt_us, window, base, start_us, phase)| {
            let mut ramp = Ramp::evenly(rtt_us, window, rounds(window));
            ramp.base = base;
            ramp.start_us = start_us % (1 << 62);
            (ramp, phase % window as usize)
        },
    )
}

/// An initial window spread evenly over the round trip: no window length, form or look-back leaves.
#[test]
fn a_clean_ramp_never_leaves() {
    check(11, 400, (clean_ramp(), 200..=1_000_u64), |((mut ramp, phase), factor)| {
        // The first departures are moved to the end of the round, so the first ACK comes later in it.
        let shift = ramp.departures_us[phase];
        ramp.start_us += shift;
        for departure_us in &mut ramp.departures_us {
            *departure_us = (*departure_us + ramp.rtt_us - shift) % ramp.rtt_us;
        }
        ramp.departures_us.sort_unstable();
        survives(&ramp, factor)
    });
}

/// A whole window at once, every round: all ACKs of a round arrive together, for any initial window.
#[test]
fn a_ramp_in_bursts_never_leaves() {
    let ramps = (1..=3_000_000_u64, 1..200_u64, counter(), 200..=1_000_u64);
    check(12, 400, ramps, |(rtt_us, window, base, factor)| {
        let ramp = Ramp { base, ..Ramp::train(rtt_us, 0, window, rounds(window)) };
        survives(&ramp, factor)
    });
}

/// ACK trains of any length, for any initial window: what the default geometry survives.
#[test]
fn a_ramp_in_trains_never_leaves_at_the_default_window_length() {
    let ramps = (100..=3_000_000_u64, 0..=100_u64, 1..200_u64);
    check(13, 600, ramps, |(rtt_us, length_pct, window)| {
        survives(&Ramp::train(rtt_us, rtt_us * length_pct / 100, window, rounds(window)), 350)
    });
}

/// With a second check to confirm the first, trains are survived at any length of a window.
#[test]
fn a_ramp_in_trains_never_leaves_unconfirmed() {
    let ramps = (100..=3_000_000_u64, 0..=100_u64, 1..200_u64, 200..=1_000_u64);
    check(17, 2_000, ramps, |(rtt_us, length_pct, window, factor)| {
        let acks = Ramp::train(rtt_us, rtt_us * length_pct / 100, window, rounds(window)).acks();
        for form in ["form=sent", "form=delivered"] {
            let factor = format!("window_factor_pct={factor}");
            let mut flow = Flow::new(parameters(&[form, &factor, "confirm_bins=2"]));
            prop_assert!(acks.iter().all(|ack| flow.on_ack(ack).outcome != outcome::EXIT), "{}", form);
        }
        Ok(())
    });
}

/// ACKs that a driver may deliver, in an order and with values that no sender would produce.
fn arbitrary_acks(random: &mut Random, count: usize) -> Vec<Ack> {
    let mut now_us = random.bits();
    (0..count)
        .map(|_| {
            let step = random.below(51);
            now_us = now_us.wrapping_add(random.bits() & ((1 << step) - 1));
            if random.once_in(30) {
                now_us = number(random);
            }
            Ack { now_us, ..arbitrary_ack(random) }
        })
        .collect()
}

/// Any ACKs, any parameters: it returns (no division fault), a window is never raised, a target is ten segments or the
/// window, and what is exported makes sense.
#[test]
fn extremes_are_survived_and_never_raise_a_window() {
    check(14, 3_000, any::<u64>(), |seed| {
        let mut random = Random(seed);
        let set = Settings::random(&mut random);
        let mut flow = Flow::new(set.parameters());
        let mut detected = u32::MAX;
        for ack in arbitrary_acks(&mut random, 150) {
            if random.once_in(50) {
                flow.restart();
            }
            let silent = ack.rtt_us < 0;
            let verdict = flow.on_ack(&ack);
            let name = flow.algorithm().outcome_name(verdict.outcome);
            let context = format!("{set:?} {ack:?} {verdict:?}");
            prop_assert!(!name.is_empty(), "{context}");
            prop_assert!(verdict.growth <= growth::LIMITED && verdict.growth_limit == 0, "{context}");
            prop_assert!(verdict.cwnd <= ack.cwnd, "raised: {context}");
            prop_assert!(verdict.ssthresh <= ack.cwnd, "no exit: {context}");
            if verdict.outcome == outcome::EXIT {
                prop_assert!(verdict.undo_limit <= ack.cwnd, "{context}");
                detected = ack.cwnd;
            }
            // A drain heads for no more than the window that detection saw.
            let floor = if name == "draining" { ack.cwnd.min(detected) } else { ack.cwnd }.min(10);
            for target in [verdict.cwnd, verdict.ssthresh] {
                prop_assert!(target == 0 || target >= floor, "too low: {context}");
            }
            prop_assert!(verdict.undo_limit == 0 || verdict.undo_limit >= detected.min(10), "{context}");
            prop_assert!(!silent || ["no_rtt_sample", "draining"].contains(&name), "{context}");
            prop_assert!(flow.export("norm_pct")[0] <= 100 && flow.export("norm_max_pct")[0] <= 100);
        }
        Ok(())
    });
}

/// A silence of any length up to 2^50 us (35 years) is one step, after which the flow goes on as any other: the newest
/// bin is at most a ring further, and the next ACK in the bin that is then open is in it.
#[test]
fn any_silence_is_one_step() {
    let silences = (1..=3_000_000_u64, 0..=1_u64 << 50, 0..3_usize, 0..60_u64);
    check(15, 2_000, silences, |(rtt_us, silence_us, rule, bins)| {
        let rule = ["off", "alpha", "window"][rule];
        let mut flow = Flow::new(parameters(&[
            &format!("missed_bins={rule}"),
            "missed_bins_rtts=1000",
            "threshold_pct=100",
        ]));
        let mut ack = Ack { now_us: 1, rtt_us: rtt_us as i32, cwnd: 10, mss: 1_500, ..Ack::default() };
        flow.on_ack(&ack);
        for _ in 0..bins {
            ack.now_us += u64::from(flow.export("bin_us")[0]);
            ack.bytes_acked += 1_000;
            ack.bytes_sent += 1_000;
            flow.on_ack(&ack);
        }
        let before = flow.export("index")[0];
        ack.now_us += silence_us;
        let name = flow.algorithm().outcome_name(flow.on_ack(&ack).outcome);
        let after = flow.export("index")[0];
        match name {
            "bin_open" => prop_assert_eq!(after, before),
            "bins_missed" => prop_assert!(after == 0 || after == u32::MAX),
            _ => prop_assert!(after > before && after - before <= 32, "{} {} {}", name, before, after),
        }
        // Into a history that was started anew the next ACK goes as its first; else it finds a bin open.
        let next = flow.algorithm().outcome_name(flow.on_ack(&ack).outcome);
        prop_assert_eq!(next, if after == u32::MAX { "warming_up" } else { "bin_open" });
        Ok(())
    });
}

/// A flow's verdicts, norms and newest bins on these ACKs.
fn trace(parameters: &Parameters, acks: &[Ack], restart_at: usize) -> Vec<(Verdict, u32, u32)> {
    let mut flow = Flow::new(parameters.clone());
    let evaluated = acks.iter().enumerate().map(|(number, ack)| {
        if number == restart_at {
            flow.restart();
        }
        (flow.on_ack(ack), flow.export("norm_pct")[0], flow.export("index")[0])
    });
    evaluated.collect()
}

/// Neither when a flow runs nor what its connection had carried before changes a verdict, wherever a counter wraps.
#[test]
fn origins_of_time_and_counters_do_not_matter() {
    check_origins(16, plausible_acks, |random, acks, moved| {
        let parameters = Settings::random(random).parameters();
        prop_assert_eq!(trace(&parameters, acks, 90), trace(&parameters, moved, 90));
        Ok(())
    });
}
