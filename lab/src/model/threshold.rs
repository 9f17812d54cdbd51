// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Early buffer overflow in slow start (Barakat et al. 1999): one bottleneck with a small drop-tail buffer, a long round-trip
//! time, every packet acknowledged, and cross traffic that does not react.
//!
//! In slow start the ACKs of one round trip come at the rate of the bottleneck and each releases two packets, so the
//! queue grows although the window is far from what the path holds. If it overflows below the threshold, the window at
//! the overflow is taken for the capacity. Two cures: a lower threshold (4), or a slower release of packets (5, 6).

use std::ops::RangeInclusive;

use serde::Serialize;

use super::RTTS_SECONDS;
use crate::link::RangeError;
use crate::link::spec::within;

/// Sizes of buffers, packets; those of the lab's links.
pub const BUFFERS_PACKETS: RangeInclusive<u64> = 1..=10_000_000;
/// Reduction that standard TCP applies to the window at a loss. A larger factor violates congestion control.
pub const STANDARD_FACTOR: f64 = 0.5;
/// Below this factor a lower threshold costs more than the losses that it avoids: standard TCP reaches a quarter of
/// the largest window with its second slow start.
pub const LEAST_USEFUL_FACTOR: f64 = 0.25;

/// A bottleneck shared with cross traffic, as one TCP connection finds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bottleneck {
    rate_pps: f64,
    cross_traffic_pps: f64,
    rtt_seconds: f64,
    buffer_packets: f64,
}

/// Rates at which packets may leave in slow start without an overflow below the threshold (6).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "pps")]
pub enum SafeRate {
    /// Any: even at infinite speed the buffer alone holds half of the largest window.
    Unbounded,
    /// Below this one, packets per second.
    Below(f64),
}

/// What a lower threshold (4) brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LowerThreshold {
    /// Slow start is free of loss with the standard factor.
    NotNeeded,
    /// A factor between [`LEAST_USEFUL_FACTOR`] and the largest lossless one makes congestion avoidance begin at a
    /// larger window.
    Helps,
    /// Every lossless factor makes congestion avoidance begin at a smaller window.
    Harms,
}

impl Bottleneck {
    /// `rate_pps`: packets per second, μ, above 0. `cross_traffic_pps`: λ, from 0 to below μ (stability). `rtt_seconds`:
    /// two-way propagation delay, τ. `buffer_packets`: B.
    ///
    /// # Errors
    /// [`RangeError`] naming the first value out of range.
    pub fn new(
        rate_pps: f64,
        cross_traffic_pps: f64,
        rtt_seconds: f64,
        buffer_packets: u64,
    ) -> Result<Self, RangeError> {
        if !(rate_pps.is_finite() && rate_pps > 0.0) {
            return Err(RangeError::new("rate_pps", rate_pps, "expected a number above 0"));
        }
        if !(0.0..rate_pps).contains(&cross_traffic_pps) {
            let range = format!(
                "expected 0 to below {rate_pps:.1} packets per second, the rate of the link; lower it or raise the rate"
            );
            return Err(RangeError::new("cross_traffic_pps", cross_traffic_pps, range));
        }
        within("rtt_seconds".into(), rtt_seconds, RTTS_SECONDS)?;
        within("buffer_packets".into(), buffer_packets, BUFFERS_PACKETS)?;
        Ok(Self { rate_pps, cross_traffic_pps, rtt_seconds, buffer_packets: buffer_packets as f64 })
    }

    /// What cross traffic leaves, packets per second: μ − λ.
    pub fn available_pps(&self) -> f64 {
        self.rate_pps - self.cross_traffic_pps
    }

    /// Share of cross traffic, 0 to below 1: ρ = λ/μ.
    pub fn load(&self) -> f64 {
        self.cross_traffic_pps / self.rate_pps
    }

    /// Rate at which slow start sends by itself, packets per second: 2μ − λ.
    pub fn burst_pps(&self) -> f64 {
        2.0 * self.rate_pps - self.cross_traffic_pps
    }

    /// Packets that the empty path holds of this connection, one in transmission included: τ(μ − λ) + 1.
    fn pipe_packets(&self) -> f64 {
        self.rtt_seconds * self.available_pps() + 1.0
    }

    /// Largest window that the path holds, packets (1).
    pub fn largest_window_packets(&self) -> f64 {
        self.buffer_packets * (1.0 - self.load()) + self.pipe_packets()
    }

    /// Window at which the buffer overflows in slow start, packets (2).
    pub fn overflow_window_packets(&self) -> f64 {
        self.buffer_packets * self.burst_pps() / self.rate_pps
    }

    /// Buffer in units of what the empty path holds, β (3).
    pub fn normalized_buffer(&self) -> f64 {
        self.buffer_packets / self.pipe_packets()
    }

