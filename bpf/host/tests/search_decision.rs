//! search, specification section 6: the decision (cases 13 to 21).

mod common;

use common::{Driver, MS, parameters};

/// Bytes per bin of a ramp that doubles in one RTT of 20/7 bins.
fn doubling(bin: i32) -> u64 {
    (1e6 * 2_f64.powf(f64::from(bin - 40) * 0.35)) as u64
}

/// Neqo.
#[test]
fn case_13_ten_further_doublings_never_leave() {
    for form in ["form=sent", "form=delivered"] {
        let mut flow = Driver::begun(&[form]);
        for bin in 1..45 {
            // What is acknowledged now was sent 20/7 bins ago; half as much.
            let verdict = flow.bin(2 * doubling(bin), doubling(bin));
            assert!(["warming_up", "below_threshold"].contains(&flow.name(&verdict)));
        }
        assert!(flow.read("norm_max_pct") <= 1);
    }
}

/// Neqo's rounds: once per RTT a single ACK for what was sent in the RTT before, and twice as much as it acknowledges
/// is sent. A round of which a quarter arrives shows one round later, when what it should have brought is looked back
/// at.
#[test]
fn case_14_the_second_round_with_a_quarter_acknowledged_leaves_with_the_window_unchanged() {
    for rounds in [8, 9, 10, 12] {
        let mut flow = Driver::new(&[]);
        let mut window = 10_000;
        flow.ack.bytes_sent = flow.ack.bytes_acked + window;
        flow.begin();
        let mut round = |flow: &mut Driver, part: u64| {
            window /= part;
            flow.ack.bytes_acked += window;
            let verdict = flow.verdict_at(flow.ack.now_us + 100 * MS);
            window *= 2;
            flow.ack.bytes_sent += window;
            verdict
        };
        for _ in 0..rounds {
            let verdict = round(&mut flow, 1);
            assert!(["warming_up", "below_threshold"].contains(&flow.name(&verdict)));
        }
        let first = round(&mut flow, 4);
        assert_eq!((flow.name(&first), flow.read("norm_pct")), ("below_threshold", 0));
        let second = round(&mut flow, 4);
        assert_eq!(flow.name(&second), "exit");
        assert_eq!((second.cwnd, second.ssthresh), (0, flow.ack.cwnd));
        assert!((39..=40).contains(&flow.read("norm_pct")), "{}", flow.read("norm_pct"));
    }
}

/// Neqo.
#[test]
fn case_15_the_largest_norm_that_did_not_leave_is_kept() {
    let mut flow = Driver::begun(&[]);
    flow.steady_until(12, 10_000);
    for _ in 0..10 {
        assert_eq!(flow.bin_outcome(10_000, 10_000), "below_threshold");
        assert_eq!(flow.read("norm_pct"), 0);
    }
    assert_eq!(flow.bin_outcome(10_000, 2_500), "below_threshold");
    assert_eq!((flow.read("norm_pct"), flow.read("norm_max_pct")), (7, 7));
    for _ in 0..10 {
        flow.bin(10_000, 10_000);
    }
    assert_eq!((flow.read("norm_pct"), flow.read("norm_max_pct")), (0, 7));
}

/// Neqo counts it; the authors skip the check.
#[test]
fn case_16_nothing_sent_for_a_window_is_not_evaluated() {
    for form in ["form=sent", "form=delivered"] {
        let mut flow = Driver::begun(&[form, "threshold_pct=100"]);
        flow.steady_until(20, 10_000);
        let norm = flow.read("norm_pct");
        let outcomes: Vec<_> = (0..20).map(|_| flow.bin_outcome(0, 0)).collect();
        // k = 2, f = 85: the last bytes leave the window 13 bins after they were sent.
        let silent = outcomes.iter().position(|outcome| *outcome == "nothing_sent").unwrap();
        assert_eq!(silent, 12, "{form}");
        assert!(outcomes[silent..].iter().all(|outcome| *outcome == "nothing_sent"));
        assert!(flow.read("norm_pct") >= norm);
    }
}

/// All: more delivered than expected is no exit, and no wrap of an unsigned difference.
#[test]
fn case_17_more_delivered_than_expected_goes_on() {
    for form in ["form=sent", "form=delivered"] {
        let mut flow = Driver::begun(&[form, "threshold_pct=1"]);
        let mut bytes = 10;
        for _ in 0..25 {
            bytes = bytes * 3 / 2 + 1;
            let outcome = flow.bin_outcome(bytes / 9, 4 * bytes);
            assert!(["warming_up", "below_threshold"].contains(&outcome), "{form} {outcome}");
        }
        assert_eq!((flow.read("index"), flow.read("norm_pct")), (25, 0));
    }
}

