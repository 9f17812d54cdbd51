//! ramp, case by case: what a line shows, what follows of it, and when slow start ends.

mod common;

use common::pairs::{ACKS, BYTES, Rounds};
use onramp_algorithm::ack_flag::{APP_LIMITED, PACED};
use onramp_algorithm::{Verdict, growth};

/// Segments acknowledged that are an eighth of what is outstanding.
const FEW: u32 = (ACKS * BYTES / 8_000) as u32;
/// The rate of the tests, bytes per second: 1 ms for each ACK; at 100 ms a path of 1000 segments and what a gap adds.
const RATE: u64 = 10_000_000;
const TARGET: u32 = 1_010 * 110 / 100;

/// A flow in a window of so many segments that has seen a round at this rate.
fn measured(rate: u64, cwnd: u32) -> (Rounds, Verdict) {
    let mut rounds = Rounds::begun("ramp", &[]);
    rounds.ack.cwnd = cwnd;
    let verdict = rounds.round(rate);
    (rounds, verdict)
}

#[test]
fn a_round_shows_the_rate_and_doubling_goes_on_unspaced_below_an_eighth() {
    let (mut rounds, verdict) = measured(RATE, TARGET / 8);
    assert_eq!((rounds.read("estimate"), rounds.read("target")), ((RATE / 1_000) as u32, TARGET));
    assert_eq!((rounds.name(&verdict), verdict.pacing_rate, verdict.growth), ("blind", 0, growth::BASE));
    rounds.ack.cwnd += 1;
    let verdict = rounds.next(1_000, BYTES);
    assert_eq!((rounds.name(&verdict), verdict.pacing_rate), ("guided", RATE * 120 / 100));
}

#[test]
fn guided_data_leave_at_120_percent_of_the_estimate_until_the_target() {
    let (mut rounds, _) = measured(RATE, TARGET / 4);
    for cwnd in [TARGET / 4, TARGET.div_ceil(2), TARGET - 1] {
        rounds.ack.cwnd = cwnd;
        let verdict = rounds.next(1_000, BYTES);
        assert_eq!((rounds.name(&verdict), verdict.pacing_rate), ("guided", RATE * 120 / 100), "{cwnd}");
        assert_eq!((verdict.growth, verdict.ssthresh), (growth::BASE, 0));
    }
}

#[test]
fn slow_start_ends_at_the_target() {
    for exit_pct in [50, 110, 400] {
        let mut rounds = Rounds::begun("ramp", &[&format!("exit_pct={exit_pct}")]);
        let target = 1_010 * exit_pct / 100;
        rounds.ack.cwnd = target / 2;
        rounds.round(RATE);
        rounds.ack.cwnd = target - 1;
        assert_eq!(rounds.next(1_000, BYTES).ssthresh, 0);
        rounds.ack.cwnd = target;
        let verdict = rounds.next(1_000, BYTES);
        assert_eq!((rounds.name(&verdict), verdict.ssthresh, verdict.cwnd), ("exit", target, 0));
    }
}

/// What left as slowly as it arrived says no more than how fast the sender was. Doubling leaves in half of the time, guided
/// data in five sixths.
#[test]
fn the_senders_own_rate_is_none_of_the_path() {
    for (cwnd, sent_pct, shown) in [(100, 80, true), (100, 81, false), (200, 90, true), (200, 91, false)] {
        // The first round shows the rate, and guides the larger window; the second has half of it.
        let (mut rounds, _) = measured(RATE, cwnd);
        for number in 1..=ACKS {
            rounds.ack.rtt_us = 100_000 + (number * 2_000 * (100 - sent_pct) / 100) as i32;
            rounds.next(2_000, BYTES);
        }
        rounds.ack.rtt_us = 100_000;
        rounds.next(50_000, BYTES);
        let rate = if shown { RATE / 2 } else { RATE };
        assert_eq!(u64::from(rounds.read("estimate")), rate / 1_000, "{cwnd} {sent_pct}");
    }
}

