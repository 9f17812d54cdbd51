// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Slow start over a channel that grants bandwidth on demand (Gotta et al. 2006).
//!
//! A terminal asks for `k` times its incoming rate and gets it the allocation delay later, so the ACKs of a window
//! arrive T = τ + Da after the window was sent: dw/dt = k·w(t − T)/τ (3). Replacing the delay by a fraction of second
//! order, exp(−sT) ≈ (1 − sT/2)/(1 + sT/2), gives two roots and closed forms for everything else (6 to 15).
//!
//! The approximation is good while the window grows little within T. Its growth never exceeds 2/T, that of the delay
//! equation does: [`Startup::delay_equation_growth`] and [`delay_equation_best_factor`] show how far it is off.
//! (12) is (13) without its constant, so it has no function here.

mod figure;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

pub use figure::figure;

use super::RTTS_SECONDS;
use crate::link::RangeError;
use crate::link::spec::within;

/// Delays and periods of the allocation, seconds.
pub const DELAYS_SECONDS: RangeInclusive<f64> = 0.0..=60.0;
/// Ratio of granted to incoming rate, k.
pub const FACTORS: RangeInclusive<f64> = 0.01..=100.0;
/// Initial windows, packets; they must be below what the channel carries in a round-trip time as well.
pub const INITIAL_WINDOWS: RangeInclusive<u64> = 1..=10_000;

/// Mean time from asking for bandwidth to having it, seconds: Da (1).
pub fn allocation_delay_seconds(rtt: f64, request_period: f64, allocation_period: f64) -> f64 {
    rtt + request_period / 2.0 + allocation_period / 2.0
}

/// s2·T of (7) as a function of ρk, 0 to 2. It is written with the other root, −s1·T, below the line, because the
/// difference in (7) loses all digits for small ρk.
fn growth_in_delay(rho_k: f64) -> f64 {
    2.0 * rho_k / decay_in_delay(rho_k)
}

/// −s1·T of (7) as a function of ρk, 2 and above.
fn decay_in_delay(rho_k: f64) -> f64 {
    let half = rho_k / 2.0;
    1.0 + half + (1.0 + 3.0 * rho_k + half * half).sqrt()
}

/// The factor with which a starting connection is granted just what it sends: the root of k = exp(T·s2) (16). Below
/// e², because the approximated growth is below 2/T.
pub fn best_factor(delay_ratio: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 2.0_f64);
    // In ln k; halving 2 this often leaves less than a double can hold.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if growth_in_delay(delay_ratio * middle.exp()) > middle {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.exp()
}

/// The same without the approximation: growth x = sT of the delay equation satisfies x·eˣ = ρk, so k = eˣ means x = ρ.
pub fn delay_equation_best_factor(delay_ratio: f64) -> f64 {
    delay_ratio.exp()
}

/// A connection that starts over an idle terminal, no loss, no limit but the channel, every packet acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Startup {
    rtt: f64,
    delay: f64,
    factor: f64,
    initial_window: f64,
    capacity: f64,
}

impl Startup {
    /// `rtt_seconds`: mean round-trip time, τ. `allocation_delay_seconds`: Da; 0 for a channel assigned in advance.
    /// `factor`: k. `initial_window_packets`: W0. `capacity_pps`: packets per second, μ; one round-trip time of it must
    /// be more than the initial window.
    ///
    /// # Errors
    /// [`RangeError`] naming the first value out of range.
    pub fn new(
        rtt_seconds: f64,
        allocation_delay_seconds: f64,
        factor: f64,
        initial_window_packets: u64,
        capacity_pps: f64,
    ) -> Result<Self, RangeError> {
        within("rtt_seconds".into(), rtt_seconds, RTTS_SECONDS)?;
        within("allocation_delay_seconds".into(), allocation_delay_seconds, DELAYS_SECONDS)?;
        within("factor".into(), factor, FACTORS)?;
        within("initial_window_packets".into(), initial_window_packets, INITIAL_WINDOWS)?;
        if !capacity_pps.is_finite() {
            return Err(RangeError::new("capacity_pps", capacity_pps, "expected a finite number"));
        }
        let carried = capacity_pps * rtt_seconds;
        let initial_window = initial_window_packets as f64;
        if initial_window >= carried {
            let range = format!(
                "expected less than {carried:.1}, the packets that the channel carries in one round-trip time; a larger window leaves no slow start: lower it or raise the rate"
            );
            return Err(RangeError::new("initial_window_packets", initial_window_packets, range));
        }
        let delay = rtt_seconds + allocation_delay_seconds;
        Ok(Self { rtt: rtt_seconds, delay, factor, initial_window, capacity: capacity_pps })
    }

