//! The guard's arithmetic against floating point, its false alarms, and the flows that it takes to find harm.

mod common;

use common::random::{Random, seed_or};
use onramp_algorithm::guard::{
    GUARD_BYTES_MIN, GUARD_FLOWS_MAX, GUARD_FLOWS_MIN, GUARD_TAU_GOODPUT_BITS, GUARD_TAU_RETRANSMITS_BITS,
    GUARD_UNSEEN, Guard, GuardArm, GuardSums, first, goodput, guard_arm_index as arm, guard_metric as metric,
    log2, retransmits,
};

/// Flows of an experiment that is looked at after every one of them.
const FLOWS: u32 = 3_000;
const EXPERIMENTS: u32 = 1_000;
/// The margins of `--guard retransmit_ratio=2%,goodput=-10%,first_64kb=11.1%`, in 1/1024 of the metrics' units: 11.1 % more
/// time is as far as 10 % less goodput.
const RATIO_MARGIN: u32 = (65_536 * 1_024) / 50;
const GOODPUT_MARGIN: u32 = 159_387;
/// 10 % less, in doublings.
const TENTH: f64 = 0.152;

fn uniform(random: &mut Random) -> f64 {
    ((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

fn normal(random: &mut Random) -> f64 {
    (-2.0 * uniform(random).ln()).sqrt() * (std::f64::consts::TAU * uniform(random)).cos()
}

/// How a quantity of a flow is drawn.
type Draw = fn(&mut Random) -> f64;

/// Logarithms of goodput, in doublings: from what is well behaved to a flow in twenty that is 128 times slower.
const GOODPUTS: [(&str, Draw); 5] = [
    ("log-normal, a third of a doubling", |random| normal(random) / 3.0),
    ("log-normal, two doublings", |random| 2.0 * normal(random)),
    ("a long tail of slow flows", |random| 2.0 * uniform(random).ln()),
    ("a long tail of fast flows", |random| -2.0 * uniform(random).ln()),
    ("one in twenty 128 times slower", |random| {
        normal(random) / 3.0 - if random.once_in(20) { 7.0 } else { 0.0 }
    }),
];

/// Shares of bytes sent again: how many flows have any, and the most.
const RATIOS: [(&str, f64, f64); 3] = [
    ("half of the flows, up to 30 %", 0.5, 0.3),
    ("one in twenty, up to 20 %", 0.05, 0.2),
    ("one in a hundred, up to 50 %", 0.01, 0.5),
];

fn octaves(of: f64) -> u32 {
    ((20.0 + of) * 1_024.0).clamp(0.0, 65_535.0) as u32
}

fn of_bytes(ratio: f64) -> u32 {
    (ratio * 65_536.0).clamp(0.0, 65_535.0) as u32
}

fn guard(margins: [u32; 3], control_ppm: u32) -> Guard {
    Guard { margins, control_ppm, salt: 1, ..Guard::default() }
}

/// How many flows it took to trip; `None`: it did not. `draw` gets whether the flow is treated.
fn experiment(
    random: &mut Random,
    mut guard: Guard,
    draw: &impl Fn(&mut Random, bool) -> [u32; 3],
) -> Option<u32> {
    (1..=FLOWS).find(|_| {
        let arm = guard.arm_of(random.bits() as u32);
        let observed = draw(random, arm == arm::TREATED);
        guard.record(arm, observed, 1)
    })
}

/// The share of experiments that trip, and half of them within how many flows.
fn tripped(what: &str, guard: &Guard, draw: impl Fn(&mut Random, bool) -> [u32; 3]) -> (f64, u32) {
    let mut random = Random(seed_or(1));
    let mut flows: Vec<u32> =
        (0..EXPERIMENTS).filter_map(|_| experiment(&mut random, *guard, &draw)).collect();
    flows.sort_unstable();
    let share = flows.len() as f64 / f64::from(EXPERIMENTS);
    let median = flows.get(flows.len() / 2).copied().unwrap_or(0);
    println!(
        "{what}, control {} %: {:.1} % trip, half of them within {median} flows",
        guard.control_ppm / 10_000,
        share * 100.0
    );
    (share, median)
}

fn goodputs_tripped(control_ppm: u32, slower: f64) -> Vec<(&'static str, f64, u32)> {
    let guard = guard([0, GOODPUT_MARGIN, 0], control_ppm);
    GOODPUTS
        .iter()
        .map(|(name, draw)| {
            let what = format!("goodput less by {slower:.3} doublings, {name}");
            let (share, median) = tripped(&what, &guard, |random, treated| {
                [0, octaves(draw(random) - if treated { slower } else { 0.0 }), GUARD_UNSEEN]
            });
            (*name, share, median)
        })
        .collect()
}

/// `more`: of the mean of the treated; more of their flows have something sent again.
fn ratios_tripped(control_ppm: u32, more: f64) -> Vec<(&'static str, f64, u32)> {
    let guard = guard([RATIO_MARGIN, 0, 0], control_ppm);
    RATIOS
        .iter()
        .map(|(name, flows, most)| {
            let what = format!("{:.0} % more sent again, {name}", more * 100.0);
            let (share, median) = tripped(&what, &guard, |random, treated| {
                let flows = flows + if treated { more / (most / 2.0) } else { 0.0 };
                let some = uniform(random) < flows;
                [of_bytes(if some { uniform(random) * most } else { 0.0 }), 0, GUARD_UNSEEN]
            });
            (*name, share, median)
        })
        .collect()
}

/// Times to the first bytes, in jiffies: of rounds of 4 to 400 ms, some of which a loss makes three times longer, counted in jiffies
/// of 4 ms; a third of the flows sends less.
fn firsts_tripped(control_ppm: u32, slower: f64) -> (f64, u32) {
    let guard = guard([0, 0, GOODPUT_MARGIN], control_ppm);
    let what = format!("first 64 kB later by {slower:.3} doublings");
    tripped(&what, &guard, |random, treated| {
        if random.once_in(3) {
            return [GUARD_UNSEEN; 3];
        }
        let loss = if random.once_in(20) { 3.0 } else { 1.0 };
        let ms = 3.0
            * 4.0
            * (uniform(random) * 100f64.ln()).exp()
            * loss
            * if treated { slower.exp2() } else { 1.0 };
        [GUARD_UNSEEN, GUARD_UNSEEN, first(((ms / 4.0 + uniform(random)) as u32).max(1))]
    })
}

/// All three at once, of flows without a difference: the errors of the metrics add up.
fn all_tripped(control_ppm: u32) -> f64 {
    let guard = guard([1, 1, 1], control_ppm);
    let (share, _) = tripped("no difference in any, margins of nothing", &guard, |random, _| {
        let path = normal(random);
        let again = if random.once_in(4) { uniform(random) * 0.1 } else { 0.0 };
        let seen =
            [of_bytes(again), octaves(path + normal(random) / 3.0), octaves(-path + normal(random) / 3.0)];
        if random.once_in(4) { [GUARD_UNSEEN, GUARD_UNSEEN, seen[2]] } else { seen }
    });
    share
}

#[test]
fn three_metrics_together_give_fewer_than_one_false_alarm_in_a_hundred() {
    for control_ppm in [100_000, 500_000] {
        assert!(all_tripped(control_ppm) <= 0.01);
        assert!(firsts_tripped(control_ppm, 0.0).0 < 0.01);
        assert!(firsts_tripped(control_ppm, TENTH).0 < 0.01);
    }
}

#[test]
fn a_start_that_takes_twice_as_long_to_its_first_bytes_is_found() {
    // A third of the flows says nothing of it.
    for (control_ppm, least, most) in [(100_000, 0.95, 2_000), (500_000, 0.99, 1_000)] {
        let (share, median) = firsts_tripped(control_ppm, 1.0);
        assert!(share > least && median < most, "{share} {median}");
    }
}

#[test]
fn without_a_difference_fewer_than_one_experiment_in_a_hundred_trips() {
    for control_ppm in [100_000, 500_000] {
        for (name, share, _) in
            [goodputs_tripped(control_ppm, 0.0), ratios_tripped(control_ppm, 0.0)].concat()
        {
            assert!(share < 0.01, "{name}: {share}");
        }
    }
}

#[test]
fn a_difference_as_large_as_the_margin_trips_as_rarely_unless_rare_flows_decide_the_mean() {
    for control_ppm in [100_000, 500_000] {
        for (name, share, _) in
            [goodputs_tripped(control_ppm, TENTH), ratios_tripped(control_ppm, 0.02)].concat()
        {
            let rare = name.starts_with("one in twenty");
            assert!(share < if rare { 0.03 } else { 0.01 }, "{name}: {share}");
        }
    }
}

#[test]
fn half_the_goodput_or_six_percent_more_sent_again_is_found_in_99_of_100_experiments() {
    for (control_ppm, most) in [(100_000, 1_500), (500_000, 500)] {
        for (name, share, median) in
            [goodputs_tripped(control_ppm, 1.0), ratios_tripped(control_ppm, 0.06)].concat()
        {
            assert!(share > 0.99, "{name}: {share}");
            assert!(median < most, "{name}: {median}");
        }
    }
}

/// What the test says by its definition; how far the evidence is from what is asked for, in 1: nothing is missing.
fn model(observed: &[Vec<f64>; 2], harm_is_up: bool, margin: f64, tau: f64) -> f64 {
    let [treated, control] = observed.each_ref().map(|values| {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        // One unit's worth is what rounding hides.
        (mean, (variance + 1.0) / n)
    });
    let harm = if harm_is_up { treated.0 - control.0 } else { control.0 - treated.0 } - margin;
    let (variance, tau) = (treated.1 + control.1, tau * tau);
    let evidence = harm * harm * tau / (2.0 * variance * (variance + tau));
    let asked = 300f64.ln() + ((variance + tau) / variance).ln() / 2.0;
    if harm > 0.0 { evidence / asked } else { 0.0 }
}

#[test]
fn the_verdict_after_every_flow_is_that_of_floating_point() {
    let mut random = Random(seed_or(2));
    let (mut trips, mut close) = (0, 0);
    for round in 0..200 {
        let at = round % 3;
        let margins: [u32; 3] =
            std::array::from_fn(|one| if one == at { 1_024 * (1 + random.below(3_000) as u32) } else { 0 });
        let mut guard = guard(margins, 300_000);
        let tau = f64::from(
            1u32 << if at == metric::RETRANSMITS as usize {
                GUARD_TAU_RETRANSMITS_BITS
            } else {
                GUARD_TAU_GOODPUT_BITS
            },
        );
        let (middle, spread, harm) =
            (10_000.0 + random.below(40_000) as f64, random.below(4_000) as f64, random.below(4_000) as f64);
        let mut observed = [Vec::new(), Vec::new()];
        for _ in 0..1_500 {
            let arm = guard.arm_of(random.bits() as u32);
            let worse = if arm == arm::CONTROL { 0.0 } else { harm };
            let up = at != metric::GOODPUT as usize;
            let shift = if up { worse } else { -worse };
            let value = (middle + shift + spread * normal(&mut random)).clamp(0.0, 65_535.0) as u32;
            observed[arm as usize].push(f64::from(value));
            let found = guard.record(arm, [value; 3], 7);
            let enough = observed.iter().all(|values| values.len() >= GUARD_FLOWS_MIN as usize);
            let says = if enough { model(&observed, up, f64::from(margins[at]) / 1_024.0, tau) } else { 0.0 };
            if (says - 1.0).abs() < 0.01 {
                close += 1;
            } else {
                assert_eq!(found, says > 1.0, "round {round}: {says}, {guard:?}");
            }
            if found {
                assert_eq!((guard.tripped_by as usize, guard.tripped_ns), (at, 7));
                trips += 1;
                break;
            }
        }
    }
    println!("{trips} of 200 tripped, {close} verdicts too close to compare");
    assert!((50..150).contains(&trips), "{trips}");
}

#[test]
fn logarithms_are_those_of_floating_point_rounded_down() {
    let mut random = Random(seed_or(3));
    for shift in 0..64 {
        for number in [1 << shift, (1 << shift) | (random.bits() >> (63 - shift)), u64::MAX >> shift] {
            let exact = (number as f64).log2() * 1_024.0;
            let distance = exact - f64::from(log2(number));
            assert!((-0.01..1.02).contains(&distance), "{number}: {distance}");
        }
    }
    assert_eq!((log2(1), log2(2), log2(1 << 63)), (0, 1_024, 63 * 1_024));
}

#[test]
fn observations_are_bounded_and_mean_what_they_say() {
    assert_eq!(retransmits(0, 100_000), 0);
    assert_eq!(retransmits(2_000, 100_000), 1_310);
    assert_eq!((retransmits(7, 7), retransmits(8, 7), retransmits(0, 0)), (65_535, 65_535, 0));
    assert_eq!(retransmits(1 << 62, u64::MAX), 1 << 14);
    // Twice the bytes in the same time are a doubling; the same in half of the time, too.
    let one = goodput(u64::from(GUARD_BYTES_MIN), 40);
    assert_eq!(goodput(2 * u64::from(GUARD_BYTES_MIN), 40) - one, 1_024);
    assert_eq!(goodput(u64::from(GUARD_BYTES_MIN), 20) - one, 1_024);
    // No time at all is one jiffy.
    assert_eq!(goodput(1 << 20, 0), goodput(1 << 20, 1));
    assert_eq!((goodput(0, u32::MAX), goodput(u64::MAX, 1)), (0, 65_535));
    // Twice the time is a doubling.
    assert_eq!((first(0), first(1), first(80) - first(40)), (GUARD_UNSEEN, 0, 1_024));
    assert!(first(u32::MAX) < 65_536);
}

#[test]
fn the_share_of_the_control_is_the_stated_one_and_another_attachment_draws_anew() {
    const DRAWN: u32 = 100_000;
    let mut random = Random(seed_or(4));
    let hashes: Vec<u32> = (0..DRAWN).map(|_| random.bits() as u32).collect();
    for control_ppm in [10_000, 100_000, 500_000] {
        let share = f64::from(control_ppm) / 1e6;
        let arms = |salt| {
            let guard = Guard { salt, ..guard([1, 1, 0], control_ppm) };
            hashes.iter().map(move |hash| guard.arm_of(*hash) == arm::CONTROL)
        };
        // Salts as two attachments have them, a second apart.
        let (one, other) = (0x7654_3211, 0x7673_c691);
        for (is, expected) in [
            (arms(one).filter(|control| *control).count(), share),
            (arms(one).zip(arms(other)).filter(|both| both.0 && both.1).count(), share * share),
        ] {
            let deviation = (f64::from(DRAWN) * expected * (1.0 - expected)).sqrt();
            let distance = (is as f64 - f64::from(DRAWN) * expected).abs();
            assert!(distance < 6.0 * deviation, "{is} of {DRAWN} where {expected} is expected");
        }
    }
}

#[test]
fn nothing_is_said_before_each_arm_has_its_flows_nor_changed_after_a_trip() {
    let mut guard = guard([RATIO_MARGIN, GOODPUT_MARGIN, GOODPUT_MARGIN], 500_000);
    for _ in 0..10 * GUARD_FLOWS_MIN {
        assert!(!guard.record(arm::TREATED, [65_535, 0, 9_000], 1));
    }
    // Flows that say nothing are none.
    for _ in 0..10 * GUARD_FLOWS_MIN {
        assert!(!guard.record(arm::CONTROL, [GUARD_UNSEEN, GUARD_UNSEEN, 9_000], 1));
    }
    for flow in 1..=GUARD_FLOWS_MIN {
        assert_eq!(guard.record(arm::CONTROL, [0, 65_535, 9_000], 9), flow == GUARD_FLOWS_MIN);
    }
    assert_eq!((guard.tripped_by, guard.tripped_ns), (metric::RETRANSMITS, 9));
    let then = guard;
    assert!(guard.record(arm::TREATED, [0, 65_535, 0], 10));
    assert_eq!(guard, then);
}

#[test]
fn what_is_not_looked_at_does_not_trip() {
    let mut guard = guard([0, GOODPUT_MARGIN, 0], 500_000);
    for _ in 0..10 * GUARD_FLOWS_MIN {
        assert!(!guard.record(arm::TREATED, [65_535, 9_000, 65_535], 1));
        assert!(!guard.record(arm::CONTROL, [0, 9_000, 0], 1));
    }
}

#[test]
fn as_many_flows_as_are_counted_at_most_overflow_nothing() {
    // Half of all flows have the least, half the most: the largest variance there is.
    let flows = GUARD_FLOWS_MAX as u64 - 1;
    let sums = GuardSums { flows, sum: flows * 65_535 / 2, squares: flows * (65_535 * 65_535 / 4) };
    let arm = GuardArm { metrics: [sums; 3] };
    let mut guard = Guard { arms: [arm; 2], ..guard([1, 1, 1], 500_000) };
    assert!(!guard.record(arm::TREATED, [65_535, 0, 65_535], 1));
    let full = guard;
    assert_eq!(full.arms[0].metrics[0].flows, GUARD_FLOWS_MAX as u64);
    assert!(full.arms[0].metrics[0].squares > sums.squares);
    // It is full, and stays as it is.
    assert!(!guard.record(arm::TREATED, [65_535, 0, 65_535], 1));
    assert_eq!(guard, full);
    // All that can be between the means, beyond all doubt.
    let apart = |sum| GuardArm { metrics: [GuardSums { flows, sum, squares: 0 }; 3] };
    guard.arms = [apart(flows * 65_535), apart(0)];
    assert!(guard.record(arm::CONTROL, [0, 0, 0], 1));
}