    /// The normalized buffer above which standard slow start is free of loss: 1/(3 − ρ) (3).
    pub fn lossless_normalized_buffer(&self) -> f64 {
        1.0 / (3.0 - self.load())
    }

    /// Whether standard slow start reaches half of the largest window before the buffer overflows (3).
    pub fn is_lossless(&self) -> bool {
        self.normalized_buffer() > self.lossless_normalized_buffer()
    }

    /// Factor below which a threshold of that share of the largest window is reached without loss, γmax (4).
    pub fn largest_factor(&self) -> f64 {
        self.overflow_window_packets() / self.largest_window_packets()
    }

    /// What a lower threshold would bring.
    pub fn lower_threshold(&self) -> LowerThreshold {
        if self.is_lossless() {
            LowerThreshold::NotNeeded
        } else if self.largest_factor() > LEAST_USEFUL_FACTOR {
            LowerThreshold::Helps
        } else {
            LowerThreshold::Harms
        }
    }

    /// Window at which congestion avoidance begins, packets, with a threshold of `factor` times the largest window
    /// (figure 2): the threshold if slow start reaches it without loss; else half of the window at the time the loss is
    /// noticed, which is one round trip later and at most twice as large.
    pub fn avoidance_window_packets(&self, factor: f64) -> f64 {
        let threshold = factor * self.largest_window_packets();
        let overflow = self.overflow_window_packets();
        if overflow > threshold { threshold } else { threshold.min(2.0 * overflow) / 2.0 }
    }

    /// Window at which the buffer overflows if packets leave at `spacing_pps` in slow start, packets (5). `None`:
    /// never, because at or below the available rate no queue builds up.
    pub fn spaced_overflow_window_packets(&self, spacing_pps: f64) -> Option<f64> {
        let excess = spacing_pps - self.available_pps();
        (excess > 0.0).then(|| self.buffer_packets * spacing_pps / excess)
    }