/// One ACK of a line comes late, and counts as if it had come like the others. A line shorter than eight such gaps shows no rate.
#[test]
fn the_longest_gap_counts_like_the_others() {
    for (gap_us, shown) in [(1_000, RATE), (2_000, RATE * 99 / 100), (4_000, 0)] {
        let mut rounds = Rounds::begun("ramp", &[]);
        let mut acks = [(1_000, BYTES); ACKS as usize];
        acks[4].0 = gap_us;
        rounds.round_of(&acks);
        let estimate = u64::from(rounds.read("estimate")) * 1_000;
        assert!((shown..=shown * 101 / 100).contains(&estimate), "{gap_us}: {estimate}");
    }
}

#[test]
fn slow_start_ends_after_two_rounds_that_began_with_a_queue() {
    // A quarter of the RTT, and the clock's noise. The first round has the first ACK of all in it.
    for (late_us, outcomes) in [(25_100, ["blind"; 3]), (25_101, ["blind", "queued", "exit"])] {
        let mut rounds = Rounds::begun("ramp", &[]);
        for outcome in outcomes {
            // Too few bytes for a line that shows anything.
            rounds.rtt_us = 100_000 + late_us;
            let mut verdict = Verdict::default();
            for _ in 0..ACKS {
                rounds.ack.rtt_us = rounds.rtt_us;
                verdict = rounds.next(6, BYTES);
            }
            assert_eq!(rounds.name(&verdict), outcome, "{late_us}");
            rounds.next(6, BYTES);
        }
    }
}

#[test]
fn one_round_with_a_queue_only_slows_down() {
    let mut rounds = after_a_round();
    for (rtt_us, risen) in [(140_000, 1), (100_000, 0)] {
        after_a_pause(&mut rounds, 20_000, rtt_us);
        assert_eq!(rounds.read("risen"), risen, "{rtt_us}");
    }
}

/// A whole round whose ACKs come a millisecond apart, this long after the one before and with this RTT.
fn after_a_pause(rounds: &mut Rounds, pause_us: u64, rtt_us: i32) {
    rounds.ack.rtt_us = rtt_us;
    rounds.next(pause_us, BYTES);
    rest(rounds);
}

/// The ACKs of a round after the one that begins it.
fn rest(rounds: &mut Rounds) {
    for _ in 0..ACKS {
        rounds.next(1_000, BYTES);
    }
}

/// A flow at the end of its first round, which had an RTT of 100 ms. Its ACKs are said to acknowledge so much that a queue may rise
/// by any time between two of them.
fn after_a_round() -> Rounds {
    let mut rounds = Rounds::begun("ramp", &[]);
    rounds.ack.acked = FEW + 1;
    rest(&mut rounds);
    rounds
}

/// A receiver that acknowledges 45 segments as one leaves few samples of a round: four do, of half a round of 64 segments.
#[test]
fn a_round_of_few_acks_for_many_segments_each_is_evaluated_by_half_of_it() {
    for (segments, acks, judged_after) in
        [(64, 8, Some(4)), (63, 8, None), (900, 20, Some(10)), (64, 7, Some(4))]
    {
        let mut rounds = Rounds::begun("ramp", &[]);
        rounds.ack.rtt_us = 140_000;
        rounds.ack.bytes_outstanding = segments * rounds.ack.mss;
        // The ACK that begins the round is its first sample.
        rounds.next(1_000, ACKS * BYTES + 1);
        let bytes = u64::from(rounds.ack.bytes_outstanding) / acks;
        let evaluated = (1..acks).find(|_| {
            rounds.next(1_000, bytes);
            rounds.read("risen") == 1
        });
        assert_eq!(evaluated, judged_after, "{segments} segments, {acks} ACKs");
    }
}

/// A pause, less what the segment after it has waited, of an eighth of the path's RTT: the queue was empty, so what is above
/// the minimum RTT is the path's. Where a link stands still, or ACKs come in bursts, the segment has waited for longer.
#[test]
fn an_rtt_that_rises_after_a_pause_is_the_paths() {
    for (rtt_us, pause_us, base, risen) in [
        (150_000, 62_499, 0, 1),
        (150_000, 62_500, 150_000, 0),
        (300_000, 212_499, 0, 1),
        (300_000, 212_500, 200_000, 0),
    ] {
        let mut rounds = after_a_round();
        after_a_pause(&mut rounds, pause_us, rtt_us);
        assert_eq!(
            (rounds.read("base_us"), rounds.read("risen")),
            (base, risen),
            "{rtt_us} after {pause_us}"
        );
    }
    // From there on a queue is what is above that, by a quarter of it and the clock's noise.
    for (rtt_us, risen) in [(150_000 + 37_600, 0), (150_000 + 37_601, 1)] {
        let mut rounds = after_a_round();
        after_a_pause(&mut rounds, 100_000, 150_000);
        after_a_pause(&mut rounds, 20_000, rtt_us);
        assert_eq!((rounds.read("base_us"), rounds.read("risen")), (150_000, risen), "{rtt_us}");
    }
}

