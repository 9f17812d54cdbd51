// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Rounds of acknowledgments where none were recorded: each ends with the acknowledgment of what had been sent when it
//! began.

use onramp_algorithm::{Ack, ack_flag};

/// The acknowledgments of a flow, divided into rounds.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    current: Option<AckRound>,
}

/// A round.
#[derive(Clone, Copy, Debug)]
pub struct AckRound {
    /// The acknowledgment with which it began.
    pub begin: Ack,
    /// That with which it ended, and the next began.
    pub end: Ack,
    /// Whether the application was the limit at any acknowledgment that followed its begin.
    pub app_limited: bool,
    /// The smallest RTT sample of all that followed its begin, microseconds; 0: none.
    pub min_rtt_us: u32,
}

impl AckRound {
    fn new(begin: &Ack) -> Self {
        Self { begin: *begin, end: *begin, app_limited: false, min_rtt_us: 0 }
    }

    /// Delivered in it, selective acknowledgments included.
    pub fn delivered_segments(&self) -> u32 {
        self.end.delivered.wrapping_sub(self.begin.delivered)
    }
}

impl Rounds {
    /// Goes on with the next acknowledgment; a round that is over with it.
    pub fn add(&mut self, ack: &Ack) -> Option<AckRound> {
        let next = AckRound::new(ack);
        let Some(round) = &mut self.current else {
            self.current = Some(next);
            return None;
        };
        round.end = *ack;
        round.app_limited |= ack.flags & (ack_flag::APP_LIMITED | ack_flag::RATE_APP_LIMITED) != 0;
        if let Some(sample) = u32::try_from(ack.rtt_us).ok().filter(|us| *us != 0)
            && (round.min_rtt_us == 0 || sample < round.min_rtt_us)
        {
            round.min_rtt_us = sample;
        }
        let over = ack.bytes_acked >= round.begin.bytes_sent && ack.now_us > round.begin.now_us;
        if over { self.current.replace(next) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_the_acknowledgment_of_what_had_been_sent_when_it_began() {
        let mut rounds = Rounds::default();
        let mut over = Vec::new();
        for (now_us, bytes_acked, bytes_sent, rtt_us, flags) in [
            (100, 1, 10, 70, 0),
            (150, 5, 14, 60, 0),
            (150, 9, 18, -1, ack_flag::APP_LIMITED),
            (200, 10, 20, 80, ack_flag::APP_LIMITED),
            // All that had been sent, at the same time: that is no round.
            (200, 20, 30, 50, 0),
            (300, 21, 40, 90, 0),
        ] {
            let delivered = u32::MAX.wrapping_add(bytes_acked as u32);
            let ack = Ack { now_us, bytes_acked, bytes_sent, delivered, rtt_us, flags, ..Ack::default() };
            over.extend(rounds.add(&ack).map(|round| {
                let times = (round.begin.now_us, round.end.now_us);
                (times, round.delivered_segments(), round.min_rtt_us, round.app_limited)
            }));
        }
        assert_eq!(over, [((100, 200), 9, 60, true), ((200, 300), 11, 50, false)]);
    }
}
