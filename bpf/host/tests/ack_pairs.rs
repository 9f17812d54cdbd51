//! Pairs of ACKs and rounds: what is a pair, when a round ends, what a round shows. Read through best.

mod common;

use common::pairs::{ACKS, BYTES, Rounds};
use onramp_algorithm::ack_flag::APP_LIMITED;

/// The rate of the tests, bytes per second.
const RATE: u64 = 10_000_000;
/// Time in which it carries the bytes of one ACK.
const GAP: u64 = BYTES * 1_000_000 / RATE;

/// A flow whose first round has begun, and every rate is good enough.
fn begun() -> Rounds {
    Rounds::begun("best", &["min_rate_bytes_per_s=0"])
}

/// What a round of these ACKs leads to, and its rate in kB/s.
fn measured(acks: &[(u64, u64)]) -> (&'static str, u32) {
    let mut rounds = begun();
    let verdict = rounds.round_of(acks);
    (rounds.name(&verdict), rounds.read("estimate"))
}

fn even() -> Vec<(u64, u64)> {
    vec![(GAP, BYTES); ACKS as usize]
}

#[test]
fn evenly_spaced_acks_show_their_rate_and_the_rounds_bound_it() {
    assert_eq!(measured(&even()), ("ssthresh_set", 10_000));
}

/// The time between two trains is the window's, however often it comes; with the trains' own pairs it would halve the
/// rate of two ACKs to a round.
#[test]
fn the_pause_between_two_rounds_is_no_pair() {
    // 20 ms of RTT, two ACKs 200 us apart in every round, a window that doubles from ten segments.
    let mut rounds = Rounds::new("best", &["min_rate_bytes_per_s=0"]);
    rounds.rtt_us = 20_000;
    rounds.ack.min_rtt_us = 20_000;
    rounds.ack.cwnd = 10;
    rounds.ack.bytes_outstanding = 10_000;
    rounds.begin();
    while rounds.ack.cwnd < 100_000 {
        let half = u64::from(rounds.ack.cwnd) * 500;
        rounds.next(200, half);
        rounds.ack.bytes_outstanding = 4 * half as u32;
        rounds.ack.cwnd *= 2;
        let verdict = rounds.next(20_000, half + 1);
        assert_ne!(rounds.name(&verdict), "exit", "at a window of {}", rounds.ack.cwnd);
    }
}

/// A return link of 10 Mb/s lets 44 ACKs out 42 us apart, 5 ms after the batch before.
#[test]
fn batches_are_distinguished_by_silence() {
    let mut acks = vec![];
    for _ in 0..20 {
        acks.push((5_000, 3_000));
        acks.extend([(42, 3_000); 43]);
    }
    let bytes: u64 = acks.iter().map(|(_, bytes)| bytes).sum();
    let mut rounds = Rounds::new("best", &["min_rate_bytes_per_s=0"]);
    rounds.ack.bytes_outstanding = bytes as u32;
    rounds.begin();
    rounds.round_of(&acks);
    let rate = u64::from(rounds.read("estimate")) * 1_000;
    let expected = 44 * 3_000 * 1_000_000 / (5_000 + 43 * 42);
    assert!(rate.abs_diff(expected) * 100 < expected, "{rate}, expected {expected}");
}

#[test]
fn a_stall_and_what_it_squeezed_together_count_for_nothing() {
    let mut acks = even();
    acks[9] = (3 * GAP, BYTES);
    acks[10] = (0, BYTES);
    acks[11] = (0, BYTES);
    let (_, rate) = measured(&acks);
    assert!(rate.abs_diff(10_000) < 100, "{rate}");
}

#[test]
fn a_round_is_not_slower_than_all_its_bytes_over_all_its_time() {
    // Pairs of little are slow, and most of the bytes come at once.
    let mut acks = vec![(1_000, 12_500); 7];
    acks.extend([(1_000, 100_000), (1_000, 12_500)]);
    let (_, rate) = measured(&acks);
    let whole: u64 = acks.iter().map(|(_, bytes)| bytes).sum::<u64>() * 1_000 / 9_000;
    assert!(u64::from(rate) >= whole * 8 / 10, "{rate} of {whole} kB/s");
}