/// A norm exactly at the threshold leaves: Linux, picoquic, neqo. (quicly needs more.)
#[test]
fn case_18_exactly_at_the_threshold_leaves() {
    for (set, at, outcome) in [
        (&["form=sent"][..], 25, "below_threshold"),
        (&["form=sent"], 26, "exit"),
        (&["form=sent", "threshold_pct=35"], 34, "below_threshold"),
        (&["form=sent", "threshold_pct=35"], 35, "exit"),
        (&["form=sent", "threshold_pct=100"], 99, "below_threshold"),
        (&["form=sent", "threshold_pct=100"], 100, "exit"),
        (&["form=sent", "threshold_pct=1"], 0, "below_threshold"),
        (&["form=sent", "threshold_pct=1"], 1, "exit"),
    ] {
        let mut flow = Driver::begun(set);
        flow.bins_until(12, 10_000, 10_000 - 100 * at);
        assert_eq!(flow.bin_outcome(10_000, 10_000 - 100 * at), outcome, "{set:?} {at}");
        assert_eq!(u64::from(flow.read("norm_pct")), at);
    }
    // Delivered form: P = 10 bins of 20000, D so that (2P - D) / 2P is 34.99 and 35.
    for (last_bin, norm, outcome) in [(80_001, 34, "below_threshold"), (80_000, 35, "exit")] {
        let mut flow = Driver::begun(&["form=delivered", "interpolate=off"]);
        flow.steady_until(12, 20_000);
        let verdict = flow.bin(0, last_bin);
        assert_eq!((flow.read("norm_pct"), flow.name(&verdict)), (norm, outcome));
    }
}

/// Ours: with `confirm_bins` the norm has to stay at the threshold for so many checks in a row. What is not a check
/// neither counts nor interrupts; a check below the threshold, or a new beginning, counts from nothing.
#[test]
fn case_18_the_threshold_may_have_to_be_confirmed() {
    for confirm in [1, 2, 3, 10] {
        let mut flow = Driver::begun(&[&format!("confirm_bins={confirm}"), "interpolate=off"]);
        let falls_behind = |flow: &mut Driver, checks: u32| {
            flow.steady_until(20, 10_000);
            for _ in 1..checks {
                assert_eq!(flow.bin_outcome(10_000, 0), "unconfirmed", "{confirm}");
            }
        };
        flow.flow.tune(parameters(&[
            &format!("confirm_bins={confirm}"),
            "interpolate=off",
            "threshold_pct=1",
        ]));
        falls_behind(&mut flow, confirm);
        flow.ack.rtt_us = 10_000_000;
        assert_eq!(flow.bin_outcome(10_000, 0), "look_back_too_long");
        flow.ack.rtt_us = 100_000;
        let newest = flow.read("index");
        if confirm > 1 {
            // Back to nothing: far more delivered than sent.
            assert_eq!(flow.bin_outcome(10_000, 1_000_000), "below_threshold");
            flow.bins_until(newest + 11, 10_000, 10_000);
            for _ in 1..confirm {
                assert_eq!(flow.bin_outcome(10_000, 0), "unconfirmed", "{confirm}");
            }
        }
        assert_eq!(flow.bin_outcome(10_000, 0), "exit", "{confirm}");
        flow.flow.restart();
        flow.begin();
        falls_behind(&mut flow, confirm);
        assert_eq!(flow.bin_outcome(10_000, 0), "exit", "{confirm}");
    }
}

/// Bytes delivered until `now`, when the rate in each RTT is one of `rates` and the last goes on for ever.
fn piecewise(rates: &[f64], now_rtts: f64) -> f64 {
    let whole = (now_rtts.floor() as usize).min(rates.len() - 1);
    rates[..whole].iter().sum::<f64>() + rates[whole] * (now_rtts - whole as f64)
}

/// Feeds a flow whose cumulative deliveries are `delivered` (of the time in RTTs) bin by bin; what is sent is what will
/// have been delivered twice over one RTT later, as in slow start. Returns the norm at each bin.
fn norms(flow: &mut Driver, bins: u32, bin_rtts: f64, delivered: impl Fn(f64) -> f64) -> Vec<u32> {
    let (acked, sent) = (flow.ack.bytes_acked, flow.ack.bytes_sent);
    (1..=bins)
        .map(|bin| {
            let total = delivered(f64::from(bin) * bin_rtts) * 1e6;
            flow.ack.bytes_acked = acked + total as u64;
            flow.ack.bytes_sent = sent + (2.0 * total) as u64;
            flow.bin(0, 0);
            flow.read("norm_pct")
        })
        .collect()
}

