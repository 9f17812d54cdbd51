//! Random ACKs of senders that could exist.

use onramp_algorithm::Ack;

use super::random::Random;

/// ACKs that a sender could see, with times and counters that run forward: growth, plateaus, silences short and long,
/// RTTs that wander, application limits, losses. A window never holds 4 GiB.
pub fn plausible_acks(random: &mut Random, count: usize) -> Vec<Ack> {
    let base_rtt_us = 1 + (random.below(3_000_000) >> random.below(20));
    let step_us = 1 + base_rtt_us * (1 + random.below(60)) / 100;
    let mut rate = 1 + (random.below(1_000_000) >> random.below(18));
    let mut backlog = 0_u64;
    let mut ack = Ack {
        now_us: random.below(1 << 40),
        bytes_acked: random.below(1 << 40),
        bytes_sent: random.below(1 << 40),
        delivered: random.bits() as u32,
        mss: 1 + random.below(9_000) as u32,
        ssthresh: u32::MAX,
        ..Ack::default()
    };
    (0..count)
        .map(|_| {
            ack.now_us += match random.below(40) {
                0 => step_us * random.below(15),
                1 => step_us * random.below(90),
                2 => step_us * random.below(2_500) / (1 + random.below(50)),
                _ => random.below(2 * step_us),
            };
            rate = match random.below(8) {
                0..=2 => (rate + rate / 8).min(6_000_000),
                3 => rate / 2 + 1,
                _ => rate,
            };
            let sent = if random.once_in(12) { 0 } else { random.below(2 * rate) };
            backlog += sent;
            let part = if random.once_in(3) { 25 + random.below(76) } else { 100 };
            let acked = backlog.min(random.below(2 * rate) * part / 100);
            backlog -= acked;
            ack.bytes_sent += sent;
            ack.bytes_acked += acked;
            let segments = (acked / u64::from(ack.mss)) as u32;
            ack.delivered = ack.delivered.wrapping_add(segments);
            ack.acked = segments;
            let rtt_us = base_rtt_us * (80 + random.below(60)) / 100;
            ack.rtt_us = match random.below(60) {
                0 => -1,
                1 if base_rtt_us < 1_000 => 0,
                2 => (base_rtt_us * (1 + random.below(30))).min(1 << 30) as i32,
                _ => rtt_us as i32,
            };
            ack.smoothed_rtt_us =
                if random.once_in(9) { 0 } else { (base_rtt_us * (90 + random.below(20)) / 100) as u32 };
            ack.min_rtt_us = if random.once_in(9) { 0 } else { (base_rtt_us * 4 / 5) as u32 };
            ack.cwnd = 1 + (random.below(10_000) >> random.below(12)) as u32;
            ack.in_flight = (u64::from(ack.cwnd) * random.below(130) / 100) as u32;
            ack.flags = if random.once_in(25) { random.bits() as u32 } else { 0 };
            ack
        })
        .collect()
}
