//! A sender that doubles every round trip and never meets a limit.

use onramp_algorithm::Ack;

/// Slow start on a path that always takes more: each ACK releases two segments, the RTT never changes.
#[derive(Clone, Debug)]
pub struct Ramp {
    /// RTT, microseconds.
    pub rtt_us: u64,
    /// When round 0 begins.
    pub start_us: u64,
    /// Bytes sent and acknowledged before round 0.
    pub base: u64,
    /// Segment size, bytes.
    pub mss: u64,
    /// When each segment of the initial window leaves, after the start of round 0; ascending, below the RTT.
    pub departures_us: Vec<u64>,
    /// Doublings.
    pub rounds: u32,
}

impl Ramp {
    /// An initial window sent evenly over the first round trip.
    pub fn evenly(rtt_us: u64, window: u64, rounds: u32) -> Self {
        Self::train(rtt_us, rtt_us, window, rounds)
    }

    /// An initial window sent evenly over the first `length_us` of the first round trip.
    pub fn train(rtt_us: u64, length_us: u64, window: u64, rounds: u32) -> Self {
        let departures_us = (0..window).map(|segment| segment * length_us / window).collect();
        Self { rtt_us, start_us: super::START, base: 0, mss: 1_500, departures_us, rounds }
    }

    /// The ACKs in order. Those that arrive together are merged into two, the first of them and the rest.
    pub fn acks(&self) -> Vec<Ack> {
        let mut acks = Vec::new();
        let mut acked = 0;
        let mut sent = self.departures_us.len() as u64;
        for round in 1..=self.rounds {
            let each = 1_u64 << (round - 1);
            for departure_us in &self.departures_us {
                let now_us = self.start_us + u64::from(round) * self.rtt_us + departure_us;
                acks.push(self.ack(now_us, acked + 1, sent, 1));
                if each > 1 {
                    acks.push(self.ack(now_us, acked + each, sent + 2, each - 1));
                }
                acked += each;
                sent += 2 * each;
            }
        }
        acks
    }

    fn ack(&self, now_us: u64, acked: u64, sent: u64, newly: u64) -> Ack {
        let in_flight = (sent - acked) as u32;
        Ack {
            now_us,
            bytes_acked: self.base.wrapping_add(acked * self.mss),
            bytes_sent: self.base.wrapping_add(sent * self.mss),
            delivered: acked as u32,
            acked: newly as u32,
            rtt_us: self.rtt_us as i32,
            smoothed_rtt_us: self.rtt_us as u32,
            min_rtt_us: self.rtt_us as u32,
            cwnd: in_flight + newly as u32,
            ssthresh: u32::MAX,
            in_flight,
            mss: self.mss as u32,
            ..Ack::default()
        }
    }
}