/// Where an eighth of the window was served meanwhile at most, a queue cannot have raised the RTT by a quarter from one ACK to the
/// next: the path has become longer, though no pause says so. If that lasts.
#[test]
fn an_rtt_that_rises_by_a_step_and_stays_there_is_the_paths() {
    let risen_us = 125_100;
    for (acked, pause_us, rtt_us, then_us, longer) in [
        (FEW, 25_000, risen_us + 1, risen_us + 1, true),
        (FEW + 1, 25_000, risen_us + 1, risen_us + 1, false),
        (FEW, 24_999, risen_us + 1, risen_us + 1, false),
        (FEW, 50_000, 180_000, 150_000, true),
        (FEW, 50_000, 180_000, risen_us, false),
    ] {
        let mut rounds = after_a_round();
        rounds.ack.acked = acked;
        // The last ACK of a round that was evaluated long before.
        rounds.ack.rtt_us = rtt_us;
        rounds.next(pause_us, BYTES);
        rounds.ack.rtt_us = then_us;
        rounds.next(1_000, BYTES);
        rounds.ack.rtt_us = then_us.max(risen_us + 1);
        rest(&mut rounds);
        let base_us = if longer { then_us as u32 } else { 0 };
        assert_eq!(
            (rounds.read("base_us"), rounds.read("risen")),
            (base_us, u32::from(!longer && then_us > risen_us)),
            "{acked} {pause_us} {rtt_us} {then_us}"
        );
    }
}

#[test]
fn the_rtt_of_the_path_is_at_most_twice_the_minimum_and_falls_again() {
    let mut rounds = after_a_round();
    for (rtt_us, base) in [(199_999, 199_999), (200_001, 200_000), (900_000, 200_000), (100_000, 100_000)] {
        after_a_pause(&mut rounds, 1_000_000, rtt_us);
        assert_eq!((rounds.read("base_us"), rounds.read("risen")), (base, 0), "{rtt_us}");
    }
}

#[test]
fn the_target_is_what_the_path_holds_at_its_rtt_now() {
    let (mut rounds, _) = measured(RATE, TARGET / 4);
    assert_eq!(rounds.read("target"), TARGET);
    rest(&mut rounds);
    after_a_pause(&mut rounds, 140_000, 150_000);
    assert_eq!((rounds.read("base_us"), rounds.read("target")), (150_000, 1_510 * 110 / 100));
}

/// The way back holds ACKs for 12 ms: by arrival the round is a staircase, by the receiver's clock it is even.
#[test]
fn the_receivers_clock_sees_through_batches() {
    for (clock, expected) in [(true, RATE / 1_000), (false, 0)] {
        let mut rounds = Rounds::begun("ramp", &[]);
        rounds.ack.receiver_clock = u32::from(clock) * 77;
        let begin_us = rounds.ack.now_us;
        for round in 0..3_u64 {
            for number in 1..=ACKS {
                let received_us = (round * (ACKS + 51) + number) * 1_000;
                let arrival_us = begin_us + received_us.next_multiple_of(12_000);
                let wait = (arrival_us - begin_us - received_us) as i32;
                rounds.ack.receiver_clock = u32::from(clock) * (77 + (received_us / 1_000) as u32);
                rounds.ack.rtt_us = 100_000 + (number * 500) as i32 + wait;
                rounds.next(arrival_us - rounds.ack.now_us, BYTES);
            }
            rounds.ack.receiver_clock += u32::from(clock) * 51;
            rounds.ack.rtt_us = 100_000;
            let us = begin_us + (round + 1) * (ACKS + 51) * 1_000 - rounds.ack.now_us;
            rounds.next(us, BYTES);
        }
        assert_eq!(u64::from(rounds.read("estimate")), expected, "clock: {clock}");
    }
}