#[test]
fn too_few_acks_and_long_silences_show_nothing() {
    assert_eq!(measured(&[(GAP, BYTES); 3]).0, "coarse");
    let mut acks = even();
    acks[9] = (5 * GAP, BYTES);
    assert_eq!(measured(&acks).0, "coarse");
    // A receiver may wait for a second segment at the end.
    let mut acks = even();
    acks[19] = (5 * GAP, BYTES);
    assert_eq!(measured(&acks).0, "ssthresh_set");
    // Most of the round came in one batch.
    let mut acks = vec![(GAP, BYTES); 6];
    acks.push((0, 14 * BYTES));
    assert_eq!(measured(&acks).0, "coarse");
}

/// A silence is measured modulo 2^32 us. The pair that has it keeps its time, and is one of those that are left out.
#[test]
fn a_silence_of_2_to_the_32_us_and_a_little_counts_as_the_little() {
    let mut rounds = begun();
    for number in 0..ACKS {
        rounds.ack.rtt_us += (GAP / 2) as i32;
        rounds.next(if number == 9 { (1 << 32) + GAP } else { GAP }, BYTES);
    }
    rounds.ack.rtt_us = rounds.rtt_us;
    let verdict = rounds.next(50_000, BYTES);
    assert_eq!((rounds.name(&verdict), rounds.read("estimate")), ("ssthresh_set", 10_000));
}

/// The return link of a satellite spaces the first ACKs of a round, until it is granted what it needs.
#[test]
fn a_round_in_which_the_way_back_changes_its_pace_shows_nothing() {
    let mut acks = vec![(10 * GAP, BYTES); 9];
    acks.extend([(GAP, BYTES); 11]);
    assert_eq!(measured(&acks).0, "coarse");
}

/// RTT and time rise together only if the round was sent faster than it was acknowledged.
#[test]
fn a_round_that_was_sent_no_faster_is_a_lower_bound() {
    let mut rounds = begun();
    let step = |rounds: &mut Rounds, rises: u64| {
        for _ in 0..ACKS {
            rounds.ack.rtt_us += rises as i32;
            rounds.next(GAP, BYTES);
        }
        rounds.ack.rtt_us = rounds.rtt_us;
        let verdict = rounds.next(50_000, BYTES);
        rounds.name(&verdict)
    };
    assert_eq!(step(&mut rounds, 0), "sender_limited");
    assert_eq!(step(&mut rounds, GAP / 5 - 1), "sender_limited");
    assert_eq!(step(&mut rounds, GAP / 5), "ssthresh_set");
    // Without a sample nothing says that it was.
    rounds.rtt_us = -1;
    step(&mut rounds, GAP);
    assert_eq!(step(&mut rounds, 0), "ssthresh_set");
}

/// After a pause the sender is paced, and the last segment of the window is an odd one, for which the receiver waits 40 ms:
/// what the RTT rises by then is not the bottleneck's queue.
#[test]
fn a_receiver_that_waits_for_a_second_segment_does_not_settle_what_the_sender_was_limited_to() {
    let last_of = |acked: u32| {
        let mut rounds = begun();
        for _ in 0..ACKS - 1 {
            rounds.ack.acked = 10;
            rounds.next(GAP, BYTES);
        }
        rounds.ack.acked = acked;
        rounds.ack.rtt_us += 40_000;
        rounds.next(40_000, BYTES);
        rounds.ack.rtt_us = rounds.rtt_us;
        let verdict = rounds.next(50_000, BYTES);
        rounds.name(&verdict)
    };
    assert_eq!(last_of(1), "sender_limited");
    assert_eq!(last_of(10), "ssthresh_set", "two or more are acknowledged at once");
}

/// Two ACKs are a pair here.
#[test]
fn eight_dense_pairs_shows_the_rate_before_the_round_is_over_and_its_end_can_void_it() {
    let mut rounds = begun();
    let part = |rounds: &mut Rounds, gap: u64, count: u64| {
        let names: Vec<_> = (0..count)
            .map(|_| {
                rounds.ack.rtt_us += (gap / 2) as i32;
                let verdict = rounds.next(gap, BYTES);
                rounds.name(&verdict)
            })
            .collect();
        names
    };
    let names = part(&mut rounds, GAP, 16);
    assert_eq!(names.iter().position(|name| *name == "ssthresh_set"), Some(15), "{names:?}");
    assert_eq!(rounds.read("estimate"), 10_000);
    assert_eq!(rounds.read("rounds"), 0);
    part(&mut rounds, 3 * GAP, 4);
    rounds.ack.rtt_us = rounds.rtt_us;
    let verdict = rounds.next(50_000, BYTES);
    assert_eq!((rounds.name(&verdict), rounds.read("target")), ("unsettled", 0));
}

