// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Delays that vary.

use super::*;
use crate::link::spec::{DelayStep, Row};

fn dues(spec: &DirectionSpec, arrivals: &[Nanos]) -> Vec<Nanos> {
    let mut link = direction(spec, 1);
    link.start(0);
    arrivals.iter().for_each(|at| link.arrive(*at, *at, 1_250).unwrap());
    let out = drain(&mut link, u64::MAX / 2);
    assert!(out.is_sorted_by_key(|delivery| delivery.packet));
    out.iter().map(|delivery| delivery.due).collect()
}

/// 1 Gb/s and 10 ms: 1250 bytes take 10 us.
fn short() -> DirectionSpec {
    DirectionSpec::new(1_000_000_000, 10_000, Limit::Packets(1_000))
}

const SENT: Nanos = 10_000;

#[test]
fn steps_of_the_delay_hold_and_start_over() {
    let steps = [(0, 5_000), (100_000, 0)].map(|(at_us, extra_us)| DelayStep { at_us, extra_us }).to_vec();
    let with = |repeat_us| DirectionSpec {
        jitter: vec![JitterSpec::Steps { steps: steps.clone(), repeat_us }],
        ..short()
    };
    let arrivals = [0, 150 * MS, 250 * MS];
    assert_eq!(dues(&with(None), &arrivals), [15 * MS + SENT, 160 * MS + SENT, 260 * MS + SENT]);
    assert_eq!(dues(&with(Some(200_000)), &arrivals), [15 * MS + SENT, 160 * MS + SENT, 265 * MS + SENT]);
    // After a fall nothing overtakes: the second leaves 1 ms later and would be there 4 ms earlier.
    assert_eq!(dues(&with(None), &[99 * MS, 100 * MS]), [114 * MS + SENT, 114 * MS + SENT]);
}

#[test]
fn a_trace_has_its_own_delay() {
    let row = |at_us, delay_us| Row { line: 1, at_us, rate_bps: 1_000_000_000, delay_us };
    let trace = |rows| DirectionSpec {
        rate: Some(RateSpec::Trace { file: "x".into(), repeat_us: None, rows }),
        ..short()
    };
    let spec = trace(vec![row(0, Some(30_000)), row(50_000, Some(10_000))]);
    assert_eq!(dues(&spec, &[0, 60 * MS]), [30 * MS + SENT, 70 * MS + SENT]);
    let spec = trace(vec![row(0, None), row(50_000, None)]);
    assert_eq!(dues(&spec, &[0, 60 * MS]), [10 * MS + SENT, 70 * MS + SENT]);
    let error = spec_error(&trace(vec![row(0, Some(9_999))]));
    assert!(error.contains("line 1, delay_us = 9999"), "{error}");
    assert!(spec_error(&trace(Vec::new())).contains("next to a profile that is read from a file"));
}

#[test]
fn both_directions_change_satellite_at_once_and_alike() {
    let handover = |max_extra_us| Some(HandoverSpec { period_us: 15_000_000, max_extra_us, outage_us: 0 });
    let extras = |spec: &DirectionSpec, seed| {
        let mut link = direction(spec, seed);
        link.start(0);
        let sent = (0..1_000).map(|number| {
            let now = number * 100 * MS;
            link.arrive(now, number, 1_250).unwrap();
            drain(&mut link, now + 99 * MS)[0].due - now - 10 * MS - SENT
        });
        sent.collect::<Vec<_>>()
    };
    let forward = extras(&DirectionSpec { handover: handover(40_000), ..short() }, 6);
    let back = extras(&DirectionSpec { handover: handover(20_000), ..short() }, 7);
    assert!(forward.iter().zip(&back).all(|(forward, back)| forward.abs_diff(2 * back) <= 1));
    let changes: Vec<_> = (1..1_000).filter(|at| forward[*at] != forward[at - 1]).collect();
    // 100 s have six or seven, 15 s apart.
    assert!(changes.len() == 6 || changes.len() == 7);
    assert!(changes.windows(2).all(|pair| pair[1] - pair[0] == 150));
    let other = extras(&DirectionSpec { handover: handover(40_000), ..short() }, 8);
    assert_ne!(forward, other);
}

#[test]
fn a_retransmission_holds_up_those_behind() {
    let jitter =
        |probability| vec![JitterSpec::Retransmission { probability, delay_us: 8_000, max_retries: 3 }];
    let never = DirectionSpec { jitter: jitter(0.0), ..short() };
    assert_eq!(dues(&never, &[0, MS]), [10 * MS + SENT, 11 * MS + SENT]);
    let always = DirectionSpec { jitter: jitter(1.0), ..short() };
    assert_eq!(dues(&always, &[0, MS]), [34 * MS + SENT, 35 * MS + SENT]);
    let sometimes = DirectionSpec { jitter: jitter(0.1), ..short() };
    let arrivals: Vec<_> = (0..900).map(|number| number * MS).collect();
    let dues = dues(&sometimes, &arrivals);
    assert!(dues.is_sorted());
    let together = dues.windows(2).filter(|pair| pair[0] == pair[1]).count();
    // A delayed packet is joined by the seven that follow in its 8 ms, unless one of them is delayed again.
    assert!((200..700).contains(&together), "{together}");
}
