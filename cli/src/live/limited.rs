//! What limits a flow, by its rounds, and when it has ended by what the kernel has counted.

use onramp_loader::telemetry::{EndEvent, RoundEvent};
use onramp_net::sock_diag::TcpInfo;

use crate::limits::{Limit, Parts, Sample, held_longest, of_round};

/// Of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limited {
    rounds: Parts,
    now: Option<Limit>,
}

impl Limited {
    /// The newest round's; of a flow that has ended, that of its life. `None`: not known.
    pub fn now(&self) -> Option<Limit> {
        self.now
    }

    pub fn round(&mut self, round: &RoundEvent, snd_ssthresh: Option<u32>, min_rtt_us: u32) {
        let info = TcpInfo {
            snd_mss: round.mss,
            snd_cwnd: round.cwnd,
            snd_ssthresh,
            unacked: round.in_flight,
            rtt_us: round.smoothed_rtt_us,
            min_rtt_us: Some(min_rtt_us),
            snd_wnd_bytes: round.receive_window,
            pacing_rate_bytes_per_s: Some(round.pacing_rate).filter(|rate| *rate > 0),
            delivery_rate_bytes_per_s: round.bytes.saturating_mul(1_000_000) / round.duration_us.max(1),
            ..TcpInfo::default()
        };
        let end = Sample { info, ..Sample::default() };
        let parts = of_round(&end, round.duration_us, round.cwnd_limited_us.into());
        self.now = held_longest(&parts);
        self.rounds.add_all(&parts);
    }

    /// Of its busy time, what the kernel does not count is divided as its rounds are.
    pub fn end(&mut self, end: &EndEvent) {
        let mut parts = Parts::default();
        parts.add(Limit::Application, end.idle_us);
        parts.add(Limit::ReceiveWindow, end.receive_window_limited_us);
        parts.add(Limit::SendBuffer, end.send_buffer_limited_us);
        let counted_us = end.receive_window_limited_us.saturating_add(end.send_buffer_limited_us);
        let rest_us = end.busy_us.saturating_sub(counted_us);
        let rounds_us = u128::from(self.rounds.total());
        for limit in Limit::ALL.into_iter().filter(|_| rounds_us > 0) {
            let part_us = u128::from(rest_us) * u128::from(self.rounds.of(limit)) / rounds_us;
            parts.add(limit, part_us as u64);
        }
        // Without rounds the rest is not known.
        let known = rounds_us > 0 || parts.total() > rest_us;
        self.now = held_longest(&parts).filter(|_| known);
    }
}

#[cfg(test)]
mod tests {
    use onramp_loader::algorithm::RoundPayload;

    use super::*;

    fn rounds(cwnd_limited_us: u32, in_flight: u32, ssthresh: Option<u32>) -> Limited {
        paced(cwnd_limited_us, in_flight, ssthresh, 0)
    }

    /// 20 kB in 100 us.
    fn paced(cwnd_limited_us: u32, in_flight: u32, ssthresh: Option<u32>, pacing_rate: u64) -> Limited {
        let payload =
            RoundPayload { duration_us: 100, cwnd_limited_us, mss: 1_000, ..RoundPayload::default() };
        let payload = RoundPayload { bytes: 20_000, pacing_rate, ..payload };
        let payload = RoundPayload { cwnd: 50, in_flight, receive_window: 60_000, ..payload };
        let round =
            RoundEvent { payload: RoundPayload { smoothed_rtt_us: 105, ..payload }, state: Vec::new() };
        let mut limited = Limited::default();
        limited.round(&round, ssthresh, 100);
        limited
    }

    #[test]
    fn a_round_is_limited_by_the_window_or_by_what_does_not_fill_it() {
        assert_eq!(rounds(60, 50, None).now(), Some(Limit::SlowStart));
        assert_eq!(rounds(60, 50, Some(40)).now(), Some(Limit::CongestionAvoidance));
        assert_eq!(rounds(40, 50, Some(40)).now(), Some(Limit::ReceiveWindow));
        assert_eq!(rounds(40, 20, Some(40)).now(), Some(Limit::Application));
        assert_eq!(paced(40, 20, Some(40), 260_000_000).now(), Some(Limit::Pacing));
        assert_eq!(paced(40, 20, Some(40), 270_000_000).now(), Some(Limit::Application));
        assert_eq!(paced(60, 50, Some(40), 200_000_000).now(), Some(Limit::CongestionAvoidance));
        assert_eq!(Limited::default().now(), None);
    }
}
