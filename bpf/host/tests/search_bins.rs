//! search, specification section 6: initialisation and bins (cases 1 to 7, 22, 29 and 30).

mod common;

use common::{Driver, MS, MSS, START, parameters};

/// Neqo.
#[test]
fn case_01_the_first_ack_sets_the_geometry_and_opens_bin_0() {
    let mut flow = Driver::new(&[]);
    assert_eq!(flow.at(START), "warming_up");
    assert_eq!((flow.read("bin_us"), flow.read("index")), (35_000, 0));
    assert_eq!(flow.flow.export("acked")[0], 7_000_000);
    assert_eq!(flow.flow.export("expected")[0], 7_500_000);
    assert_eq!(flow.at(START + 35 * MS), "bin_open");

    flow.ack.rtt_us = 200_000;
    assert_eq!(flow.at(START + 36 * MS), "warming_up");
    assert_eq!((flow.read("bin_us"), flow.read("index")), (35_000, 1));
}

/// The authors' 32-bit product breaks at 122 seconds.
#[test]
fn case_01_a_bin_of_any_rtt_is_its_share_of_it() {
    for (factor, rtt_us, bin_us) in
        [(350, 100_000_000, 35_000_000), (350, i32::MAX, 751_619_276), (1_000, i32::MAX, 2_147_483_647)]
    {
        let mut flow = Driver::new(&[&format!("window_factor_pct={factor}")]);
        flow.ack.rtt_us = rtt_us;
        flow.begin();
        assert_eq!(flow.read("bin_us"), bin_us);
    }
}

/// Ours clamps the bin to 1 us, as 4.0 and picoquic; neqo skips the ACK.
#[test]
fn case_02_an_rtt_near_zero_makes_bins_of_one_microsecond() {
    for rtt_us in 0..=2 {
        let mut flow = Driver::new(&[]);
        flow.ack.rtt_us = rtt_us;
        flow.at(START);
        assert_eq!(flow.read("bin_us"), 1);
        for step in 1..=100 {
            flow.ack.bytes_sent += MSS;
            flow.ack.bytes_acked += MSS;
            let outcome = flow.at(START + 2 * step);
            assert!(["warming_up", "below_threshold"].contains(&outcome), "{outcome}");
        }
        assert_eq!(flow.read("norm_pct"), 0);
    }
}

/// Neqo and 2.0: an ACK at the very end of a bin still belongs to it. (net-next, 3.1 and 4.0 advance.)
#[test]
fn case_03_an_ack_at_the_end_of_a_bin_does_not_close_it() {
    let mut flow = Driver::begun(&[]);
    flow.ack.bytes_acked += 3 * MSS;
    assert_eq!(flow.at(START + 35 * MS), "bin_open");
    assert_eq!(flow.read("index"), 0);
    assert_eq!(flow.at(START + 35 * MS + 1), "warming_up");
    assert_eq!(flow.read("index"), 1);
    assert_eq!(u64::from(flow.between("acked", 0, 1)), 3 * MSS);
    // The next bin ends 35 ms after the end of this one, not after the ACK that closed it.
    assert_eq!(flow.at(START + 70 * MS), "bin_open");
    assert_eq!(flow.at(START + 70 * MS + 1), "warming_up");
}

/// All but quicly: the bytes of the ACK that crosses the end are booked in the bin that it closes.
#[test]
fn case_04_a_bin_holds_all_up_to_the_ack_that_closes_it() {
    let mut flow = Driver::begun(&[]);
    for (at_ms, segments) in [(10, 1), (15, 1), (20, 1), (40, 1)] {
        flow.ack.bytes_sent += segments * MSS;
        flow.ack.bytes_acked += segments * MSS;
        flow.at(START + at_ms * MS);
        assert_eq!(flow.read("index"), u32::from(at_ms == 40));
    }
    assert_eq!(u64::from(flow.between("acked", 0, 1)), 4 * MSS);
    assert_eq!(u64::from(flow.between("expected", 0, 1)), 4 * MSS);
}

/// Neqo and all cumulative versions; 2.0 would book the whole into bin 1.
#[test]
fn case_05_a_skipped_bin_repeats_the_one_before() {
    let mut flow = Driver::begun(&[]);
    flow.ack.bytes_acked += 5 * MSS;
    flow.at(START + 70 * MS + 1);
    assert_eq!(flow.read("index"), 2);
    assert_eq!(flow.between("acked", 0, 1), 0);
    assert_eq!(u64::from(flow.between("acked", 1, 2)), 5 * MSS);
}

/// The authors scale their bins and must not change the norm by it. Ours has nothing to scale: no verdict and no norm
/// depends on how much the connection had carried before, across every width at which a counter could break.
#[test]
fn case_06_verdicts_do_not_depend_on_the_absolute_byte_counts() {
    let trace = |base: u64| {
        let mut flow = Driver::new(&[]);
        flow.ack.bytes_acked = base;
        flow.ack.bytes_sent = base.wrapping_add(50_000);
        flow.begin();
        let mut seen = Vec::new();
        let mut bytes = 20_000;
        for bin in 0..40 {
            bytes += if bin < 15 { bytes / 4 } else { 0 };
            let acked = if bin < 18 { bytes } else { bytes * 2 / 3 };
            flow.ack.bytes_sent = flow.ack.bytes_sent.wrapping_add(bytes);
            flow.ack.bytes_acked = flow.ack.bytes_acked.wrapping_add(acked);
            let verdict = flow.bin(0, 0);
            seen.push((verdict, flow.read("norm_pct")));
        }
        assert!(seen.iter().any(|(verdict, _)| flow.name(verdict) == "exit"));
        seen
    };
    let reference = trace(0);
    for power in [8, 15, 16, 24, 31, 32, 33, 40, 48, 63] {
        for below in [0, 1, 200_000, 2_000_000] {
            assert_eq!(trace((1_u64 << power).wrapping_sub(below)), reference, "2^{power} - {below}");
        }
    }
}

