//! A search finds what is known to be better, and finds it again.

use super::*;
use crate::population::Population;

/// Long paths with small queues: a flow that never exits slow start by itself loses most of a window.
const PATHS: &str = r#"
version = 1
name = "long"
about = "long paths with small queues"

[class.geo]
rate_bps = { from = 10_000_000, to = 12_000_000 }
rtt_us = 300_000
queue_bdp = { from = 0.5, to = 0.6 }
object_bytes = 3_000_000
"#;

fn search(jobs: usize) -> Tuning {
    let population = Population::parse(PATHS, "long.toml").unwrap();
    let algorithm = onramp_algorithm::find("fixed").unwrap();
    let whole = Varied::all(algorithm).remove(0);
    let search = Search {
        start: algorithm.parameters(),
        varied: vec![Varied { from: 20_000, to: 20_000_000, ..whole }],
        candidates: 27,
        paths: 12,
        seed: 1,
        loss_weight: 1.0,
        jobs: jobs.try_into().unwrap(),
    };
    tune(&search, "long", |number| population.path(1, number), |_, _, _| {}).unwrap()
}

#[test]
fn a_window_near_the_product_of_bandwidth_and_delay_is_found_where_the_start_overflows_the_queue() {
    let found = search(2);
    assert!(found.held_out.is_better(), "{found}");
    let window: u64 = found.best.strip_prefix("fixed:exit_window_bytes=").unwrap().parse().unwrap();
    assert!((200_000..1_200_000).contains(&window), "the paths hold 375 to 720 kB: {found}");
    assert_eq!(found.held_out.first_path, 12);
    let moved = &found.sensitivity[0].moved;
    assert!(moved.len() >= 2 && moved.iter().all(|moved| moved.cost > 0.995), "{moved:?}");
    assert_eq!(found.last.arms[0].arm, "fixed", "the start stays to the end");
}

#[test]
fn the_same_search_finds_the_same_with_any_number_of_jobs() {
    assert_eq!(search(1), search(3));
}

#[test]
fn only_what_is_surely_cheaper_is_better() {
    let of = |logarithms: &[f64]| HeldOut::new(5, logarithms).unwrap();
    assert!(of(&[-0.1, -0.12, -0.09]).is_better());
    assert!(!of(&[-0.5, 0.4, -0.3]).is_better());
    assert!(!of(&[-0.5]).is_better(), "one path proves nothing");
    let held = of(&[0.0, -0.02, 0.02, 0.001]);
    assert_eq!((held.better, held.worse), (0.25, 0.25));
}

#[test]
fn a_segment_retransmitted_costs_its_time_on_the_path() {
    assert_eq!(cost_seconds(2.0, 0, 12_000, 1.0), 2.0);
    assert_eq!(cost_seconds(2.0, 3, 12_000, 1.0), 5.0);
    assert_eq!(cost_seconds(2.0, 3, 12_000, 0.0), 2.0);
}
