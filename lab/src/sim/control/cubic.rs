// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! CUBIC (RFC 9438) as Linux does it: C = 0.4, β = 717/1024, fast convergence, the Reno-friendly region, and no more than
//! one segment for two acknowledged.

use super::super::socket::{Socket, State};

/// The multiplicative decrease, β, of 1024.
const BETA: u64 = 717;
/// The scaling of the cubic function, C.
const SCALE: f64 = 0.4;
/// Acknowledged segments for one of growth, at least: half the rate of slow start.
const LEAST_EVERY: u32 = 2;
/// The same where no loss has been met yet, at most.
const EVERY_BEFORE_LOSS: u32 = 20;
/// The function is computed anew only so often while the window stays, microseconds.
const UPDATE_US: u64 = 31_250;
/// Samples of the round-trip time within so long after a reduction do not count, microseconds.
const SETTLING_US: u64 = 1_000_000;

/// See the module. Windows in segments, times in microseconds.
#[derive(Clone, Debug, Default)]
pub struct Cubic {
    /// W_max: the window before the last reduction.
    last_max: u32,
    /// When the present growth began.
    epoch: Option<u64>,
    /// Window at which it levels out.
    origin: u32,
    /// K: after so many seconds.
    until_origin: f64,
    /// Window that Reno would have.
    reno: u32,
    /// Acknowledged segments that have not yet grown it.
    reno_acked: u32,
    /// Acknowledged segments for one of growth.
    every: u32,
    last_window: u32,
    last_update: u64,
    least_rtt_us: u32,
}

impl Cubic {
    /// A loss: the threshold.
    pub fn threshold(&mut self, socket: &Socket) -> u32 {
        self.epoch = None;
        let cwnd = u64::from(socket.cwnd);
        let converges = socket.cwnd < self.last_max;
        self.last_max = if converges { (cwnd * (1_024 + BETA) / 2_048) as u32 } else { socket.cwnd };
        ((cwnd * BETA / 1_024) as u32).max(2)
    }

    /// It levels off at this window, as if it had met a loss there.
    pub fn level_off(&mut self, window: u32) {
        self.last_max = window;
    }

    /// A timeout: all is forgotten.
    pub fn state(&mut self, new: State) {
        if new == State::Loss {
            *self = Self::default();
        }
    }

    /// A sample of the round-trip time.
    pub fn acked(&mut self, socket: &Socket, rtt_us: u32) {
        if self.epoch.is_some_and(|epoch| socket.now_us < epoch + SETTLING_US) {
            return;
        }
        let rtt_us = rtt_us.max(1);
        if self.least_rtt_us == 0 || self.least_rtt_us > rtt_us {
            self.least_rtt_us = rtt_us;
        }
    }

    /// Sending begins again after `idle_us`: growth goes on as if there had been no pause.
    pub fn resumed(&mut self, now_us: u64, idle_us: u64) {
        if idle_us > 0 {
            self.epoch = self.epoch.map(|epoch| (epoch + idle_us).min(now_us));
        }
    }

    /// Segments were acknowledged above the threshold.
    pub fn grow(&mut self, socket: &mut Socket, acked: u32) {
        self.update(socket, acked);
        socket.additive_increase(self.every, acked);
    }

    fn update(&mut self, socket: &Socket, acked: u32) {
        let (now, cwnd) = (socket.now_us, socket.cwnd);
        self.reno_acked += acked;
        if self.last_window == cwnd && now - self.last_update <= UPDATE_US && self.epoch.is_some() {
            return;
        }
        // Within a tick of the kernel's clock the function stays as it is.
        if self.epoch.is_none() || now / 4_000 != self.last_update / 4_000 {
            (self.last_window, self.last_update) = (cwnd, now);
            self.every = self.by_function(now, cwnd, acked);
        }
        self.every = self.friendly(cwnd).max(LEAST_EVERY);
    }

    /// The cubic function, a round-trip time from now (RFC 9438, section 4.2).
    fn by_function(&mut self, now: u64, cwnd: u32, acked: u32) -> u32 {
        let epoch = *self.epoch.get_or_insert_with(|| {
            (self.reno_acked, self.reno) = (acked, cwnd);
            let missing = self.last_max.saturating_sub(cwnd);
            self.origin = self.last_max.max(cwnd);
            self.until_origin = (f64::from(missing) / SCALE).cbrt();
            now
        });
        let time = (now - epoch + u64::from(self.least_rtt_us)) as f64 / 1e6;
        let target = f64::from(self.origin) + SCALE * (time - self.until_origin).powi(3);
        let missing = target.max(0.0) as u32;
        let every = match missing.saturating_sub(cwnd) {
            0 => cwnd.saturating_mul(100),
            missing => cwnd / missing,
        };
        if self.last_max == 0 { every.min(EVERY_BEFORE_LOSS) } else { every }
    }

    /// Never slower than Reno with this β would be (section 4.3).
    fn friendly(&mut self, cwnd: u32) -> u32 {
        // α = 3 (1 - β) / (1 + β): a segment for 1/α windows.
        let window = ((u64::from(cwnd) * 15) >> 3) as u32;
        while window > 0 && self.reno_acked > window {
            self.reno_acked -= window;
            self.reno += 1;
        }
        match self.reno.saturating_sub(cwnd) {
            0 => self.every,
            ahead => self.every.min(cwnd / ahead),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window after so many seconds of round trips of `rtt_us`, all of it used, from a loss at `from`.
    fn after(seconds: u64, rtt_us: u64, from: u32) -> u32 {
        let mut socket = Socket::new(1_448, from);
        let mut cubic = Cubic::default();
        socket.ssthresh = cubic.threshold(&socket);
        socket.cwnd = socket.ssthresh;
        cubic.acked(&socket, rtt_us as u32);
        let begin = socket.now_us;
        while socket.now_us < begin + seconds * 1_000_000 {
            let window = socket.cwnd;
            for _ in 0..window.div_ceil(2) {
                socket.now_us += 2 * rtt_us / u64::from(window);
                cubic.grow(&mut socket, 2);
            }
        }
        socket.cwnd
    }

    #[test]
    fn the_window_returns_after_k_seconds() {
        // RFC 9438, equation 2: K = cbrt(W_max (1 - β) / C) = cbrt(4000 × 0.3 / 0.4) = 14.4 s.
        let window = after(14, 600_000, 4_000);
        assert!((3_900..=4_010).contains(&window), "{window}");
        // And grows beyond by C (t - K)³: 0.4 × 10³ ten seconds later, and a round-trip time more.
        let beyond = after(24, 600_000, 4_000);
        assert!((4_330..4_560).contains(&beyond), "{beyond}");
    }

    #[test]
    fn on_short_paths_it_is_as_fast_as_reno() {
        // 10 ms: a segment for 1/α round trips is 1.9 in 36 ms, so some 530 in ten seconds; the function alone gives 4.
        let window = after(10, 10_000, 100);
        assert!((500..700).contains(&window), "{window}");
    }
}
