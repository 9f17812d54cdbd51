// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Rates that vary, outages.

use super::*;
use crate::link::random::Random;
use crate::link::rate::build;
use crate::link::spec::RateStep;

/// 10 Mb/s without delay: 1250 bytes take 1 ms.
fn at(rate: Option<RateSpec>) -> DirectionSpec {
    DirectionSpec { rate, ..DirectionSpec::new(10_000_000, 0, Limit::Packets(1_000)) }
}

fn steps(steps: &[(u64, u64)], repeat_us: Option<u64>) -> Option<RateSpec> {
    let steps = steps.iter().map(|&(at_us, rate_bps)| RateStep { at_us, rate_bps }).collect();
    Some(RateSpec::Steps { steps, repeat_us })
}

/// When packets of 1250 bytes that arrive at these times are through, in microseconds.
fn through(spec: &DirectionSpec, arrivals_us: &[u64]) -> Vec<u64> {
    let mut link = direction(spec, 1);
    link.start(0);
    arrivals_us.iter().for_each(|at| link.arrive(at * 1_000, *at, 1_250).unwrap());
    drain(&mut link, u64::MAX / 2).iter().map(|delivery| delivery.due / 1_000).collect()
}

#[test]
fn a_packet_across_a_step_goes_partly_at_each_rate() {
    // Half at 10 Mb/s in 500 us, half at 20 Mb/s in 250 us; then all at 20 Mb/s, which holds.
    let spec = at(steps(&[(0, 10_000_000), (500, 20_000_000)], None));
    assert_eq!(through(&spec, &[0, 0, 9_000_000]), [750, 1_250, 9_000_500]);
}

#[test]
fn steps_start_over_at_their_end_also_after_a_long_pause() {
    let spec = at(steps(&[(0, 5_000_000), (4_000, 15_000_000)], Some(8_000)));
    // 2 ms each, until the step at 4 ms; 10000 bits at 15 Mb/s are 667 us.
    assert_eq!(through(&spec, &[0, 0, 0]), [2_000, 4_000, 4_666]);
    assert_eq!(through(&spec, &[8_000, 12_000, 8_000_000_000]), [10_000, 12_666, 8_000_002_000]);
    // Across the end: 15000 of 15000 bits fit before it, the rest of 20000 goes at 5 Mb/s.
    assert_eq!(through(&spec, &[7_800]), [9_400]);
}

#[test]
fn a_packet_waits_in_an_outage_and_goes_on_where_it_was() {
    let outages = vec![OutageSpec::Scheduled { first_us: 500, period_us: 10_000, duration_us: 3_000 }];
    let spec = DirectionSpec { outages, ..at(None) };
    assert_eq!(through(&spec, &[0, 5_000, 11_000]), [4_000, 6_000, 14_500]);
    // The same by a rate of 0.
    let spec = at(steps(&[(0, 10_000_000), (500, 0), (3_500, 10_000_000)], None));
    assert_eq!(through(&spec, &[0, 5_000]), [4_000, 6_000]);
}

#[test]
fn the_slowest_of_rate_and_outages_decides() {
    let outages = vec![
        OutageSpec::Scheduled { first_us: 0, period_us: 1_000_000, duration_us: 1_000 },
        OutageSpec::Scheduled { first_us: 500, period_us: 1_000_000, duration_us: 1_000 },
    ];
    let spec = DirectionSpec { outages, ..at(steps(&[(0, 1_000), (2_000, 10_000_000)], None)) };
    // 500 us at 1 kb/s, half a bit, from 1.5 ms on; the rest from 2 ms on takes 999.95 us.
    assert_eq!(through(&spec, &[0]), [2_999]);
}

fn random_rates() -> [RateSpec; 2] {
    let (every_us, min_bps, max_bps) = (10_000, 20_000_000, 35_000_000);
    [
        RateSpec::Redraw { every_us, min_bps, max_bps },
        RateSpec::Walk { every_us, min_bps, max_bps, max_step_bps: 2_000_000 },
    ]
}

#[test]
fn random_rates_stay_within_their_bounds_and_reach_them() {
    for spec in random_rates() {
        let mut rate = build(0, Some(&spec), Random::new(1, 0));
        let values: Vec<_> = (0..50_000).map(|number| rate.at(number * 10 * MS).bps).collect();
        let (low, high) = (values.iter().min().unwrap(), values.iter().max().unwrap());
        assert!(
            (20_000_000..20_100_000).contains(low) && (34_900_000..=35_000_000).contains(high),
            "{spec:?}"
        );
        let largest = values.windows(2).map(|pair| pair[0].abs_diff(pair[1])).max().unwrap();
        match spec {
            RateSpec::Walk { .. } => assert!((1_990_000..=2_000_000).contains(&largest), "{largest}"),
            _ => assert!(largest > 14_000_000, "{largest}"),
        }
    }
}

#[test]
fn a_rate_at_a_time_does_not_depend_on_the_questions_before() {
    for spec in random_rates() {
        let [mut often, mut seldom] = [(), ()].map(|()| build(0, Some(&spec), Random::new(3, 0)));
        for number in 0..99_999 {
            often.at(number * MS / 10);
        }
        assert_eq!(often.at(10 * SECOND), seldom.at(10 * SECOND));
    }
}

#[test]
fn random_outages_have_their_lengths() {
    let spec = OutageSpec::Random { mean_pause_us: 20_000, min_duration_us: 3_000, max_duration_us: 5_000 };
    let mut rate = outage::build(&spec, Random::new(1, 0));
    let mut now = 0;
    let (mut outages, mut total) = (0, 0);
    while outages < 1_000 {
        let stretch = rate.at(now);
        assert!(stretch.until > now);
        if stretch.bps == 0 {
            let length = stretch.until - now;
            assert!((3 * MS..=5 * MS).contains(&length), "{length}");
            outages += 1;
            total += length;
        } else {
            assert_eq!(stretch.bps, u64::MAX);
        }
        now = stretch.until;
    }
    assert!((3_900..4_100).contains(&(total / outages / 1_000)));
}
