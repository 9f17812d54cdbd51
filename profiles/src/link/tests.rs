// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Descriptions: every range, every key.

use super::*;

fn spec() -> DirectionSpec {
    DirectionSpec::new(150_000_000, 300_000, Limit::Bytes(36_000_000))
}

/// What is wrong with a direction that has this TOML next to the common part.
fn error(text: &str) -> String {
    let common = "rate_bps = 10_000_000\ndelay_us = 10_000\nqueue_packets = 10\n";
    match toml::from_str::<DirectionSpec>(&format!("{common}{text}")) {
        Ok(spec) => {
            spec.validate("link.forward").map_or_else(|error| error.to_string(), |()| "nothing".into())
        }
        Err(error) => error.to_string(),
    }
}

fn range(error: &str) -> &str {
    error.strip_prefix("link.forward.").unwrap_or(error)
}

#[test]
fn every_kind_can_be_written() {
    for text in [
        "aqm = { kind = \"codel\", target_us = 5_000, interval_us = 100_000 }",
        "rate = { kind = \"steps\", steps = [{ at_us = 0, rate_bps = 10_000_000 }] }",
        "rate = { kind = \"redraw\", every_us = 1_000_000, min_bps = 5_000_000, max_bps = 15_000_000 }",
        "rate = { kind = \"walk\", every_us = 1_000, min_bps = 5_000_000, max_bps = 15_000_000, max_step_bps = 10 }",
        "schedule = { kind = \"bandwidth-on-demand\", request_every_us = 273_000, grant_every_us = 819_000, propagation_us = 750_000, factor = 1.0, frame_slots = 48 }",
        "schedule = { kind = \"aggregate\", min_gap_us = 0, max_gap_us = 0, max_packets = 64, max_bytes = 65_535 }",
        "loss = { kind = \"random\", probability = 0.5 }",
        "loss = { kind = \"gilbert-elliott\", to_bad = 0.1, to_good = 0.5, good_loss = 0.0, bad_loss = 1.0 }",
        "cross = { kind = \"constant\", rate_bps = 1_000, packet_bytes = 40 }",
        "cross = { kind = \"poisson\", rate_bps = 1_000, packet_bytes = 1_500 }",
        "handover = { period_us = 15_000_000, max_extra_us = 0, outage_us = 0 }",
        "outages = [{ kind = \"scheduled\", first_us = 0, period_us = 1_000, duration_us = 999 }]",
        "outages = [{ kind = \"random\", mean_pause_us = 1_000, min_duration_us = 1, max_duration_us = 1 }]",
        "jitter = [{ kind = \"steps\", steps = [{ at_us = 0, extra_us = 0 }], repeat_us = 1 }]",
        "jitter = [{ kind = \"retransmission\", probability = 0.1, delay_us = 8_000, max_retries = 1 }]",
    ] {
        assert_eq!(error(text), "nothing", "{text}");
        let extra =
            text.replacen("kind =", "wrong = 1, kind =", 1).replacen("{ period", "{ wrong = 1, period", 1);
        assert!(error(&extra).contains("`wrong`"), "{extra}");
    }
    assert!(error("schedule = { kind = \"wifi\" }").contains("`wifi`"));
}

