// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What was seen of one connection.

use onramp_algorithm::ExitReason;
use onramp_net::sock_diag::{Socket, TcpInfo};

use super::arm::{Exit, ExitSource, FlowStorage};
use crate::link::Nanos;

/// One look at a connection.
#[derive(Clone, Copy, Debug)]
pub struct FlowSample {
    /// When, CLOCK_MONOTONIC.
    pub at_ns: Nanos,
    /// What the kernel said.
    pub info: TcpInfo,
}

/// All that was seen of one connection.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Name of its congestion control, as seen last.
    pub congestion_control: String,
    /// The looks, in order of time.
    pub samples: Vec<FlowSample>,
    /// The exit that its socket storage showed last.
    pub recorded: Option<Exit>,
}

impl Flow {
    pub(super) fn add(&mut self, at_ns: Nanos, socket: Socket, storage: Option<&FlowStorage>) {
        let Some(info) = socket.info else { return };
        self.samples.push(FlowSample { at_ns, info });
        if let Some(name) = socket.congestion_control {
            self.congestion_control = name;
        }
        if let Some(storage) = storage {
            let decoded = socket.storages.iter().find_map(|found| (storage.decode)(&found.value));
            if let Some(exit) = decoded {
                self.recorded = Some(Exit { source: ExitSource::Record, ..exit });
            }
        }
    }

    /// When the first data was seen sent: late by up to the sampling period.
    pub fn began_ns(&self) -> Option<Nanos> {
        self.samples.iter().find(|sample| sample.info.bytes_sent > 0).map(|sample| sample.at_ns)
    }

    /// When all that was ever acknowledged was: the end of the transfer, as the sender sees it.
    pub fn ended_ns(&self) -> Option<Nanos> {
        let all = self.samples.last()?.info.bytes_acked;
        self.samples.iter().find(|sample| sample.info.bytes_acked == all).map(|sample| sample.at_ns)
    }

    /// Bytes acknowledged by a time.
    pub fn acked_at(&self, at_ns: Nanos) -> u64 {
        self.seen_at(at_ns).map_or(0, |info| info.bytes_acked)
    }

    /// Bytes delivered by a time, what was selectively acknowledged included.
    pub fn delivered_at(&self, at_ns: Nanos) -> u64 {
        self.seen_at(at_ns).map_or(0, |info| u64::from(info.delivered) * u64::from(info.snd_mss))
    }

    /// Largest smoothed round-trip time until what was sent at that time, and a round trip later, was back, microseconds.
    pub fn rtt_after(&self, at_ns: Nanos) -> Option<u32> {
        let back_ns = at_ns + 2 * 1_000 * Nanos::from(self.seen_at(at_ns)?.rtt_us);
        let seen = self.samples.iter().filter(|sample| (at_ns..=back_ns).contains(&sample.at_ns));
        seen.map(|sample| sample.info.rtt_us).max()
    }

    /// The last look until then.
    fn seen_at(&self, at_ns: Nanos) -> Option<&TcpInfo> {
        let after = self.samples.partition_point(|sample| sample.at_ns <= at_ns);
        self.samples[..after].last().map(|sample| &sample.info)
    }

    /// Mean of the smoothed round-trip time from the first data to the last acknowledgment, microseconds.
    pub fn mean_rtt_us(&self) -> f64 {
        let (from, to) = (self.began_ns().unwrap_or(0), self.ended_ns().unwrap_or(0));
        let during = self.samples.iter().filter(|sample| (from..=to).contains(&sample.at_ns));
        let (sum, count) = during
            .fold((0.0, 0_u32), |(sum, count), sample| (sum + f64::from(sample.info.rtt_us), count + 1));
        sum / f64::from(count.max(1))
    }

    /// Largest smoothed round-trip time, microseconds.
    pub fn max_rtt_us(&self) -> u32 {
        self.samples.iter().map(|sample| sample.info.rtt_us).max().unwrap_or(0)
    }

    /// How slow start ended as far as looking from outside shows: the first look with a finite threshold before `bytes`
    /// were acknowledged (later the kernel sets one because the connection is idle). `None` for flows that never left.
    ///
    /// BBR sets the threshold when it believes the pipe is full and begins to drain, losses or not: always by itself.
    pub fn sampled_exit(&self, bytes: u64) -> Option<Exit> {
        let began = self.began_ns()?;
        let at = self.samples.iter().position(|sample| sample.info.snd_ssthresh.is_some())?;
        if self.samples[at].info.bytes_acked >= bytes {
            return None;
        }
        let sample = self.samples[at];
        let before = self.samples[..at].last().unwrap_or(&sample);
        let bbr = self.congestion_control.starts_with("bbr");
        let reduced = reduced_by(&sample.info).filter(|_| !bbr);
        let mss = u64::from(sample.info.snd_mss);
        Some(Exit {
            reason: reduced.unwrap_or(ExitReason::Algorithm),
            seconds: sample.at_ns.saturating_sub(began) as f64 / 1e9,
            // HyStart's threshold is its window; a loss has reduced both, and BBR's is an estimate of the BDP, so take
            // the window seen before.
            window_bytes: match sample.info.snd_ssthresh {
                Some(segments) if reduced.is_none() && !bbr => u64::from(segments) * mss,
                _ => before.info.cwnd_bytes(),
            },
            acks: None,
            source: ExitSource::Sampled,
        })
    }
}