/// The window is compared with every ACK that is looked at, what it is compared with is made anew once in a 64th of a round.
#[test]
fn the_target_is_made_anew_in_each_64th_of_a_round() {
    let (mut rounds, _) = measured(RATE, TARGET / 16);
    rounds.ack.bytes_outstanding = 64 * BYTES as u32;
    rest(&mut rounds);
    rounds.next(1_000, BYTES);
    rounds.next(1_000, BYTES);
    rounds.ack.cwnd = TARGET / 4;
    let verdict = rounds.next(1_000, BYTES - 1);
    assert_eq!(rounds.name(&verdict), "blind");
    let verdict = rounds.next(1, 1);
    assert_eq!(rounds.name(&verdict), "guided");
    rounds.ack.cwnd = rounds.read("target");
    assert_eq!(rounds.next(1_000, BYTES).ssthresh, rounds.ack.cwnd);
}

/// Acknowledgments come at the pace of the way back, 1 ms apart, of data that arrived as they were sent, 0.6 ms apart; the
/// receiver delays the last of the round. Neither is the path's rate.
#[test]
fn a_thin_way_back_is_not_taken_for_the_path() {
    let mut rounds = Rounds::new("ramp", &[]);
    rounds.ack.receiver_clock = 77;
    rounds.begin();
    for delayed_us in [0, 40_000] {
        let begin = rounds.ack.receiver_clock;
        for number in 1..=ACKS {
            let delay_us = if number == ACKS { delayed_us } else { 0 };
            rounds.ack.receiver_clock = begin + ((number * 600 + delay_us) / 1_000) as u32;
            rounds.ack.rtt_us = 100_000 + (number * 400) as i32;
            rounds.next(1_000, BYTES);
        }
        rounds.ack.receiver_clock = begin + 70;
        rounds.ack.rtt_us = 100_000;
        rounds.next(50_000, BYTES);
        assert_eq!(rounds.read("estimate"), 0, "the last ACK delayed by {delayed_us} us");
    }
}

/// Data leave and arrive 10 ms apart, once 40 ms, so that the receiver's clock is too rough for a line; the way back spreads their
/// ACKs to 15 ms each, by less than both errors. As quick as data left, they show the sender, and not the path.
#[test]
fn what_the_way_back_adds_does_not_hide_that_data_came_as_they_were_sent() {
    let mut rounds = Rounds::new("ramp", &[]);
    rounds.ack.receiver_clock = 77;
    rounds.begin();
    for number in 1..=ACKS {
        let pause = if number == 15 { 40 } else { 10 };
        rounds.ack.receiver_clock += pause;
        rounds.ack.rtt_us += 15_000 - pause as i32 * 1_000;
        rounds.next(15_000, BYTES);
    }
    rounds.ack.receiver_clock += 50;
    rounds.ack.rtt_us = 100_000;
    rounds.next(50_000, BYTES);
    assert_eq!(rounds.read("estimate"), 0);
}

/// The first of twenty ACKs' data takes a longer way: what came in its place is acknowledged selectively, 1 ms apart, and all
/// at once when it is there.
#[test]
fn what_came_out_of_order_is_on_the_line_when_it_came() {
    let mut rounds = Rounds::begun("ramp", &[]);
    let segments = BYTES as u32 / rounds.ack.mss;
    rounds.ack.in_flight = rounds.ack.bytes_outstanding / rounds.ack.mss;
    rounds.ack.rtt_us = 100_000;
    for number in 1..ACKS {
        rounds.ack.in_flight -= segments;
        rounds.ack.rtt_us = 100_000 + 500 * number as i32;
        rounds.next(1_000, 0);
    }
    rounds.ack.in_flight += (ACKS as u32 - 1) * segments;
    rounds.next(1_000, ACKS * BYTES);
    rounds.ack.rtt_us = 100_000;
    rounds.next(50_000, BYTES);
    assert_eq!(u64::from(rounds.read("estimate")), RATE / 1_000);
}

