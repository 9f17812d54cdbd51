//! Random ACKs of a sender with bytes in flight: [`super::traffic`] with what it leaves out.

use onramp_algorithm::{Ack, ack_flag};

use super::random::Random;
use super::traffic::plausible_acks;

/// [`paired_acks`] for a comparison: one sequence in a hundred is long.
pub fn paired_sequence(random: &mut Random) -> Vec<Ack> {
    let length = if random.once_in(100) { 1_500 } else { 60 };
    paired_acks(random, length)
}

/// Plausible ACKs, some of them in the same microsecond or under an application limit, with nothing in flight where the
/// backlog is smallest.
pub fn paired_acks(random: &mut Random, count: usize) -> Vec<Ack> {
    let mut acks = plausible_acks(random, count);
    let ahead = |ack: &Ack| ack.bytes_sent.wrapping_sub(ack.bytes_acked) as i64;
    let least = acks.iter().map(ahead).min().unwrap_or(0);
    let more = random.below(3) * random.below(100_000);
    let mut before = 0;
    for ack in &mut acks {
        ack.bytes_outstanding = ((ahead(ack) - least) as u64 + more).min(u64::from(u32::MAX)) as u32;
        if random.once_in(8) {
            ack.now_us = ack.now_us.min(before.max(1));
        }
        if random.once_in(20) {
            ack.flags |= ack_flag::APP_LIMITED;
        }
        before = ack.now_us;
    }
    acks
}