    /// The same connection with another factor k.
    ///
    /// # Errors
    /// [`RangeError`] unless it is in [`FACTORS`].
    pub fn with_factor(self, factor: f64) -> Result<Self, RangeError> {
        within("factor".into(), factor, FACTORS)?;
        Ok(Self { factor, ..self })
    }

    /// k.
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// W0, packets.
    pub fn initial_window_packets(&self) -> u64 {
        self.initial_window as u64
    }

    /// Da, seconds.
    pub fn allocation_delay_seconds(&self) -> f64 {
        self.delay - self.rtt
    }

    /// Time from sending a window to its ACKs, over the round-trip time: ρ = T/τ.
    pub fn delay_ratio(&self) -> f64 {
        self.delay / self.rtt
    }

    fn rho_k(&self) -> f64 {
        self.delay_ratio() * self.factor
    }

    /// The roots s1 < 0 < s2, per second (7).
    pub fn roots(&self) -> (f64, f64) {
        (-decay_in_delay(self.rho_k()) / self.delay, growth_in_delay(self.rho_k()) / self.delay)
    }

    /// Growth of the window without the approximation, per second: x/T with x·eˣ = ρk.
    pub fn delay_equation_growth(&self) -> f64 {
        let rho_k = self.rho_k();
        // Newton in x; ln(1 + ρk) is above the root, the function is convex, so the steps go down to it.
        let mut x = rho_k.ln_1p();
        for _ in 0..30 {
            x -= (x - rho_k * (-x).exp()) / (1.0 + x);
        }
        x / self.delay
    }

    /// Time in which the window doubles, seconds.
    pub fn doubling_seconds(&self) -> f64 {
        std::f64::consts::LN_2 / self.roots().1
    }

    /// A and B of (8), packets.
    fn amplitudes(&self) -> (f64, f64) {
        let (decay, growth) = (-decay_in_delay(self.rho_k()), growth_in_delay(self.rho_k()));
        let scale = self.initial_window / (decay - growth);
        ((2.0 + decay) * scale, -(2.0 + growth) * scale)
    }

    /// Congestion window `seconds` after the start and before saturation, packets (10).
    pub fn window_packets(&self, seconds: f64) -> f64 {
        let ((s1, s2), (a, b)) = (self.roots(), self.amplitudes());
        a * (s1 * seconds).exp() + b * (s2 * seconds).exp()
    }

    /// When the channel is saturated, seconds: ts (9). The decaying term is neglected; see [`Self::holds`].
    pub fn saturation_seconds(&self) -> f64 {
        (self.capacity * self.rtt / self.amplitudes().1).ln() / self.roots().1
    }

    /// Whether the neglected term is small at saturation: ts > 1/|s1|.
    pub fn holds(&self) -> bool {
        self.saturation_seconds() > self.settled_seconds()
    }

    /// When the decaying term has fallen by e: 1/|s1|.
    fn settled_seconds(&self) -> f64 {
        -1.0 / self.roots().0
    }

    /// Round-trip time over a channel assigned in advance with which the window would grow alike, seconds (11).
    pub fn equivalent_rtt_seconds(&self) -> f64 {
        self.rtt * decay_in_delay(self.rho_k()) / decay_in_delay(self.factor)
    }

    /// Packets sent until `seconds` (13).
    pub fn sent_packets(&self, seconds: f64) -> f64 {
        let saturated = self.saturation_seconds();
        let growing = seconds.min(saturated);
        let (s2, b) = (self.roots().1, self.amplitudes().1);
        let slow_start = b / (s2 * self.rtt) * (s2 * growing).exp() - self.initial_window / self.factor;
        slow_start + self.capacity * (seconds - growing)
    }

    /// Packets sent before saturation: N(ts) (14).
    pub fn sent_at_saturation_packets(&self) -> f64 {
        self.capacity / self.roots().1 - self.initial_window / self.factor
    }

    /// Time to send this many packets, seconds: D (15). `None`: so few that the neglected term counts (D ≤ 1/|s1|).
    ///
    /// NOTE (15) as printed inverts (13) only for k = 1: its logarithm lacks the factor 1/k. This is the inverse of
    /// (13) for every k.
    pub fn completion_seconds(&self, packets: f64) -> Option<f64> {
        let at_saturation = self.sent_at_saturation_packets();
        let (s2, b) = (self.roots().1, self.amplitudes().1);
        let seconds = if packets > at_saturation {
            self.saturation_seconds() + (packets - at_saturation) / self.capacity
        } else {
            ((packets + self.initial_window / self.factor) * s2 * self.rtt / b).ln() / s2
        };
        (seconds > self.settled_seconds()).then_some(seconds)
    }
}