/// Acknowledgments queue on the way back, which takes as long again: the window has to cover that, and it is no queue of the
/// forward path.
#[test]
fn what_acknowledgments_wait_on_the_way_back_belongs_to_the_target() {
    let mut rounds = Rounds::new("ramp", &[]);
    rounds.ack.receiver_clock = 77;
    rounds.begin();
    for round in 0..4 {
        for number in 1..=ACKS {
            rounds.ack.receiver_clock += 1;
            // Each is held up by half a millisecond more than the one before, as long as the queue grows.
            let late_us = if round == 1 { 1_500 } else { 1_000 };
            rounds.ack.rtt_us = 100_000 + if round >= 1 { 10_000 } else { 0 } + 500 * number as i32;
            rounds.next(late_us, BYTES);
        }
        rounds.ack.receiver_clock += 49;
        rounds.ack.rtt_us = 100_000 + if round >= 1 { 10_000 } else { 0 };
        rounds.next(49_000, BYTES);
    }
    assert_eq!((rounds.read("estimate"), rounds.read("risen")), ((RATE / 1_000) as u32, 0));
    // 100 ms, a gap of 1 ms, and 10 ms less a tick, which counts as the path's.
    assert_eq!((rounds.read("base_us"), rounds.read("target")), (101_000, 1_110 * 110 / 100));
}

/// The first acknowledgment was held up on the way back, those of its round were not, and later ones are again: that is no queue of
/// the forward path.
#[test]
fn what_the_way_back_adds_is_counted_from_the_quickest_acknowledgment() {
    let mut rounds = Rounds::new("ramp", &[]);
    rounds.ack.acked = FEW + 1;
    rounds.ack.receiver_clock = 77;
    rounds.begin();
    rounds.ack.receiver_clock += 30;
    for (late_us, rtt_us) in [(0, 100_000), (0, 100_000), (40_000, 140_000), (0, 140_000)] {
        rounds.ack.rtt_us = rtt_us;
        for number in 0..=ACKS {
            rounds.ack.receiver_clock += 1;
            rounds.next(1_000 + if number == 0 { late_us } else { 0 }, BYTES);
        }
    }
    assert_eq!((rounds.read("base_us"), rounds.read("risen")), (0, 0));
}

/// After a restart, such as by a timeout that was none, ACKs come at the pace of the way back, two and a half times as
/// slowly as the data did.
#[test]
fn the_receivers_clock_stays_known_through_a_restart() {
    let mut rounds = Rounds::new("ramp", &[]);
    rounds.ack.receiver_clock = 77;
    rounds.begin();
    for number in 1..=ACKS {
        rounds.ack.receiver_clock = 77 + number as u32;
        rounds.next(1_000, BYTES);
    }
    rounds.ack.receiver_clock = 77 + ACKS as u32 + 50;
    rounds.next(50_000, BYTES);
    rounds.flow.restart();
    rounds.begin();
    let received = rounds.ack.receiver_clock;
    for number in 1..=ACKS {
        rounds.ack.receiver_clock = received + (number * 2 / 5) as u32;
        rounds.ack.rtt_us = 100_000 + (number * 600) as i32;
        rounds.next(1_000, BYTES);
    }
    rounds.next(50_000, BYTES);
    assert_eq!(rounds.read("estimate"), 0);
}

#[test]
fn a_moment_without_data_voids_the_round() {
    let mut rounds = Rounds::begun("ramp", &[]);
    rounds.ack.flags = APP_LIMITED;
    rounds.next(1_000, BYTES);
    rounds.ack.flags = 0;
    rounds.round_of(&[(1_000, BYTES); ACKS as usize - 1]);
    assert_eq!(rounds.read("estimate"), 0);
}

#[test]
fn a_restart_forgets_the_path() {
    let (mut rounds, _) = measured(RATE, TARGET / 2);
    assert_eq!(rounds.read("guided"), 1);
    rounds.flow.restart();
    let verdict = rounds.next(1_000, BYTES);
    assert_eq!((rounds.name(&verdict), verdict.pacing_rate, rounds.read("target")), ("blind", 0, 0));
    rounds.ack.flags = PACED;
    assert_ne!(
        rounds.next(1_000, BYTES).pacing_rate,
        0,
        "faster than the kernel's own, which would hide the path"
    );
}