    /// The rates that avoid loss in slow start (6). A bound at or above [`Self::burst_pps`] means that spacing is not
    /// needed, which is [`Self::is_lossless`] again.
    pub fn safe_rate(&self) -> SafeRate {
        let beta = self.normalized_buffer();
        let denominator = 1.0 - beta * (1.0 + self.load());
        if denominator <= 0.0 {
            return SafeRate::Unbounded;
        }
        SafeRate::Below(self.available_pps() * (1.0 + beta * (1.0 - self.load())) / denominator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::packets_per_second;

    /// Barakat et al. 1999: 1.5 Mb/s, 512-byte packets, 250 + 30 ms one way, 40 packets, 100 packets/s.
    fn scenario() -> Bottleneck {
        Bottleneck::new(packets_per_second(1_500_000, 512).unwrap(), 100.0, 0.56, 40).unwrap()
    }

    fn grid() -> impl Iterator<Item = Bottleneck> {
        let rates = [10.0, 366.0, 20_000.0];
        let loads = [0.0, 0.1, 0.5, 0.99];
        let rtts = [1e-6, 0.02, 0.56, 20.0];
        let buffers = [1, 7, 40, 200, 5_000, 10_000_000];
        rates.into_iter().flat_map(move |rate| {
            loads.into_iter().flat_map(move |load| {
                rtts.into_iter().flat_map(move |rtt| {
                    buffers
                        .into_iter()
                        .map(move |buffer| Bottleneck::new(rate, rate * load, rtt, buffer).unwrap())
                })
            })
        })
    }

    #[test]
    fn the_scenario_of_002_gives_its_figures() {
        let path = scenario();
        // 161 packets/s are 60.5 % of what is available.
        assert_eq!((161.0 / path.available_pps() * 1e3).round(), 605.0);
        assert_eq!((path.largest_factor() * 100.0).floor(), 38.0);
        let SafeRate::Below(rate) = path.safe_rate() else { panic!("{:?}", path.safe_rate()) };
        assert_eq!(rate.floor(), 480.0);
        assert!(!path.is_lossless());
        assert_eq!(path.lower_threshold(), LowerThreshold::Helps);
        // Figures 6 and 7: 0.34 begins higher than the standard, a factor below a quarter lower; figures 8 and 9:
        // spacing begins highest.
        let begin = |factor| path.avoidance_window_packets(factor);
        assert!(begin(0.34) > begin(STANDARD_FACTOR) && begin(0.24) < begin(STANDARD_FACTOR));
        assert!(path.largest_window_packets() / 2.0 > begin(0.34));
        for spaced in [440.0, 300.0] {
            let overflow = path.spaced_overflow_window_packets(spaced).unwrap();
            assert!(overflow > path.largest_window_packets() / 2.0, "{spaced}: {overflow}");
        }
    }

    #[test]
    fn the_three_buffers_of_figure_3_fall_into_its_three_cases() {
        // μ, λ and τ of the scenario; B such that β is 0.5, 0.25 and 0.125.
        let with = |beta: f64| {
            let pipe = scenario().pipe_packets();
            Bottleneck::new(366.2109375, 100.0, 0.56, (beta * pipe).round() as u64).unwrap()
        };
        assert_eq!(with(0.5).lower_threshold(), LowerThreshold::NotNeeded);
        assert_eq!(with(0.25).lower_threshold(), LowerThreshold::Helps);
        assert_eq!(with(0.125).lower_threshold(), LowerThreshold::Harms);
    }

    #[test]
    fn the_window_at_overflow_is_what_fluid_sends_until_the_buffer_is_full() {
        let path = scenario();
        for rate in [270.0, 300.0, 440.0, path.burst_pps()] {
            let (step, mut queue, mut sent) = (1e-5, 0.0, 0.0);
            while queue < 40.0 {
                queue += (rate + 100.0 - 366.2109375) * step;
                sent += rate * step;
            }
            let closed = path.spaced_overflow_window_packets(rate).unwrap();
            assert!((closed / sent - 1.0).abs() < 1e-3, "{rate}: {closed} {sent}");
        }
    }

    #[test]
    fn the_three_conditions_for_no_loss_agree_everywhere() {
        for path in grid() {
            let by_factor = path.largest_factor() > STANDARD_FACTOR;
            let by_rate = match path.safe_rate() {
                SafeRate::Unbounded => true,
                SafeRate::Below(rate) => rate > path.burst_pps(),
            };
            assert_eq!((path.is_lossless(), by_factor), (by_rate, by_rate), "{path:?}");
        }
    }

    #[test]
    fn spacing_at_the_bound_overflows_at_the_threshold_and_at_the_burst_rate_where_unspaced_does() {
        for path in grid() {
            let burst = path.spaced_overflow_window_packets(path.burst_pps()).unwrap();
            assert!((burst / path.overflow_window_packets() - 1.0).abs() < 1e-9, "{path:?}");
            let half = path.largest_window_packets() / 2.0;
            match path.safe_rate() {
                SafeRate::Below(rate) => {
                    assert!(rate > path.available_pps(), "{path:?}");
                    let overflow = path.spaced_overflow_window_packets(rate).unwrap();
                    assert!((overflow / half - 1.0).abs() < 1e-6, "{path:?}: {overflow} {half}");
                }
                SafeRate::Unbounded => assert!(
                    path.spaced_overflow_window_packets(1e15).unwrap() >= half * (1.0 - 1e-9),
                    "{path:?}"
                ),
            }
        }
    }

    #[test]
    fn at_or_below_the_available_rate_nothing_overflows() {
        let path = scenario();
        assert_eq!(path.spaced_overflow_window_packets(path.available_pps()), None);
        assert_eq!(path.spaced_overflow_window_packets(0.0), None);
        assert!(path.spaced_overflow_window_packets(path.available_pps() + 1e-6).unwrap() > 1e9);
    }

    #[test]
    fn a_factor_just_above_the_largest_one_loses_and_begins_half_as_high() {
        let path = scenario();
        let largest = path.largest_factor();
        let (below, above) =
            (path.avoidance_window_packets(largest - 1e-9), path.avoidance_window_packets(largest + 1e-9));
        assert!((below / above - 2.0).abs() < 1e-6, "{below} {above}");
        // A small buffer: the window doubles once before the loss is noticed, not twice.
        let small = Bottleneck::new(366.0, 0.0, 0.56, 5).unwrap();
        assert_eq!(small.avoidance_window_packets(STANDARD_FACTOR), small.overflow_window_packets());
    }

    #[test]
    fn values_out_of_range_are_named() {
        for (path, key) in [
            (Bottleneck::new(0.0, 0.0, 0.5, 40), "rate_pps = 0"),
            (Bottleneck::new(f64::NAN, 0.0, 0.5, 40), "rate_pps = NaN"),
            (Bottleneck::new(100.0, 100.0, 0.5, 40), "cross_traffic_pps = 100"),
            (Bottleneck::new(100.0, -1.0, 0.5, 40), "cross_traffic_pps = -1"),
            (Bottleneck::new(100.0, f64::NAN, 0.5, 40), "cross_traffic_pps = NaN"),
            (Bottleneck::new(100.0, 0.0, 0.0, 40), "rtt_seconds = 0"),
            (Bottleneck::new(100.0, 0.0, 21.0, 40), "rtt_seconds = 21"),
            (Bottleneck::new(100.0, 0.0, 0.5, 0), "buffer_packets = 0"),
        ] {
            let message = path.unwrap_err().to_string();
            assert!(message.starts_with(key) && message.contains("expected"), "{message}");
        }
        assert!(Bottleneck::new(100.0, 99.999, 0.5, 1).is_ok());
    }
}