#[test]
fn a_round_with_a_silence_waits_for_its_end() {
    let mut rounds = begun();
    for number in 0..ACKS {
        let gap = if number == 3 { 2 * GAP } else { GAP };
        rounds.ack.rtt_us += (gap / 2) as i32;
        let verdict = rounds.next(gap, BYTES);
        // Two of 21 are more than a twelfth.
        assert_eq!(rounds.name(&verdict), "round_open", "ACK {number}");
    }
}

#[test]
fn a_dense_round_counts_alone_and_others_only_together() {
    // One silence of a tenth of the round.
    let sparse = |gap: u64| {
        let mut acks = vec![(gap, BYTES); ACKS as usize];
        acks[9] = (2 * gap, BYTES);
        acks
    };
    let mut rounds = begun();
    for (gap, name) in [
        (GAP, "unsettled"),
        (GAP, "ssthresh_set"),
        (2 * GAP, "unsettled"),
        (2 * GAP + GAP / 4, "ssthresh_set"),
    ] {
        let verdict = rounds.round_of(&sparse(gap));
        assert_eq!(rounds.name(&verdict), name, "{gap}");
    }
    assert_eq!(measured(&even()).0, "ssthresh_set");
}

#[test]
fn an_unsettled_round_voids_the_estimate_before() {
    let mut rounds = begun();
    rounds.round(RATE);
    assert_ne!(rounds.read("target"), 0);
    let mut acks = vec![(3 * GAP, BYTES); ACKS as usize];
    acks[9] = (6 * GAP, BYTES);
    let verdict = rounds.round_of(&acks);
    assert_eq!((rounds.name(&verdict), rounds.read("target")), ("unsettled", 0));
}

#[test]
fn acks_of_nothing_new_are_no_part_of_a_pair() {
    let mut rounds = begun();
    for _ in 0..ACKS {
        rounds.ack.rtt_us += (GAP / 2) as i32;
        rounds.next(GAP / 2, 0);
        rounds.next(GAP / 2, BYTES);
    }
    rounds.next(50_000, BYTES);
    assert_eq!(rounds.read("estimate"), 10_000);
}

#[test]
fn what_follows_an_empty_pipe_or_an_application_limit_is_no_pair() {
    for limited in [false, true] {
        let mut rounds = begun();
        for number in 0..ACKS {
            // Every fourth ACK comes after a wait for the application.
            let idle = number % 4 == 3;
            rounds.ack.flags = if idle && limited { APP_LIMITED } else { 0 };
            rounds.ack.bytes_outstanding = if idle && !limited { 0 } else { 1 };
            rounds.ack.rtt_us += (GAP / 2) as i32;
            rounds.next(if number % 4 == 0 { 2 * GAP } else { GAP }, BYTES);
        }
        rounds.ack.flags = 0;
        rounds.ack.bytes_outstanding = 1;
        rounds.next(50_000, BYTES);
        assert_eq!(rounds.read("estimate"), 10_000, "{limited}");
    }
}

#[test]
fn a_round_ends_with_the_first_byte_sent_since_it_began() {
    let mut rounds = Rounds::new("best", &["min_rate_bytes_per_s=0"]);
    rounds.ack.bytes_outstanding = 10_000;
    rounds.begin();
    for (bytes, ended) in [(5_000, 0), (5_000, 0), (1, 1), (10_000, 1), (1, 2)] {
        rounds.next(100, bytes);
        assert_eq!(rounds.read("rounds"), ended);
    }
}

#[test]
fn pairs_can_be_read_while_their_round_is_in_progress() {
    let mut rounds = begun();
    for _ in 0..3 {
        rounds.next(GAP, 2 * BYTES);
    }
    let pairs = rounds.flow.export("pairs");
    assert_eq!(pairs[..4], [50_000, 50_000, 50_000, u32::MAX], "picoseconds per byte");
}