/// What has reduced the window, by the congestion state (2: CWR, 3: recovery, 4: loss) and what was retransmitted; `None`:
/// nothing did.
fn reduced_by(info: &TcpInfo) -> Option<ExitReason> {
    match info.ca_state {
        4 => Some(ExitReason::Timeout),
        2 if info.delivered_ce > 0 => Some(ExitReason::Ecn),
        3 => Some(ExitReason::Loss),
        _ if info.retrans_total > 0 || info.lost > 0 => Some(ExitReason::Loss),
        2 => Some(ExitReason::LocalCongestion),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(infos: impl IntoIterator<Item = TcpInfo>) -> Flow {
        let samples = (1..).zip(infos).map(|(at, info)| FlowSample {
            at_ns: at * 1_000_000_000,
            info: TcpInfo { snd_mss: 1_448, ..info },
        });
        Flow { samples: samples.collect(), ..Flow::default() }
    }

    fn info(bytes_sent: u64, cwnd: u32, ssthresh: Option<u32>, retrans: u32) -> TcpInfo {
        TcpInfo {
            bytes_sent,
            snd_cwnd: cwnd,
            snd_ssthresh: ssthresh,
            retrans_total: retrans,
            ..TcpInfo::default()
        }
    }

    #[test]
    fn an_exit_by_the_control_itself_shows_its_threshold() {
        let flow = flow([
            info(0, 10, None, 0),
            info(9, 10, None, 0),
            info(9, 40, None, 0),
            info(9, 45, Some(44), 0),
        ]);
        let exit = flow.sampled_exit(100).unwrap();
        assert_eq!((exit.reason, exit.seconds, exit.window_bytes), (ExitReason::Algorithm, 2.0, 44 * 1_448));
    }

    #[test]
    fn an_exit_by_loss_shows_the_window_before() {
        let flow = flow([info(9, 10, None, 0), info(9, 400, None, 0), info(9, 210, Some(200), 5)]);
        let exit = flow.sampled_exit(100).unwrap();
        assert_eq!((exit.reason, exit.seconds, exit.window_bytes), (ExitReason::Loss, 2.0, 400 * 1_448));
    }

    #[test]
    fn what_reduced_the_window_is_reported_by_the_words_of_the_record() {
        let reason = |ca_state, delivered_ce, retrans| {
            let after = TcpInfo { ca_state, delivered_ce, ..info(9, 210, Some(200), retrans) };
            flow([info(9, 400, None, 0), after]).sampled_exit(100).map(|exit| exit.reason)
        };
        assert_eq!(reason(2, 3, 0), Some(ExitReason::Ecn));
        assert_eq!(reason(2, 0, 0), Some(ExitReason::LocalCongestion));
        assert_eq!(reason(2, 0, 1), Some(ExitReason::Loss));
        assert_eq!(reason(3, 0, 0), Some(ExitReason::Loss));
        assert_eq!(reason(4, 0, 9), Some(ExitReason::Timeout));
        assert_eq!(reason(1, 0, 0), Some(ExitReason::Algorithm));
    }

    #[test]
    fn bbr_leaves_by_its_own_estimate_also_while_packets_are_lost() {
        let infos = [info(9, 10, None, 0), info(9, 400, None, 7), info(9, 390, Some(150), 9)];
        let exit = Flow { congestion_control: "bbr".into(), ..flow(infos) }.sampled_exit(100).unwrap();
        assert_eq!((exit.reason, exit.window_bytes), (ExitReason::Algorithm, 400 * 1_448));
    }

    #[test]
    fn no_threshold_no_exit() {
        assert_eq!(flow([info(9, 10, None, 0), info(9, 400, None, 5)]).sampled_exit(100), None);
        assert_eq!(flow([]).sampled_exit(100), None);
        let idle = TcpInfo { bytes_acked: 100, ..info(100, 400, Some(300), 0) };
        assert_eq!(flow([info(9, 10, None, 0), idle]).sampled_exit(100), None);
    }
}