/// Draft: deliveries 1, 2, 4, 8, 16, 16 and a window of four RTTs: D = 44, P = 30, (60 - 44) / 60.
#[test]
fn case_19_the_drafts_example_a_plateau_and_a_doubling() {
    for form in ["form=sent", "form=delivered"] {
        let set = [form, "threshold_pct=100", "window_factor_pct=400"];
        let example = [1.0, 2.0, 4.0, 8.0, 16.0, 16.0];
        let at = |rates: &[f64], rtts: f64| {
            let norms = norms(&mut Driver::begun(&set), 35, 0.4, |now| piecewise(rates, now));
            norms[(rtts / 0.4).round() as usize - 1]
        };
        assert!((25..=27).contains(&at(&example, 6.0)), "{form} {}", at(&example, 6.0));
        assert_eq!(at(&example, 14.0), 50, "{form}: long plateau");
        // The rate steps at a whole RTT, in the middle of the bin that is interpolated: a norm of up to 5.
        let doubling: Vec<f64> = (0..12).map(|round| 2_f64.powi(round)).collect();
        assert!(at(&doubling, 6.0) <= 5 && at(&doubling, 10.0) <= 5, "{form}: doubling");
    }
}

/// The closed form of the norm so many RTTs after the rate stopped doubling, at a fixed RTT.
#[test]
fn case_20_the_norm_after_saturation_follows_the_closed_form() {
    let table = [
        (0.0, 0.0),
        (0.5, 0.052),
        (1.0, 0.168),
        (1.5, 0.267),
        (2.0, 0.330),
        (2.5, 0.376),
        (3.0, 0.416),
        (3.5, 0.457),
        (4.0, 0.489),
        (4.5, 0.5),
    ];
    for form in ["form=sent", "form=delivered"] {
        for (after, norm) in table {
            // Saturation such that a bin ends exactly so long after it.
            let saturation = 40.0 * 0.35 - after;
            let delivered = |now: f64| {
                let flat = (now - saturation).max(0.0);
                (2_f64.powf(now.min(saturation) - saturation)) / std::f64::consts::LN_2 + flat
            };
            let measured = norms(&mut Driver::begun(&[form, "threshold_pct=100"]), 40, 0.35, delivered)[39];
            let off = f64::from(measured) - 100.0 * norm;
            assert!((-1.5..=1.5).contains(&off), "{form} +{after} RTT: {measured}, closed form {norm}");
        }
    }
}

/// A LEO hand-over: the RTT falls for one sample, on the very ACK that closes a bin, while the rate still doubles.
#[test]
fn case_21_a_single_low_sample_on_a_ramp_does_not_leave() {
    for form in ["form=sent", "form=delivered"] {
        for look_back in ["look_back=latest", "look_back=smoothed"] {
            for dip_pct in 1..100 {
                for dipping in 13..30 {
                    let mut flow = Driver::begun(&[form, look_back]);
                    flow.ack.smoothed_rtt_us = 100_000;
                    for bin in 1..30 {
                        let low = bin == dipping;
                        flow.ack.rtt_us = if low { 1_000 * dip_pct } else { 100_000 };
                        flow.ack.smoothed_rtt_us =
                            100_000 - if low { 125 * (100 - dip_pct) as u32 } else { 0 };
                        let outcome = flow.bin_outcome(2 * doubling(bin), doubling(bin));
                        assert_ne!(outcome, "exit", "{form} {look_back} {dip_pct} % at bin {dipping}");
                    }
                }
            }
        }
    }
}

/// What `look_back=min` means on such a path: the minimum keeps the low sample, so every later look-back is too short
/// and a sample of half the RTT leaves the ramp. It is for paths whose base RTT does not change.
#[test]
fn case_21_a_minimum_below_the_path_exits_early() {
    let outcomes = |min_rtt_us: u32| {
        let mut flow = Driver::begun(&["look_back=min"]);
        flow.ack.min_rtt_us = min_rtt_us;
        (1..30).map(|bin| flow.bin_outcome(2 * doubling(bin), doubling(bin))).collect::<Vec<_>>()
    };
    assert!(!outcomes(60_000).contains(&"exit"));
    assert!(outcomes(50_000).contains(&"exit"));
}
