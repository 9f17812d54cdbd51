// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a flow did, in no more points than a figure can show.

use crate::sample::Sample;

/// Points kept at most; when there are as many, every second goes.
const POINTS: usize = 4_096;

/// A flow at one acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Since the first data was sent.
    pub at_us: u64,
    /// Congestion window.
    pub window_bytes: u64,
    /// In flight.
    pub in_flight_bytes: u64,
    /// Smoothed.
    pub smoothed_rtt_us: u32,
}

/// Points at equal numbers of acknowledgments.
#[derive(Clone, Debug)]
pub struct Trace {
    /// In the order of time.
    pub points: Vec<Point>,
    stride: usize,
    /// Acknowledgments until the next point.
    wait: usize,
}

impl Default for Trace {
    fn default() -> Self {
        Self { points: Vec::new(), stride: 1, wait: 0 }
    }
}

impl Trace {
    pub(super) fn add(&mut self, samples: &[Sample], start_us: u64) {
        let mut index = self.wait;
        while let Some(Sample { ack, .. }) = samples.get(index) {
            self.points.push(Point {
                at_us: ack.now_us.wrapping_sub(start_us),
                window_bytes: u64::from(ack.cwnd) * u64::from(ack.mss),
                in_flight_bytes: u64::from(ack.in_flight) * u64::from(ack.mss),
                smoothed_rtt_us: ack.smoothed_rtt_us,
            });
            if self.points.len() == POINTS {
                let mut odd = true;
                self.points.retain(|_| {
                    odd = !odd;
                    !odd
                });
                self.stride *= 2;
            }
            index += self.stride;
        }
        self.wait = index - samples.len();
    }
}

#[cfg(test)]
mod tests {
    use onramp_algorithm::Ack;

    use super::*;

    #[test]
    fn however_long_a_flow_its_trace_is_short_and_spans_it() {
        let mut trace = Trace::default();
        let samples: Vec<Sample> = (0..100_000)
            .map(|now_us| Sample { ack: Ack { now_us, ..Ack::default() }, ..Sample::default() })
            .collect();
        for chunk in samples.chunks(777) {
            trace.add(chunk, 0);
        }
        assert!((POINTS / 2..POINTS).contains(&trace.points.len()), "{}", trace.points.len());
        assert_eq!(trace.points[0].at_us, 0);
        assert!(trace.points.windows(2).all(|pair| pair[0].at_us < pair[1].at_us));
        assert!(trace.points.last().unwrap().at_us > 99_000);
    }
}
