//! Random ACKs of a sender with bytes in flight: [`super::traffic`] with what it leaves out.

use onramp_algorithm::{Ack, ack_flag};

use super::random::Random;
use super::traffic::plausible_acks;

/// [`paired_acks`] for a comparison, or [`trains`]: one sequence in a hundred is long.
pub fn paired_sequence(random: &mut Random) -> Vec<Ack> {
    let length = if random.once_in(100) { 1_500 } else { 60 };
    let acks = paired_acks(random, length);
    if random.once_in(2) { trains(random, acks) } else { acks }
}

/// [`trains_of`] up to 32 ACKs.
pub fn trains(random: &mut Random, acks: Vec<Ack>) -> Vec<Ack> {
    trains_of(random, acks, 30)
}

/// These ACKs in rounds of so many and two more at most, each at the rate of a bottleneck, more or less, with pauses between them.
pub fn trains_of(random: &mut Random, mut acks: Vec<Ack>, longest: u64) -> Vec<Ack> {
    let Some(first) = acks.first().copied() else { return acks };
    let (mut now_us, mut bytes_acked) = (first.now_us, first.bytes_acked);
    let base_us = 1 + (random.below(1 << 24) >> random.below(12));
    let (jittered, queueing, mixed) = (random.once_in(3), !random.once_in(3), random.once_in(4));
    let unknown = random.once_in(6);
    let bytes = 1 + random.below(1 << 16);
    let mut gap_us = 2 + random.below(1_000);
    let (mut left, mut late_us) = (0, 0);
    for ack in &mut acks {
        let begins = left == 0;
        if begins {
            now_us += random.below(50) * gap_us;
            left = 3 + random.below(longest);
            late_us = 0;
            if mixed && random.once_in(3) {
                gap_us = 2 + random.below(1_000);
            }
        }
        let step_us = if jittered { random.below(2 * gap_us) } else { gap_us };
        now_us += step_us;
        bytes_acked += bytes;
        late_us += if queueing { step_us / 2 } else { 0 };
        left -= 1;
        ack.acked = random.below(3) as u32;
        ack.now_us = now_us;
        ack.bytes_acked = bytes_acked;
        ack.bytes_outstanding = if begins { left * bytes } else { left * bytes + 1 } as u32;
        ack.bytes_sent = bytes_acked + u64::from(ack.bytes_outstanding);
        if ack.rtt_us >= 0 {
            ack.rtt_us = (base_us + late_us) as i32;
        }
        ack.min_rtt_us = if unknown { 0 } else { base_us as u32 };
        if random.once_in(2) {
            let path = bytes * base_us / gap_us / u64::from(ack.mss);
            ack.cwnd = ((2 * path) >> random.below(7)).clamp(2, 1 << 30) as u32;
        }
    }
    acks
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
