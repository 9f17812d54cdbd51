// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Figures read off the series of one flow. Times are seconds since its first data, as the sender sees them: what is
//! acknowledged arrived half a round trip before.

use serde::{Deserialize, Serialize};

use super::flow::Flow;

/// Share of the link's rate, in acknowledged payload, that counts as having reached it.
const REACHED: f64 = 0.9;
/// Period over which a rate is taken, nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Figures of one flow: times, windows and rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measures {
    /// When the first so many bytes were acknowledged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectTime>,
    /// End of the first second in which 90 % of the link's rate was acknowledged; none if there was no such second.
    pub ramp_seconds: Option<f64>,
    /// Rate of acknowledged bytes over the last third of the transfer, bit/s.
    pub steady_goodput_bps: Option<f64>,
    /// Longest time without an acknowledgment of new data, from the first one to the last, seconds.
    pub longest_stall_seconds: f64,
    /// Standard deviation of the bytes acknowledged in each second over their mean, over the last two thirds.
    pub rate_variation: Option<f64>,
    /// Median of the times in which the congestion window doubled while it was in slow start, seconds.
    pub doubling_seconds: Option<f64>,
    /// Largest congestion window, bytes.
    pub max_window_bytes: u64,
}

/// Time to download an object.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectTime {
    /// Its size.
    pub bytes: u64,
    /// Its time; none if the flow did not carry so much.
    pub seconds: Option<f64>,
    /// Simulated, over bandwidth on demand: what the forward link had carried by then over what had been assigned to it since
    /// the begin of the transfer, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
}

impl Measures {
    /// Of a flow over a link of this rate.
    pub fn new(flow: &Flow, rate_bps: u64, objects: &[u64]) -> Self {
        let (Some(began), Some(ended)) = (flow.began_ns(), flow.ended_ns()) else { return Self::default() };
        let since = |at: u64| at.saturating_sub(began) as f64 / 1e9;
        let length = ended.saturating_sub(began);
        let object = |bytes: &u64| {
            let there = flow.samples.iter().find(|sample| sample.info.bytes_acked >= *bytes);
            ObjectTime { bytes: *bytes, seconds: there.map(|sample| since(sample.at_ns)), utilization: None }
        };
        let wanted = rate_bps as f64 / 8.0 * REACHED;
        let reached = flow.samples.iter().filter(|sample| sample.at_ns >= began + SECOND).find(|sample| {
            let before = flow.acked_at(sample.at_ns - SECOND);
            (sample.info.bytes_acked - before) as f64 >= wanted
        });
        let third = ended - length / 3;
        let last_bytes = flow.acked_at(ended) - flow.acked_at(third);
        let steady = (length > 0).then(|| last_bytes as f64 * 8.0 / ((ended - third) as f64 / 1e9));
        Self {
            objects: objects.iter().map(object).collect(),
            ramp_seconds: reached.map(|sample| since(sample.at_ns)),
            steady_goodput_bps: steady,
            longest_stall_seconds: longest_stall(flow),
            rate_variation: variation(flow, began + length / 3, ended),
            doubling_seconds: doubling(flow),
            max_window_bytes: flow.samples.iter().map(|sample| sample.info.cwnd_bytes()).max().unwrap_or(0),
        }
    }
}

fn longest_stall(flow: &Flow) -> f64 {
    let mut longest = 0;
    let mut last = None;
    for pair in flow.samples.windows(2) {
        if pair[1].info.bytes_acked > pair[0].info.bytes_acked {
            longest = longest.max(last.map_or(0, |last| pair[1].at_ns - last));
            last = Some(pair[1].at_ns);
        }
    }
    longest as f64 / 1e9
}