#[test]
fn values_out_of_range_are_named_with_their_key() {
    for (text, expected) in [
        ("aqm = { kind = \"codel\", target_us = 99, interval_us = 100_000 }", "aqm.target_us = 99"),
        (
            "schedule = { kind = \"aggregate\", min_gap_us = 2, max_gap_us = 1, max_packets = 1, max_bytes = 1_500 }",
            "schedule.min_gap_us = 2 is out of range: expected 0 to 1",
        ),
        (
            "schedule = { kind = \"aggregate\", min_gap_us = 0, max_gap_us = 1, max_packets = 0, max_bytes = 1_500 }",
            "schedule.max_packets = 0",
        ),
        (
            "schedule = { kind = \"bandwidth-on-demand\", request_every_us = 1_000, grant_every_us = 1_000, propagation_us = 0, factor = nan, frame_slots = 48 }",
            "schedule.factor = NaN",
        ),
        (
            "schedule = { kind = \"bandwidth-on-demand\", request_every_us = 999, grant_every_us = 1_000, propagation_us = 0, factor = 1.0, frame_slots = 48 }",
            "schedule.request_every_us = 999",
        ),
        (
            "loss = { kind = \"random\", probability = 1.1 }",
            "loss.probability = 1.1 is out of range: expected 0 to 1",
        ),
        (
            "loss = { kind = \"gilbert-elliott\", to_bad = 0.1, to_good = 0.0, good_loss = 0.0, bad_loss = 1.0 }",
            "loss.to_good = 0",
        ),
        ("cross = { kind = \"poisson\", rate_bps = 1_000, packet_bytes = 39 }", "cross.packet_bytes = 39"),
        (
            "handover = { period_us = 15_000, max_extra_us = 0, outage_us = 15_000 }",
            "handover.outage_us = 15000 is out of range: expected 0 to 14999",
        ),
        (
            "outages = [{ kind = \"scheduled\", first_us = 0, period_us = 1_000, duration_us = 1_000 }]",
            "outages[0].duration_us = 1000",
        ),
        (
            "outages = [{ kind = \"random\", mean_pause_us = 1_000, min_duration_us = 3, max_duration_us = 2 }]",
            "outages[0].min_duration_us = 3",
        ),
        ("jitter = [{ kind = \"steps\", steps = [] }]", "jitter[0].steps = none"),
        (
            "jitter = [{ kind = \"steps\", steps = [{ at_us = 0, extra_us = 0 }], repeat_us = 0 }]",
            "jitter[0].repeat_us = 0",
        ),
        (
            "jitter = [{ kind = \"retransmission\", probability = 0.1, delay_us = 8_000, max_retries = 0 }]",
            "jitter[0].max_retries = 0",
        ),
    ] {
        let error = error(text);
        assert!(range(&error).starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn steps_are_in_order_and_end_with_a_rate() {
    let steps = |steps: &[(u64, u64)], repeat_us| {
        let steps = steps.iter().map(|&(at_us, rate_bps)| RateStep { at_us, rate_bps }).collect();
        let rate = Some(RateSpec::Steps { steps, repeat_us });
        let spec = DirectionSpec { rate, ..DirectionSpec::new(10_000_000, 0, Limit::Packets(10)) };
        spec.validate("link").map_or_else(|error| error.to_string(), |()| "nothing".into())
    };
    let m10 = 10_000_000;
    assert_eq!(
        steps(&[(0, m10), (5, 0)], Some(1_000)),
        "link.rate_bps = 10000000 is out of range: expected 49500 to 50500, the mean of link.rate"
    );
    assert_eq!(steps(&[(0, m10), (995, 0)], Some(1_000)), "nothing");
    assert_eq!(steps(&[(0, m10), (5, 5_000_000)], None), "nothing");
    assert!(steps(&[(0, 20_000_000), (5, 11_000_000)], None).contains("11000000 to 20000000"));
    assert!(steps(&[(1, m10)], None).starts_with("link.rate.steps[0].at_us = 1"));
    assert!(steps(&[(0, m10), (5, m10), (5, m10)], None).starts_with("link.rate.steps[2].at_us = 5"));
    assert!(steps(&[(0, m10), (5, m10)], Some(5)).starts_with("link.rate.repeat_us = 5"));
    assert!(steps(&[(0, m10), (5, 0)], None).starts_with("link.rate.steps = silence"));
    assert!(steps(&[(0, 0)], Some(5)).starts_with("link.rate.steps = silence"));
    assert!(steps(&[(0, m10), (5, 999)], None).starts_with("link.rate.steps[1].rate_bps = 999"));
}

#[test]
fn means_and_what_is_constant() {
    let rate = RateSpec::Redraw { every_us: 1_000, min_bps: 200_000_000, max_bps: 350_000_000 };
    assert_eq!(rate.mean_bps(), Some(275_000_000));
    let loss = LossSpec::GilbertElliott { to_bad: 0.1, to_good: 0.3, good_loss: 0.0, bad_loss: 0.4 };
    assert!((loss.share() - 0.1).abs() < 1e-12);
    let forward = DirectionSpec {
        rate: Some(rate),
        loss: Some(loss),
        handover: Some(HandoverSpec { period_us: 15_000_000, max_extra_us: 9, outage_us: 9 }),
        cross: Some(CrossSpec::Poisson { rate_bps: 1_000, packet_bytes: 40 }),
        ..DirectionSpec::new(275_000_000, 10_000, Limit::Bytes(2_000_000))
    };
    let plain = DirectionSpec::new(275_000_000, 10_000, Limit::Bytes(2_000_000));
    let jitter = vec![JitterSpec::Uniform { max_us: 40_000 }];
    let jittery = DirectionSpec { jitter, ..spec() };
    let link = LinkSpec { back: jittery, forward };
    assert_eq!(link.constant(), LinkSpec { forward: plain, back: spec() });
    assert_eq!(link.bdp_bytes(), 275_000_000 / 8 * 310 / 1_000);
}
