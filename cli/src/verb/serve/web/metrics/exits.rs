//! What exits and ends of flows have come to since the server began: never by connection, address or port.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use super::control;
use super::family::{Family, Kind, Sample, Unit};
use super::histogram::Histogram;
use crate::verb::serve::row::FlowSummary;

/// A histogram of each congestion control.
struct Histograms {
    bounds: Vec<f64>,
    controls: BTreeMap<String, Histogram>,
}

impl Histograms {
    /// With so many bounds, each so many times the one before.
    fn exponential(first: f64, factor: f64, bounds: u32) -> Self {
        let bound = |number: u32| first * factor.powi(number as i32);
        Self { bounds: (0..bounds).map(bound).collect(), controls: BTreeMap::new() }
    }

    /// With one bound more.
    fn and_zero(mut self) -> Self {
        self.bounds.insert(0, 0.0);
        self
    }

    /// Around one: what is twice or half as much as it should be is as far from it.
    fn around_one() -> Self {
        Self::exponential(1.0 / 64.0, 2.0_f64.sqrt(), 25)
    }

    fn add(&mut self, cc: &str, value: f64) {
        match self.controls.get_mut(cc) {
            Some(histogram) => histogram.observe(value),
            None => {
                let mut histogram = Histogram::new(&self.bounds);
                histogram.observe(value);
                self.controls.insert(cc.to_owned(), histogram);
            }
        }
    }

    fn family(&self, name: &'static str, unit: Unit, help: &'static str) -> Family {
        let mut family = Family::new(name, unit, Kind::Histogram, help);
        let sample = |(cc, histogram): (&String, &Histogram)| {
            (vec![("cc", cc.clone())], Sample::Histogram(histogram.clone()))
        };
        family.samples = self.controls.iter().map(sample).collect();
        family
    }
}

pub(in super::super) struct Exits {
    cwnd: Histograms,
    duration: Histograms,
    ratio: Histograms,
    overshoot: Histograms,
    inflation: Histograms,
    accuracy: Histograms,
    retransmitted: Histograms,
    regret: Histograms,
    queue: Histograms,
}

impl Default for Exits {
    fn default() -> Self {
        let seconds = || Histograms::exponential(0.01, 2.0, 13).and_zero();
        Self {
            cwnd: Histograms::exponential(16_384.0, 2.0, 16),
            duration: Histograms::exponential(0.001, 2.0, 18),
            ratio: Histograms::around_one(),
            overshoot: Histograms::exponential(16_384.0, 2.0, 16).and_zero(),
            inflation: Histograms::exponential(1.0, 1.25, 16),
            accuracy: Histograms::around_one(),
            retransmitted: Histograms::exponential(0.0005, 2.0, 11).and_zero(),
            regret: seconds(),
            queue: seconds(),
        }
    }
}

impl Exits {
    /// A flow as it is reported now, and as it was reported before.
    pub fn observe(&mut self, before: Option<&FlowSummary>, now: &FlowSummary) {
        // Most messages have nothing new for this.
        let cc = &LazyCell::new(|| control(&now.algorithm));
        if let Some(exit) = &now.exit
            && before.is_none_or(|before| before.exit.is_none())
        {
            self.cwnd.add(cc, exit.window_bytes as f64);
            self.duration.add(cc, exit.since_start_us as f64 / 1e6);
            if exit.min_rtt_us > 0 && exit.rtt_us > 0 {
                self.inflation.add(cc, f64::from(exit.rtt_us) / f64::from(exit.min_rtt_us));
            }
        }
        if let Some(loss) = now.loss_cwnd_segments.filter(|segments| *segments > 0)
            && before.is_none_or(|before| before.loss_cwnd_segments.is_none())
            && let Some(after) =
                now.exit.as_ref().map(|exit| exit.cwnd_after_segments).filter(|after| *after > 0)
        {
            self.accuracy.add(cc, f64::from(after) / f64::from(loss));
        }
        if now.ended() && before.is_none_or(|before| !before.ended()) {
            self.ended(cc, now);
        }
    }

    fn ended(&mut self, cc: &str, now: &FlowSummary) {
        if let Some(permille) = now.exit_permille_of_bdp() {
            self.ratio.add(cc, permille as f64 / 1000.0);
        }
        if let Some((exit, bdp)) = now.exit.as_ref().zip(now.bdp_bytes.filter(|_| !now.bdp_at_least)) {
            self.overshoot.add(cc, exit.window_bytes.saturating_sub(bdp) as f64);
        }
        if let Some(sent) = now.sent_bytes.filter(|bytes| *bytes > 0) {
            self.retransmitted.add(cc, now.retransmitted_bytes as f64 / sent as f64);
        }
        if let Some(regret) = now.regret {
            self.regret.add(cc, regret.early_us as f64 / 1e6);
            if let Some(us) = regret.queue_us {
                self.queue.add(cc, us as f64 / 1e6);
            }
        }
    }

    pub(super) fn families(&self) -> Vec<Family> {
        vec![
            self.cwnd.family("slow_start_exit_cwnd", Unit::Bytes, "Window at the end of the first slow start"),
            self.duration.family(
                "slow_start_duration",
                Unit::Seconds,
                "From the first data to the end of the first slow start",
            ),
            self.ratio.family(
                "slow_start_exit",
                Unit::Ratio,
                "Window at the end of slow start over the bandwidth-delay product: highest rate of a round times minimum RTT, when the flow ends",
            ),
            self.overshoot.family(
                "slow_start_overshoot",
                Unit::Bytes,
                "What the window at the end of slow start was above the bandwidth-delay product, when the flow ends; of flows that kept their highest rate for four rounds",
            ),
            self.accuracy.family(
                "slow_start_exit_accuracy",
                Unit::Ratio,
                "Threshold at the end of slow start over the window before the first loss after it",
            ),
            self.inflation.family(
                "rtt_inflation",
                Unit::Ratio,
                "RTT over minimum RTT at the end of slow start",
            ),
            self.retransmitted.family(
                "retransmit",
                Unit::Ratio,
                "Bytes retransmitted over bytes sent, when the flow ends",
            ),
            self.regret.family(
                "slow_start_exit_regret",
                Unit::Seconds,
                "Time lost by exiting slow start before the window carried what the path gave, when the flow ends",
            ),
            self.queue.family(
                "slow_start_exit_queue",
                Unit::Seconds,
                "Queueing delay by exiting slow start late, when the flow ends",
            ),
        ]
    }
}
