//! Pairs of ACKs and rounds: what is a pair, when a round ends, what the histogram shows. Read through best.

mod common;

use common::pairs::{Rounds, bounds};
use onramp_algorithm::ack_flag::APP_LIMITED;

/// A flow whose first round has begun, and every rate is good enough.
fn begun() -> Rounds {
    Rounds::begun("best", &["min_rate=0"])
}

/// Whether the histogram holds these rates and no other.
#[track_caller]
fn assert_rates(rounds: &Rounds, rates: &[u64]) {
    assert_eq!(rounds.read("samples") as usize, rates.len());
    let mut rest = rounds.histogram();
    assert_eq!(rest.len(), 24 * 18);
    assert_eq!(rest.iter().sum::<u32>() as usize, rates.len());
    for rate in rates {
        let octave = rate.ilog2();
        let step = ((rate - (1 << octave)) * 18) >> octave;
        let bin = (octave as usize - 10) * 18 + step as usize;
        assert!(rest[bin] > 0, "{rate} is not in bin {bin}");
        rest[bin] -= 1;
    }
}

#[test]
fn consecutive_acks_are_pairs() {
    let mut rounds = begun();
    assert_rates(&rounds, &[]);
    rounds.pair(100, 1_500);
    rounds.pair(50, 3_000);
    rounds.pair(1_000_000, 2_000);
    assert_rates(&rounds, &[15_000_000, 60_000_000, 2_000]);
}

#[test]
fn acks_of_one_microsecond_are_one() {
    let mut rounds = begun();
    rounds.pair(0, 1_500);
    assert_rates(&rounds, &[]);
    rounds.pair(100, 1_500);
    rounds.pair(0, 1_500);
    rounds.pair(0, 1_500);
    assert_rates(&rounds, &[30_000_000]);
    rounds.pair(100, 1_500);
    assert_rates(&rounds, &[30_000_000, 45_000_000]);
}

#[test]
fn acks_of_nothing_new_are_no_part_of_a_pair() {
    let mut rounds = begun();
    rounds.pair(100, 1_500);
    rounds.pair(100, 0);
    rounds.pair(100, 0);
    assert_rates(&rounds, &[15_000_000]);
    rounds.pair(100, 4_500);
    assert_rates(&rounds, &[15_000_000, 15_000_000]);
}

#[test]
fn what_follows_an_empty_pipe_is_no_pair() {
    let mut rounds = begun();
    for nothing_new in [false, true] {
        let before = rounds.read("samples");
        rounds.ack.now_us += 100;
        rounds.ack.bytes_acked += if nothing_new { 0 } else { 1_500 };
        rounds.ack.bytes_outstanding = 0;
        assert_eq!(rounds.acknowledge(), "round_open");
        let measured = before + u32::from(!nothing_new);
        assert_eq!(rounds.read("samples"), measured, "the ACK that empties the pipe ends a pair");
        rounds.pair(5_000_000, 1_500);
        assert_eq!(rounds.read("samples"), measured);
        rounds.pair(100, 1_500);
        assert_eq!(rounds.read("samples"), measured + 1);
    }
}

#[test]
fn an_application_limit_makes_no_pair_before_or_after() {
    let mut rounds = begun();
    rounds.pair(100, 1_500);
    rounds.ack.flags = APP_LIMITED;
    for us in [100, 0, 100] {
        let verdict = rounds.pair(us, 1_500);
        assert_eq!(rounds.name(&verdict), "app_limited");
    }
    rounds.ack.flags = 0;
    rounds.pair(100, 1_500);
    assert_rates(&rounds, &[15_000_000]);
    rounds.pair(100, 3_000);
    assert_rates(&rounds, &[15_000_000, 30_000_000]);
}

#[test]
fn a_round_ends_with_the_first_byte_sent_since_it_began() {
    let mut rounds = Rounds::new("best", &["min_rate=0"]);
    rounds.window = 10_000;
    rounds.begin();
    for (bytes, outcome, ended) in
        [(5_000, "round_open", 0), (5_000, "round_open", 0), (1, "aimed", 1), (10_000, "round_open", 1)]
    {
        let verdict = rounds.pair(100, bytes);
        assert_eq!(rounds.name(&verdict), outcome);
        assert_eq!(rounds.read("rounds"), ended);
    }
}

#[test]
fn a_round_can_be_read_until_the_next_ack_which_begins_a_clean_one() {
    let mut rounds = begun();
    let (_, exact) = rounds.round(&[15_000_000, 20_000_000, 90_000_000]);
    assert_rates(&rounds, &exact);
    assert_eq!(rounds.read("round_samples"), 3);
    rounds.pair(100, 1_500);
    assert_rates(&rounds, &[15_000_000]);
    assert_eq!(rounds.read("round_samples"), 3, "of the round that ended last");
}

#[test]
fn a_round_of_no_pairs_has_no_median() {
    let mut rounds = begun();
    rounds.ack.flags = APP_LIMITED;
    let verdict = rounds.pair(100, 1 << 32);
    assert_eq!(rounds.name(&verdict), "few_pairs");
    assert_eq!((rounds.read("estimate"), rounds.read("round_samples"), rounds.read("rounds")), (0, 0, 1));
}

#[test]
fn a_new_slow_start_forgets_pairs_and_rounds() {
    let mut rounds = begun();
    rounds.round(&[15_000_000]);
    rounds.pair(100, 1_500);
    rounds.flow.restart();
    assert_rates(&rounds, &[]);
    assert_eq!(rounds.read("rounds"), 0);
    // The first ACK is no end of a pair, however soon it comes.
    rounds.ack.now_us += 1;
    rounds.ack.bytes_acked += 1_500;
    rounds.begin();
    assert_rates(&rounds, &[]);
}

#[test]
fn bytes_and_times_beyond_32_bits_are_one_pair() {
    let mut rounds = begun();
    let verdict = rounds.pair(1 << 39, 1 << 40);
    // Two megabytes a second, for a tenth of a second, in segments of a thousand bytes.
    let (low, high) = bounds(200_000);
    assert!((low..=high).contains(&(u64::from(verdict.ssthresh) * 1_000)), "{verdict:?}");
    let verdict = rounds.pair(1, 1 << 62);
    assert!(verdict.ssthresh > 1_000_000, "the highest rate that is told: {verdict:?}");
}

#[test]
fn memory_per_flow_is_bounded() {
    for name in ["best", "threshold"] {
        let size = onramp_algorithm::find(name).unwrap().state_size();
        println!("{name}: {size} bytes");
        assert!(size < 1_000, "{name}: {size}");
    }
}
