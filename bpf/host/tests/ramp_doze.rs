//! ramp: over which ACKs of a large window it passes, and what ends that.

mod common;

use common::START;
use onramp_algorithm::ack_flag::PACED;
use onramp_algorithm::{Ack, Flow, find};

/// ACKs of a round, bytes that each acknowledges, time between two of them; 100 ms hold 10,000 segments.
const ACKS: u64 = 1_000;
const BYTES: u64 = 10_000;
const GAP_US: u64 = 100;
/// A window in which data are paced, and one in which they are not yet.
const GUIDED: u32 = 5_000;
const BLIND: u32 = 500;
/// ACKs that are a 64th of the round.
const PART: u64 = ACKS.div_ceil(64);

/// A flow and the ACK that it has had last.
#[derive(Clone)]
struct Sender {
    flow: Flow,
    ack: Ack,
}

impl Sender {
    /// The next ACK so much later, of data that have waited for half of that longer.
    fn next(&self, us: u64) -> Ack {
        let now_us = self.ack.now_us + us;
        Ack {
            now_us,
            bytes_acked: self.ack.bytes_acked + BYTES,
            rtt_us: self.ack.rtt_us + (us / 2) as i32,
            receiver_clock: (now_us / 1_000) as u32,
            ..self.ack
        }
    }

    /// The flow has it.
    fn takes(&mut self, ack: Ack) {
        self.flow.on_ack(&ack);
        self.ack = ack;
    }

    /// Whether it would look at this ACK: it does nothing but compare the window, which would be at its end.
    fn looks(&self, ack: Ack) -> bool {
        let mut flow = self.flow.clone();
        let verdict = flow.on_ack(&Ack { cwnd: u32::MAX, ..ack });
        flow.algorithm().outcome_name(verdict.outcome) == "exit"
    }

    /// Over how many of the ACKs that follow it passes.
    fn passes(&self) -> u64 {
        let mut sender = self.clone();
        (0..ACKS)
            .find(|_| {
                let next = sender.next(GAP_US);
                let looks = sender.looks(next);
                sender.takes(next);
                looks
            })
            .expect("a round ends")
    }
}

/// A flow in a window of so many segments that has looked at an ACK in its second round, and at none since.
fn sender(cwnd: u32, flags: u32) -> Sender {
    let ack = Ack {
        now_us: START,
        bytes_acked: 7_000_000,
        bytes_outstanding: (ACKS * BYTES) as u32,
        acked: (BYTES / 1_000) as u32,
        rtt_us: 100_000,
        min_rtt_us: 100_000,
        cwnd,
        ssthresh: u32::MAX,
        in_flight: 1_000_000,
        mss: 1_000,
        receiver_clock: (START / 1_000) as u32,
        flags,
        ..Ack::default()
    };
    let mut sender = Sender { flow: Flow::new(find("ramp").expect("an algorithm").parameters()), ack };
    sender.takes(ack);
    for _ in 0..ACKS {
        sender.takes(sender.next(GAP_US));
    }
    sender.takes(Ack { rtt_us: 100_000, ..sender.next(50_000) });
    for _ in 0..ACKS / 2 {
        sender.takes(sender.next(GAP_US));
    }
    while !sender.looks(sender.next(GAP_US)) {
        sender.takes(sender.next(GAP_US));
    }
    sender.takes(sender.next(GAP_US));
    sender
}

#[test]
fn one_ack_in_a_64th_of_a_round_is_looked_at() {
    assert_eq!(sender(GUIDED, 0).passes(), PART - 1);
}

/// What an ACK that is passed over would have changed: a longer gap on either clock, the order of what has come, an RTT.
#[test]
fn an_ack_that_says_more_is_looked_at() {
    let sender = sender(GUIDED, 0);
    let next = sender.next(GAP_US);
    let ticked = |ticks| Ack { receiver_clock: sender.ack.receiver_clock + ticks, ..next };
    for (ack, looks, what) in [
        (next, false, "like the others"),
        (sender.next(GAP_US + 1), true, "a longer gap"),
        (ticked(1), false, "a tick, as before"),
        (ticked(2), true, "two ticks"),
        (Ack { rtt_us: -1, ..next }, true, "no RTT"),
        (Ack { in_flight: next.bytes_outstanding / next.mss - 1, ..next }, true, "out of order"),
        (Ack { in_flight: next.bytes_outstanding / next.mss, ..next }, false, "in order"),
    ] {
        assert_eq!(sender.looks(ack), looks, "{what}");
    }
}

/// An ACK acknowledges 10 segments: with the one that takes the window to the target slow start ends.
#[test]
fn the_window_does_not_grow_beyond_the_target_meanwhile() {
    let mut sender = sender(GUIDED, 0);
    for _ in 1..PART {
        sender.takes(sender.next(GAP_US));
    }
    let looked_at = sender.next(GAP_US);
    let target = {
        let mut sender = sender.clone();
        sender.takes(looked_at);
        sender.flow.export("target")[0]
    };
    for (left, passes) in [(10 * PART as u32, PART - 1), (31, 3), (30, 2), (21, 2), (20, 1), (10, 0), (1, 0)]
    {
        let mut sender = sender.clone();
        sender.takes(Ack { cwnd: target - left, ..looked_at });
        assert_eq!(sender.passes(), passes, "{left} segments");
    }
}

/// Young data are paced by the window, which grows: by that with the ACK that was looked at.
#[test]
fn young_data_are_paced_at_one_rate_between_two_looks() {
    let mut sender = sender(BLIND, PACED);
    assert_eq!(sender.flow.export("guided"), [0]);
    let mut rates = Vec::new();
    for _ in 0..2 * PART {
        let next = Ack { cwnd: sender.ack.cwnd + 1, ..sender.next(GAP_US) };
        rates.push(sender.flow.clone().on_ack(&next).pacing_rate);
        sender.takes(next);
    }
    let at = |ack: u64| u64::from(BLIND + ack as u32) * 1_000 * 10 * 16;
    assert_eq!(rates[..PART as usize - 1], vec![at(0); PART as usize - 1]);
    assert_eq!(rates[PART as usize - 1..2 * PART as usize - 1], vec![at(PART); PART as usize]);
}