/// Neqo's `p > W`: a check has a predecessor for its oldest bin, so nothing from before the history enters it. The
/// authors' code leaves here with a norm of 71 or 99.
#[test]
fn case_07_a_clean_ramp_after_a_restart_in_mid_connection_goes_on() {
    for form in ["form=sent", "form=delivered"] {
        for carried in [1_000_000, 50_000_000] {
            let mut flow = Driver::new(&[form]);
            flow.ack.bytes_acked = carried;
            flow.ack.bytes_sent = carried + 40 * MSS;
            flow.begin();
            // Doubling in 20/7 bins is growth by 1.275 in each; sent leads acknowledged by one RTT.
            let (mut sent, mut acked) = (20_000.0_f64, 10_000.0_f64);
            for _ in 0..40 {
                let outcome = flow.bin_outcome(sent as u64, acked as u64);
                assert!(["warming_up", "below_threshold"].contains(&outcome), "{outcome}");
                (sent, acked) = (sent * 1.275, acked * 1.275);
            }
            assert!(flow.read("norm_max_pct") <= 1, "{form}: {}", flow.read("norm_max_pct"));
        }
    }
}

/// All Linux versions. The authors also skip the first second of a CUBIC epoch, in which samples still carry the
/// recovery before it; here slow start begins with a history of its own, so there is nothing to skip.
#[test]
fn case_22_an_ack_without_a_usable_sample_changes_nothing() {
    for begun in [false, true] {
        for rtt_us in [-1, i32::MIN] {
            let mut flow = if begun { Driver::begun(&[]) } else { Driver::new(&[]) };
            let exports: Vec<_> = flow.flow.algorithm().exports().collect();
            let shown = |flow: &Driver| -> Vec<_> {
                exports.iter().map(|export| flow.flow.export(export.name)).collect()
            };
            let before = shown(&flow);
            flow.ack.rtt_us = rtt_us;
            flow.ack.bytes_acked += MSS;
            assert_eq!(flow.at(START + 40 * MS), "no_rtt_sample");
            assert_eq!(shown(&flow), before);
            // Neither has it moved the end of the bin.
            flow.ack.rtt_us = 100_000;
            assert_eq!(flow.at(START + 40 * MS), "warming_up");
            assert_eq!(flow.read("index"), u32::from(begun));
        }
    }
}

/// The authors compare 32-bit microseconds, which wrap after 71.6 minutes.
#[test]
fn case_29_crossing_2_to_the_32_microseconds_changes_no_verdict() {
    let trace = |start_us: u64| {
        let mut flow = Driver::new(&[]);
        flow.ack.now_us = start_us;
        flow.begin();
        (0..60)
            .map(|bin| {
                let verdict = flow.bin(30_000, if bin < 30 { 30_000 } else { 10_000 });
                (verdict, flow.read("norm_pct"), flow.read("index"))
            })
            .collect::<Vec<_>>()
    };
    let reference = trace(START);
    for before_ms in [0, 1, 34, 35, 36, 400, 900, 1_000, 2_000] {
        assert_eq!(trace((1 << 32) - before_ms * MS), reference, "{before_ms} ms before the wrap");
    }
}

/// The authors share memory between two modes, so a switch in mid-flow would read one as the other. Ours latches what
/// gives the bins their meaning, form and length, until slow start begins anew; the rest is felt at once.
#[test]
fn case_30_a_change_of_parameters_in_mid_flow_reinterprets_nothing() {
    let mut flow = Driver::begun(&["form=sent"]);
    // A constant rate, a third of it lost on the way: a norm of 33 in the sent form, of 50 in the delivered form.
    let feed = |flow: &mut Driver| {
        let verdict = flow.bin(30_000, 20_000);
        flow.name(&verdict)
    };
    flow.flow.tune(parameters(&["form=sent", "threshold_pct=100"]));
    flow.bins_until(20, 30_000, 20_000);
    assert_eq!(flow.read("norm_pct"), 33);
    flow.flow.tune(parameters(&["form=delivered", "window_factor_pct=1000", "threshold_pct=100"]));
    for _ in 0..20 {
        assert_eq!(feed(&mut flow), "below_threshold");
        assert_eq!((flow.read("norm_pct"), flow.read("bin_us")), (33, 35_000));
    }
    // The threshold 0 means what the latched form's source says: 26, not 35.
    flow.flow.tune(parameters(&["form=delivered", "threshold_pct=34"]));
    assert_eq!(feed(&mut flow), "below_threshold");
    flow.flow.tune(parameters(&["form=delivered"]));
    assert_eq!(feed(&mut flow), "exit");

    flow.flow.tune(parameters(&["form=delivered", "window_factor_pct=1000", "threshold_pct=100"]));
    flow.flow.restart();
    flow.begin();
    assert_eq!(flow.read("bin_us"), 100_000);
    flow.bins_until(20, 30_000, 20_000);
    assert_eq!(flow.read("norm_pct"), 50);
}