fn variation(flow: &Flow, from: u64, to: u64) -> Option<f64> {
    let seconds = to.saturating_sub(from) / SECOND;
    let acked = |second: u64| flow.acked_at(from + second * SECOND);
    let each: Vec<f64> = (0..seconds).map(|second| (acked(second + 1) - acked(second)) as f64).collect();
    let count = each.len() as f64;
    let mean = each.iter().sum::<f64>() / count;
    if each.len() < 3 || mean <= 0.0 {
        return None;
    }
    let variance = each.iter().map(|bytes| (bytes - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Some(variance.sqrt() / mean)
}

fn doubling(flow: &Flow) -> Option<f64> {
    let (mut times, mut next, mut last) = (Vec::new(), None, None);
    let began = flow.began_ns()?;
    for sample in flow.samples.iter().filter(|sample| sample.at_ns >= began) {
        let info = &sample.info;
        // The threshold may be ahead of the window, or have come with a loss.
        if !info.in_slow_start() || info.retrans_total > 0 {
            break;
        }
        let target = *next.get_or_insert(info.snd_cwnd * 2);
        let since = *last.get_or_insert(sample.at_ns);
        if info.snd_cwnd >= target {
            times.push((sample.at_ns - since) as f64 / 1e9);
            (next, last) = (Some(target * 2), Some(sample.at_ns));
        }
    }
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use onramp_net::sock_diag::TcpInfo;

    use super::*;
    use crate::experiment::FlowSample;

    /// A look every 100 ms, from the first data on; `acked` and `cwnd` by number of the look.
    fn flow(looks: u64, acked: impl Fn(u64) -> u64, cwnd: impl Fn(u64) -> u32) -> Flow {
        let sample = |look: u64| FlowSample {
            at_ns: 5 * SECOND + look * SECOND / 10,
            info: TcpInfo {
                bytes_sent: acked(look) + 1,
                bytes_acked: acked(look),
                snd_cwnd: cwnd(look),
                snd_mss: 1_000,
                ..TcpInfo::default()
            },
        };
        Flow { samples: (0..=looks).map(sample).collect(), ..Flow::default() }
    }

    #[test]
    fn a_rate_that_steps_up_is_timed_from_the_first_data() {
        // 0.1 MB/s for two seconds, then 1 MB/s for ten.
        let acked = |look: u64| if look <= 20 { look * 10_000 } else { 200_000 + (look - 20) * 100_000 };
        let flow = flow(120, acked, |_| 10);
        let measures = Measures::new(&flow, 8_000_000, &[100_000, 700_000, 99_000_000]);
        let seconds: Vec<_> = measures.objects.iter().map(|object| object.seconds).collect();
        assert_eq!(seconds, [Some(1.0), Some(2.5), None]);
        // Nine tenths of a second's bytes at the full rate: 0.9 s and a tenth of a slow one.
        let ramp = measures.ramp_seconds.unwrap();
        assert!((2.8..=3.0).contains(&ramp), "{ramp}");
        assert!((measures.steady_goodput_bps.unwrap() - 8e6).abs() < 1e5, "{measures:?}");
        assert!(measures.rate_variation.unwrap() < 0.01, "{measures:?}");
        assert_eq!(Measures::new(&flow, 80_000_000, &[]).ramp_seconds, None);
    }

    #[test]
    fn a_silence_is_a_stall_and_makes_the_rate_vary() {
        // Two seconds of silence from 6 s on.
        let acked = |look: u64| look.clamp(0, 60) * 1_000 + look.saturating_sub(80) * 1_000;
        let measures = Measures::new(&flow(150, acked, |_| 10), 80_000, &[]);
        assert!((measures.longest_stall_seconds - 2.1).abs() < 1e-6, "{measures:?}");
        assert!(measures.rate_variation.unwrap() > 0.3, "{measures:?}");
        let steady = Measures::new(&flow(150, |look| look * 1_000, |_| 10), 80_000, &[]);
        assert!((steady.longest_stall_seconds - 0.1).abs() < 1e-6, "{steady:?}");
    }

    #[test]
    fn doubling_is_the_median_time_until_the_window_has_doubled() {
        // 10, 20, 40, 80 segments, every 0.6 s.
        let measures = Measures::new(&flow(24, |look| look * 1_000, |look| 10 << (look / 6)), 80_000, &[]);
        assert!((measures.doubling_seconds.unwrap() - 0.6).abs() < 1e-6, "{measures:?}");
        assert_eq!(measures.max_window_bytes, 160_000);
        assert_eq!(Measures::new(&Flow::default(), 1, &[]), Measures::default());
    }
}
